"""Plans the steps of an epoch: which rows meet, all of one task, the same list on every rank.

From (seed, epoch, batch size, tasks, sampling) comes the whole list, before anything is read; the number of processes
only decides how each step is shared. Nothing is lost that the plan does not state.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from medi.errors import MediError

Sampling = Literal["size", "uniform", "temperature"]
Remainder = Literal["keep", "drop"]


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


@dataclass(frozen=True)
class Plan:
    """The steps of one epoch: step i is of task `task[i]` and has the rows `order[start[i]:stop[i]]`.

    `dropped` says, by task and reason, which rows one pass over the task leaves out.
    """

    task: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    order: np.ndarray
    dropped: dict[str, Counter[str]]

    def __len__(self) -> int:
        return len(self.task)

    def __getitem__(self, step: int) -> Step:
        return Step(int(self.task[step]), self.order[self.start[step] : self.stop[step]])

    def __iter__(self) -> Iterator[Step]:
        return (self[step] for step in range(len(self)))

    def rows_seen(self, steps: int) -> np.ndarray:
        """Return the distinct row numbers of the first so many steps, int64, sorted."""
        raise NotImplementedError


def plan(tasks: Sequence[TaskRows], params: PlanParams, epoch: int) -> Plan:
    """Return the steps of an epoch; each epoch has its own order within tasks and over steps.

    Raises:
        MediError: no step is left.
    """
    raise NotImplementedError


def share(rows: np.ndarray, rank: int, world: int) -> np.ndarray:
    """Return the rank's slice of a step's rows; slices follow one another and differ by at most one row."""
    return np.array_split(rows, world)[rank]
