"""Which texts are one text, and which are known positives of a query.

Texts equal when folded, or equal in token ids after truncation, are one *class*: never each other's positive or
negative. Every comparison of mining is between classes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from medi.schema import POSITIVES, fold, table_of, text_id

# Given negatives beyond these are not looked at: four are wanted, and the lists of msmarco hold up to a hundred.
GIVEN_LOOKED_AT = 16


@dataclass(frozen=True)
class Texts:
    """The distinct texts of a unit in text_id order, their class, and the vectors of those that are encoded.

    `class_of` int64 [t]; `vector_of` int64 [t], a row of `vectors` float32 [v, D], or -1.
    """

    number_of: dict[str, int]
    class_of: np.ndarray
    vector_of: np.ndarray
    vectors: np.ndarray

    @staticmethod
    def of(texts: Sequence[str], tokens: pa.Table, encoded: Sequence[str], vectors: np.ndarray) -> "Texts":
        """Return the index over `texts` with their TOKENS; `vectors` float32 [v, D] stand in the order of `encoded`."""
        ordered = sorted(texts, key=text_id)
        number_of = {text: number for number, text in enumerate(ordered)}
        vector_of = np.full(len(ordered), -1, dtype=np.int64)
        vector_of[[number_of[text] for text in encoded]] = np.arange(len(encoded))
        keys = dict(zip(tokens["text_id"].to_pylist(), tokens["token_key"].to_pylist(), strict=True))
        classes = _classes([fold(t) for t in ordered], [keys[text_id(t)] for t in ordered])
        return Texts(number_of, classes, vector_of, vectors)

    def numbers(self, texts: Iterable[str]) -> np.ndarray:
        """Return the numbers of the texts, int64 [n]."""
        return np.fromiter((self.number_of[t] for t in texts), dtype=np.int64)

    def classes(self, texts: Iterable[str]) -> np.ndarray:
        """Return the classes of the texts, int64 [n]."""
        return self.class_of[self.numbers(texts)]

    def vectors_of(self, texts: Iterable[str]) -> np.ndarray:
        """Return the vectors of the texts, float32 [n, D]."""
        return self.vectors[self.vector_of[self.numbers(texts)]]


def texts_to_tokenize(rows: pa.Table, kind: str) -> list[str]:
    """Return the distinct texts of ROWS whose equality matters, sorted: kind `pair`, `label` or `text`."""
    if kind == "label":
        return sorted(set(rows["query"].to_pylist()))
    if kind == "text":
        return sorted({*rows["query"].to_pylist(), *rows["output"].to_pylist()})
    texts = {*rows["query"].to_pylist(), *rows["positive"].to_pylist()}
    for column, most in (("other_positives", None), ("negatives", GIVEN_LOOKED_AT)):
        for listed in rows[column].to_pylist():
            texts.update(listed[:most])
    return sorted(texts)


def texts_to_encode(rows: pa.Table, kind: str, given_negatives: int) -> list[str]:
    """Return the distinct texts of ROWS that mining needs vectors of, sorted.

    Other positives are compared, never scored, so they are not encoded; of the given negatives only those that could
    be among the first `given_negatives` of their row.
    """
    if kind != "pair":
        return texts_to_tokenize(rows, kind)
    texts = {*rows["query"].to_pylist(), *rows["positive"].to_pylist()}
    for listed in rows["negatives"].to_pylist():
        texts.update(listed[: given_negatives + 4 if given_negatives else 0])
    return sorted(texts)


def _classes(folded: Sequence[str], keys: Sequence[int]) -> np.ndarray:
    """Return a class number for each text, int64 [t]: the smallest text number it equals by fold or token key."""
    groups = Groups(len(folded))
    seen: dict[str | int, int] = {}
    for number, names in enumerate(zip(folded, keys, strict=True)):
        for name in names:
            groups.join(number, seen.setdefault(name, number))
    return groups.roots()


class Groups:
    """Numbers 0..n-1 that are joined into groups; a group is named by its smallest number."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def root(self, number: int) -> int:
        """Return the smallest number of the group."""
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number

    def join(self, one: int, other: int) -> None:
        """Make one group of the two numbers' groups."""
        low, high = sorted((self.root(one), self.root(other)))
        self._parent[high] = low

    def roots(self) -> np.ndarray:
        """Return every number's group, int64 [n]."""
        return np.array([self.root(n) for n in range(len(self._parent))], dtype=np.int64)


def known_positives(
    rows: pa.Table, texts: Texts, symmetric: bool, clusters: bool
) -> tuple[dict[int, set[int]], np.ndarray | None]:
    """Return the classes that are known positives of each query's class, from the whole pool.

    All positives of a query's folded text count, `other_positives` included. In symmetric sources the relation is
    symmetric; in clusters also transitive: then the second value names each class's cluster, int64 [t].
    """
    known: dict[int, set[int]] = {}
    queries = texts.classes(rows["query"].to_pylist()).tolist()
    positives = texts.classes(rows["positive"].to_pylist()).tolist()
    others = [texts.classes(listed).tolist() for listed in rows["other_positives"].to_pylist()]
    if clusters:
        groups = Groups(len(texts.class_of))
        for query, positive, listed in zip(queries, positives, others, strict=True):
            for member in (positive, *listed):
                groups.join(query, member)
        return known, groups.roots()
    for query, positive, listed in zip(queries, positives, others, strict=True):
        known.setdefault(query, set()).update((positive, *listed))
        if symmetric:
            for member in (positive, *listed):
                known.setdefault(member, set()).add(query)
    return known, None


def audit(source: str, rows: pa.Table, pairs: pa.Table) -> pa.Table:
    """Return POSITIVES of a unit: every known positive, as text_ids of folded texts, distinct and sorted.

    For embedding sets these are the pool's pairs and other positives; Super-NI rows have no positive of their own, so
    there the mined pairs are.
    """
    found = set(zip(pairs["task"].to_pylist(), pairs["query"].to_pylist(), pairs["positive"].to_pylist(), strict=True))
    columns = (rows[c].to_pylist() for c in ("task", "query", "positive", "other_positives"))
    for task, query, positive, others in zip(*columns, strict=True):
        if positive is not None:
            found.update((task, query, text) for text in (positive, *others))
    lines = sorted({(task, text_id(fold(query)), text_id(fold(positive))) for task, query, positive in found})
    table = [{"source": source, "task": t, "query": q, "positive": p} for t, q, p in lines]
    return table_of(table, POSITIVES)
