"""Shortlists hold the best, whatever the vectors: no document left out scores above its bound by brute force.

They run on every processor, if slowly; where there are no matrix units, nobody asks for them.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.mine.engine import by_cpu
from medi.mine.search import Lists, Search, top_k
from medi.mine.shortlist import Halves, Shortlists, pays
from tests.test_search import assert_same, rounded, units


def shortlists(queries: np.ndarray, documents: np.ndarray, wanted: np.ndarray) -> Shortlists:
    halves = Halves.of(documents)
    room = halves.room(len(queries))
    # What an earlier block left there must not be seen.
    halves.best(queries[::-1].copy(), wanted, room)
    return halves.best(queries, wanted, room)


def assert_bounded(queries: np.ndarray, documents: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Check that nothing left out scores above the bound, and return whose lists are there, bool [b]."""
    numbers, floor = shortlists(queries, documents, wanted)
    exact = (queries.astype(np.float64) @ documents.T.astype(np.float64)).astype(np.float32)
    for own, listed, bound, count in zip(exact, numbers.tolist(), floor.tolist(), wanted.tolist(), strict=True):
        there = [number for number in listed if number >= 0]
        assert len(set(there)) == len(there)
        assert set(there) <= set(range(len(documents)))
        assert np.delete(own, there).max(initial=-np.inf) <= bound
        if np.isfinite(bound):
            assert np.sort(own)[-count] > bound
    return np.isfinite(floor)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 400), st.integers(1, 40), st.booleans())
def test_what_is_left_out_scores_below_the_bound(seed: int, b: int, m: int, dimension: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    make = rounded if ties else lambda rng, count, width: rng.normal(size=(count, width)).astype(np.float32)
    documents = make(rng, m, dimension)[rng.integers(0, m, m)] * np.float32(10.0 ** rng.integers(-3, 4))
    assert_bounded(make(rng, b, dimension), documents, rng.integers(1, -(-m // 16) + 1, b))


@pytest.mark.parametrize("count", [2_047, 2_048, 2_049])
def test_lists_are_there_and_short_where_the_best_stand_out(count: int) -> None:
    """Not a multiple of 16 and one behind it: nothing that is not there is listed, and the last document is found."""
    documents, queries = units(0, count, 64), units(1, 5, 64)
    queries[0] = documents[-1]
    assert assert_bounded(queries, documents, np.array([1, 1, 10, 20, 30])).all()
    numbers, _ = shortlists(queries, documents, np.full(5, 10))
    assert (numbers[0] == count - 1).sum() == 1
    assert (numbers >= 0).sum(axis=1).max() < 40


def test_a_list_of_very_many_equals_is_none() -> None:
    documents = np.repeat(units(0, 2, 16), 1_500, axis=0)
    numbers, floor = shortlists(documents[:1], documents, np.array([3]))
    assert (numbers.size, floor.tolist()) == (0, [np.inf])


@pytest.mark.parametrize("scale", [1e-36, 1e-30, 1e25])
def test_numbers_beyond_float32_give_the_right_bound_or_none(scale: float) -> None:
    """Squares of these are nothing or infinite in float32."""
    documents = units(0, 500, 16) * np.float32(scale)
    numbers, floor = shortlists(units(1, 4, 16), documents, np.full(4, 5))
    exact = units(1, 4, 16).astype(np.float64) @ documents.T.astype(np.float64)
    for own, listed, bound in zip(exact, numbers, floor.tolist(), strict=True):
        assert np.delete(own, listed[listed >= 0]).max() <= bound


@pytest.mark.skipif(not pays(np.empty((9_999, 512)), 10), reason="this processor has no matrix units")
@pytest.mark.parametrize("scan_bytes", [1, 1 << 20, 64 << 20])
def test_a_search_by_shortlists_equals_one_by_faiss(scan_bytes: int) -> None:
    """Copies, one query with many excluded documents, and blocks of one query or of all are among them."""
    documents, queries = units(2, 4_000, 256)[np.arange(4_000) % 3_900], units(3, 150, 256)
    queries[:100] = documents[:100]
    excluded = Lists.of([np.arange(row, row + (900 if row == 7 else row % 3)) for row in range(150)])
    expected = top_k(queries, documents, 20, excluded, propose=by_cpu)
    assert_same(top_k(queries, documents, 20, excluded, Search(scan_bytes)), expected)


def test_few_documents_or_dimensions_are_not_worth_it() -> None:
    assert not pays(np.empty((2_000, 768), dtype=np.float32), 74)
    assert not pays(np.empty((9_000, 64), dtype=np.float32), 74)
    assert not pays(np.empty((9_000, 768), dtype=np.float32), 400)
