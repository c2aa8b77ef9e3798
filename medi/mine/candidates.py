"""Stage `candidates`: for each of the ROWS the 64 nearest rows it may be paired with, and their scores.

What a row must never get is left out here already: itself, its known positives, and every text that is one of those to
the encoder. So whatever is chosen among the candidates later, no positive becomes a negative (design section 7).
"""

import numpy as np
import pyarrow as pa

from medi.mine.ivf import Outcome, top_k_of_many
from medi.mine.search import Found, Lists, Search, top_k
from medi.mine.texts import Known, PairRules, Texts, conflicting, equal_to, known_positives
from medi.mine.two_space import nearest_in_both
from medi.mine.vectors import Rows
from medi.profiles import CANDIDATES_KEPT
from medi.schema import CANDIDATES, Counts

_Side = tuple[np.ndarray, np.ndarray, np.ndarray]
_Facts = dict[str, object]


def pair_candidates(
    rows: pa.Table, texts: Texts, rules: PairRules, strategy: str, search: Search, ivf_from: int | None = None
) -> tuple[pa.Table, Counts]:
    """Return CANDIDATES of an embedding set, a line for each of the ROWS in their order.

    A candidate is the number of a row, and stands for its positive; the first row of each distinct document does, and
    with strategy `s_neg` every row. Rows whose positive is the query to the encoder have no candidates and are none.
    Among `ivf_from` documents or more they are looked for in an inverted file, and `facts` say what came of it.
    """
    known = known_positives(rows, texts, rules)
    queries, documents = (texts.classes(rows[column].to_pylist()) for column in ("query", "positive"))
    usable = np.flatnonzero(queries != documents)
    search_rows = _by_s_neg if strategy == "s_neg" else _by_passage
    side, facts = search_rows(rows.take(usable), usable, texts, known, (search, ivf_from))
    return _table(rows, usable, None, side, facts)


def label_candidates(rows: pa.Table, texts: Texts, search: Search) -> tuple[pa.Table, Counts]:
    """Return CANDIDATES of a label task: the nearest of the same label as positives, of other labels as negatives.

    Rows of one text to the encoder with two labels have none and are none.
    """
    labels = np.array(rows["label"].to_pylist(), dtype=object)
    queries = rows["query"].to_pylist()
    places, classes = texts.vector_of[texts.numbers(queries)], texts.classes(queries)
    usable = ~conflicting(classes, labels)
    sides = tuple((_numbers(len(rows)), _scores(len(rows)), np.zeros(len(rows), dtype=np.int64)) for _ in range(2))
    for label in sorted(set(labels[usable].tolist())):
        inside, outside = np.flatnonzero(usable & (labels == label)), np.flatnonzero(usable & (labels != label))
        for side, pool in zip(sides, (inside, outside), strict=True):
            barred = equal_to(classes[inside], classes[pool])
            asked, among = (Rows(texts.vectors, places[part]) for part in (inside, pool))
            found = top_k(asked, among, CANDIDATES_KEPT, barred, search)
            if len(pool):
                side[0][inside] = np.where(found.numbers >= 0, pool[found.numbers], -1)
            side[1][inside], side[2][inside] = np.clip(found.scores, -1, 1), found.barred
    every = np.arange(len(rows))
    return _table(rows, every, sides[0], sides[1])


def text_candidates(rows: pa.Table, texts: Texts, search: Search) -> tuple[pa.Table, Counts]:
    """Return CANDIDATES of a text task: by s_pos as positives, by s_neg as negatives (paper 2.3)."""
    inputs, outputs = (texts.vectors_of(rows[column].to_pylist()) for column in ("query", "output"))
    classes = texts.classes(rows["query"].to_pylist())
    both = nearest_in_both(inputs, outputs, CANDIDATES_KEPT, equal_to(classes, classes), search)
    # A sum of two cosines may be a hair over 2, as a cosine may be over 1.
    sides = [(found.numbers, np.clip(found.scores, -2, 2), found.barred) for found in both]
    return _table(rows, np.arange(len(rows)), sides[0], sides[1])


def _shown(rows: pa.Table, texts: Texts) -> np.ndarray:
    """Return the rows whose positives are searched, int64 [m], in the order of text_id.

    Of documents that are one text the one of the smallest text_id stands for all, and its first row for it.
    """
    numbers = texts.numbers(rows["positive"].to_pylist())
    order = np.argsort(numbers, kind="stable")
    _, first = np.unique(texts.class_of[numbers[order]], return_index=True)
    return order[np.sort(first)]


def _by_passage(
    rows: pa.Table, usable: np.ndarray, texts: Texts, known: Known, how: tuple[Search, int | None]
) -> tuple[_Side, _Facts]:
    """Return for each of the rows, which are the `usable` ones, the nearest positives of them to its query."""
    shown = _shown(rows, texts)
    queries, of_row = np.unique(texts.numbers(rows["query"].to_pylist()), return_inverse=True)
    documents = texts.numbers(rows["positive"].take(shown).to_pylist())
    lists = known.among(texts.class_of[queries], texts.class_of[documents])
    asked, among = (Rows(texts.vectors, texts.vector_of[numbers]) for numbers in (queries, documents))
    found, facts = _nearest(asked, among, lists, *how)
    return _side(found, usable[shown], of_row, 1), facts


def _by_s_neg(
    rows: pa.Table, usable: np.ndarray, texts: Texts, known: Known, how: tuple[Search, int | None]
) -> tuple[_Side, _Facts]:
    """Return for each of the rows the best others by cos(query, query') - cos(document, document')."""
    queries, documents = (rows[column].to_pylist() for column in ("query", "positive"))
    asked, answered = texts.vectors_of(queries), texts.vectors_of(documents)
    lists = known.among(texts.classes(queries), texts.classes(documents))
    both = np.hstack([asked, answered])
    found, facts = _nearest(Rows(both, negated=asked.shape[1]), Rows(both), lists, *how)
    return _side(found, usable, np.arange(len(usable)), 2), facts


def _nearest(asked: Rows, among: Rows, barred: Lists, search: Search, ivf_from: int | None) -> Outcome:
    """Return the nearest of few documents exactly, and without facts; those of many by an inverted file."""
    if ivf_from is None or len(among) < ivf_from:
        return Outcome(top_k(asked, among, CANDIDATES_KEPT, barred, search), {})
    return top_k_of_many(asked, among, CANDIDATES_KEPT, barred, search)


def _side(found: Found, rows: np.ndarray, of_row: np.ndarray, most: int) -> _Side:
    """Return what was found for the query of each row: numbers of `rows`, scores clipped to [-most, most], and barred.

    `of_row` int64 [n] says which query a row has.
    """
    # Where there is no document, its number is -1: that of the last place.
    places = np.append(rows, -1).astype(np.int32)
    scores = found.scores[of_row]
    return places[found.numbers][of_row], np.clip(scores, -most, most, out=scores), found.barred[of_row]


def _numbers(count: int) -> np.ndarray:
    return np.full((count, CANDIDATES_KEPT), -1, dtype=np.int32)


def _scores(count: int) -> np.ndarray:
    return np.full((count, CANDIDATES_KEPT), -np.inf, dtype=np.float32)


def _table(
    rows: pa.Table, usable: np.ndarray, positives: _Side | None, negatives: _Side, ivf: _Facts | None = None
) -> tuple[pa.Table, Counts]:
    """Return the table, and as facts how many candidates it holds, and of an inverted file what came of it."""
    none = np.empty((len(usable), 0), np.int32), np.empty((len(usable), 0), np.float32), np.zeros(len(usable), np.int64)
    lists = [_lists(len(rows), usable, numbers, scores) for numbers, scores, _ in (positives or none, negatives)]
    known = np.zeros(len(rows), dtype=np.int32)
    known[usable] = negatives[2]
    table = pa.table([rows["id"], *lists[0], *lists[1], pa.array(known)], schema=CANDIDATES)
    facts: _Facts = {"candidates": len(lists[1][0].flatten()), "known_positives_passed": int(known.sum())}
    facts |= {"ivf": ivf} if ivf else {}
    return table, Counts(len(rows), len(rows), facts=facts)


def _lists(count: int, usable: np.ndarray, numbers: np.ndarray, scores: np.ndarray) -> tuple[pa.Array, pa.Array]:
    """Return the numbers and scores that are there as two list arrays of `count` rows."""
    lengths = np.zeros(count, dtype=np.int64)
    lengths[usable] = (numbers >= 0).sum(axis=1)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    there = numbers >= 0
    return (
        pa.ListArray.from_arrays(offsets, pa.array(numbers[there].astype(np.int32, copy=False))),
        pa.ListArray.from_arrays(offsets, pa.array(scores[there].astype(np.float32, copy=False))),
    )


def matrix(lists: pa.ChunkedArray | pa.Array, filler: float, kind: type) -> np.ndarray:
    """Return lists of numbers as an array [n, longest], `filler` behind their ends."""
    array = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    lengths = array.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    found = np.full((len(array), max(1, int(lengths.max(initial=0)))), filler, dtype=kind)
    found[np.arange(found.shape[1]) < lengths[:, None]] = array.flatten().to_numpy(zero_copy_only=False)
    return found
