"""What sentence-transformers' miner takes for negatives, and what ours takes on the same rows.

Not a competition: the faults are documented, and each is a reason for a rule of ours. The two see the same vectors.
"""

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from sentence_transformers.util import mine_hard_negatives

from medi import mine
from medi.schema import fold
from tests.mining import PAPER, RULES, Vectors, mined_pairs, random_vectors, rows_of

SYMMETRIC = mine.PairRules(symmetric=True, clusters=False)
Pair = tuple[str, str]


class Model:
    """What the peer asks of a SentenceTransformer, answered from a table of vectors."""

    device = "cpu"

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = {text: np.array(v, dtype=np.float32) / np.linalg.norm(v) for text, v in vectors.items()}

    def encode_query(self, texts: Sequence[str], **_: object) -> np.ndarray:
        return np.array([self._vectors[text] for text in texts], dtype=np.float32)

    encode_document = encode_query

    def similarity(self, one: np.ndarray, other: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(one) @ torch.as_tensor(other).T

    def similarity_pairwise(self, one: np.ndarray, other: torch.Tensor) -> torch.Tensor:
        return (torch.as_tensor(one) * torch.as_tensor(other)).sum(dim=1)


def theirs(pairs: Sequence[Pair], vectors: Vectors) -> list[tuple[Pair, str]]:
    """Return each (anchor, positive) with the negative that the peer mined for it."""
    columns = {"anchor": [a for a, _ in pairs], "positive": [p for _, p in pairs]}
    rows = mine_hard_negatives(Dataset.from_dict(columns), Model(vectors), num_negatives=1, verbose=False)
    return [((row["anchor"], row["positive"]), row["negative"]) for row in rows.to_list()]


def ours(pairs: Sequence[Pair], vectors: Vectors, given: mine.PairRules) -> list[tuple[Pair, str]]:
    """Return each (query, positive) with the negative that we mined for it."""
    rows = rows_of(*({"query": query, "positive": positive} for query, positive in pairs))
    found, _ = mined_pairs(rows, vectors, given)
    listed = zip(*(found[c].to_pylist() for c in ("query", "positive", "negatives")), strict=True)
    return [((query, positive), negative) for query, positive, negatives in listed for negative in negatives]


def own_text(found: Sequence[tuple[Pair, str]]) -> int:
    """Return how many rows have their query or their positive, folded, as a negative."""
    return sum(fold(negative) in {fold(text) for text in pair} for pair, negative in found)


def test_the_anchor_is_mined_as_its_own_negative() -> None:
    """Pairs in both directions, as a symmetric set has them: the nearest document of an anchor is the anchor."""
    one_way = [(f"the first of pair {n}", f"the second of pair {n}") for n in range(60)]
    pairs = one_way + [(second, first) for first, second in one_way]
    vectors = random_vectors([text for pair in one_way for text in pair])
    found = theirs(pairs, vectors)
    assert (len(found), sum(anchor == negative for (anchor, _), negative in found)) == (120, 120)
    mined = ours(pairs, vectors, SYMMETRIC)
    assert (len(mined), own_text(mined)) == (120, 0)


def test_a_copy_of_the_positive_is_mined_as_a_negative() -> None:
    """The same answer stands twice in the source, once with a line break."""
    answers = [f"answer number {n} to it" for n in range(40)]
    copies = [answer.replace(" ", "\n", 1) for answer in answers]
    pairs = [(f"question {n}", a) for n, a in enumerate(answers)] + [(f"asked {n}", c) for n, c in enumerate(copies)]
    of_answers = random_vectors(answers)
    vectors = of_answers | dict(zip(copies, of_answers.values(), strict=True))
    vectors |= {question: vectors[answer] for question, answer in pairs}
    assert own_text(theirs(pairs, vectors)) == 80
    mined = ours(pairs, vectors, RULES)
    assert (len(mined), own_text(mined)) == (80, 0)


def many_positives(of_one_query: int, others: int) -> tuple[pa.Table, Vectors]:
    """Return rows in which one query has so many positives and each other query has one, and their vectors."""
    pairs = [("a label", f"member {n}") for n in range(of_one_query)]
    pairs += [(f"question {n}", f"answer {n}") for n in range(others)]
    rows = rows_of(*({"query": query, "positive": positive} for query, positive in pairs))
    return rows, random_vectors([text for pair in pairs for text in pair])


def test_a_thousand_positives_of_one_query_are_no_negatives() -> None:
    """Label-like data: the best documents beyond the thousand are found, by no wider search for the other queries."""
    rows, vectors = many_positives(1_000, 200)
    pairs, counts = mined_pairs(rows, vectors, RULES, replace(PAPER, negatives=4))
    unit = {text: np.array(v) / np.linalg.norm(v) for text, v in vectors.items()}
    answers = [text for text in unit if text.startswith("answer")]
    best = sorted(answers, key=lambda text: -float(unit["a label"] @ unit[text]))[:4]
    of_label = [row["negatives"] for row in pairs.to_pylist() if row["query"] == "a label"]
    assert of_label == [best] * 1_000
    assert counts.rows_out == 1_200 and {len(listed) for listed in pairs["negatives"].to_pylist()} == {4}


def test_memory_does_not_grow_with_the_positives_of_a_query() -> None:
    def peak_bytes(of_one_query: int) -> int:
        rows, vectors = many_positives(of_one_query, 1_500 - of_one_query)
        mined_pairs(rows, vectors)
        tracemalloc.start()
        mined_pairs(rows, vectors)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak_bytes(1_000) < 1.3 * peak_bytes(1)
