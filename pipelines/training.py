"""What `medi train` and the Prefect flow share: options by their names to a Job, and what a person sees of a run.

On a terminal there is a bar; elsewhere a plain line comes every 30 s. All of it goes to stderr, from one process.
"""

import os
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from medi.errors import UsageError
from medi.screen import many, shown
from medi.train.ablations import Ablation
from medi.train.loop import StepDone
from medi.train.recipe import Recipe, Resources
from medi.train.run import Job

# What is shown is the mean of so many steps: the loss of one depends on its task.
_SHOWN_STEPS = 50
_MOST_EPOCHS = 100_000


def job_of(options: Mapping[str, object]) -> Job:
    """Return the job of `medi train`'s options, by name and None where they are not given.

    Raises:
        UsageError: an option that is needed is absent, none has such a name, or a value cannot be.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if missing := [name for name in ("release", "model", "out") if name not in given]:
        raise UsageError(f"{missing[0]}: is needed; name the release, the model and the folder it is to be in")
    if "epochs" in given and "max_steps" in given:
        raise UsageError("--epochs and --max-steps say the same; give one of them")
    if "epochs" in given and not 0 < float(str(given["epochs"])) <= _MOST_EPOCHS:
        raise UsageError(f"--epochs {given['epochs']}: give a number above 0, at most {_MOST_EPOCHS:,}")
    if "sampling_temperature" in given and given.get("sampling") != "temperature":
        raise UsageError("--sampling-temperature: says something of --sampling temperature; give that too")
    given = {"workspace": os.environ.get("MEDI_HOME") or "data"} | given
    release, out, workspace = (Path(os.path.abspath(str(given.pop(name)))) for name in ("release", "out", "workspace"))
    model = str(given.pop("model"))
    if isinstance(given.get("trackers"), list):
        given["trackers"] = tuple(given["trackers"])  # type: ignore[arg-type]
    kinds = (Ablation, Resources, Recipe, Job)
    ablation, resources, recipe, job = (
        {f.name: given.pop(f.name) for f in fields(kind) if f.name in given} for kind in kinds
    )
    if given:
        raise UsageError(f"{min(given)}: no option of training has this name; see `medi train --help`")
    recipe["ablation"] = replace(Ablation(), **ablation)
    parts = {"recipe": replace(Recipe(), **recipe).check(), "resources": replace(Resources(), **resources).check()}
    return replace(Job(release, model, out, workspace), **parts, **job)


@dataclass
class Shown:
    """Shows a run to a person; other processes of it than the first one are `quiet`."""

    console: Console
    quiet: bool = False
    every_seconds: float = 30.0
    _latest: deque[StepDone] = field(default_factory=lambda: deque(maxlen=_SHOWN_STEPS))
    _live: Progress | None = None
    _bar: TaskID = TaskID(0)
    _steps: int = 0
    _said_seconds: float = 0.0

    def __enter__(self) -> "Shown":
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, message: str) -> None:
        """Show one line; names in it may be anyone's."""
        if not self.quiet:
            self.console.print(shown(message), markup=False, highlight=False, soft_wrap=True)

    def begin(self, first_step: int, steps: int, share_seen: float) -> None:
        """Show how long the run is and how much of the data it sees."""
        self._steps, self._said_seconds = steps, time.monotonic()
        self.say(f"{many(steps - first_step, 'step')} to go; the whole run sees {share_seen:.1%} of the rows")
        if self.console.is_terminal and not self.quiet:
            bar = (TextColumn("train"), BarColumn(bar_width=6), MofNCompleteColumn())
            self._live = Progress(*bar, TextColumn("{task.fields[told]}"), console=self.console)
            self._live.start()
            self._bar = self._live.add_task("train", total=steps, completed=first_step, told="")

    def step(self, done: StepDone) -> None:
        """Show how far the run is."""
        self._latest.append(done)
        if self._live:
            self._live.update(self._bar, completed=done.step, told=self.line())
            return
        now = time.monotonic()
        if done.step == self._steps or now - self._said_seconds >= self.every_seconds:
            self._said_seconds = now
            self.say(f"train    {done.step:,}/{self._steps:,}  {self.line()}")

    def line(self) -> str:
        """Return loss, tokens/s, the share of padding and the time left, over the latest steps."""
        seconds = max(sum(done.seconds for done in self._latest), 1e-6)
        tokens, padded = (sum(getattr(d, name) for d in self._latest) for name in ("tokens", "padded_tokens"))
        loss = sum(done.loss for done in self._latest) / len(self._latest)
        left = (self._steps - self._latest[-1].step) * seconds / len(self._latest)
        return (
            f"loss {loss:.3f}  {tokens / seconds:,.0f} tokens/s  {1 - tokens / max(padded, 1):.0%} padding  "
            f"{timedelta(seconds=int(left))} left"
        )
