"""Vectors to proposals: FAISS says which documents may be among the best, on the CPU or on a GPU.

A proposal is believed only to the error of a float32 dot product, and what it means is decided elsewhere. So a GPU has
to be right to that error, no more; `find_gpu` looks whether it is.
"""

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medi.errors import MediError
from medi.mine.scores import lengths_of, scores_of

if TYPE_CHECKING:
    import faiss

# (queries float32 [b, D], documents float32 [m, D], width <= m) -> scores float32 [b, width], numbers int64 [b, width]
Propose = Callable[[np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


class Proposal(NamedTuple):
    """For each query documents that may be among its best: `numbers` int64 [b, c], -1 where there are fewer.

    Their `scores` float [b, c] are off by at most `error` float64 [b]; no other document scores above `floor` [b].
    """

    numbers: np.ndarray
    scores: np.ndarray
    error: np.ndarray
    floor: np.ndarray


class Decided:
    """How many queries were `listed`, answered from a proposal shown to hold their best, and how many were `scanned`.

    Threads may count at once.
    """

    def __init__(self) -> None:
        self.listed = self.scanned = 0
        self._lock = Lock()

    def count(self, listed: int, scanned: int) -> None:
        """Add the queries of one search."""
        with self._lock:
            self.listed += listed
            self.scanned += scanned


# FAISS on a GPU finds no more, and on a CPU a scan of all documents costs no more than so long a list.
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

    try:
        # What FAISS keeps on a GPU must not be used by two threads at once.
        with _ONE_SEARCH:
            return faiss.knn_gpu(
                _gpu(),
                queries,
                documents,
                width,
                metric=faiss.METRIC_INNER_PRODUCT,
                vectorsMemoryLimit=_GPU_BYTES,
                queriesMemoryLimit=_GPU_BYTES,
            )
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise MediError(f"FAISS on the GPU fails ({reason}); CUDA_VISIBLE_DEVICES= builds on the CPU") from error


def threads() -> int:
    """Return how many threads FAISS uses on this CPU."""
    import faiss

    return faiss.omp_get_max_threads()


@cache
def _gpu() -> "faiss.StandardGpuResources":
    """Return what FAISS keeps on the GPU, made once a process."""
    import faiss

    return faiss.StandardGpuResources()


def find_gpu(say: Callable[[str], None]) -> bool:
    """Return whether FAISS has a GPU that finds what it should; `say` gets one line where it is there in vain."""
    import faiss

    if not hasattr(faiss, "StandardGpuResources"):
        return False
    fault = fault_of(by_gpu) if faiss.get_num_gpus() else "FAISS for GPUs finds no GPU"
    if fault:
        say(f"negatives are mined on the CPU: {fault}")
    return not fault


def fault_of(propose: Propose) -> str:
    """Return what is wrong with a GPU's proposals, in words; nothing where they can be believed.

    A tiny search is compared with exact scores: each within the error bound, and no document left out that scores more.
    """
    rng = np.random.default_rng(0)
    documents, queries = (rng.normal(size=(count, 48)).astype(np.float32) for count in (3_000, 8))
    exact = np.stack([scores_of(query, documents) for query in queries])
    slack = error_bound(lengths_of(queries, "query"), lengths_of(documents, "document"), 48)[:, None]
    for width in (10, LAST_PROPOSAL):
        try:
            scores, numbers = propose(queries, documents, width)
        except MediError as error:
            return str(error)
        if numbers.min() < 0 or any(len(set(row)) < width for row in numbers.tolist()):
            return f"FAISS on the GPU does not find {width} of {len(documents):,} vectors"
        if not (np.abs(np.take_along_axis(exact, numbers, axis=1) - scores) <= slack).all():
            return "FAISS on the GPU gives scores that are off by more than rounding"
        others = exact.copy()
        np.put_along_axis(others, numbers, -np.inf, axis=1)
        if (others.max(axis=1, keepdims=True) > scores.min(axis=1, keepdims=True) + slack).any():
            return "FAISS on the GPU misses nearest vectors"
    return ""


def error_bound(queries: np.ndarray, documents: np.ndarray, dimension: int) -> np.ndarray:
    """Return what a float32 dot product can be off by, float64 [n], from the vectors' lengths.

    Dimension x 2^-24 x both lengths, whatever the order of the sum, and the roundings of it and of the exact score.
    What is below 2^-126 may be taken for 0. It is infinite where a sum may be so on its way.
    """
    longest = documents.max(initial=0.0)
    flushed = dimension * 2.0**-126 * (1 + queries + longest)
    bound = (dimension + 4) * 2.0**-24 * 1.01 * queries * longest + flushed
    return np.where(queries * longest < 2.0**120, bound, np.inf)
