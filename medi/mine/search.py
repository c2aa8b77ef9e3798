"""Exact nearest neighbours: FAISS or a shortlist proposes, one routine decides.

The order is (exact score descending, number ascending). A proposal is accepted only where nothing outside it can reach
the k-th score; the other queries are scanned whole. So the answer depends on neither blocks, memory, threads nor GPU,
and top-k is a prefix of top-(k+n).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from medi.lanes import MOST_LANES, lanes
from medi.mine.documents import Documents
from medi.mine.engine import LAST_PROPOSAL, Decided, Proposal, Propose, by_cpu, by_gpu, error_bound, threads
from medi.mine.mirrored import Block, blocks_of, meet_all
from medi.mine.scores import NOTHING, cosines_of, keys_of, lengths_of, read_keys, scores_at, scores_of
from medi.mine.shortlist import block_rows
from medi.mine.singles import Singles
from medi.mine.vectors import Rows

__all__ = ["SCAN_BYTES", "Found", "Lists", "Search", "cosines_of", "scores_of", "top_k"]

SCAN_BYTES = 64 << 20
# Proposed beside the k: some, so that the last of them scores clearly below the k-th, and some for those excluded.
_SPARE, _MOST_EXCLUDED = 6, 64
# What a proposed document takes at most (FAISS's lists; numbers, keys and marks), and a query in FAISS's own block.
_PROPOSED_BYTES, _QUERY_BYTES = 96, 4_096
# What one document takes while a query is decided that was scanned: its key twice, its number, scores and marks.
_SCANNED_BYTES = 64
# Documents whose scores are taken at once where all are scanned.
_SCANNED_TOGETHER = 4_096


@dataclass(frozen=True)
class Search:
    """What a search may use; never part of an identity, for the answer does not depend on it.

    `scan_bytes` bounds the blocks of a search (but never below one query), `gpu` says that `find_gpu` found one;
    `decided` counts how its queries were answered.
    """

    scan_bytes: int = SCAN_BYTES
    gpu: bool = False
    decided: Decided = field(default_factory=Decided, compare=False)


ANYWHERE = Search()


class Found(NamedTuple):
    """The k best documents of each query: `numbers` int64 [n, k], -1 where fewer; `scores` float32 [n, k], -inf there.

    `barred` int64 [n]: how many excluded documents would have stood among the k.
    """

    numbers: np.ndarray
    scores: np.ndarray
    barred: np.ndarray

    @staticmethod
    def nothing(count: int, k: int) -> "Found":
        """Return what so many queries find among no documents."""
        numbers, scores = np.full((count, k), -1, dtype=np.int64), np.full((count, k), -np.inf, dtype=np.float32)
        return Found(numbers, scores, np.zeros(count, dtype=np.int64))


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

    @staticmethod
    def runs(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> "Lists":
        """Return `values[low[i]:high[i]]`, of int64 [n], as the list of query i."""
        lengths = high - low
        starts = np.concatenate([[0], np.cumsum(lengths)])
        return Lists(starts, values[np.repeat(low - starts[:-1], lengths) + np.arange(starts[-1])])

    def each(self) -> Iterator[np.ndarray]:
        """Yield the list of each query."""
        return (self.items[start:end] for start, end in pairwise(self.starts.tolist()))

    def part(self, rows: slice) -> "Lists":
        """Return the lists of some neighbouring queries."""
        starts = self.starts[rows.start : rows.stop + 1]
        return Lists(starts - starts[0], self.items[starts[0] : starts[-1]])

    def mask(self, candidates: np.ndarray, documents: int) -> np.ndarray:
        """Return which of the candidates [n, c] are in their query's list, bool [n, c]; all are below `documents`."""
        listed = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts)) * documents + self.items
        if not len(listed):
            return np.zeros(candidates.shape, dtype=bool)
        listed.sort()
        asked = np.arange(len(candidates))[:, None] * documents + candidates
        nearest = np.minimum(np.searchsorted(listed, asked), len(listed) - 1)
        return (listed[nearest] == asked) & (candidates >= 0)


@dataclass(frozen=True)
class _Task:
    """What is looked for: k of the documents for each query [n, D], but none of its excluded ones.

    `lengths` float64 [n] are those of the queries, `slack` [n] what a query's scores in float32 may be off by.
    """

    queries: Rows
    documents: Documents
    k: int
    excluded: Lists
    lengths: np.ndarray
    slack: np.ndarray

    @property
    def is_mirrored(self) -> bool:
        """Return whether the documents search among themselves in both spaces, by products in float32."""
        return self.queries.are_twice(self.documents.vectors) and isinstance(self.documents.proposer, Singles)


def top_k(
    queries: np.ndarray | Rows,
    documents: np.ndarray | Rows | Documents,
    k: int,
    excluded: Lists,
    search: Search = ANYWHERE,
    propose: Propose | None = None,
) -> Found:
    """Return the k best documents of each query that are not in its excluded list.

    Args:
        queries: float32 [n, D], an array or rows of one.
        documents: float32 [m, D], likewise or `Documents`, in the order of their ids: a smaller number wins a tie.
        k: how many, at least 1.
        excluded: numbers of documents that a query must not get.
        search: the memory and the device of the search; the result does not depend on them.
        propose: what proposes documents; where None, FAISS on the GPU, shortlists where they suit, or FAISS on the CPU.

    Returns:
        Numbers and scores [n, k], and how many excluded documents would have stood among them [n]: all of them where
        fewer than k others are there.

    Raises:
        MediError: a vector is not finite or has no length.
    """
    count = len(queries)
    found = Found.nothing(count, k)
    if not count or not len(documents):
        return found
    queries, documents = Rows.of(queries), Documents.of(documents)
    of_documents = queries.are_twice(documents.vectors)
    lengths = np.repeat(documents.lengths, 2) if of_documents else lengths_of(queries, "query")
    slack = error_bound(lengths, documents.lengths, queries.dimension)
    task = _Task(queries, documents, k, excluded, lengths, slack)
    left, width = np.arange(count), min(k + _SPARE + _often(excluded), len(documents))
    if propose is None and not search.gpu and documents.suit_shortlists(k + _MOST_EXCLUDED):
        left = _by_shortlists(task, search.scan_bytes, found)
    elif width <= LAST_PROPOSAL:
        left = _by_faiss(task, width, propose or (by_gpu if search.gpu else by_cpu), search.scan_bytes, found)
    _scan(task, left, search.scan_bytes, found)
    search.decided.count(count - len(left), len(left))
    return found


def _often(excluded: Lists) -> int:
    """Return how many documents are excluded at nine queries of ten; those with more can still be scanned."""
    return min(int(np.quantile(np.diff(excluded.starts), 0.9, method="higher")), _MOST_EXCLUDED)


def _by_faiss(task: _Task, width: int, propose: Propose, scan_bytes: int, found: Found) -> np.ndarray:
    """Answer the queries whose proposal by FAISS is certain to hold the k best, and return the others' numbers."""
    left, documents = [], task.documents.vectors.part(slice(None))
    for rows in _blocks(len(task.queries), width * _PROPOSED_BYTES + _QUERY_BYTES, scan_bytes):
        scores, numbers = propose(task.queries.part(rows), documents, width)
        error = task.slack[rows]
        floor = np.full(len(error), -np.inf) if width == len(task.documents) else scores.min(axis=1) + error
        floor[(numbers < 0).any(axis=1)] = np.inf
        left.append(_settle(task, rows, Proposal(numbers, scores, error, floor), threads(), found))
    return np.concatenate(left)


def _by_shortlists(task: _Task, scan_bytes: int, found: Found) -> np.ndarray:
    """Answer the queries whose shortlist is certain to hold the k best, and return the numbers of the others.

    A lane has one thread and its own blocks of queries: so all steps run beside each other, not only the products.
    """
    proposer, count, at_once = task.documents.proposer, len(task.queries), min(threads(), MOST_LANES)
    wanted = task.k + np.minimum(np.diff(task.excluded.starts), _MOST_EXCLUDED)
    size = block_rows(proposer.kept, count, at_once, scan_bytes)
    blocks = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    meeting = blocks_of(wanted, task.slack, at_once, scan_bytes) if task.is_mirrored else []

    def answer(rows: slice) -> np.ndarray:
        """Answer some queries."""
        return _settle(task, rows, proposer.best(task.queries, rows, task.lengths[rows], wanted[rows]), 1, found)

    def answer_met(block: Block) -> np.ndarray:
        """Answer the queries of a block that has met all others."""
        return _settle(task, block.queries, block.proposal(), 1, found)

    with lanes(at_once) as pool:
        meet_all(meeting, task.documents.vectors, task.queries.negated or 0, pool, at_once)
        return np.concatenate(list(pool.map(answer_met, meeting) if meeting else pool.map(answer, blocks)))


def _settle(task: _Task, rows: slice, proposal: Proposal, threads: int, found: Found) -> np.ndarray:
    """Write the answers of a block into `found`, and return the numbers of the queries whose answer is not certain.

    It is where the k-th scores above all that was not proposed, if this proposer's scores can be believed.
    """
    numbers = proposal.numbers
    exact = _exact(task, rows, numbers, threads)
    listed = task.excluded.part(rows).mask(numbers, len(task.documents))
    _decide(exact, numbers, listed, Found(*(part[rows] for part in found)))
    with np.errstate(invalid="ignore", over="ignore"):
        believed = ((numbers < 0) | (np.abs(exact - proposal.scores) <= proposal.error[:, None])).all(axis=1)
    enough = np.isneginf(proposal.floor) | (found.scores[rows, -1] > proposal.floor)
    return rows.start + np.flatnonzero(~(believed & enough))


def _scan(task: _Task, queries: np.ndarray, scan_bytes: int, found: Found) -> None:
    """Answer these queries from their float32 scores with all documents: exact are those that can be among the k."""
    count = len(task.documents)
    listed = np.zeros(count, dtype=bool)
    blocks = _blocks(len(queries), count * 4, scan_bytes - count * _SCANNED_BYTES)
    # One array for all blocks, else two would be there whenever a new one is made.
    scores = np.empty((blocks[0].stop if blocks else 0, count), dtype=np.float32)
    for block in blocks:
        rows = queries[block]
        asked = task.queries.part(rows)
        # Sums that are too large for float32 have an infinite slack: all documents get exact scores then.
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, count, _SCANNED_TOGETHER):
                part = slice(start, start + _SCANNED_TOGETHER)
                np.matmul(asked, task.documents.vectors.part(part).T, out=scores[: len(rows), part])
        for row, own in zip(rows.tolist(), scores, strict=False):
            one = slice(row, row + 1)
            barred = task.excluded.part(one).items
            listed[barred] = True
            near = _near(own, listed, task.k, np.float64(2 * task.slack[row]))[None, :]
            exact = _exact(task, one, near, 1)
            _decide(exact, near, listed[near], Found(*(part[one] for part in found)))
            listed[barred] = False


def _exact(task: _Task, rows: slice, numbers: np.ndarray, threads: int) -> np.ndarray:
    """Return the exact scores of some queries with their own documents, by number [b, c], float32 [b, c]."""
    documents = task.documents.vectors
    return scores_at(task.queries.part(rows), documents.matrix, documents.places(numbers), threads)


def _near(scores: np.ndarray, listed: np.ndarray, k: int, reach: np.float64) -> np.ndarray:
    """Return the documents whose score comes within `reach` of the k-th best that is not listed, int64 [c]."""
    if len(scores) <= k:
        return np.arange(len(scores))
    allowed = np.where(listed, np.float32(-np.inf), scores)
    allowed.partition(len(scores) - k)
    # Not `scores >= ...`: a length so great that a float32 overflows must let documents in, not out.
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(~(scores < allowed[-k] - reach))


def _decide(exact: np.ndarray, numbers: np.ndarray, listed: np.ndarray, found: Found) -> None:
    """Write into `found` the k best of the proposed documents [n, c] that are not listed, by exact score and number."""
    keys = np.where(numbers < 0, NOTHING, keys_of(exact, numbers))
    best = np.where(listed, NOTHING, keys)
    best.sort(axis=1)
    k = found.numbers.shape[1]
    best = best[:, :k]
    found.numbers[:, : best.shape[1]], found.scores[:, : best.shape[1]] = read_keys(best)
    last = best[:, -1:] if best.shape[1] == k else NOTHING
    found.barred[:] = (listed & (keys < last)).sum(axis=1)


def _blocks(count: int, row_bytes: int, scan_bytes: int) -> list[slice]:
    """Return slices over 0..count whose rows take about `scan_bytes`, but never less than one row."""
    size = max(1, scan_bytes // row_bytes)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
