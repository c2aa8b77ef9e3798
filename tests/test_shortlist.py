"""Shortlists hold the best, whatever the vectors: no document left out scores above its bound by brute force.

They run on every processor, if slowly; where there are no matrix units, nobody asks for them.
"""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from medi.mine import shortlist
from medi.mine.engine import Proposal, by_cpu
from medi.mine.search import Lists, Search, top_k
from medi.mine.shortlist import Halves, pays
from medi.mine.vectors import Rows
from tests.test_search import assert_same, rounded, units


def shortlists(queries: np.ndarray, documents: np.ndarray, wanted: np.ndarray) -> Proposal:
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(queries.astype(np.float64), axis=1)
    return Halves.of(Rows(documents)).best(queries, lengths, wanted)


def assert_bounded(queries: np.ndarray, documents: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Check that scores are as near as is said and nothing left out is above the bound; return whose list is there."""
    numbers, scores, error, floor = shortlists(queries, documents, wanted)
    exact = (queries.astype(np.float64) @ documents.T.astype(np.float64)).astype(np.float32)
    for row, (own, bound, count) in enumerate(zip(exact, floor.tolist(), wanted.tolist(), strict=True)):
        there = numbers[row][numbers[row] >= 0]
        assert (numbers[row] >= 0)[: len(there)].all()
        assert len(set(there.tolist())) == len(there)
        assert (np.abs(own[there] - scores[row, : len(there)]) <= error[row]).all()
        assert np.delete(own, there).max(initial=-np.inf) <= bound
        if np.isfinite(bound):
            assert np.sort(own)[-count] > bound
    return np.isfinite(floor)


# Found with half the half step: a bound that holds for most.
@example(74, 4, 3, 1, False)
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 400), st.integers(1, 40), st.booleans())
def test_what_is_left_out_scores_below_the_bound(seed: int, b: int, m: int, dimension: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    make = rounded if ties else lambda rng, count, width: rng.normal(size=(count, width)).astype(np.float32)
    documents = make(rng, m, dimension)[rng.integers(0, m, m)] * np.float32(10.0 ** rng.integers(-3, 4))
    assert_bounded(make(rng, b, dimension), documents, rng.integers(1, -(-m // 16) + 1, b))


def test_half_a_step_is_what_rounding_to_bfloat16_takes_at_most() -> None:
    numbers = np.linspace(1, 2, 100_001, dtype=np.float32)
    rounded = torch.from_numpy(numbers).bfloat16().float().numpy()
    most = np.abs(numbers - rounded) / np.abs(rounded)
    assert 0.99 * 2.0**-8 < most.max() <= shortlist._HALF_STEP


@pytest.mark.parametrize("count", [4_095, 4_096, 4_097, 9_000])
def test_lists_are_there_and_short_where_the_best_stand_out(count: int) -> None:
    """A tile less one document, one more, and several: nothing that is not there is listed, and the last is found."""
    documents, queries = units(0, count, 64), units(1, 5, 64)
    queries[0] = documents[-1]
    assert assert_bounded(queries, documents, np.array([1, 1, 10, 20, 30])).all()
    numbers = shortlists(queries, documents, np.full(5, 10)).numbers
    assert (numbers[0] == count - 1).sum() == 1
    assert (numbers >= 0).sum(axis=1).max() < 40


def test_the_best_of_an_early_tile_stay_and_those_of_a_later_one_are_found() -> None:
    documents, queries = units(4, 13_000, 32), units(5, 3, 32)
    places = np.array([[0, 5_000, 12_999], [4_095, 4_096, 8_192], [1, 2, 3]])
    documents[places] = queries[:, None] + units(6, 9, 32).reshape(3, 3, 32) / 8
    assert assert_bounded(queries, documents, np.full(3, 3)).all()
    numbers = shortlists(queries, documents, np.full(3, 3)).numbers
    assert all(set(own) <= set(found) for own, found in zip(places.tolist(), numbers.tolist(), strict=True))


def test_a_list_of_very_many_equals_is_none() -> None:
    documents = np.repeat(units(0, 2, 16), 3_000, axis=0)
    numbers, _, _, floor = shortlists(documents[:1], documents, np.array([3]))
    assert (numbers.size, floor.tolist()) == (0, [np.inf])


def test_where_too_few_score_above_the_mean_there_is_no_list() -> None:
    """Bits are in no order below 0; such a query is scanned."""
    documents = np.repeat(units(0, 1, 16), 500, axis=0)
    documents[250:] *= -1
    numbers, _, _, floor = shortlists(documents[:1], documents, np.array([20]))
    assert (numbers.size, floor.tolist()) == (0, [np.inf])


@pytest.mark.parametrize("scale", [1e-36, 1e-30, 1e18, 1e25, 1e38])
def test_numbers_beyond_float32_give_the_right_bound_or_none(scale: float) -> None:
    """Squares of these, or products, are nothing or infinite in float32."""
    documents = units(0, 500, 16) * np.float32(scale)
    queries = units(1, 4, 16) * np.float32(max(1.0, scale / 1e25))
    numbers, _, _, floor = shortlists(queries, documents, np.full(4, 5))
    exact = queries.astype(np.float64) @ documents.T.astype(np.float64)
    for own, listed, bound in zip(exact, numbers, floor.tolist(), strict=True):
        assert np.delete(own, listed[listed >= 0]).max() <= bound


@pytest.mark.skipif(not pays(Rows(np.empty((9_999, 512))), 10), reason="this processor has no matrix units")
@pytest.mark.parametrize("scan_bytes", [1, 1 << 20, 64 << 20])
def test_a_search_by_shortlists_equals_one_by_faiss(scan_bytes: int) -> None:
    """Copies, one query with many excluded documents, and blocks of one query or of all are among them."""
    documents, queries = units(2, 4_000, 256)[np.arange(4_000) % 3_900], units(3, 150, 256)
    queries[:100] = documents[:100]
    excluded = Lists.of([np.arange(row, row + (900 if row == 7 else row % 3)) for row in range(150)])
    expected = top_k(queries, documents, 20, excluded, propose=by_cpu)
    assert_same(top_k(queries, documents, 20, excluded, Search(scan_bytes)), expected)


@pytest.mark.skipif(not pays(Rows(np.empty((9_999, 512))), 10), reason="this processor has no matrix units")
def test_rows_of_a_matrix_and_turned_signs_are_searched_like_an_array() -> None:
    matrix = units(7, 9_000, 256)
    at, asked = np.random.default_rng(8).permutation(9_000)[:5_000], np.arange(0, 300, 3)
    excluded = Lists.of([np.array([row]) for row in range(100)])
    turned = np.hstack([matrix[asked][:, :128], -matrix[asked][:, 128:]])
    expected = top_k(turned, matrix[at], 12, excluded, propose=by_cpu)
    assert_same(top_k(Rows(matrix, asked, negated=128), Rows(matrix, at), 12, excluded), expected)
    assert_same(top_k(Rows(matrix, asked, negated=128), Rows(matrix, at), 12, excluded, propose=by_cpu), expected)


def test_few_documents_or_dimensions_are_not_worth_it_nor_are_very_many_wanted() -> None:
    assert not pays(Rows(np.empty((2_000, 768), dtype=np.float32)), 74)
    assert not pays(Rows(np.empty((9_000, 64), dtype=np.float32)), 74)
    assert not pays(Rows(np.empty((4_000, 768), dtype=np.float32)), 128)
    assert not pays(Rows(np.broadcast_to(np.float32(0), (90_000, 768))), 129)
