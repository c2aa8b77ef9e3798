"""Times hard negatives of 60,000 pairs, from vectors to pairs, beside `mine_hard_negatives` of sentence-transformers.

    python -m benchmarks.hard_negatives [--rows 60000] [--repeats 5]

Both get the same vectors in memory and give texts and scores: 4 negatives of the 50 nearest documents, each at least 5%
below the query's lowest positive. The second pair of ways has one query with 1,000 positives among its pairs.
`equal to medi` is the share of the peer's rows whose negatives are ours, text by text and in order.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from benchmarks import paired
from benchmarks.vectors import like_texts, near_to
from medi import mine
from medi.schema import ROWS as ROWS_SCHEMA
from medi.schema import TOKENS, row_id, table_of, text_id

ROWS, MOST_POSITIVES = 60_000, 1_000
if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

RULES = mine.Rules(negatives=4, window=50, relative_margin=0.05)
GIVEN = mine.PairRules(symmetric=False, clusters=False)
# What is added to a document to make its query: their cosine is about 0.9.
_ADDED = 0.5


def prepare(folder: Path, rows: int = ROWS) -> str:
    """Write the vectors of queries and documents; return what they are."""
    rng = np.random.default_rng(4)
    documents = like_texts(rng, rows)
    np.save(folder / "documents.npy", documents)
    np.save(folder / "queries.npy", near_to(rng, documents, _ADDED))
    return (
        f"{rows:,} queries and as many documents of {documents.shape[1]} dimensions, {RULES.negatives} negatives of "
        f"the {RULES.window} nearest, relative margin {RULES.relative_margin}; then the same with one query that has "
        f"{MOST_POSITIVES:,} positives."
    )


def pairs_of(count: int, most_positives: int) -> tuple[list[str], list[str]]:
    """Return the queries and the documents of the pairs; the first query stands in the first `most_positives` pairs."""
    queries = [f"query {number if number >= most_positives else 0}" for number in range(count)]
    return queries, [f"document {number}" for number in range(count)]


def ours(folder: Path, most_positives: int = 1) -> paired.Measured:
    """Search and choose as a build does, from ROWS, TOKENS and vectors to PAIRS, with torch there as in a build."""
    import torch  # noqa: F401

    vectors = _Vectors(folder)
    queries, documents = pairs_of(len(vectors.documents), most_positives)
    rows, tokens = tables_of(queries, documents)
    encoded = mine.texts_to_encode(rows, "pair", GIVEN, tokens)
    matrix = np.stack([vectors.of(text) for text in encoded])
    del vectors
    made: list[pa.Table] = []
    search = mine.Search()

    def work() -> dict[str, int]:
        texts = mine.Texts.of(mine.texts_to_tokenize(rows, "pair", GIVEN), tokens, encoded, matrix)
        candidates, _ = mine.pair_candidates(rows, texts, GIVEN, RULES.strategy, search)
        made.append(mine.mine_pairs(rows, texts, candidates, GIVEN, RULES)[0])
        return {}

    measured = paired.measure(work)
    found = _lists(made[0]["query"].to_pylist(), made[0]["positive"].to_pylist(), made[0]["negatives"].to_pylist())
    np.save(folder / f"ours-{most_positives}.npy", found)
    counts = {"decided from lists": search.decided.listed, "scanned": search.decided.scanned}
    return replace(measured, found={"rows of 4": len(found), **counts})


def theirs(folder: Path, most_positives: int = 1) -> paired.Measured:
    """Call `mine_hard_negatives` with a model that knows the vectors of all texts."""
    import faiss
    from datasets import Dataset
    from sentence_transformers.util import mine_hard_negatives

    faiss.omp_set_num_threads(paired.THREADS)
    model = stub(_Vectors(folder))
    queries, documents = pairs_of(len(model.documents), most_positives)
    pairs = Dataset.from_dict({"query": queries, "positive": documents})
    made: list[Dataset] = []

    def work() -> dict[str, int]:
        mined = mine_hard_negatives(
            pairs,
            cast("SentenceTransformer", model),
            num_negatives=RULES.negatives,
            relative_margin=RULES.relative_margin,
            range_max=RULES.window,
            use_faiss=True,
            output_format="n-tuple",
            output_scores=True,
            verbose=False,
        )
        made.append(mined)
        return {}

    measured = paired.measure(work)
    columns = {name: list(made[0][name]) for name in made[0].column_names}
    negatives = zip(*(columns[f"negative_{number + 1}"] for number in range(RULES.negatives)), strict=True)
    found = _lists(columns["query"], columns["positive"], list(negatives))
    judged: dict[str, float | str] = {"rows of 4": len(found)}
    if (own := folder / f"ours-{most_positives}.npy").exists():
        judged["equal to medi"] = float(np.isin(found, np.load(own)).mean())
    return replace(measured, found=judged)


class _Vectors:
    """The vectors of all texts, by the number at the end of the text."""

    def __init__(self, folder: Path) -> None:
        self.queries, self.documents = (np.load(folder / f"{name}.npy") for name in ("queries", "documents"))

    def of(self, text: str) -> np.ndarray:
        """Return the vector of a text, float32 [D]."""
        side, number = text.split()
        return (self.queries if side == "query" else self.documents)[int(number)]


def stub(vectors: _Vectors) -> SimpleNamespace:
    """Return what `mine_hard_negatives` asks of a model; where it asks for all vectors, they are not copied."""
    import torch

    def encode(known: np.ndarray, texts: Sequence[str], **_: object) -> np.ndarray:
        return known if len(texts) == len(known) else known[[int(text.split()[1]) for text in texts]]

    def similarity_pairwise(left: np.ndarray, right: np.ndarray) -> torch.Tensor:
        return (torch.from_numpy(left) * torch.from_numpy(right)).sum(dim=1)

    return SimpleNamespace(
        device=torch.device("cpu"),
        documents=vectors.documents,
        encode_query=partial(encode, vectors.queries),
        encode_document=partial(encode, vectors.documents),
        similarity_pairwise=similarity_pairwise,
        get_embedding_dimension=lambda: vectors.documents.shape[1],
    )


def tables_of(queries: Sequence[str], documents: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Return the pairs as ROWS, and the TOKENS of their texts."""
    nothing: dict[str, object] = {"task": "bench", "references": [], "other_positives": [], "negatives": []}
    lines = [
        nothing | {"id": row_id("bench", "bench", query, document, None), "query": query, "positive": document}
        for query, document in zip(queries, documents, strict=True)
    ]
    lines = [line | {"origin": f"bench:{number + 1}", "rank": number} for number, line in enumerate(lines)]
    texts = sorted((text_id(text), len(text)) for text in {*queries, *documents})
    tokens = [{"text_id": name, "token_key": int(name, 16), "length_tokens": length} for name, length in texts]
    return table_of(sorted(lines, key=lambda line: str(line["id"])), ROWS_SCHEMA), table_of(tokens, TOKENS)


def _lists(queries: Sequence[str], positives: Sequence[str], negatives: Sequence[Sequence[str]]) -> np.ndarray:
    """Return a hash for each row that has all its negatives: of its query, its positive and them, in order."""
    rows = zip(queries, positives, negatives, strict=True)
    texts = ["\n".join((query, positive, *own)) for query, positive, own in rows if len(own) == RULES.negatives]
    return np.array([int(hashlib.sha256(text.encode()).hexdigest()[:15], 16) for text in texts], dtype=np.int64)


def benchmark(rows: int = ROWS) -> paired.Benchmark:
    """Return the benchmark over so many pairs."""
    many = f", a query of {MOST_POSITIVES:,}"
    called = {"medi": ours, "mine_hard_negatives": theirs}
    ways: dict[str, paired.Way] = dict(called)
    ways |= {name + many: partial(way, most_positives=MOST_POSITIVES) for name, way in called.items()}
    ratios = [paired.Ratio("medi" + end, "mine_hard_negatives" + end, most=0.6) for end in ("", many)]
    ratios += [replace(ratio, most=1 / 6, what="peak_bytes") for ratio in ratios]
    ratios += [paired.Ratio("medi" + many, "medi", most=1.1, what=what) for what in ("cpu_seconds", "peak_bytes")]
    return paired.Benchmark(
        module="benchmarks.hard_negatives",
        title="Hard negatives",
        prepare=partial(prepare, rows=rows),
        ways=ways,
        ratios=ratios,
    )


BENCHMARK = benchmark()

if __name__ == "__main__":
    paired.main(BENCHMARK, benchmark)
