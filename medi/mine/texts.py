"""Which texts are one text, and which are known positives of a query.

Texts equal when folded, or equal in token ids after truncation, are one *class*: never each other's positive or
negative. Every comparison of mining is between classes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from medi.mine.search import Lists
from medi.schema import fold, text_id


@dataclass(frozen=True)
class PairRules:
    """What a pair of a source says of other pairs; how many of its own negatives a row keeps at most, and how many that
    pass by fold the encoder looks at (msmarco lists up to a hundred).
    """

    symmetric: bool
    clusters: bool
    given: int = 4
    looked_at: int = 8

    @property
    def encoded(self) -> int:
        """Return how many of those looked at are encoded at most: what a row may keep without another encoding."""
        return self.looked_at // 2


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
    def of(
        texts: Iterable[str], tokens: pa.Table, encoded: Sequence[str] = (), vectors: np.ndarray | None = None
    ) -> "Texts":
        """Return the index over `texts` with their TOKENS; `vectors` float32 [v, D] stand in the order of `encoded`."""
        ordered = sorted(texts, key=text_id)
        number_of = {text: number for number, text in enumerate(ordered)}
        vector_of = np.full(len(ordered), -1, dtype=np.int64)
        vector_of[[number_of[text] for text in encoded]] = np.arange(len(encoded))
        keys = dict(zip(tokens["text_id"].to_pylist(), tokens["token_key"].to_pylist(), strict=True))
        classes = _classes([(fold(text), keys[text_id(text)]) for text in ordered])
        return Texts(number_of, classes, vector_of, np.empty((0, 0), np.float32) if vectors is None else vectors)

    @staticmethod
    def by_fold(texts: Iterable[str]) -> "Texts":
        """Return an index whose classes are those of folded texts only, without vectors."""
        ordered = list(dict.fromkeys(texts))
        number_of = {text: number for number, text in enumerate(ordered)}
        classes = _classes([(fold(text),) for text in ordered])
        return Texts(number_of, classes, np.full(len(ordered), -1, dtype=np.int64), np.empty((0, 0), np.float32))

    def numbers(self, texts: Iterable[str]) -> np.ndarray:
        """Return the numbers of the texts, int64 [n]."""
        return np.fromiter((self.number_of[t] for t in texts), dtype=np.int64)

    def classes(self, texts: Iterable[str]) -> np.ndarray:
        """Return the classes of the texts, int64 [n]."""
        return self.class_of[self.numbers(texts)]

    def vectors_of(self, texts: Iterable[str]) -> np.ndarray:
        """Return the vectors of the texts, float32 [n, D]."""
        return self.vectors[self.vector_of[self.numbers(texts)]]


def texts_to_tokenize(rows: pa.Table, kind: str, rules: PairRules | None = None) -> list[str]:
    """Return the distinct texts of ROWS whose equality matters, sorted. `rules` are those of kind `pair`."""
    if rules is None:
        columns = ("query",) if kind == "label" else ("query", "output")
        return sorted({text for column in columns for text in rows[column].to_pylist()})
    return sorted(_texts_of(narrowed(rows, rules)[0]))


def texts_to_encode(rows: pa.Table, kind: str, rules: PairRules | None, tokens: pa.Table) -> list[str]:
    """Return the distinct texts of ROWS that mining needs vectors of, sorted.

    Other positives are compared, never scored, so they are not encoded; of the given negatives only the chosen are.
    """
    if rules is None:
        return texts_to_tokenize(rows, kind)
    rows, _ = narrowed(rows, rules)
    texts = Texts.of(_texts_of(rows), tokens)
    chosen, _ = given_negatives(rows, texts, known_positives(rows, texts, rules), rules.encoded)
    return sorted(
        {*rows["query"].to_pylist(), *rows["positive"].to_pylist(), *(t for listed in chosen for t in listed)}
    )


def _texts_of(rows: pa.Table) -> set[str]:
    """Return every text of ROWS of an embedding set."""
    texts = {*rows["query"].to_pylist(), *rows["positive"].to_pylist()}
    for column in ("other_positives", "negatives"):
        texts.update(_all_of(rows, column))
    return texts


def _all_of(rows: pa.Table, column: str) -> list[str]:
    """Return the texts of a column of lists, one list behind the other."""
    return pc.list_flatten(rows[column]).to_pylist()


def narrowed(rows: pa.Table, rules: PairRules) -> tuple[pa.Table, Counter[str]]:
    """Return the ROWS with the first given negatives that pass by folded text, and what was left out by reason.

    So only few of a long list have to be tokenized. It must come first: known positives are those of the whole pool.
    """
    if not _all_of(rows, "negatives"):
        return rows, Counter()
    texts = Texts.by_fold(_texts_of(rows))
    chosen, facts = given_negatives(rows, texts, known_positives(rows, texts, rules), rules.looked_at)
    column = pa.array(chosen, pa.list_(pa.string()))
    return rows.set_column(rows.column_names.index("negatives"), rows.schema.field("negatives"), column), facts


def given_negatives(rows: pa.Table, texts: Texts, known: "Known", most: int) -> tuple[list[list[str]], Counter[str]]:
    """Return each row's first `most` given negatives that may stand, in file order, each class once; and the rest,
    counted: `given_known_positive` (or the query itself), `given_repeated` and `given_not_needed`.
    """
    kept: list[list[str]] = []
    facts: Counter[str] = Counter()
    given = _all_of(rows, "negatives")
    if not given:
        return [[] for _ in range(len(rows))], facts
    candidates = texts.classes(given)
    lengths = pc.list_value_length(rows["negatives"]).to_numpy()
    held = known.hold(np.repeat(texts.classes(rows["query"].to_pylist()), lengths), candidates)
    each = zip(given, candidates.tolist(), held.tolist(), strict=True)
    for length in lengths.tolist():
        chosen: list[str] = []
        seen: set[int] = set()
        for text, candidate, is_known in islice(each, length):
            if is_known:
                facts["given_known_positive"] += 1
            elif candidate in seen:
                facts["given_repeated"] += 1
            elif len(chosen) < most:
                chosen.append(text)
            else:
                facts["given_not_needed"] += 1
            seen.add(candidate)
        kept.append(chosen)
    return kept, facts


def _classes(names: Sequence[tuple[str | int, ...]]) -> np.ndarray:
    """Return a class number for each text, int64 [t]: the smallest number of a text that shares one of its names."""
    groups = Groups(len(names))
    seen: dict[str | int, int] = {}
    for number, own in enumerate(names):
        for name in own:
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


@dataclass(frozen=True)
class Known:
    """The classes that a query's class must never get: itself and its known positives; in clusters, all of its cluster.

    `keys` int64 [k], ascending, has a `query * classes + other` for each; none where `cluster_of` int64 [classes] says
    it.
    """

    keys: np.ndarray
    classes: int
    cluster_of: np.ndarray | None = None

    def hold(self, queries: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        """Return whether a candidate's class is its query's or a known positive of that; all int64 [n], bool [n]."""
        if self.cluster_of is not None:
            return self.cluster_of[queries] == self.cluster_of[candidates]
        asked = queries * self.classes + candidates
        return self.keys[np.minimum(np.searchsorted(self.keys, asked), len(self.keys) - 1)] == asked

    def among(self, queries: np.ndarray, documents: np.ndarray) -> Lists:
        """Return for each query the numbers of the documents that it must never get; both are given by class."""
        if self.cluster_of is not None:
            return equal_to(self.cluster_of[queries], self.cluster_of[documents])
        first, end = (np.searchsorted(self.keys, (queries + more) * self.classes) for more in (0, 1))
        own = Lists.runs(self.keys, first, end)
        found = equal_to(own.items % self.classes, documents)
        return Lists(found.starts[own.starts], found.items)


def known_positives(rows: pa.Table, texts: Texts, rules: PairRules) -> Known:
    """Return the known positives of every query of the pool.

    All positives of a query's text count, `other_positives` included. In symmetric sources the relation is symmetric;
    in clusters also transitive.
    """
    classes = len(texts.class_of)
    queries = texts.classes(rows["query"].to_pylist())
    owners = np.repeat(queries, pc.list_value_length(rows["other_positives"]).to_numpy())
    asking = np.concatenate([queries, owners])
    known = texts.classes([*rows["positive"].to_pylist(), *_all_of(rows, "other_positives")])
    if rules.clusters:
        groups = Groups(classes)
        for query, member in zip(asking.tolist(), known.tolist(), strict=True):
            groups.join(query, member)
        return Known(np.empty(0, dtype=np.int64), classes, groups.roots())
    own, there = np.arange(classes) * (classes + 1), asking * classes + known
    back = known * classes + asking if rules.symmetric else there
    return Known(np.unique(np.concatenate([own, there, back])), classes)


def conflicting(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return which rows are, to the encoder, one text with two labels, bool [n]; of such a text no label is right."""
    pairs = set(zip(classes.tolist(), labels.tolist(), strict=True))
    times = Counter(c for c, _ in pairs)
    return np.array([times[c] > 1 for c in classes.tolist()], dtype=bool)


def equal_to(queries: np.ndarray, documents: np.ndarray) -> Lists:
    """Return for each query class the numbers of the documents of that class."""
    order = np.argsort(documents, kind="stable")
    low = np.searchsorted(documents[order], queries, side="left")
    high = np.searchsorted(documents[order], queries, side="right")
    return Lists.runs(order, low, high)
