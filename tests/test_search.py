"""Exact search: brute force agrees on ids and order, whatever the shape, the ties and the exclusions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.mine.search import Lists, Search, cosines_of, scores_of, top_k

NOTHING = np.empty(0, dtype=np.int64)


def brute_force(queries: np.ndarray, documents: np.ndarray, k: int, barred: list[np.ndarray]) -> list[list[int]]:
    """Return the ids by (float64 score rounded to float32, descending; id ascending), the plain way."""
    answers = []
    for query, out in zip(queries, barred, strict=True):
        scores = scores_of(query[None, :], documents)
        allowed = [d for d in range(len(documents)) if d not in set(out.tolist())]
        best = sorted(allowed, key=lambda d: (-scores[d], d))[:k]
        answers.append(best + [-1] * (k - len(best)))
    return answers


def rounded(rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    """Return vectors of few digits, none of them zero."""
    vectors = np.round(rng.normal(size=(count, dimension)), 1).astype(np.float32)
    vectors[:, 0] += np.where((vectors == 0).all(axis=1), np.float32(1), 0)
    return vectors


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 300), st.integers(1, 24), st.integers(1, 12))
def test_brute_force_agrees_with_ties_and_duplicates(seed: int, n: int, m: int, dimension: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    # Rounded vectors make many ties; repeated rows make exact duplicates.
    documents, queries = rounded(rng, m, dimension)[rng.integers(0, m, m)], rounded(rng, n, dimension)
    barred = [rng.permutation(m)[: rng.integers(0, m + 1)] for _ in range(n)]
    found, scores, _ = top_k(queries, documents, k, Lists.of(barred))
    assert found.tolist() == brute_force(queries, documents, k, barred)
    assert np.array_equal(np.isneginf(scores), found < 0)


def test_ten_equal_vectors_come_in_id_order_for_every_k() -> None:
    """C20: FAISS itself gives [0], [2, 1, 0], [4, 3, 2, 1, 0]."""
    documents = np.tile(np.eye(4, dtype=np.float32)[0], (10, 1))
    answers = [top_k(documents[:1], documents, k, Lists.of([NOTHING]))[0].tolist()[0] for k in (1, 3, 5)]
    assert answers == [[0], [0, 1, 2], [0, 1, 2, 3, 4]]


def test_more_wanted_than_there_are_leaves_minus_one() -> None:
    """C16: FAISS answers -1 with a score of -3.4e38, which must never be read as the last document."""
    documents = np.eye(4, dtype=np.float32)[:3]
    found, scores, _ = top_k(documents[:1], documents, 5, Lists.of([NOTHING]))
    assert found.tolist() == [[0, 1, 2, -1, -1]]
    assert scores[0, :3].tolist() == [1.0, 0.0, 0.0] and np.isneginf(scores[0, 3:]).all()


@pytest.mark.parametrize("barred", [100, 3_000])
def test_a_query_with_very_many_barred_documents_is_still_exact(barred: int) -> None:
    rng = np.random.default_rng(0)
    documents = rng.normal(size=(4_000, 8)).astype(np.float32)
    queries = rng.normal(size=(3, 8)).astype(np.float32)
    nearest = [np.argsort(-scores_of(q[None, :], documents), kind="stable")[:barred] for q in queries]
    found, _, _ = top_k(queries, documents, 3, Lists.of(nearest))
    assert found.tolist() == brute_force(queries, documents, 3, nearest)


def test_a_longer_answer_starts_with_the_shorter_one() -> None:
    rng = np.random.default_rng(1)
    documents = np.round(rng.normal(size=(500, 6)), 1).astype(np.float32)
    answers = [top_k(documents, documents, k, Lists.of([NOTHING] * 500))[0] for k in (1, 4, 9, 40)]
    for shorter, longer in zip(answers, answers[1:], strict=False):
        assert np.array_equal(longer[:, : shorter.shape[1]], shorter)


def test_a_query_gets_the_same_answer_alone_and_in_company() -> None:
    rng = np.random.default_rng(2)
    documents = rng.normal(size=(900, 32)).astype(np.float32)
    together = top_k(documents, documents, 5, Lists.of([NOTHING] * 900))
    for row in (0, 17, 899):
        alone = top_k(documents[row : row + 1], documents, 5, Lists.of([NOTHING]))
        assert np.array_equal(alone[0][0], together[0][row]) and np.array_equal(alone[1][0], together[1][row])


@pytest.mark.parametrize("scan_bytes", [1, 50_000, 1 << 30])
def test_the_size_of_blocks_does_not_matter(scan_bytes: int) -> None:
    rng = np.random.default_rng(3)
    documents = np.round(rng.normal(size=(300, 8)), 1).astype(np.float32)
    barred = Lists.of([np.array([row]) for row in range(300)])
    found, scores, _ = top_k(documents, documents, 3, barred, Search(scan_bytes))
    expected, expected_scores, _ = top_k(documents, documents, 3, barred)
    assert np.array_equal(found, expected) and np.array_equal(scores, expected_scores)


def test_a_hair_over_one_is_one() -> None:
    """C19."""
    long = np.array([[1.0 + 6e-8]], dtype=np.float32)
    assert cosines_of(long, long).tolist() == [1.0]
    assert cosines_of(long, -long).tolist() == [-1.0]
