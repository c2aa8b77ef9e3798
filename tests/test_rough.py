"""Shortlists by bfloat16: the answer is that of brute force, and the bound that lets documents out holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.mine import rough
from medi.mine.scores import scores_at
from medi.mine.search import Found, Lists, Search, top_k
from medi.mine.two_space import nearest_in_both
from tests.test_search import assert_same, brute_force, rounded, units

ROUGH, PLAIN = Search(rough=True), Search(rough=False)
NOTHING = np.empty(0, dtype=np.int64)


def alike(seed: int, count: int, dimension: int) -> np.ndarray:
    """Return unit vectors with a common direction, every fifth of them equal to another."""
    vectors = units(seed, count, dimension) + 1.2 * units(seed + 1, 1, dimension)
    vectors[::5] = vectors[(np.arange(count) * 7 + 3) % count][::5]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def listed(documents: np.ndarray, queries: np.ndarray, k: int, excluded: Lists) -> rough.Shortlists:
    """Return the shortlists of all queries in one block."""
    made = rough.rough_of(documents)
    owners = np.repeat(np.arange(len(queries)), np.diff(excluded.starts))
    room = rough.room_of(made, len(queries), 1 << 28)
    return rough.shortlists(made, queries, k, (owners, excluded.items), room)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 300), st.integers(1, 24), st.integers(1, 80))
def test_brute_force_agrees_with_ties_and_duplicates(seed: int, n: int, m: int, dimension: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    documents, queries = rounded(rng, m, dimension)[rng.integers(0, m, m)], rounded(rng, n, dimension)
    excluded = [rng.permutation(m)[: rng.integers(0, m + 1) if rng.random() < 0.5 else 1] for _ in range(n)]
    found = top_k(queries, documents, k, Lists.of(excluded), ROUGH)
    assert_same(found, brute_force(queries, documents, k, excluded))


@pytest.mark.parametrize(("count", "k", "scan_bytes"), [(700, 10, 64 << 20), (5_000, 64, 64 << 20), (2_048, 20, 1)])
def test_the_answer_is_that_of_faiss_over_several_tiles_and_blocks(count: int, k: int, scan_bytes: int) -> None:
    documents = alike(1, count, 100)
    queries = documents[: 40 if scan_bytes == 1 else 300]
    excluded = Lists.of([np.array([row, count - 1 - row]) for row in range(len(queries))])
    found = top_k(queries, documents, k, excluded, Search(scan_bytes, rough=True))
    assert_same(found, top_k(queries, documents, k, excluded, PLAIN))


def test_shortlists_answer_themselves_and_stay_short() -> None:
    """Else FAISS would answer in their place, and the tests above would hold without them."""
    documents = alike(2, 6_000, 384)
    lists = listed(documents, documents[:200], 10, Lists.of([np.array([row]) for row in range(200)]))
    assert lists.certain.all()
    assert np.diff(lists.starts).mean() < 60


def test_each_score_is_off_by_its_slack_at_most_and_nothing_within_reach_is_missing() -> None:
    documents = np.concatenate([alike(3, 3_000, 96), 3 * units(4, 200, 96), units(5, 200, 96) / 100])
    queries, k = documents[::17], 5
    lists = listed(documents, queries, k, Lists.of([NOTHING] * len(queries)))
    every = np.broadcast_to(np.arange(len(documents)), (len(queries), len(documents)))
    exact = scores_at(queries, documents, every)
    for row in np.flatnonzero(lists.certain):
        own = slice(lists.starts[row], lists.starts[row + 1])
        assert (np.abs(exact[row, lists.numbers[own]] - lists.scores[own]) <= lists.slack[own]).all()
        assert set(np.argsort(-exact[row])[:k]) <= set(lists.numbers[own].tolist())
    assert lists.certain.mean() > 0.5


def test_one_query_with_a_thousand_excluded_documents_is_answered_too() -> None:
    documents = alike(6, 3_000, 64)
    excluded = [np.argsort(-(documents @ documents[0]))[:1_000], *(np.array([row]) for row in range(1, 50))]
    found = top_k(documents[:50], documents, 12, Lists.of(excluded), ROUGH)
    assert_same(found, brute_force(documents[:50], documents, 12, excluded))


def test_vectors_that_are_all_equal_or_too_long_are_left_to_faiss() -> None:
    equal = np.tile(units(7, 1, 32), (3_000, 1))
    lists = Lists.of([np.array([3])] * 20)
    expected = [number for number in range(11) if number != 3]
    assert top_k(equal[:20], equal, 10, lists, ROUGH).numbers.tolist() == [expected] * 20
    assert top_k(equal[:20] * 1e15, equal * 1e15, 10, lists, ROUGH).numbers.tolist() == [expected] * 20


def test_both_spaces_are_searched_with_every_example_as_asker_and_as_found() -> None:
    inputs, outputs = alike(8, 900, 48), alike(9, 900, 48)
    excluded = [np.array([row]) for row in range(900)]
    both = np.hstack([inputs, outputs])
    for search in (ROUGH, PLAIN):
        sides: tuple[Found, Found] = nearest_in_both(inputs, outputs, 10, Lists.of(excluded), search)
        for asked, side in zip((both, np.hstack([inputs, -outputs])), sides, strict=True):
            assert_same(side, brute_force(asked, both, 10, excluded))
