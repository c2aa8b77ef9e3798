"""Hand-made units for the tests of mining: rows, their vectors, and which texts are one to the encoder."""

import numpy as np
import pyarrow as pa
import xxhash

from medi import mine
from medi.schema import ROWS, TOKENS, Counts, row_id, table_of, text_id

RULES = mine.PairRules(symmetric=False, clusters=False)
PAPER = mine.PROFILES["paper"]
Vectors = dict[str, tuple[float, ...]]


def rows_of(*rows: dict[str, object], source: str = "toy", task: str = "toy") -> pa.Table:
    """Return ROWS sorted by id; a row needs `query` only, its rank is its place."""
    empty = {"references": [], "other_positives": [], "negatives": []}
    filled = []
    for place, row in enumerate(rows):
        own = row_id(source, task, str(row["query"]), row.get("positive"), row.get("output"))  # type: ignore[arg-type]
        filled.append({"id": own, "task": task, "origin": f"toy:{place + 1}", "rank": place, **empty, **row})
    return table_of(sorted(filled, key=lambda r: r["id"]), ROWS)


def tokens_of(texts: list[str]) -> pa.Table:
    """Return TOKENS as an uncased word tokenizer would give them."""
    keys = {t: xxhash.xxh3_64_intdigest(" ".join(t.lower().split()).encode()) for t in texts}
    lines = [{"text_id": text_id(t), "token_key": k, "length_tokens": len(t.split())} for t, k in keys.items()]
    return table_of(sorted(lines, key=lambda r: str(r["text_id"])), TOKENS)


def texts_of(rows: pa.Table, vectors: Vectors, kind: str = "pair", rules: mine.PairRules = RULES) -> mine.Texts:
    """Return the unit's texts with the given vectors, each brought to unit length."""
    of_pairs = rules if kind == "pair" else None
    known = mine.texts_to_tokenize(rows, kind, of_pairs)
    encoded = mine.texts_to_encode(rows, kind, of_pairs, tokens_of(known))
    matrix = np.array([vectors[t] for t in encoded], dtype=np.float64)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return mine.Texts.of(known, tokens_of(known), encoded, matrix.astype(np.float32))


def mined_pairs(
    rows: pa.Table,
    vectors: Vectors,
    given: mine.PairRules = RULES,
    rules: mine.Rules = PAPER,
    hints: mine.Hints | None = None,
) -> tuple[pa.Table, Counts]:
    """Return PAIRS and counts of an embedding set: candidates first, then the choice among them."""
    texts = texts_of(rows, vectors, rules=given)
    candidates, _ = mine.pair_candidates(rows, texts, given, rules.strategy, mine.Search())
    pairs, counts = mine.mine_pairs(rows, texts, candidates, given, rules, hints or mine.Hints())
    return pairs, counts.check("mine")


def mined_task(
    kind: str, rows: pa.Table, vectors: Vectors, rules: mine.Rules = PAPER, hints: mine.Hints | None = None
) -> tuple[pa.Table, Counts]:
    """Return PAIRS and counts of a Super-NI task."""
    texts = texts_of(rows, vectors, kind)
    candidates = (mine.label_candidates if kind == "label" else mine.text_candidates)(rows, texts, mine.Search())[0]
    pairs, counts = mine.mine_task(kind, rows, texts, candidates, rules, hints or mine.Hints())
    return pairs, counts.check("mine")


def random_vectors(texts: list[str], dimension: int = 16) -> Vectors:
    """Return a vector for each text that depends on the text alone."""
    seeds = {t: xxhash.xxh3_64_intdigest(t.encode()) for t in texts}
    return {t: tuple(np.random.default_rng(seed).normal(size=dimension).tolist()) for t, seed in seeds.items()}
