"""One row of a unit -> what became of each text that might have been its positive or its negative, and by which rule.

Nothing of this is stored: the rules are run again, the same ones, for the one row.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from medi.mine import pairs, tasks
from medi.mine.account import Account
from medi.mine.candidates import matrix
from medi.mine.hints import Hints
from medi.mine.select import Listing, select, strikes
from medi.mine.texts import Known, PairRules, Texts, given_negatives, known_positives, narrowed
from medi.profiles import Rules
from medi.schema import PAIRS

CHOSEN, NOT_NEEDED = "chosen", "not_needed"


@dataclass(frozen=True)
class Judged:
    """A text and what became of it: `chosen`, `not_needed`, or the rule that struck it out.

    `row` is the id of the row that brought it, "" for one that the source gave; `score` is that of the list (cosine,
    s_pos, s_neg), `compared` the one that thresholds look at; None where there is none.
    """

    fate: str
    text: str
    label: str | None = None
    row: str = ""
    score: float | None = None
    compared: float | None = None


@dataclass(frozen=True)
class Choice:
    """All that a row could have had. `positives` are those of Super-NI, where they are chosen too.

    `known` counts known positives that the search passed over; margins are measured from `lowest`, the lowest positive
    of the query; `draws` counts, by fate, the seeded draws for filling up.
    """

    positives: list[Judged] = field(default_factory=list)
    given: list[Judged] = field(default_factory=list)
    candidates: list[Judged] = field(default_factory=list)
    known: int = 0
    lowest: float | None = None
    draws: dict[str, int] = field(default_factory=dict)


def why_pair(
    row: int, rows: pa.Table, texts: Texts, candidates: pa.Table, given: PairRules, how: tuple[Rules, Hints]
) -> Choice:
    """Return what became of the candidates of one of the ROWS of an embedding set, given by number."""
    few, _ = narrowed(rows, given)
    pool, _ = pairs.pool_of(few, texts, candidates, given, how)
    rules, block = how[0], np.array([row])
    account = Account()
    wanted = np.array([max(0, rules.negatives - len(pool.given[row]))])
    listing = pairs.listing_of(block, pool)
    chosen = pairs.choose(block, pool, account)
    if rules.fill != "none":
        pairs.fill_up(block, pool, chosen, account)
    taken = rows.take(listing.numbers[0][listing.numbers[0] >= 0])
    return Choice(
        given=_given(rows.slice(row, 1), rows, pool.known, texts, given),
        candidates=_judged(
            _fates(listing, wanted, pool.ids[block], rules), taken, "positive",
            _scores(candidates, row, "negative_scores"), _compared(listing, rules),
        ),
        known=candidates["known"][row].as_py(),
        lowest=float(listing.lowest[0]),
        draws=_draws(account, rules),
    )  # fmt: skip


def why_task(
    kind: str, row: int, rows: pa.Table, texts: Texts, candidates: pa.Table, how: tuple[Rules, Hints]
) -> Choice:
    """Return what became of the candidates of one of the ROWS of a Super-NI task, given by number."""
    task = tasks.task_of(kind, rows, texts, candidates, how)
    rules, block, account = how[0], np.array([row]), Account()
    listing = tasks.listing_of(block, task)
    chosen = tasks.choose(block, task, account)
    if rules.fill != "none":
        tasks.fill_up(block, task, chosen, account)
    fates = _fates(listing, np.array([rules.negatives]), task.examples.ids[block], rules)
    taken = rows.take(listing.numbers[0][listing.numbers[0] >= 0])
    lowest = float(listing.lowest[0])
    return Choice(
        positives=_positives(row, rows, task),
        candidates=_judged(
            fates, taken, "query", _scores(candidates, row, "negative_scores"), _compared(listing, rules)
        ),
        known=candidates["known"][row].as_py(),
        lowest=None if np.isnan(lowest) else lowest,
        draws=_draws(account, rules),
    )


def _fates(listing: Listing, wanted: np.ndarray, names: np.ndarray, rules: Rules) -> list[str]:
    """Return what became of each candidate of a listing of one row."""
    there = listing.numbers[0] >= 0
    fates = np.full(len(there), NOT_NEEDED, dtype=object)
    if wanted[0]:
        for reason, struck, _ in strikes(listing, rules):
            fates[struck[0]] = reason
        columns = select(listing, wanted, names, rules).columns[0]
        fates[columns[columns >= 0]] = CHOSEN
    return fates[there].tolist()


def _judged(
    fates: list[str], taken: pa.Table, column: str, scores: list[float], compared: list[float] | None
) -> list[Judged]:
    """Return the candidates of one row in their order; `taken` are the rows that brought them."""
    others: list[float | None] = [None] * len(fates) if compared is None else [*compared]
    columns = (taken[name].to_pylist() for name in (column, "label", "id"))
    return [Judged(*parts) for parts in zip(fates, *columns, scores, others, strict=True)]


def _scores(candidates: pa.Table, row: int, column: str) -> list[float]:
    """Return the scores that the list of one row has."""
    return candidates[column][row].as_py()


def _compared(listing: Listing, rules: Rules) -> list[float] | None:
    """Return the scores that the rules looked at, None where they looked at none."""
    if not (rules.compares_scores or listing.rescored):
        return None
    return listing.scores[0][listing.numbers[0] >= 0].tolist()


def _draws(account: Account, rules: Rules) -> dict[str, int]:
    """Return the draws of one row by fate, `chosen` among them."""
    found = account.facts(PAIRS.empty_table(), rules).get("draws")
    if not isinstance(found, dict):
        return {}
    return {CHOSEN: found["chosen"], **found["dropped"]}


def _positives(row: int, rows: pa.Table, task: tasks.Task) -> list[Judged]:
    """Return the candidates for the positive: the first one that is not nearly the same text is chosen."""
    numbers = matrix(task.candidates["positives"].slice(row, 1), -1, np.int64)[0]
    numbers = numbers[numbers >= 0]
    place = np.flatnonzero(numbers == task.positives[row])
    first = int(place[0]) if len(place) else len(numbers)
    fates = ["max_positive_score"] * first + [CHOSEN] * len(place) + [NOT_NEEDED] * (len(numbers) - first - len(place))
    return _judged(fates, rows.take(numbers), "query", _scores(task.candidates, row, "positive_scores"), None)


def _given(own: pa.Table, rows: pa.Table, known: Known, texts: Texts, given: PairRules) -> list[Judged]:
    """Return the given negatives of a row [1]: first what folded texts tell, then, of few, what the encoder tells."""
    listed = own["negatives"][0].as_py()
    columns = ("query", "positive", "negatives", "other_positives")
    flat = (pa.compute.list_flatten(rows[c]) if pa.types.is_list(rows[c].type) else rows[c] for c in columns)
    by_fold = Texts.by_fold(text for column in flat for text in column.to_pylist())
    fates = _given_fates(own, by_fold, known_positives(rows, by_fold, given), given.looked_at)
    passed = [place for place, fate in enumerate(fates) if fate == CHOSEN]
    few = _with_negatives(own, [listed[place] for place in passed])
    for place, fate in zip(passed, _given_fates(few, texts, known, given.given), strict=True):
        fates[place] = fate
    return [Judged(fate, text) for fate, text in zip(fates, listed, strict=True)]


def _given_fates(own: pa.Table, texts: Texts, known: Known, most: int) -> list[str]:
    """Return what the rule of given negatives says of each: that of the last one of every beginning of the list."""
    listed, before, fates = own["negatives"][0].as_py(), Counter[str](), []
    for end in range(1, len(listed) + 1):
        _, counts = given_negatives(_with_negatives(own, listed[:end]), texts, known, most)
        fates.append(next(iter(counts - before), CHOSEN).removeprefix("given_"))
        before = counts
    return fates


def _with_negatives(own: pa.Table, listed: list[str]) -> pa.Table:
    """Return a row [1] with other given negatives."""
    place = own.column_names.index("negatives")
    return own.set_column(place, own.schema.field("negatives"), pa.array([listed], pa.list_(pa.string())))
