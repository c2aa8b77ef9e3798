"""Vectors to proposals: FAISS says which documents may be among the best, on the CPU or on a GPU.

A proposal is believed only within the error of a float32 dot product; what it says is decided elsewhere. So a GPU
must be right to that error, no more, and `find_gpu` looks whether it is.
"""

from collections.abc import Callable
from functools import cache
from threading import Lock

import numpy as np

from medi.errors import MediError
from medi.mine.scores import lengths_of, scores_of

# (queries float32 [b, D], documents float32 [m, D], width <= m) -> scores float32 [b, width], numbers int64 [b, width]
Propose = Callable[[np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]
# FAISS on a GPU finds no more; on a CPU it keeps twice as many for each query, and a scan costs no more.
LAST_PROPOSAL = 2_048
_GPU_BYTES = 512 << 20
_ONE_SEARCH = Lock()


def by_cpu(queries: np.ndarray, documents: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores float32 [b, width] and numbers int64 [b, width] that FAISS finds without an index.

    The documents are read where they lie, memory-mapped or not.
    """
    import faiss

    return faiss.knn(queries, documents, width, metric=faiss.METRIC_INNER_PRODUCT)


def by_gpu(queries: np.ndarray, documents: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what `by_cpu` returns, found on the GPU; the documents go there in pieces.

    Raises:
        MediError: the GPU failed.
    """
    import faiss

    limits = {"vectorsMemoryLimit": _GPU_BYTES, "queriesMemoryLimit": _GPU_BYTES}
    try:
        # What FAISS keeps on a GPU must not be used by two threads at once.
        with _ONE_SEARCH:
            return faiss.knn_gpu(_gpu(), queries, documents, width, metric=faiss.METRIC_INNER_PRODUCT, **limits)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise MediError(
            f"FAISS failed on the GPU: {reason}; build again, with CUDA_VISIBLE_DEVICES= on the CPU"
        ) from error


def threads() -> int:
    """Return how many threads FAISS uses on this CPU."""
    import faiss

    return faiss.omp_get_max_threads()


@cache
def _gpu() -> object:
    """Return what FAISS keeps on the GPU, made once a process."""
    import faiss

    return faiss.StandardGpuResources()


def find_gpu(say: Callable[[str], None]) -> bool:
    """Return whether FAISS has a GPU that finds what it should; `say` gets one line where it is there in vain."""
    import faiss

    if not hasattr(faiss, "StandardGpuResources"):
        return False
    fault = "it finds no GPU" if not faiss.get_num_gpus() else fault_of(by_gpu)
    if fault:
        say(f"FAISS is installed for GPUs, but {fault}: negatives are mined on the CPU")
    return not fault


def fault_of(propose: Propose) -> str:
    """Return what is wrong with proposals, as the end of a sentence; nothing where they can be believed.

    A tiny search is compared with exact scores: every score within the error bound, every better document there.
    """
    rng = np.random.default_rng(0)
    documents, queries = (rng.normal(size=(count, 48)).astype(np.float32) for count in (3_000, 8))
    exact = np.stack([scores_of(query[None, :], documents) for query in queries])
    slack = error_bound(lengths_of(queries, "query"), lengths_of(documents, "document"), 48)[:, None]
    for width in (10, LAST_PROPOSAL):
        try:
            scores, numbers = propose(queries, documents, width)
        except MediError as error:
            return str(error)
        if numbers.min() < 0 or any(len(set(row)) < width for row in numbers.tolist()):
            return f"it does not find {width} of {len(documents)} vectors"
        if (np.abs(np.take_along_axis(exact, numbers, axis=1) - scores) > slack).any():
            return "its scores are off by more than a float32 can be"
        rest = exact.copy()
        np.put_along_axis(rest, numbers, -np.inf, axis=1)
        if (rest.max(axis=1, keepdims=True) > scores.min(axis=1, keepdims=True) + slack).any():
            return "it misses the nearest vectors"
    return ""


def error_bound(queries: np.ndarray, documents: np.ndarray, dimension: int) -> np.ndarray:
    """Return what a float32 dot product can be off by, float64 [n], from the vectors' lengths.

    Dimension x 2^-24 x both lengths, whatever the order of the sum, and the roundings of it and of the exact score.
    """
    return (dimension + 4) * 2.0**-24 * 1.01 * queries * documents.max(initial=0.0)
