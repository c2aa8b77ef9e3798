"""Stage `audit`: what no negative may be, as POSITIVES, from which `medi verify` checks a release without an encoder.

Beside the pairs themselves these are their likenesses: texts that are another's equal to the encoder, which only the
build can see.
"""

from collections.abc import Iterator

import pyarrow as pa

from medi.mine.texts import Texts
from medi.schema import POSITIVES, fold, table_of, text_id


def audit(source: str, rows: pa.Table, pairs: pa.Table, texts: Texts) -> pa.Table:
    """Return POSITIVES of a unit: every known positive, as text_ids of folded texts, distinct and sorted.

    For embedding sets these are the pool's pairs and other positives; Super-NI rows have no positive of their own, so
    there the mined pairs are. Where the encoder cannot tell texts from a query or from its positive, they stand there
    as its positives too.
    """
    known = set(zip(pairs["task"].to_pylist(), pairs["query"].to_pylist(), pairs["positive"].to_pylist(), strict=True))
    columns = (rows[c].to_pylist() for c in ("task", "query", "positive", "other_positives"))
    for task, query, positive, others in zip(*columns, strict=True):
        if positive is not None:
            known.update((task, query, text) for text in (positive, *others))
    alike = _alike(texts)
    lines = {
        (task, *pair)
        for task, query, positive in known
        for pair in _pairs(fold(query), fold(positive), alike.get(query, []), alike.get(positive, []))
    }
    ids = sorted((task, text_id(query), text_id(positive)) for task, query, positive in lines)
    return table_of(({"source": source, "task": t, "query": q, "positive": p} for t, q, p in ids), POSITIVES)


def _alike(texts: Texts) -> dict[str, list[str]]:
    """Return for each text that the encoder takes for another the folded texts of its class, itself included."""
    members: dict[int, list[str]] = {}
    for text, number in texts.number_of.items():
        members.setdefault(int(texts.class_of[number]), []).append(text)
    several = {c: sorted(set(map(fold, listed))) for c, listed in members.items() if len(listed) > 1}
    return {text: folds for c, folds in several.items() if len(folds) > 1 for text in members[c]}


def _pairs(query: str, positive: str, like_query: list[str], like_positive: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the pair, the same pair in the words of their likenesses, and each query with its own likenesses."""
    queries, positives = like_query or [query], like_positive or [positive]
    yield from ((q, p) for q in queries for p in positives)
    yield from ((q, other) for q in queries for other in queries if q != other)
