"""Mines Super-NI tasks (paper 2.3): pairs of inputs, by label or by s_pos and s_neg.

Label tasks: the positive is the most similar example with the same label, the negative the most similar with another,
by cos(E(x_i), E(x_j)). Text tasks: s_pos = cos(E(x_i), E(x_j)) + cos(E(y_i), E(y_j)) and s_neg = cos(E(x_i), E(x_j)) -
cos(E(y_i), E(y_j)). The positive is chosen first. Super-NI is symmetric (Table 5), so an example that chose this one is
a known positive too: one pair of texts never stands both as a positive and as a negative.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from medi.errors import MediError
from medi.mine.account import Account
from medi.mine.candidates import matrix
from medi.mine.hints import CHOSEN_POSITIVE, NO_HINTS, ROW_BYTES, Hints, names, rescored_listing
from medi.mine.rank import balanced, best_first
from medi.mine.scores import scores_at, scores_of
from medi.mine.search import Lists
from medi.mine.select import Listing, draws, repeated, select
from medi.mine.texts import Texts, conflicting
from medi.profiles import Rules
from medi.schema import PAIRS, Counts, fold


@dataclass(frozen=True)
class _Examples:
    """The rows of a task by number. `places` are the vectors of x, or of [x; y] in text tasks; `askers` those with
    which negatives are asked for: the same, or [x; -y]; `outputs` a number for each folded output.
    """

    kind: str
    ids: np.ndarray
    classes: np.ndarray
    labels: np.ndarray
    outputs: np.ndarray
    inputs: np.ndarray
    places: np.ndarray
    askers: np.ndarray
    conflicting: np.ndarray

    @staticmethod
    def of(kind: str, rows: pa.Table, texts: Texts) -> "_Examples":
        """Return the examples of a task of this kind."""
        queries = rows["query"].to_pylist()
        inputs, classes = texts.vectors_of(queries), texts.classes(queries)
        labels = np.array(rows["label"].to_pylist(), dtype=object)
        places = askers = inputs
        bad = np.zeros(len(rows), dtype=bool)
        if kind == "label":
            bad = conflicting(classes, labels)
        else:
            outputs = texts.vectors_of(rows["output"].to_pylist())
            places, askers = np.hstack([inputs, outputs]), np.hstack([inputs, -outputs])
        folds = np.unique([fold(output or "") for output in rows["output"].to_pylist()], return_inverse=True)[1]
        return _Examples(kind, names(rows["id"].to_pylist()), classes, labels, folds, inputs, places, askers, bad)

    def likeness(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the cosines of inputs, in text tasks half of s_pos, float32 [n, c], of rows [n] and others [n, c]."""
        scores = scores_at(self.places[rows], self.places, others)
        return np.clip(scores if self.kind == "label" else scores / 2, -1, 1)

    def negative_scores(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the cosines of inputs, in text tasks s_neg, float32 [n], of rows [n] and others [n]."""
        bound = 1 if self.kind == "label" else 2
        return np.clip(scores_of(self.askers[rows], self.places[others]), -bound, bound)


@dataclass(frozen=True)
class Task:
    """Examples with the positive of each (a number, or -1), what is known of it, and the choices of mining."""

    examples: _Examples
    positives: np.ndarray
    known: list[np.ndarray]
    candidates: pa.Table
    rules: Rules
    hints: Hints


def choose_positives(kind: str, rows: pa.Table, texts: Texts, candidates: pa.Table, rules: Rules) -> np.ndarray:
    """Return the number of each row's positive, int64 [n], -1 for none: the nearest that is not nearly the same."""
    examples = _Examples.of(kind, rows, texts)
    found = matrix(candidates["positives"], -1, np.int64)
    fit = found >= 0
    if rules.max_positive_score is not None:
        fit &= scores_at(examples.inputs, examples.inputs, found) < rules.max_positive_score
    first = fit.argmax(axis=1)
    return np.where(fit.any(axis=1), np.take_along_axis(found, first[:, None], axis=1)[:, 0], -1)


def task_of(kind: str, rows: pa.Table, texts: Texts, candidates: pa.Table, how: tuple[Rules, Hints]) -> Task:
    """Return the examples of a Super-NI task with their positives, which are chosen first."""
    examples = _Examples.of(kind, rows, texts)
    positives = choose_positives(kind, rows, texts, candidates, how[0])
    return Task(examples, positives, _known(examples.classes, positives), candidates, *how)


def mine_task(
    kind: str, rows: pa.Table, texts: Texts, candidates: pa.Table, rules: Rules, hints: Hints = NO_HINTS
) -> tuple[pa.Table, Counts]:
    """Return PAIRS of kind `label` or `text` from the ROWS of a Super-NI task, sorted by id.

    Counts: dropped `no_positive` (none, or none that is not nearly the same text) and `conflicting_labels` (one text to
    the encoder with two labels). Facts: those of `account.Account`, and mutual pairs.
    """
    task = task_of(kind, rows, texts, candidates, (rules, hints))
    examples, positives = task.examples, task.positives
    account = Account()
    anchors = np.flatnonzero(positives >= 0)
    size = max(1, hints.scan_bytes // ROW_BYTES)
    negatives, drawn = [], []
    for start in range(0, len(anchors), size):
        block = anchors[start : start + size]
        chosen, refused = choose(block, task, account)
        negatives += chosen
        drawn += fill_up(block, task, (chosen, refused), account) if rules.fill != "none" else [[]] * len(block)
    origins = [["mined"] * len(some) + ["random"] * len(more) for some, more in zip(negatives, drawn, strict=True)]
    negatives = [[*some, *more] for some, more in zip(negatives, drawn, strict=True)]
    _check(task, anchors, negatives)
    pairs, second = _pairs(rows, task, anchors, negatives, origins)
    counts = Counts(rows_in=len(rows), rows_out=len(pairs), facts=account.facts(pairs, rules))
    counts.facts["mutual_pairs"] = int(second.sum())
    counts.dropped["conflicting_labels"] = int(examples.conflicting.sum())
    counts.dropped["no_positive"] = len(rows) - len(pairs) - counts.dropped["conflicting_labels"]
    return pairs, counts


def _known(classes: np.ndarray, positives: np.ndarray) -> list[np.ndarray]:
    """Return the classes that are no negatives of each row: its own, its positive's, those of rows that chose it.

    Rows that are one text to the encoder share them, though their outputs, and so their positives, may differ.
    """
    known = {own: {own} for own in classes.tolist()}
    has = positives >= 0
    for one, other in zip(classes[has].tolist(), classes[positives[has]].tolist(), strict=True):
        known[one].add(other)
        known[other].add(one)
    barred = {own: np.array(sorted(others), dtype=np.int64) for own, others in known.items()}
    return [barred[own] for own in classes.tolist()]


def choose(block: np.ndarray, task: Task, account: Account) -> tuple[list[list[int]], list[np.ndarray]]:
    """Return the chosen candidates of some anchors, and what no filling up may bring back."""
    listing = listing_of(block, task)
    numbers = listing.numbers
    wanted = np.full(len(block), task.rules.negatives, dtype=np.int64)
    choice = select(listing, wanted, task.examples.ids[block], task.rules)
    account.mined(choice.counts, int(task.candidates["known"].take(block).to_numpy().sum()))
    return _taken(numbers, choice.columns), [n[struck] for n, struck in zip(numbers, choice.refused, strict=True)]


def listing_of(block: np.ndarray, task: Task) -> Listing:
    """Return the candidates of some anchors, as numbers of rows, with what the rules look at."""
    examples = task.examples
    numbers = matrix(task.candidates["negatives"].take(block), -1, np.int64)
    lowest = _lowest(block, task)
    scores = examples.likeness(block, numbers) if task.rules.compares_scores else np.zeros(numbers.shape, np.float32)
    listing = Listing(numbers, examples.ids[numbers], scores, lowest, _barred(block, numbers, task))
    if task.hints.rescored is None:
        return listing
    return rescored_listing(listing, task.hints.rescored.take(block), keep_lowest=examples.kind == "text")


def _lowest(block: np.ndarray, task: Task) -> np.ndarray:
    """Return the score that margins are measured from, NaN in label tasks, where the label decides alone."""
    if task.examples.kind == "label":
        return np.full(len(block), np.nan, dtype=np.float32)
    return task.examples.likeness(block, task.positives[block][:, None])[:, 0]


def _barred(block: np.ndarray, numbers: np.ndarray, task: Task) -> dict[str, np.ndarray]:
    """Return what is struck out of candidates [n, c]: known positives, examples of an equal output, repetitions."""
    examples = task.examples
    marks = examples.classes[numbers]
    limit = int(examples.classes.max()) + 1
    barred = {"known_positive": Lists.of([task.known[row] for row in block.tolist()]).mask(marks, limit)}
    if examples.kind == "text" and task.rules.bar_equal_outputs:
        barred["equal_output"] = examples.outputs[numbers] == examples.outputs[block][:, None]
    return {**barred, "repeated": repeated(marks)}


_Mined = tuple[list[list[int]], list[np.ndarray]]


def fill_up(block: np.ndarray, task: Task, mined: _Mined, account: Account) -> list[list[int]]:
    """Return seeded examples for the anchors that are still short."""
    examples, rules = task.examples, task.rules
    wanted = np.array([rules.negatives - len(some) for some in mined[0]], dtype=np.int64)
    found: list[list[int]] = [[] for _ in block]
    asking = np.flatnonzero(wanted)
    rows = block[asking]
    numbers = draws(examples.ids[rows], len(examples.ids), rules.seed)
    barred = _barred(rows, numbers, task)
    if examples.kind == "label":
        same = examples.labels[numbers] == examples.labels[rows][:, None]
        barred["same_label"] = same.astype(bool) | examples.conflicting[numbers]
    marks, limit = examples.classes, int(examples.classes.max()) + 1
    has = [marks[np.array([*mined[0][a], *mined[1][a].tolist()], dtype=np.int64)] for a in asking]
    barred["repeated"] |= Lists.of(has).mask(marks[numbers], limit)
    listing = Listing(numbers, examples.ids[numbers], examples.likeness(rows, numbers), _lowest(rows, task), barred)
    choice = select(listing, wanted[asking], examples.ids[rows], rules.for_filling(numbers.shape[1]))
    account.filled(choice.counts)
    for place, taken in zip(asking.tolist(), _taken(numbers, choice.columns), strict=True):
        found[place] = taken
    return found


def _taken(numbers: np.ndarray, columns: np.ndarray) -> list[list[int]]:
    """Return the numbers in the chosen columns of each row."""
    return [listed[chosen[chosen >= 0]].tolist() for listed, chosen in zip(numbers, columns, strict=True)]


def _check(task: Task, anchors: np.ndarray, negatives: Sequence[Sequence[int]]) -> None:
    """Raise MediError where a negative is a known positive or has the label; whatever chose it, none may pass."""
    examples = task.examples
    for anchor, listed in zip(anchors.tolist(), negatives, strict=True):
        alike = np.isin(examples.classes[list(listed)], task.known[anchor])
        if examples.kind == "label":
            alike |= examples.labels[list(listed)] == examples.labels[anchor]
        if alike.any():
            raise MediError(CHOSEN_POSITIVE)


def _pairs(
    rows: pa.Table, task: Task, anchors: np.ndarray, negatives: list[list[int]], origins: list[list[str]]
) -> tuple[pa.Table, np.ndarray]:
    """Return the PAIRS of the anchors, and which of them are the second row of a mutual pair, bool [n]."""
    examples, partner = task.examples, task.positives
    second = (partner[partner[anchors]] == anchors) & (partner[anchors] < anchors)
    positive_scores = matrix(task.candidates.take(anchors)["positives"], -1, np.int64) == partner[anchors][:, None]
    listed = matrix(task.candidates.take(anchors)["positive_scores"], np.nan, np.float32)
    scores = listed[np.arange(len(anchors)), positive_scores.argmax(axis=1)]
    rank = best_first(scores, second)
    if task.rules.balanced:
        rank = balanced(scores, second, examples.labels[anchors], examples.ids[anchors], task.rules.seed)
    lengths = [len(own) for own in negatives]
    flat = np.array([number for own in negatives for number in own], dtype=np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32))
    own, others = rows.take(anchors), rows.take(flat)
    label = examples.kind == "label"
    columns = {name: own[name] for name in ("id", "task", "query", "label", "origin")}
    columns |= {
        "kind": pa.array([examples.kind] * len(own), pa.string()),
        "positive": rows["query"].take(pa.array(partner[anchors])),
        "negatives": pa.ListArray.from_arrays(offsets, others["query"].combine_chunks()),
        "negative_labels": pa.ListArray.from_arrays(offsets, others["label"].combine_chunks())
        if label
        else pa.array([[]] * len(own), pa.list_(pa.string())),
        "positive_score": pa.array(scores),
        "negative_scores": pa.ListArray.from_arrays(
            offsets, pa.array(examples.negative_scores(np.repeat(anchors, lengths), flat))
        ),
        "negative_origins": pa.array(origins, pa.list_(pa.string())),
        "rank": pa.array(rank.astype(np.uint64)),
    }
    return pa.table([columns[name] for name in PAIRS.names], schema=PAIRS), second
