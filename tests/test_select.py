"""The choice among candidates: each rule by hand, every candidate accounted for, the same for any company of rows."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.errors import UsageError
from medi.mine.rank import balanced, best_first
from medi.mine.select import DRAWS, Listing, draws, mixed, repeated, select
from medi.profiles import PROFILES, Rules, check_rules
from medi.schema import SECOND_OF_MUTUAL

ROWS = np.array([17], dtype=np.uint64)
WANTED = np.array([16])


def listing_of(*scores: float, lowest: float = 0.9, barred: dict[str, list[bool]] | None = None) -> Listing:
    """Return one row's candidates 0, 1, 2, ... with these scores."""
    numbers = np.arange(len(scores))[None, :]
    marked = {reason: np.array([mask]) for reason, mask in (barred or {}).items()}
    row = np.array([scores], dtype=np.float32)
    return Listing(numbers, numbers.astype(np.uint64), row, np.array([lowest], dtype=np.float32), marked)


def chosen(listing: Listing, wanted: int, **rules: object) -> tuple[list[int], dict[str, int]]:
    """Return the chosen columns of the one row, and the counts that are not 0."""
    choice = select(listing, np.array([wanted]), ROWS, Rules(**rules))  # type: ignore[arg-type]
    columns = choice.columns[0]
    return columns[columns >= 0].tolist(), {reason: n for reason, n in choice.counts.items() if n}


SCORES = (0.99, 0.95, 0.9, 0.85, 0.8, 0.5, 0.1)


@pytest.mark.parametrize(
    ("rules", "expected", "struck"),
    [
        ({}, [0, 1, 2], {}),
        ({"skip_top": 2}, [2, 3, 4], {"skip_top": 2}),
        ({"skip_top": 1, "window": 3}, [1, 2], {"skip_top": 1, "beyond_window": 4}),
        ({"max_score": 0.9}, [2, 3, 4], {"above_max_score": 2}),
        ({"min_score": 0.9}, [0, 1, 2], {"below_min_score": 4}),
        ({"min_score": 0.4, "max_score": 0.6}, [5], {"below_min_score": 1, "above_max_score": 5}),
        # The lowest positive scores 0.9: below 0.8, and below 0.9 - 0.09.
        ({"absolute_margin": 0.1}, [5, 6], {"absolute_margin": 5}),
        ({"relative_margin": 0.1}, [4, 5, 6], {"relative_margin": 4}),
    ],
    ids=lambda value: "-".join(value) or "none" if isinstance(value, dict) else "",
)
def test_each_rule_by_hand(rules: dict[str, object], expected: list[int], struck: dict[str, int]) -> None:
    columns, counts = chosen(listing_of(*SCORES), 3, **rules)
    assert columns == expected
    assert {k: v for k, v in counts.items() if k not in ("chosen", "not_needed")} == struck
    assert sum(counts.values()) == len(SCORES) and counts["chosen"] == len(expected)


def test_a_margin_is_a_share_of_the_positive_s_size_whatever_its_sign() -> None:
    """s_pos - |s_pos| x margin: below a positive of -0.2 the limit is -0.22, not -0.18."""
    columns, _ = chosen(listing_of(-0.15, -0.21, -0.23, lowest=-0.2), 3, relative_margin=0.1)
    assert columns == [2]


def test_no_margin_where_there_is_no_lowest_positive() -> None:
    assert chosen(listing_of(0.99, 0.5, lowest=np.nan), 2, relative_margin=0.05)[0] == [0, 1]


def test_the_window_is_counted_among_what_the_rules_before_have_left() -> None:
    barred = {"near_duplicate": [True, False, True, False, False], "repeated": [False, False, True, True, False]}
    columns, counts = chosen(listing_of(*SCORES[:5], barred=barred), 5, skip_top=1, window=2)
    assert columns == [4] and counts == {"near_duplicate": 2, "repeated": 1, "skip_top": 1, "chosen": 1}


def test_refused_is_what_no_filling_up_may_bring_back() -> None:
    rules = Rules(skip_top=1, window=4, max_score=0.92, min_score=0.86, negatives=2)
    choice = select(listing_of(*SCORES), np.array([2]), ROWS, rules)
    assert choice.refused[0].tolist() == [True, True, True, False, False, False, False]


def test_random_is_seeded_within_the_window_and_given_best_first() -> None:
    answers = {seed: chosen(listing_of(*SCORES), 3, sampling="random", window=6, seed=seed)[0] for seed in range(40)}
    assert all(columns == sorted(columns) and max(columns) < 6 for columns in answers.values())
    assert len(set(map(tuple, answers.values()))) > 10
    assert chosen(listing_of(*SCORES), 3, sampling="random", window=6, seed=7)[0] == answers[7]
    taken = np.bincount(list(itertools.chain(*answers.values())), minlength=6)
    assert taken.min() > 10  # of 40 seeds each of the six is drawn about 20 times


def test_a_cross_encoder_sets_the_order_within_the_window() -> None:
    listing = listing_of(0.1, 0.9, 0.5, 0.9)._replace(rescored=True)
    choice = select(listing, np.array([3]), ROWS, Rules(window=4, negatives=3))
    assert choice.columns[0].tolist() == [1, 3, 2]  # equal scores: the smaller name first


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 40))
def test_every_candidate_is_counted_once_and_no_row_depends_on_another(seed: int, n: int, c: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = np.where(np.arange(c) < rng.integers(0, c + 1, (n, 1)), rng.integers(0, 99, (n, c)), -1)
    scores = -np.sort(-rng.uniform(-1, 1, (n, c)), axis=1).astype(np.float32)
    barred = {"repeated": repeated(numbers)}
    lowest = rng.uniform(-1, 1, n).astype(np.float32)
    listing = Listing(numbers, numbers.astype(np.uint64), scores, lowest, barred)
    rules = Rules(
        negatives=16, skip_top=int(rng.integers(0, 3)), window=int(rng.integers(20, 64)), seed=seed % 99,
        min_score=-0.8, max_score=0.8, relative_margin=0.1, sampling=str(rng.choice(["top", "random"])),
    )  # fmt: skip
    wanted, rows = rng.integers(0, 17, n), rng.integers(0, 2**60, n).astype(np.uint64)
    choice = select(listing, wanted, rows, rules)
    assert choice.counts.total() == (numbers >= 0).sum()
    assert choice.counts["chosen"] == (choice.columns >= 0).sum()
    for row in range(n):
        one = slice(row, row + 1)
        masks = {reason: mask[one] for reason, mask in barred.items()}
        alone = Listing(numbers[one], listing.ids[one], scores[one], lowest[one], masks)
        own = select(alone, wanted[one], rows[one], rules).columns[0]
        together = choice.columns[row]
        assert own[own >= 0].tolist() == together[together >= 0].tolist()
        assert len(set(numbers[row][own[own >= 0]].tolist())) == (own >= 0).sum() <= wanted[row]


def test_repeated_marks_all_but_the_first() -> None:
    marks = np.array([[3, 1, 3, 3, 2, 1]])
    assert repeated(marks).tolist() == [[False, False, True, True, False, True]]


def test_draws_are_all_of_a_small_pool_and_spread_over_a_large_one() -> None:
    rows = np.arange(2_000, dtype=np.uint64)
    small, large = draws(rows, 5, 0), draws(rows, 1_000, 0)
    assert [sorted(own) for own in small[:9].tolist()] == [[0, 1, 2, 3, 4]] * 9
    assert len({tuple(own) for own in small.tolist()}) == 120  # every order of five comes up
    counts = np.bincount(large.ravel(), minlength=1_000)
    assert large.shape == (2_000, DRAWS) and 80 < counts.min() and counts.max() < 180  # 128 each, on average
    assert not np.array_equal(draws(rows, 1_000, 1), large)


def test_mixed_differs_in_every_argument() -> None:
    one, two = np.array([1, 2], dtype=np.uint64), np.array([3, 4], dtype=np.uint64)
    assert len({*mixed(one, two, 0).tolist(), *mixed(two, one, 0).tolist(), *mixed(one, two, 1).tolist()}) == 6


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"skip_top": 5, "window": 5}, "--skip-top 5 and --window 5"),
        ({"negatives": 4, "window": 5, "skip_top": 2}, "--negatives 4 and --window 5"),
        ({"min_score": 0.9, "max_score": 0.3}, "--min-score 0.9 and --max-score 0.3"),
        ({"negatives": 17}, "--negatives 17: give a number from 1 to 16"),
        ({"window": 65}, "--window 65"),
        ({"relative_margin": -0.1}, "--relative-margin -0.1"),
        ({"max_score": float("nan")}, "--max-score nan"),
        ({"strategy": "bm25"}, "--strategy bm25: give one of passage, s_neg"),
        ({"fill": "all"}, "--fill all"),
        ({"sampling": "best"}, "--sampling best"),
    ],
)
def test_an_impossible_choice_names_its_options(rules: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        check_rules(Rules(**rules))  # type: ignore[arg-type]
    assert message in str(error.value) and "\n" not in str(error.value)


def test_the_profiles_can_be() -> None:
    assert [check_rules(rules).negatives for rules in PROFILES.values()] == [1, 4]


def test_best_first_puts_second_rows_of_mutual_pairs_last() -> None:
    ranks = best_first(np.array([0.5, 0.9, 0.9, 0.7]), np.array([False, True, False, False]))
    assert ranks.tolist() == [2, 3 + SECOND_OF_MUTUAL, 0, 1]


def test_balanced_takes_the_better_half_of_each_label_in_turn() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.95, 0.1, 0.2])
    labels = np.array(["a"] * 6 + ["b"] * 3, dtype=object)
    names = np.arange(9, dtype=np.uint64)
    orders = set()
    for seed in range(30):
        ranks = balanced(scores, np.zeros(9, dtype=bool), labels, names, seed)
        order = np.argsort(ranks).tolist()
        # b's better half is rows 6 and 8, a's is rows 0 to 2: a, b, a, b, a; then the rest, best first, in turn.
        assert [labels[row] for row in order[:5]] == ["a", "b", "a", "b", "a"]
        assert set(order[:5]) == {0, 1, 2, 6, 8} and order[5:] == [3, 7, 4, 5]
        orders.add(tuple(order))
    assert len(orders) > 3


def test_balanced_orders_do_not_depend_on_other_labels() -> None:
    rng = np.random.default_rng(0)
    scores, names = rng.uniform(size=40), rng.integers(0, 2**60, 40).astype(np.uint64)
    labels = np.array(["a", "b"] * 20, dtype=object)
    both = np.argsort(balanced(scores, np.zeros(40, dtype=bool), labels, names, 0))
    own = np.flatnonzero(labels == "a")
    alone = own[np.argsort(balanced(scores[own], np.zeros(20, dtype=bool), labels[own], names[own], 0))]
    assert [row for row in both.tolist() if labels[row] == "a"] == alone.tolist()
