"""Exact nearest neighbours: FAISS proposes, one routine decides.

Scores are dot products in float64 rounded to float32, in the order (score descending, id ascending). A proposal is
accepted only where nothing outside it can reach the k-th score, so the result depends on neither blocks nor threads,
and top-k is a prefix of top-(k+n).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

SCAN_BYTES = 64 << 20
_FIRST_SPARE = 16
_LAST_PROPOSAL = 2_048


@dataclass(frozen=True)
class Search:
    """What a search may use; never part of an identity, for the answer does not depend on it.

    `scan_bytes` bounds the score blocks, `gpu` says that a FAISS on a GPU was probed and found right.
    """

    scan_bytes: int = SCAN_BYTES
    gpu: bool = False


ANYWHERE = Search()


class Found(NamedTuple):
    """The k best documents of each query: `numbers` int64 [n, k], -1 where fewer; `scores` float32 [n, k], -inf there.

    `barred` int64 [n]: how many excluded documents would have stood among the k.
    """

    numbers: np.ndarray
    scores: np.ndarray
    barred: np.ndarray


@dataclass(frozen=True)
class Lists:
    """For each query a list of document numbers: `items[starts[i]:starts[i + 1]]` belongs to query i."""

    starts: np.ndarray
    items: np.ndarray

    @staticmethod
    def of(lists: list[np.ndarray]) -> "Lists":
        """Return the given int arrays, one a query, laid end to end."""
        starts = np.concatenate([[0], np.cumsum([len(x) for x in lists], dtype=np.int64)])
        items = np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
        return Lists(starts.astype(np.int64), items.astype(np.int64))

    def counts(self) -> np.ndarray:
        """Return how many items each query has, int64 [n]."""
        return np.diff(self.starts)

    def take(self, rows: np.ndarray) -> "Lists":
        """Return the lists of these queries only."""
        return Lists.of([self.items[self.starts[r] : self.starts[r + 1]] for r in rows])

    def mask(self, candidates: np.ndarray, documents: int) -> np.ndarray:
        """Return which of the candidates [n, c] are in their query's list, bool [n, c]."""
        owner = np.repeat(np.arange(len(self.starts) - 1), self.counts())
        listed = owner * documents + self.items
        asked = np.arange(len(candidates))[:, None] * documents + candidates
        return np.isin(asked, listed) & (candidates >= 0)


def scores_of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the dot products along the last axis, computed in float64, rounded to float32."""
    return (left.astype(np.float64) * right.astype(np.float64)).sum(axis=-1).astype(np.float32)


def cosines_of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosines of unit vectors along the last axis, float32, clipped to [-1, 1] (a hair over 1 is 1)."""
    return np.clip(scores_of(left, right), -1.0, 1.0)


def top_k(
    queries: np.ndarray, documents: np.ndarray, k: int, excluded: Lists, search: Search = ANYWHERE
) -> Found:
    """Return the k best documents of each query that are not in its excluded list.

    Args:
        queries: float32 [n, D].
        documents: float32 [m, D], in the order of their ids: a smaller number wins a tie.
        k: how many, at least 1.
        excluded: document numbers that a query must not get.
        search: the memory and the device of the search; the result does not depend on them.

    Returns:
        Numbers and scores [n, k], and how many excluded documents would have stood among them [n].
    """
    count = len(documents)
    numbers = np.full((len(queries), k), -1, dtype=np.int64)
    scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
    barred = np.zeros(len(queries), dtype=np.int64)
    if not count or not len(queries):
        return Found(numbers, scores, barred)
    slack = _error_bound(queries, documents)
    index = _flat_index(documents)
    todo, width = np.arange(len(queries)), k + _FIRST_SPARE
    while len(todo) and width <= _LAST_PROPOSAL:
        width = min(width, count)
        short = []
        for block in _blocks(todo, width * queries.shape[1] * 8, search.scan_bytes):
            floors, proposed = index.search(np.ascontiguousarray(queries[block]), width)  # type: ignore[attr-defined]
            found = _decide(queries[block], documents, proposed, excluded.take(block), k)
            numbers[block], scores[block], barred[block] = found
            short.append(block[~(scores[block, -1] > floors[:, -1] + slack)])
        todo = np.concatenate(short) if width < count else todo[:0]
        width *= 4
    for row in todo:
        proposed = _within_reach(queries[row], documents, k + int(excluded.counts()[row]), 2 * slack)
        one = np.array([row])
        found = _decide(queries[one], documents, proposed[None, :], excluded.take(one), k)
        numbers[one], scores[one], barred[one] = found
    return Found(numbers, scores, barred)


def _within_reach(query: np.ndarray, documents: np.ndarray, k: int, reach: float) -> np.ndarray:
    """Return every document [c] whose float32 score comes within `reach` of the k-th best one."""
    scores = documents @ query
    if k >= len(scores):
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k] - reach)


def _decide(queries: np.ndarray, documents: np.ndarray, proposed: np.ndarray, excluded: Lists, k: int) -> Found:
    """Return the k best of the proposed [n, k] by exact score, then number; excluded ones never."""
    exact = scores_of(queries[:, None, :], documents[np.maximum(proposed, 0)])
    listed = excluded.mask(proposed, len(documents))
    known = exact.copy()
    exact[listed | (proposed < 0)] = -np.inf
    order = np.lexsort((proposed, -exact), axis=1)[:, :k]
    best = np.take_along_axis(exact, order, axis=1)
    found = np.where(np.isneginf(best), -1, np.take_along_axis(proposed, order, axis=1))
    missing = k - found.shape[1]
    found = np.pad(found, ((0, 0), (0, missing)), constant_values=-1)
    best = np.pad(best, ((0, 0), (0, missing)), constant_values=-np.inf)
    better = (known > best[:, -1:]) | ((known == best[:, -1:]) & (proposed < found[:, -1:]))
    return Found(found, best, (listed & better).sum(axis=1))


def _blocks(rows: np.ndarray, row_bytes: int, scan_bytes: int) -> list[np.ndarray]:
    """Return the rows in blocks whose exact scoring takes about `scan_bytes`, but never below one row."""
    size = max(1, scan_bytes // row_bytes)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _error_bound(queries: np.ndarray, documents: np.ndarray) -> float:
    """Return what a float32 dot product can be off by: dimension x 2^-24 x the lengths, and both roundings."""
    lengths = [float(np.sqrt(np.square(x, dtype=np.float64).sum(axis=1).max())) for x in (queries, documents)]
    return (queries.shape[1] + 4) * 2.0**-24 * 1.01 * lengths[0] * lengths[1]


def _flat_index(documents: np.ndarray) -> object:
    """Return a FAISS inner-product index over the documents."""
    import faiss

    index = faiss.IndexFlatIP(documents.shape[1])
    index.add(np.ascontiguousarray(documents))  # pyright: ignore
    return index
