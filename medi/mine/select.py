"""Listed candidates -> the chosen ones: each rule strikes out candidates in turn, and every one is accounted for.

A candidate is counted under the first rule that strikes it out, so `listed = chosen + sum(dropped)` for every row.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from medi.profiles import Rules

# The draws that a row has for filling up.
DRAWS = 64
_CHOSEN = "chosen"


class Listing(NamedTuple):
    """The candidates of some rows, nearest first.

    `numbers` int64 [n, c], -1 where a row has fewer; `ids` uint64 [n, c], a name of each candidate that does not depend
    on the other rows; `scores` float32 [n, c] and `lowest` float32 [n], the score of the row's lowest positive (NaN
    where margins do not apply); `barred` reason -> bool [n, c], in the order in which they count; `rescored` where the
    order is that of the scores and not that of the list.
    """

    numbers: np.ndarray
    ids: np.ndarray
    scores: np.ndarray
    lowest: np.ndarray
    barred: Mapping[str, np.ndarray]
    rescored: bool = False


class Choice(NamedTuple):
    """What was chosen: `columns` int64 [n, most], places in the listing, best first, -1 where a row is short;
    `refused` bool [n, c], what no filling up may bring back; `counts` reason -> candidates, `chosen` among them.
    """

    columns: np.ndarray
    refused: np.ndarray
    counts: Counter[str]


def select(listing: Listing, wanted: np.ndarray, rows: np.ndarray, rules: Rules) -> Choice:
    """Return which candidates each row gets.

    Args:
        listing: the candidates.
        wanted: int64 [n], how many negatives each row lacks.
        rows: uint64 [n], a name of each row that does not depend on the others; with the seed it decides `random`.
        rules: the choices.
    """
    open_ = listing.numbers >= 0
    counts: Counter[str] = Counter()
    refused = np.zeros_like(open_)
    for reason, struck, for_good in strikes(listing, rules):
        counts[reason] += int(struck.sum())
        open_ &= ~struck
        if for_good:
            refused |= struck
    places = np.broadcast_to(np.arange(open_.shape[1]), open_.shape)
    by_score = np.lexsort((listing.ids, -listing.scores), axis=1) if listing.rescored else places
    # The place of each candidate in the order of choice; what is struck out stands behind everything.
    order = np.argsort(by_score, axis=1, kind="stable")
    drawn = mixed(rows[:, None], listing.ids, rules.seed) if rules.sampling == "random" else order
    best = np.lexsort((places, drawn, ~open_), axis=1)
    rank = np.argsort(best, axis=1, kind="stable")
    chosen = open_ & (rank < wanted[:, None])
    counts["not_needed"] += int((open_ & ~chosen).sum())
    counts[_CHOSEN] += int(chosen.sum())
    most = max(1, min(int(wanted.max(initial=1)), open_.shape[1]))
    columns = np.lexsort((order, ~chosen), axis=1)[:, :most]
    columns = np.where(np.take_along_axis(chosen, columns, axis=1), columns, -1)
    return Choice(columns, refused | chosen, counts)


def strikes(listing: Listing, rules: Rules) -> Iterator[tuple[str, np.ndarray, bool]]:
    """Yield (reason, which candidates it is the first to strike out, bool [n, c], whether for good), rule by rule."""
    open_ = listing.numbers >= 0
    for reason, struck, for_good in _rules(listing, rules):
        # A place in the window is one among the candidates that the rules before have left.
        struck = struck(np.cumsum(open_, axis=1) - 1) if callable(struck) else struck
        struck = struck & open_
        open_ &= ~struck
        yield reason, struck, for_good


_Struck = np.ndarray | Callable[[np.ndarray], np.ndarray]


def _rules(listing: Listing, rules: Rules) -> Iterator[tuple[str, _Struck, bool]]:
    """Yield (reason, what is struck out, whether for good); a window is a function of the places that are left."""
    for reason, struck in listing.barred.items():
        yield reason, struck, True
    yield "skip_top", lambda place: place < rules.skip_top, True
    yield "beyond_window", lambda place: place >= rules.window - rules.skip_top, False
    if not rules.compares_scores:
        return
    # Limits are rounded like scores, so that a score of 0.9 is not below 0.9.
    scores, lowest = listing.scores, listing.lowest.astype(np.float64)[:, None]
    if rules.min_score is not None:
        yield "below_min_score", scores < np.float32(rules.min_score), False
    if rules.max_score is not None:
        yield "above_max_score", scores > np.float32(rules.max_score), True
    if rules.absolute_margin is not None:
        yield "absolute_margin", scores >= (lowest - rules.absolute_margin).astype(np.float32), True
    if rules.relative_margin is not None:
        limit = lowest - np.abs(lowest) * rules.relative_margin
        yield "relative_margin", scores >= limit.astype(np.float32), True


def repeated(marks: np.ndarray) -> np.ndarray:
    """Return which marks [n, c] stand further left in their row too, bool [n, c]."""
    order = np.argsort(marks, axis=1, kind="stable")
    ordered = np.take_along_axis(marks, order, axis=1)
    again = np.zeros(marks.shape, dtype=bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    found = np.zeros_like(again)
    np.put_along_axis(found, order, again, axis=1)
    return found


def draws(rows: np.ndarray, pool: int, seed: int) -> np.ndarray:
    """Return seeded numbers below `pool` for each row's name, int64 [n, min(pool, DRAWS)]; all of a small pool."""
    if pool <= DRAWS:
        every = np.arange(pool, dtype=np.uint64)
        return np.argsort(mixed(rows[:, None], every[None, :], seed), axis=1, kind="stable")
    turns = np.arange(DRAWS, dtype=np.uint64)
    return (mixed(rows[:, None], turns[None, :], seed) % np.uint64(pool)).astype(np.int64)


def mixed(one: np.ndarray, other: np.ndarray, seed: int) -> np.ndarray:
    """Return a hash of two arrays of uint64 names and a seed, uint64 (SplitMix64's finishing steps, applied twice)."""
    return _finish(_finish(one + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)) ^ other)


def _finish(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
