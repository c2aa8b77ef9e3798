"""Shortlists hold the best, whatever the vectors: no document left out scores above its bound by brute force.

Both kinds run on every processor; those in bfloat16 are slow where there are no matrix units, and nobody asks for them.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from medi.mine.documents import Documents
from medi.mine.engine import Proposal, by_cpu
from medi.mine.halves import Halves
from medi.mine.kept import BFLOAT16
from medi.mine.search import Found, Lists, Search, top_k
from medi.mine.singles import Singles
from medi.mine.vectors import Rows
from tests.test_search import assert_same, rounded, units

Shortlists = Callable[[np.ndarray, np.ndarray, np.ndarray], Proposal]


def lengths(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors.astype(np.float64), axis=1)


def by_halves(queries: np.ndarray, documents: np.ndarray, wanted: np.ndarray) -> Proposal:
    return Halves.of(Rows(documents)).best(Rows(queries), slice(0, len(queries)), lengths(queries), wanted)


def by_singles(queries: np.ndarray, documents: np.ndarray, wanted: np.ndarray) -> Proposal:
    singles = Singles(Rows(documents), lengths(documents))
    return singles.best(Rows(queries), slice(0, len(queries)), lengths(queries), wanted)


both_kinds = pytest.mark.parametrize("shortlists", [by_halves, by_singles])


def assert_bounded(
    shortlists: Shortlists, queries: np.ndarray, documents: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
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
@both_kinds
@example(seed=74, b=4, m=3, dimension=1, ties=False)
@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    b=st.integers(1, 9),
    m=st.integers(1, 400),
    dimension=st.integers(1, 40),
    ties=st.booleans(),
)
def test_what_is_left_out_scores_below_the_bound(
    shortlists: Shortlists, seed: int, b: int, m: int, dimension: int, ties: bool
) -> None:
    rng = np.random.default_rng(seed)
    make = rounded if ties else lambda rng, count, width: rng.normal(size=(count, width)).astype(np.float32)
    documents = make(rng, m, dimension)[rng.integers(0, m, m)] * np.float32(10.0 ** rng.integers(-3, 4))
    assert_bounded(shortlists, make(rng, b, dimension), documents, rng.integers(1, -(-m // 16) + 1, b))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 400), st.integers(2, 40), st.data())
def test_products_of_two_parts_are_bounded_too(seed: int, b: int, m: int, dimension: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    asked = Rows(rounded(rng, b, dimension), negated=data.draw(st.integers(1, dimension - 1)), twice=True)
    documents = rounded(rng, m, dimension) * np.float32(10.0 ** rng.integers(-3, 4))

    def by_parts(queries: np.ndarray, documents: np.ndarray, wanted: np.ndarray) -> Proposal:
        singles = Singles(Rows(documents), lengths(documents))
        return singles.best(asked, slice(0, len(asked)), lengths(queries), wanted)

    wanted = rng.integers(1, -(-m // 16) + 1, 2 * b)
    assert_bounded(by_parts, asked.part(slice(None)), documents, wanted)


def test_half_a_step_is_what_rounding_to_bfloat16_takes_at_most() -> None:
    numbers = np.linspace(1, 2, 100_001, dtype=np.float32)
    rounded = torch.from_numpy(numbers).bfloat16().float().numpy()
    most = np.abs(numbers - rounded) / np.abs(rounded)
    assert 0.99 * 2.0**-8 < most.max() <= BFLOAT16.lost


@both_kinds
@pytest.mark.parametrize("count", [4_095, 4_096, 4_097, 9_000])
def test_lists_are_there_and_short_where_the_best_stand_out(shortlists: Shortlists, count: int) -> None:
    """A tile less one document, one more, and several: nothing that is not there is listed, and the last is found."""
    documents, queries = units(0, count, 64), units(1, 5, 64)
    queries[0] = documents[-1]
    assert assert_bounded(shortlists, queries, documents, np.array([1, 1, 10, 20, 30])).all()
    numbers = shortlists(queries, documents, np.full(5, 10)).numbers
    assert (numbers[0] == count - 1).sum() == 1
    assert (numbers >= 0).sum(axis=1).max() < 40


@both_kinds
def test_the_best_of_an_early_tile_stay_and_those_of_a_later_one_are_found(shortlists: Shortlists) -> None:
    documents, queries = units(4, 13_000, 32), units(5, 3, 32)
    places = np.array([[0, 5_000, 12_999], [4_095, 4_096, 8_192], [1, 2, 3]])
    documents[places] = queries[:, None] + units(6, 9, 32).reshape(3, 3, 32) / 8
    assert assert_bounded(shortlists, queries, documents, np.full(3, 3)).all()
    numbers = shortlists(queries, documents, np.full(3, 3)).numbers
    assert all(set(own) <= set(found) for own, found in zip(places.tolist(), numbers.tolist(), strict=True))


@both_kinds
def test_a_list_of_very_many_equals_is_none(shortlists: Shortlists) -> None:
    documents = np.repeat(units(0, 2, 16), 3_000, axis=0)
    numbers, _, _, floor = shortlists(documents[:1], documents, np.array([3]))
    assert (numbers.size, floor.tolist()) == (0, [np.inf])


def test_where_too_few_score_above_the_mean_there_is_no_list_by_halves() -> None:
    """Bits are in no order below 0; such a query is scanned."""
    documents = np.repeat(units(0, 1, 16), 500, axis=0)
    documents[250:] *= -1
    numbers, _, _, floor = by_halves(documents[:1], documents, np.array([20]))
    assert (numbers.size, floor.tolist()) == (0, [np.inf])


def test_scores_below_0_are_listed_by_singles() -> None:
    queries, documents = units(0, 4, 16), np.abs(units(1, 500, 16))
    assert assert_bounded(by_singles, -np.abs(queries), documents, np.array([1, 3, 9, 20])).all()


@both_kinds
@pytest.mark.parametrize("scale", [1e-36, 1e-30, 1e18, 1e25, 1e38])
def test_numbers_beyond_float32_give_the_right_bound_or_none(shortlists: Shortlists, scale: float) -> None:
    """Squares of these, or products, are nothing or infinite in float32."""
    documents = units(0, 500, 16) * np.float32(scale)
    queries = units(1, 4, 16) * np.float32(max(1.0, scale / 1e25))
    numbers, _, _, floor = shortlists(queries, documents, np.full(4, 5))
    exact = queries.astype(np.float64) @ documents.T.astype(np.float64)
    for own, listed, bound in zip(exact, numbers, floor.tolist(), strict=True):
        assert np.delete(own, listed[listed >= 0]).max() <= bound


@pytest.mark.parametrize("by_halves", [False, True])
@pytest.mark.parametrize("scan_bytes", [1, 1 << 20, 64 << 20])
def test_a_search_by_shortlists_equals_one_by_faiss(by_halves: bool, scan_bytes: int) -> None:
    """Copies, one query with many excluded documents, and blocks of one query or of all are among them."""
    documents, queries = units(2, 4_000, 256)[np.arange(4_000) % 3_900], units(3, 150, 256)
    queries[:100] = documents[:100]
    excluded = Lists.of([np.arange(row, row + (900 if row == 7 else row % 3)) for row in range(150)])
    expected = top_k(queries, documents, 20, excluded, propose=by_cpu)
    search = Search(scan_bytes)
    assert_same(top_k(queries, Documents(Rows(documents), by_halves), 20, excluded, search), expected)
    assert (search.decided.listed, search.decided.scanned) == (150, 0)


@pytest.mark.parametrize("by_halves", [False, True])
def test_rows_of_a_matrix_and_turned_signs_are_searched_like_an_array(by_halves: bool) -> None:
    matrix = units(7, 9_000, 256)
    at, asked = np.random.default_rng(8).permutation(9_000)[:5_000], np.arange(0, 300, 3)
    excluded = Lists.of([np.array([row]) for row in range(100)])
    turned = np.hstack([matrix[asked][:, :128], -matrix[asked][:, 128:]])
    expected = top_k(turned, matrix[at], 12, excluded, propose=by_cpu)
    documents = Documents(Rows(matrix, at), by_halves)
    assert_same(top_k(Rows(matrix, asked, negated=128), documents, 12, excluded), expected)
    assert_same(top_k(Rows(matrix, asked, negated=128), Rows(matrix, at), 12, excluded, propose=by_cpu), expected)


@pytest.mark.parametrize("by_halves", [False, True])
@pytest.mark.parametrize("scan_bytes", [1, 64 << 20])
def test_vectors_that_come_twice_are_searched_like_two_arrays(by_halves: bool, scan_bytes: int) -> None:
    """Blocks of one query share no product, those of many do."""
    matrix = units(9, 4_000, 256)[np.arange(4_000) % 3_900]
    asked = Rows(matrix, np.arange(150), negated=100, twice=True)
    excluded = Lists.of([np.array([row // 2]) for row in range(300)])
    itself = Lists.of([np.array([row]) for row in range(150)])
    found = top_k(asked, Documents(Rows(matrix), by_halves), 12, excluded, Search(scan_bytes))
    turned = np.hstack([matrix[:150, :100], -matrix[:150, 100:]])
    for side, queries in enumerate((matrix[:150], turned)):
        assert_same(Found(*(part[side::2] for part in found)), top_k(queries, matrix, 12, itself, propose=by_cpu))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("by_halves", [False, True])
def test_vectors_that_must_not_be_written_are_searched_without_a_word(by_halves: bool) -> None:
    matrix = units(10, 3_000, 256)
    expected = top_k(matrix[:9], matrix, 5, Lists.of([np.array([0])] * 9), propose=by_cpu)
    matrix.flags.writeable = False
    assert_same(top_k(matrix[:9], Documents(Rows(matrix), by_halves), 5, Lists.of([np.array([0])] * 9)), expected)


def test_few_documents_or_dimensions_are_not_worth_it_nor_are_very_many_wanted() -> None:
    assert Documents.of(np.empty((9_000, 768), dtype=np.float32)).suit_shortlists(74)
    assert not Documents.of(np.empty((2_000, 768), dtype=np.float32)).suit_shortlists(74)
    assert not Documents.of(np.empty((9_000, 64), dtype=np.float32)).suit_shortlists(74)
    assert not Documents.of(np.empty((4_000, 768), dtype=np.float32)).suit_shortlists(128)
    assert not Documents(Rows(np.broadcast_to(np.float32(0), (90_000, 768)))).suit_shortlists(129)
