"""Mines the 30 embedding sets: keeps given negatives that pass, finds hard negatives among the source's documents.

A negative is never, folded or to the encoder, the query or a known positive of that query (design section 7). Profile
`paper`: the first four given negatives that pass; where a source brings none, the one document nearest to the query.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from medi.mine.search import SCAN_BYTES, Lists, Search, cosines_of, top_k
from medi.mine.texts import Known, PairRules, Texts, given_negatives, known_positives, narrowed
from medi.schema import PAIRS, Counts, table_of


@dataclass(frozen=True)
class _Pool:
    """What negatives are mined from: the rows, their texts, the known positives, and the memory of one block."""

    rows: pa.Table
    texts: Texts
    known: Known
    scan_bytes: int


def mine_pairs(rows: pa.Table, texts: Texts, rules: PairRules, scan_bytes: int = SCAN_BYTES) -> tuple[pa.Table, Counts]:
    """Return PAIRS of kind `pair`, sorted by id, one for each of the ROWS whose positive is another text.

    Counts: dropped `identity_to_encoder` (positive and query are one text to the encoder). Facts: given negatives left
    out by reason, mined negatives, queries left short and the negatives they miss.
    """
    rows, facts = narrowed(rows, rules)
    known = known_positives(rows, texts, rules)
    counts = Counts(rows_in=len(rows))
    same = texts.classes(rows["query"].to_pylist()) == texts.classes(rows["positive"].to_pylist())
    counts.dropped["identity_to_encoder"] = int(same.sum())
    rows = rows.filter(pa.array(~same))
    queries = rows["query"].to_pylist()
    given, by_encoder = given_negatives(rows, texts, known, rules.given)
    facts += by_encoder + Counter(given_negatives=sum(map(len, given)))
    bare = [row for row, negatives in enumerate(given) if not negatives]
    pool = _Pool(rows, texts, known, scan_bytes)
    mined = dict(zip(bare, _mined([queries[r] for r in bare], pool, rules.mined), strict=True))
    negatives = [given[row] or mined[row] for row in range(len(rows))]
    missing = [rules.mined - len(negatives[row]) for row in bare]
    facts["mined_negatives"] = sum(len(mined[row]) for row in bare)
    facts["queries_short"] = sum(m > 0 for m in missing)
    facts["negatives_missing"] = sum(missing)
    counts.facts = {name: int(count) for name, count in facts.items()}
    counts.rows_out = len(rows)
    return _pairs(rows, texts, negatives, set(bare)), counts


def _mined(queries: list[str], pool: _Pool, k: int) -> list[list[str]]:
    """Return for each query its k nearest documents that are not barred, best first (strategy `passage`)."""
    texts = pool.texts
    positives = sorted(set(pool.rows["positive"].to_pylist()), key=texts.number_of.__getitem__)
    first_of: dict[int, str] = {}
    for text in positives:
        first_of.setdefault(int(texts.class_of[texts.number_of[text]]), text)
    documents = list(first_of.values())
    distinct = sorted(set(queries), key=texts.number_of.__getitem__)
    lists = _barred(pool.known, texts.classes(distinct), np.array(list(first_of), dtype=np.int64))
    vectors = texts.vectors_of(distinct), texts.vectors_of(documents)
    found = top_k(*vectors, k, Lists.of(lists), Search(pool.scan_bytes)).numbers
    answers = {q: [documents[d] for d in row if d >= 0] for q, row in zip(distinct, found.tolist(), strict=True)}
    return [answers[query] for query in queries]


def _barred(known: Known, queries: np.ndarray, documents: np.ndarray) -> list[np.ndarray]:
    """Return for each query's class the numbers of the documents (given by class) that it must not get."""
    number_of = {int(c): number for number, c in enumerate(documents)}
    if known.cluster_of is None:
        barred = ({int(q), *known.of_query.get(int(q), ())} for q in queries)
        return [np.array(sorted(number_of[c] for c in own if c in number_of), dtype=np.int64) for own in barred]
    members: dict[int, list[int]] = {}
    for number, c in enumerate(documents):
        members.setdefault(int(known.cluster_of[c]), []).append(number)
    return [np.array(members.get(int(known.cluster_of[q]), []), dtype=np.int64) for q in queries]


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
