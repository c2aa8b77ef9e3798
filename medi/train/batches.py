"""Plans the steps of an epoch: which rows meet, all of one task, the same list on every rank.

From (seed, epoch, batch size, tasks, sampling) comes the whole list, before anything is read; the number of processes
only decides how each step is shared. Nothing is lost that the plan does not state.
"""

import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from medi.errors import MediError
from medi.schema import canonical_json
from medi.screen import many

Sampling = Literal["size", "uniform", "temperature"]
Remainder = Literal["keep", "drop"]
# Why rows make no step.
_REMAINDER, _LONELY, _NO_NEGATIVES = "remainder", "one row without negatives", "no negatives in the step"


@dataclass(frozen=True)
class TaskRows:
    """The rows of a task: `first_row` and those after it, `negatives` (int [rows]) saying how many each row has.

    `group` is the data set that `uniform` and `temperature` draw: the source, or a Super-NI task on its own.
    """

    name: str
    group: str
    first_row: int
    negatives: np.ndarray


@dataclass(frozen=True)
class PlanParams:
    """What a plan depends on beside the tasks. `batch_rows` are the rows of one step over all ranks.

    `sampling`: `size` goes through all rows once, `uniform` draws a data set and then a batch of it, `temperature`
    draws data sets by rows ** (1 / temperature). `needs_negatives`: a step without any negative would teach nothing
    forward (`--forward-candidates negatives`), and is dropped.
    """

    seed: int = 0
    batch_rows: int = 64
    sampling: Sampling = "size"
    temperature: float = 2.0
    remainder: Remainder = "keep"
    needs_negatives: bool = False


class Step(NamedTuple):
    """One step: the number of its task, and the rows that meet, int64."""

    task: int
    rows: np.ndarray


class Plan(NamedTuple):
    """The steps of one epoch; `dropped` says, by task and reason, the rows that one pass over the task leaves out."""

    steps: list[Step]
    dropped: dict[str, Counter[str]]


def plan(tasks: Sequence[TaskRows], params: PlanParams, epoch: int) -> Plan:
    """Return the steps of an epoch; each epoch has its own order within tasks and over steps.

    An epoch of `uniform` or `temperature` has as many steps as one of `size`; a data set that is drawn more often than
    it has steps is gone through again, in a new order.

    Raises:
        MediError: no step is left.
    """
    cuts = [_cut(tasks, number, params, epoch, 0) for number in range(len(tasks))]
    dropped = {task.name: cut.dropped for task, cut in zip(tasks, cuts, strict=True) if cut.dropped}
    steps = [step for cut in cuts for step in cut.steps]
    if not steps:
        raise MediError(_nothing_left(tasks, params, sum(dropped.values(), Counter())))
    if params.sampling == "size":
        return Plan([steps[i] for i in _shuffled(len(steps), params.seed, epoch)], dropped)
    return Plan(_draw(tasks, steps, params, epoch), dropped)


def shares(sizes: np.ndarray, world: int) -> list[np.ndarray]:
    """Return the rows of a step that each rank takes, int64, rising, by the size of each row.

    Shares differ by at most one row. Their sizes are near each other, as the slowest rank is the time of the step.
    """
    owners, loads = np.empty(len(sizes), dtype=np.int64), np.zeros(world)
    room = np.array([len(part) for part in np.array_split(sizes, world)])
    for row in np.argsort(-sizes, kind="stable"):
        rank = np.where(room > 0, loads, np.inf).argmin()
        owners[row] = rank
        loads[rank] += sizes[row]
        room[rank] -= 1
    return [np.flatnonzero(owners == rank) for rank in range(world)]


def rows_seen(steps: Sequence[Step]) -> np.ndarray:
    """Return the distinct row numbers of some steps, int64, sorted."""
    return np.unique(np.concatenate([np.empty(0, np.int64), *(step.rows for step in steps)]))


class _Cut(NamedTuple):
    """One pass over a task: its steps, and by reason the rows that are in none."""

    steps: list[Step]
    dropped: Counter[str]


def _cut(tasks: Sequence[TaskRows], number: int, params: PlanParams, epoch: int, turn: int) -> _Cut:
    """Return one pass over a task; how its rows are shuffled does not depend on the other tasks."""
    task = tasks[number]
    order = _shuffled(len(task.negatives), params.seed, epoch, turn, task.name)
    steps, dropped = [], Counter()
    for start in range(0, len(order), params.batch_rows):
        part = order[start : start + params.batch_rows]
        if reason := _unfit(task.negatives[part], params):
            dropped[reason] += len(part)
        else:
            steps.append(Step(number, task.first_row + part))
    return _Cut(steps, dropped)


def _unfit(negatives: np.ndarray, params: PlanParams) -> str:
    """Return why rows with so many negatives each make no step, an empty string where they do."""
    if params.remainder == "drop" and len(negatives) < params.batch_rows:
        return _REMAINDER
    if negatives.any():
        return ""
    if len(negatives) == 1:
        return _LONELY
    return _NO_NEGATIVES if params.needs_negatives else ""


def _draw(tasks: Sequence[TaskRows], steps: list[Step], params: PlanParams, epoch: int) -> list[Step]:
    """Return as many steps as there are, each the next one of a data set drawn at random."""
    rows: Counter[str] = Counter()
    for step in steps:
        rows[tasks[step.task].group] += len(step.rows)
    power = 0.0 if params.sampling == "uniform" else 1 / params.temperature
    weights = np.cumsum([count**power for count in rows.values()])
    drawn = np.searchsorted(weights, _hashes(len(steps), params.seed, epoch, "draw") / 2**64 * weights[-1], "right")
    members: dict[str, list[int]] = defaultdict(list)
    for number, task in enumerate(tasks):
        members[task.group].append(number)
    streams = [_endless(tasks, members[group], params, epoch) for group in rows]
    return [next(streams[i]) for i in drawn]


def _endless(tasks: Sequence[TaskRows], members: list[int], params: PlanParams, epoch: int) -> Iterator[Step]:
    """Yield the steps of a data set's tasks, pass after pass, each pass in its own order."""
    for turn in itertools.count():
        steps = [step for number in members for step in _cut(tasks, number, params, epoch, turn).steps]
        yield from (steps[i] for i in _shuffled(len(steps), params.seed, epoch, turn, "group", tasks[members[0]].group))


def _shuffled(count: int, *key: int | str) -> np.ndarray:
    """Return the numbers below count in an order that depends on the key alone, whatever the version of numpy."""
    return np.argsort(_hashes(count, *key), kind="stable")


def _hashes(count: int, *key: int | str) -> np.ndarray:
    """Return so many uint64 of a stream that begins where the key says (SplitMix64)."""
    start = np.frombuffer(hashlib.sha256(canonical_json(list(key))).digest()[:8], dtype="<u8")
    z = start + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _nothing_left(tasks: Sequence[TaskRows], params: PlanParams, dropped: Counter[str]) -> str:
    """Return the line for a run without a step."""
    if not tasks:
        return "every task is left out: there is nothing to train on; leave out fewer, or give a larger --max-length"
    reasons = ", ".join(f"{reason}: {rows}" for reason, rows in sorted(dropped.items())) or "there are none"
    helps = ["lower --batch-size", "give --remainder keep"] if _REMAINDER in dropped else []
    if _LONELY in dropped and params.batch_rows == 1:
        helps.append("raise --batch-size")
    if _LONELY in dropped or _NO_NEGATIVES in dropped:
        helps.append("give rows with negatives (and not --negatives 0)")
    if _NO_NEGATIVES in dropped:
        helps.append("give --forward-candidates all")
    rows = many(sum(len(task.negatives) for task in tasks), "row")
    return f"no step of {many(params.batch_rows, 'row')} is left of {rows} ({reasons}); {', or '.join(helps)}"
