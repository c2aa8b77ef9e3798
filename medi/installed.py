"""What is installed -> nothing, or the one line that says what to install; packages are looked up, never imported.

FAISS is a choice: faiss-cpu and faiss-gpu both install the package `faiss`, and one overwrites half of the other.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.metadata import Distribution

from medi.errors import MediError

_CPU, _GPU = "faiss-cpu", ("faiss-gpu", "faiss-gpu-cu11", "faiss-gpu-cu12")


def check_faiss(path: Sequence[str] | None = None) -> None:
    """Pass where exactly one FAISS is installed on the path (sys.path where None).

    Raises:
        MediError: there is none, or one for the CPU and one for the GPU; the message has the pip commands.
    """
    folders = list(sys.path if path is None else path)
    here = [name for name in (_CPU, *_GPU) if any(Distribution.discover(name=name, path=folders))]
    if _CPU in here and len(here) > 1:
        raise MediError(
            f"{' and '.join(here)} are both installed, and each overwrites the other's package faiss; run: "
            f"pip uninstall -y {' '.join(here)}, then: pip install '.[cpu]' (or '.[gpu]')"
        )
    if PathFinder.find_spec("faiss", folders) is None:
        raise MediError("FAISS is not installed; run: pip install '.[cpu]' (or '.[gpu]' for a GPU)")
