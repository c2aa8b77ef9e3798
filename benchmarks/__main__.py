"""Runs all paired benchmarks and writes benchmarks/RESULTS.md: `python -m benchmarks [NAME ...] [--repeats N]`.

With names, only those run, and only their sections are replaced. What other machines gave, and sections of other
titles, as that of the training step, stay as they are.
"""

import argparse
import importlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from benchmarks import paired
from benchmarks.machine import machine

NAMES = ("ingest", "embed", "embed_t5", "two_space", "hard_negatives", "ivf", "shards", "overhead", "growth")
RESULTS = Path(__file__).with_name("RESULTS.md")
_OPENING = """# Results

Written by `make bench`: a fresh process for each way, two threads, ways in turn, medians; by machine. A section says
which commit was measured ("before commit" is of a time when the page kept none). What was learned, and more of the
trainer, is in [NOTES.md](NOTES.md).
"""
_VERSIONS = ("torch", "faiss-cpu", "sentence-transformers", "datasets", "pyarrow", "numpy", "isal", "prefect")


def main() -> None:
    """Run what was asked for, and write the page after each section, so that a run that is cut loses little."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--repeats", type=int, metavar="N", help="rounds of each; else as many as each says itself")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in NAMES]:
        parser.error(f"{unknown[0]}: there is no such benchmark; give some of {', '.join(NAMES)}")
    for name in options.names:
        benchmark = importlib.import_module(f"benchmarks.{name}").BENCHMARK
        page = machines_of(RESULTS.read_text() if RESULTS.exists() else "")
        own = page.setdefault(machine(), Machine())
        own.about = versions()
        own.sections[benchmark.title] = paired.section(benchmark, options.repeats or benchmark.repeats)
        RESULTS.write_text(written(page))


@dataclass
class Machine:
    """What was measured on one machine: `about` are the versions that measured, `sections` are texts by title."""

    about: str = ""
    sections: dict[str, str] = field(default_factory=dict)


def machines_of(page: str) -> dict[str, Machine]:
    """Return what a page holds, by machine."""
    found = {}
    for part in re.split(r"^## ", page, flags=re.M)[1:]:
        head, *sections = re.split(r"^### ", part, flags=re.M)
        name, _, about = head.partition("\n")
        texts = {text.partition("\n")[0]: f"### {text.rstrip()}\n" for text in sections}
        found[name] = Machine(about.strip(), texts)
    return found


def written(page: Mapping[str, Machine]) -> str:
    """Return a page: its sections in the order in which `make bench` runs them, others at the end."""
    titles = [importlib.import_module(f"benchmarks.{name}").BENCHMARK.title for name in NAMES]
    parts = [_OPENING]
    for name, own in page.items():
        parts.append(f"## {name}\n\n{own.about}\n")
        others = [title for title in own.sections if title not in titles]
        parts += [own.sections[title] for title in [*titles, *others] if title in own.sections]
    return "\n".join(parts)


def versions() -> str:
    """Return the versions of what is measured and of what measures."""
    found = ", ".join(f"{name} {metadata.version(name)}" for name in _VERSIONS)
    return f"Python {platform.python_version()}, {found}."


if __name__ == "__main__":
    main()
