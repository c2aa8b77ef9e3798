"""Mines the 30 embedding sets: keeps given negatives that pass, finds hard negatives among the source's documents.

A negative is never, folded or to the encoder, the query or a known positive of that query (design section 7). Profile
`paper`: the first four given negatives that pass; where a source brings none, the one document nearest to the query.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from medi.mine.search import SCAN_BYTES, Lists, cosines_of, top_k
from medi.mine.texts import GIVEN_LOOKED_AT, Texts, known_positives
from medi.schema import PAIRS, Counts, table_of


@dataclass(frozen=True)
class PairRules:
    """How negatives are chosen: at most `given` of the row's own, and mined ones up to `mined` where none is left."""

    symmetric: bool
    clusters: bool
    given: int = 4
    mined: int = 1


@dataclass(frozen=True)
class _Pool:
    """What negatives are mined from: the rows, their texts, what is barred, and the memory of one block."""

    rows: pa.Table
    texts: Texts
    barred: "_Barred"
    scan_bytes: int


@dataclass(frozen=True)
class _Barred:
    """What may not be a negative: the query's own class and its known positives."""

    known: dict[int, set[int]]
    cluster_of: np.ndarray | None

    def holds(self, query: int, candidate: int) -> bool:
        """Return whether the candidate's class is the query's or a known positive of it."""
        if self.cluster_of is not None:
            return self.cluster_of[query] == self.cluster_of[candidate]
        return candidate == query or candidate in self.known.get(query, ())

    def documents(self, query: int, number_of: dict[int, int], members: dict[int, list[int]]) -> np.ndarray:
        """Return the document numbers that are barred for a query's class, int64 [b]."""
        if self.cluster_of is not None:
            return np.array(members.get(int(self.cluster_of[query]), []), dtype=np.int64)
        barred = {query, *self.known.get(query, ())}
        return np.array(sorted(number_of[c] for c in barred if c in number_of), dtype=np.int64)


def mine_pairs(rows: pa.Table, texts: Texts, rules: PairRules, scan_bytes: int = SCAN_BYTES) -> tuple[pa.Table, Counts]:
    """Return PAIRS of kind `pair`, sorted by id, one for each of the ROWS whose positive is another text.

    Counts: dropped `identity_to_encoder` (positive and query are one text to the encoder). Facts: given negatives left
    out by reason, mined negatives, queries left short and the negatives they miss.
    """
    barred = _Barred(*known_positives(rows, texts, rules.symmetric, rules.clusters))
    counts = Counts(rows_in=len(rows))
    same = texts.classes(rows["query"].to_pylist()) == texts.classes(rows["positive"].to_pylist())
    counts.dropped["identity_to_encoder"] = int(same.sum())
    rows = rows.filter(pa.array(~same))
    queries = rows["query"].to_pylist()
    facts: Counter[str] = Counter()
    given = _given(rows, texts, barred, rules.given, facts)
    bare = [row for row, negatives in enumerate(given) if not negatives]
    pool = _Pool(rows, texts, barred, scan_bytes)
    mined = dict(zip(bare, _mined([queries[r] for r in bare], pool, rules.mined), strict=True))
    negatives = [given[row] or mined[row] for row in range(len(rows))]
    missing = [rules.mined - len(negatives[row]) for row in bare]
    facts["mined_negatives"] = sum(len(mined[row]) for row in bare)
    facts["queries_short"] = sum(m > 0 for m in missing)
    facts["negatives_missing"] = sum(missing)
    counts.facts = {name: int(count) for name, count in facts.items()}
    counts.rows_out = len(rows)
    return _pairs(rows, texts, negatives, set(bare)), counts


def _given(rows: pa.Table, texts: Texts, barred: _Barred, most: int, facts: Counter[str]) -> list[list[str]]:
    """Return each row's first given negatives that pass, in file order, each text once."""
    kept: list[list[str]] = []
    for query, listed in zip(rows["query"].to_pylist(), rows["negatives"].to_pylist(), strict=True):
        own, chosen, seen = int(texts.class_of[texts.number_of[query]]), [], set()
        for text in listed[:GIVEN_LOOKED_AT]:
            number = texts.number_of[text]
            candidate = int(texts.class_of[number])
            if barred.holds(own, candidate):
                facts["given_known_positive"] += 1
            elif candidate in seen:
                facts["given_repeated"] += 1
            elif len(chosen) < most and texts.vector_of[number] >= 0:
                chosen.append(text)
            seen.add(candidate)
        facts["given_negatives"] += len(chosen)
        kept.append(chosen)
    return kept


def _mined(queries: list[str], pool: _Pool, k: int) -> list[list[str]]:
    """Return for each query its k nearest documents that are not barred, best first (strategy `passage`)."""
    texts, barred = pool.texts, pool.barred
    positives = sorted(set(pool.rows["positive"].to_pylist()), key=texts.number_of.__getitem__)
    first_of: dict[int, str] = {}
    for text in positives:
        first_of.setdefault(int(texts.class_of[texts.number_of[text]]), text)
    documents = list(first_of.values())
    number_of = {c: number for number, c in enumerate(first_of)}
    members: dict[int, list[int]] = {}
    if barred.cluster_of is not None:
        for c, number in number_of.items():
            members.setdefault(int(barred.cluster_of[c]), []).append(number)
    distinct = sorted(set(queries), key=texts.number_of.__getitem__)
    lists = [barred.documents(int(c), number_of, members) for c in texts.classes(distinct)]
    vectors = texts.vectors_of(distinct), texts.vectors_of(documents)
    found, _ = top_k(*vectors, k, Lists.of(lists), pool.scan_bytes)
    answers = {q: [documents[d] for d in row if d >= 0] for q, row in zip(distinct, found.tolist(), strict=True)}
    return [answers[query] for query in queries]


def _pairs(rows: pa.Table, texts: Texts, negatives: list[list[str]], mined_rows: set[int]) -> pa.Table:
    """Return the PAIRS with cosines of query and positive, query and each negative."""
    queries = rows["query"].to_pylist()
    positive_scores = cosines_of(texts.vectors_of(queries), texts.vectors_of(rows["positive"].to_pylist()))
    owners = [q for q, listed in zip(queries, negatives, strict=True) for _ in listed]
    flat = cosines_of(texts.vectors_of(owners), texts.vectors_of(t for listed in negatives for t in listed)).tolist()
    table, position = [], 0
    for number, row in enumerate(rows.to_pylist()):
        chosen = negatives[number]
        row |= {
            "kind": "pair",
            "negatives": chosen,
            "negative_labels": [],
            "positive_score": positive_scores[number],
            "negative_scores": flat[position : position + len(chosen)],
            "negative_origins": ["mined" if number in mined_rows else "given"] * len(chosen),
        }
        position += len(chosen)
        table.append({name: row[name] for name in PAIRS.names})
    return table_of(table, PAIRS)
