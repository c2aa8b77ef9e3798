"""Steps that are done -> OUT.run/steps.jsonl, a line each: the loss curve, and what of the texts was cut.

A run that goes on first takes back the lines behind the step it goes on from, so that the file reads like one run's.
"""

import json
from collections import Counter
from pathlib import Path
from statistics import fmean

from medi.train.loop import StepDone

_FILE = "steps.jsonl"


class Journal:
    """The lines of one run; nothing is written before `begin`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _FILE

    def begin(self, first_step: int) -> None:
        """Keep the lines of the steps up to this one, and no others."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = [line for line in self._lines() if json.loads(line)["step"] <= first_step]
        self.path.write_text("".join(kept), encoding="utf-8")

    def add(self, done: StepDone) -> None:
        """Write a step's line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(done._asdict()) + "\n")

    def losses(self) -> tuple[float, float]:
        """Return the mean over tasks of the loss of a task's first step, and of its last; of its largest steps alone.

        How large a loss is depends on the task and on the rows that meet, so steps of several tasks say little.
        """
        by_task: dict[str, list[tuple[int, float]]] = {}
        for line in self._lines():
            done = json.loads(line)
            by_task.setdefault(done["task"], []).append((done["rows"], done["loss"]))
        if not by_task:
            return float("nan"), float("nan")
        largest = [_largest(steps) for steps in by_task.values()]
        return fmean(losses[0] for losses in largest), fmean(losses[-1] for losses in largest)

    def truncated(self) -> Counter[str]:
        """Return how many texts of each task were cut."""
        cut: Counter[str] = Counter()
        for line in self._lines():
            done = json.loads(line)
            cut[done["task"]] += done["truncated"]
        return +cut

    def steps_without_gradient(self) -> int:
        """Return how many steps had a gradient of length 0."""
        return sum(json.loads(line)["gradient_norm"] == 0 for line in self._lines())

    def waited_share(self) -> float:
        """Return the share of the time that steps waited for their batch."""
        done = [json.loads(line) for line in self._lines()]
        return sum(step["waited_seconds"] for step in done) / max(sum(step["seconds"] for step in done), 1e-9)

    def _lines(self) -> list[str]:
        """Return the whole lines; the last one may be cut where a run was killed."""
        if not self.path.is_file():
            return []
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [line for line in lines if line.endswith("\n")]


def _largest(steps: list[tuple[int, float]]) -> list[float]:
    """Return the losses of those (rows, loss) that have the most rows."""
    most_rows = max(rows for rows, _ in steps)
    return [loss for rows, loss in steps if rows == most_rows]
