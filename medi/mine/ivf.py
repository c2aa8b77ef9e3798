"""Nearest neighbours of very many: an inverted file by k-means, of which each query looks into its nearest lists only.

Within lists the exact search decides, so scores and order are exact, and only a neighbour in a list that nobody looked
into is missed. How many lists a query needs is measured: the share of the true neighbours of some queries that they
hold. Nothing depends on blocks, memory or threads: centroids are trained by one thread, all else is searched exactly.

Beside what is found it takes 24 bytes a document, blocks of `scan_bytes`, what the exact search of some queries takes
(with matrix units all documents in bfloat16), and while centroids are trained 256 bytes a list and dimension, 200 MB
for 1,024 lists of 768. The vectors themselves stay where they are.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from medi.mine.documents import Documents
from medi.mine.scores import NOTHING
from medi.mine.search import Found, Lists, Search, keys_of, read_keys, scores_of, top_k
from medi.mine.vectors import Rows

# What the lists of a query must hold of its true neighbours, on average.
LEAST_RECALL = 0.99
# Queries that are also searched exactly; their mean recall is lowered by so many standard errors, for all the others.
_SAMPLED, _ERRORS = 512, 3
# Lists that hold a greater share of the documents save less time than they take.
_MOST_SHARE = 0.2
# Of each list that a query looks into some documents get exact scores, so there are not too many; and at least as many
# that few documents lie far from their list's centre.
_LIST_ROWS, _LEAST_LISTS, _MOST_LISTS = 1_024, 32, 1_024
_TRAINED_ROWS, _ITERATIONS = 64, 10
# Taken of a list at first, but of a query's nearest.
_FIRST = 16
# A block has at least so many queries, so that most lists are asked by several; pairs whose scores are taken at once.
_LEAST_BLOCK, _PAIRS = 1_024, 1_024


class Outcome(NamedTuple):
    """What was found, and how: `facts` are flat, with a JSON form.

    documents and queries; lists, and probes of each query (all lists where everything was searched exactly); the
    recall of the k, measured of `sampled` queries; how many queries were searched exactly in the end.
    """

    found: Found
    facts: dict[str, object]


@dataclass(frozen=True)
class Inverted:
    """Documents in lists: the `centroids` float32 [l, D], of each document its list and its place there, int64 [m].

    `order` int64 [m] holds the documents list by list, by number in each; list i is `order[starts[i]:starts[i + 1]]`.
    """

    documents: Documents
    centroids: Documents
    list_of: np.ndarray
    place_in_list: np.ndarray
    order: np.ndarray
    starts: np.ndarray
    search: Search

    @staticmethod
    def of(documents: Documents, search: Search) -> "Inverted":
        """Return the documents, each in the list of the centroid it scores highest with; of equal ones the first."""
        centroids = Documents.of(_trained(documents.vectors))
        nearest = top_k(documents.vectors, centroids, 1, _none(len(documents)), search).numbers[:, 0]
        order = np.argsort(nearest, kind="stable")
        starts = np.searchsorted(nearest[order], np.arange(len(centroids) + 1))
        place_in_list = np.empty(len(order), dtype=np.int64)
        place_in_list[order] = np.arange(len(order)) - starts[nearest[order]]
        return Inverted(documents, centroids, nearest, place_in_list, order, starts, search)

    def nearest(self, queries: Rows, probes: int) -> np.ndarray:
        """Return the lists nearest to each query, nearest first, int64 [n, probes]."""
        return top_k(queries, self.centroids, probes, _none(len(queries)), self.search).numbers

    def members(self, number: int) -> np.ndarray:
        """Return the documents of a list in ascending order, int64 [c]."""
        return self.order[self.starts[number] : self.starts[number + 1]]


def top_k_of_many(
    queries: np.ndarray | Rows, documents: np.ndarray | Rows, k: int, excluded: Lists, search: Search
) -> Outcome:
    """Return nearly the k best documents of each query: as `search.top_k`, but for documents in lists far away.

    `barred` are excluded documents within the lists looked into. A query that finds fewer than k there is searched
    exactly, and so are all where the lists would have to hold most of the documents.

    Raises:
        MediError: a vector is not finite or has no length.
    """
    asked, among = Rows.of(queries), Documents.of(documents)
    facts: dict[str, object] = {"documents": len(among), "queries": len(asked)}
    if not len(asked) or not len(among.lengths):
        return Outcome(top_k(asked, among, k, excluded, search), facts)
    inverted = Inverted.of(among, search)
    lists = len(inverted.centroids)
    sample = _spread(len(asked), _SAMPLED)
    probes, recall = _probes(inverted, _some(asked, sample), k, _lists_at(excluded, sample))
    facts |= {"lists": lists, "probes": probes, "recall": round(recall, 4), "sampled": len(sample)}
    if probes == lists:
        found = top_k(asked, among, k, excluded, search)
        return Outcome(found, facts | {"searched_exactly": len(asked)})
    found = Found(
        np.empty((len(asked), k), dtype=np.int64),
        np.empty((len(asked), k), dtype=np.float32),
        np.empty(len(asked), dtype=np.int64),
    )
    size = max(_LEAST_BLOCK, search.scan_bytes // (48 * probes + 32 * k))
    for start in range(0, len(asked), size):
        rows = slice(start, min(start + size, len(asked)))
        block = _Block(inverted, _some(asked, np.arange(rows.start, rows.stop)), probes, k, excluded.part(rows))
        for part, answer in zip(found, block.answer(), strict=True):
            part[rows] = answer
    short = np.flatnonzero(found.numbers[:, -1] < 0)
    exact = top_k(_some(asked, short), among, k, _lists_at(excluded, short), search)
    for part, answer in zip(found, exact, strict=True):
        part[short] = answer
    return Outcome(found, facts | {"searched_exactly": len(short)})


def _trained(documents: Rows) -> np.ndarray:
    """Return FAISS's centroids of some of the documents, unit vectors float32 [l, D].

    One thread: the last bits of its products, and so centroids, depend on how many there are.
    """
    import faiss

    count = min(max(len(documents) // _LIST_ROWS, _LEAST_LISTS), math.isqrt(len(documents)), _MOST_LISTS)
    rows = _spread(len(documents), count * _TRAINED_ROWS)
    kmeans = faiss.Kmeans(
        documents.dimension, count, niter=_ITERATIONS, seed=0, spherical=True, min_points_per_centroid=1
    )
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        kmeans.train(documents.part(rows))
    finally:
        faiss.omp_set_num_threads(threads)
    return np.asarray(kmeans.centroids)


def _probes(inverted: Inverted, queries: Rows, k: int, excluded: Lists) -> tuple[int, float]:
    """Return into how many lists a query must look, and the recall of these queries then; all lists where most must be.

    A list that holds a true neighbour gives it, so the recall follows from where the true ones are.
    """
    lists, sizes = len(inverted.centroids), np.diff(inverted.starts)
    true = top_k(queries, inverted.documents, k, excluded, inverted.search).numbers
    nearest = inverted.nearest(queries, lists)
    rank_of = np.empty_like(nearest)
    np.put_along_axis(rank_of, nearest, np.arange(lists)[None, :], axis=1)
    rows, columns = np.nonzero(true >= 0)
    held = np.zeros(nearest.shape, dtype=np.int64)
    np.add.at(held, (rows, rank_of[rows, inverted.list_of[true[rows, columns]]]), 1)
    there = np.maximum(held.sum(axis=1, keepdims=True), 1)
    # Of each query, by the number of lists. One that has no neighbours misses none.
    recall = np.where(held.any(axis=1, keepdims=True), held.cumsum(axis=1) / there, 1.0)
    sure = recall.mean(axis=0) - _ERRORS * recall.std(axis=0) / math.sqrt(len(recall))
    # All lists hold all, without an error.
    probes = int(np.argmax(sure >= LEAST_RECALL)) + 1
    share = sizes[nearest[:, :probes]].sum() / (len(nearest) * len(inverted.documents))
    return (lists, 1.0) if share > _MOST_SHARE else (probes, float(recall[:, probes - 1].mean()))


class _Block:
    """Some neighbouring queries, the lists each looks into, and the best that was found so far."""

    def __init__(self, inverted: Inverted, queries: Rows, probes: int, k: int, excluded: Lists) -> None:
        self._inverted, self._queries = inverted, queries
        nearest = inverted.nearest(queries, probes)
        # Places in `nearest` list by list: who looks into each.
        self._order, self._probes = np.argsort(nearest, axis=None, kind="stable"), probes
        self._starts = np.searchsorted(nearest.ravel()[self._order], np.arange(len(inverted.starts)))
        self._best = np.full((len(queries), k), NOTHING)
        self._barred = _barred_within(inverted, nearest, excluded)

    def answer(self) -> Found:
        """Return what the queries find in their lists."""
        k, count = self._best.shape[1], len(self._order)
        nearest = np.arange(count) % self._probes == 0
        self._look(nearest, k, 0)
        # Of most of the other lists few are among the best: where all that was taken is, the rest may be.
        last = self._look(~nearest, min(_FIRST, k), 0)
        if _FIRST < k:
            self._look(last < self._best[:, -1].repeat(self._probes), k, _FIRST)
        return Found(*read_keys(self._best), self._count_barred())

    def _look(self, chosen: np.ndarray, width: int, known: int) -> np.ndarray:
        """Take the best `width`, but the `known` first, that queries find in their `chosen` lists, bool [n * p].

        Returns the key of the last of each, int64 [n * p]; NOTHING where there are fewer, and of lists not chosen.
        """
        last = np.full(len(chosen), NOTHING)
        for number in range(len(self._starts) - 1):
            places = self._order[self._starts[number] : self._starts[number + 1]]
            places = places[chosen[places]]
            if len(places):
                rows = places // self._probes
                keys = self._keys(number, rows, width)
                both = np.hstack([self._best[rows], keys[:, known:]])
                both.sort(axis=1)
                self._best[rows] = both[:, : self._best.shape[1]]
                last[places] = keys[:, -1]
        return last

    def _keys(self, number: int, rows: np.ndarray, width: int) -> np.ndarray:
        """Return the keys of what some queries find in a list, int64 [r, width]."""
        members = self._inverted.members(number)
        documents = _some(self._inverted.documents.vectors, members)
        found = top_k(_some(self._queries, rows), documents, width, self._excluded(number, rows), self._inverted.search)
        keys = np.full(found.numbers.shape, NOTHING)
        there = found.numbers >= 0
        keys[there] = keys_of(found.scores[there], members[found.numbers[there]])
        return keys

    def _excluded(self, number: int, rows: np.ndarray) -> Lists:
        """Return what of a list the queries must not get, by its place there."""
        barred = self._barred
        part = slice(barred.starts[number], barred.starts[number + 1])
        at = np.searchsorted(rows, barred.rows[part])
        asked = at < len(rows)
        asked[asked] = rows[at[asked]] == barred.rows[part][asked]
        starts = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(np.bincount(at[asked], minlength=len(rows)), out=starts[1:])
        return Lists(starts, self._inverted.place_in_list[barred.items[part][asked]])

    def _count_barred(self) -> np.ndarray:
        """Return how many excluded documents of the lists would have stood among the best, int64 [n]."""
        counts, barred = np.zeros(len(self._best), dtype=np.int64), self._barred
        for start in range(0, len(barred.rows), _PAIRS):
            rows, items = barred.rows[start : start + _PAIRS], barred.items[start : start + _PAIRS]
            scores = scores_of(self._queries.part(rows), self._inverted.documents.vectors.part(items))
            ahead = rows[keys_of(scores, items) < self._best[rows, -1]]
            counts += np.bincount(ahead, minlength=len(counts))
        return counts


class _Barred(NamedTuple):
    """Pairs of a query and a document that it must not get, list by list, by query in each: `rows` and `items` [p]."""

    rows: np.ndarray
    items: np.ndarray
    starts: np.ndarray


def _barred_within(inverted: Inverted, nearest: np.ndarray, excluded: Lists) -> _Barred:
    """Return the excluded documents of queries that are in the lists these look into, given as `nearest` [n, p]."""
    rows = np.repeat(np.arange(len(nearest)), np.diff(excluded.starts))
    # A document may be named twice.
    rows, items = np.divmod(np.unique(rows * len(inverted.documents) + excluded.items), len(inverted.documents))
    lists = len(inverted.centroids)
    looked_into = np.zeros((len(nearest), lists), dtype=bool)
    np.put_along_axis(looked_into, nearest, True, axis=1)
    within = looked_into[rows, inverted.list_of[items]]
    rows, items = rows[within], items[within]
    order = np.argsort(inverted.list_of[items], kind="stable")
    rows, items = rows[order], items[order]
    return _Barred(rows, items, np.searchsorted(inverted.list_of[items], np.arange(lists + 1)))


def _spread(count: int, wanted: int) -> np.ndarray:
    """Return so many of the numbers below `count`, evenly spread; what is in the order of ids, hashes, is drawn so."""
    wanted = min(wanted, count)
    return np.arange(wanted) * count // wanted


def _some(vectors: Rows, numbers: np.ndarray) -> Rows:
    """Return some of the vectors, by number, where they lie."""
    return Rows(vectors.matrix, vectors.places(numbers), vectors.negated)


def _lists_at(lists: Lists, rows: np.ndarray) -> Lists:
    """Return the lists of some queries."""
    return Lists.of([lists.items[lists.starts[row] : lists.starts[row + 1]] for row in rows.tolist()])


def _none(count: int) -> Lists:
    """Return empty lists of so many queries."""
    return Lists(np.zeros(count + 1, dtype=np.int64), np.empty(0, dtype=np.int64))
