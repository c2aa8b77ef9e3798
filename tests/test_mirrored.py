"""Examples that are searched among themselves: each two blocks meet once, and the answer is that of two searches."""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.mine.documents import Documents
from medi.mine.engine import by_cpu, error_bound
from medi.mine.mirrored import blocks_of, meet_all, rounds
from medi.mine.search import SCAN_BYTES, Found, Lists, Search, top_k
from medi.mine.vectors import Rows
from tests.test_search import assert_same, rounded, units


@pytest.mark.parametrize("count", range(10))
def test_each_two_blocks_meet_once_and_none_is_in_two_lanes(count: int) -> None:
    taken = [list(pairs) for pairs in rounds(count)]
    assert sorted(chain(*taken)) == sorted(combinations_with_replacement(range(count), 2))
    for pairs in taken:
        blocks = [block for pair in pairs for block in set(pair)]
        assert len(set(blocks)) == len(blocks)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 200),
    dimension=st.integers(2, 24),
    lanes=st.integers(1, 3),
    ties=st.booleans(),
    data=st.data(),
)
def test_what_is_left_out_scores_below_the_bound(
    seed: int, n: int, dimension: int, lanes: int, ties: bool, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    examples = rounded(rng, n, dimension) if ties else units(seed, n, dimension)
    middle = data.draw(st.integers(1, dimension - 1), "middle")
    turned = np.hstack([examples[:, :middle], -examples[:, middle:]])
    asked = np.stack([examples, turned], axis=1).reshape(2 * n, dimension).astype(np.float64)
    wanted = rng.integers(1, data.draw(st.integers(1, 9), "most") + 1, 2 * n)
    lengths = np.linalg.norm(examples.astype(np.float64), axis=1)
    error = error_bound(np.repeat(lengths, 2), lengths, dimension)
    blocks = blocks_of(wanted, error, lanes, SCAN_BYTES)
    with ThreadPoolExecutor(lanes) as pool:
        meet_all(blocks, Rows(examples), middle, pool, lanes)
    exact = (asked @ examples.T.astype(np.float64)).astype(np.float32)
    for block in blocks:
        numbers, scores, errors, floor = block.proposal()
        for row, query in enumerate(range(block.queries.start, block.queries.stop)):
            there = numbers[row][numbers[row] >= 0]
            assert len(set(there.tolist())) == len(there)
            assert (np.abs(exact[query][there] - scores[row, : len(there)]) <= errors[row]).all()
            assert np.delete(exact[query], there).max(initial=-np.inf) <= floor[row]
    queries = [query for block in blocks for query in range(block.queries.start, block.queries.stop)]
    assert queries == (list(range(2 * n)) if blocks else [])
    # A block of fewer than two for each wanted one tells nothing from the rest.
    assert bool(blocks) == (-(-n // (2 * lanes - 1)) >= 2 * wanted.max())


@pytest.mark.parametrize(("scan_bytes", "is_mirrored"), [(SCAN_BYTES, True), (1 << 20, False)])
def test_both_spaces_are_searched_like_two_arrays(threads: int, scan_bytes: int, is_mirrored: bool) -> None:
    """Copies, excluded examples and one with many of them are among the examples."""
    examples = units(4, 2_300, 256)[np.arange(2_300) % 2_200]
    excluded = [np.arange(row, min(row + (900 if row == 7 else 1 + row % 3), 2_300)) for row in range(2_300)]
    search, k = Search(scan_bytes), 6
    asked, documents = Rows(examples, negated=100, twice=True), Documents(Rows(examples), by_halves=False)
    assert documents.suit_shortlists(k + 64)
    wanted = np.repeat([k + min(len(own), 64) for own in excluded], 2)
    assert bool(blocks_of(wanted, np.zeros(4_600), threads, scan_bytes)) == is_mirrored
    found = top_k(asked, documents, k, Lists.of([own for own in excluded for _ in range(2)]), search)
    turned = np.hstack([examples[:, :100], -examples[:, 100:]])
    for side, queries in enumerate((examples, turned)):
        expected = top_k(queries, examples, k, Lists.of(excluded), propose=by_cpu)
        assert_same(Found(*(part[side::2] for part in found)), expected)
    assert search.decided.listed + search.decided.scanned == 4_600 and search.decided.scanned < 10


def test_lists_of_very_many_equals_are_none_and_the_answer_is_right() -> None:
    """Of 2,100 examples 300 are equal, and a list holds 100."""
    examples = units(5, 2_100, 256)
    examples[::7] = examples[0]
    itself, search = Lists.of([np.array([row]) for row in range(2_100)]), Search(100 * 2 * 2_100 * 10)
    twice = Lists.of([own for own in itself.each() for _ in range(2)])
    found = top_k(Rows(examples, negated=128, twice=True), Documents(Rows(examples), False), 3, twice, search)
    turned = np.hstack([examples[:, :128], -examples[:, 128:]])
    for side, queries in enumerate((examples, turned)):
        assert_same(Found(*(part[side::2] for part in found)), top_k(queries, examples, 3, itself, propose=by_cpu))
    assert 300 <= search.decided.scanned < 650
