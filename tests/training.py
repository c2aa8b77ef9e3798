"""Training in tests: a tiny release, a job on it, and a watcher that remembers what it was told."""

from dataclasses import dataclass, field
from pathlib import Path

from medi.schema import row_id
from medi.train.loop import StepDone
from medi.train.recipe import Recipe, Resources
from medi.train.run import Job
from tests.release_builder import tiny


@dataclass
class Heard:
    """What a run said, how it began, and its steps."""

    lines: list[str] = field(default_factory=list)
    began: tuple[int, int, float] = (0, 0, 0.0)
    steps: list[StepDone] = field(default_factory=list)

    def say(self, message: str) -> None:
        self.lines.append(message)

    def begin(self, first_step: int, steps: int, share_seen: float) -> None:
        self.began = (first_step, steps, share_seen)

    def step(self, done: StepDone) -> None:
        self.steps.append(done)


def write_release(folder: Path, rows: int = 20) -> None:
    """Write a release of four tasks: two sources, a label task, a text task; texts are told apart by their words."""
    builder = tiny(rows)
    words = "water city year people answer question news title article document sentence example".split()
    for name, task in builder.rows.items():
        for number, row in enumerate(task):
            about = f"{words[number % 12]} {words[(number // 12 + number + 5) % 12]}"
            row["query"] = f"{row['query']} {about}"
            row["positive"] = f"{about} {row['positive']}"
            if name[0] != "super_ni":
                row["id"] = row_id(name[0], name[0], str(row["query"]), str(row["positive"]))
            if name[0] == "asks":
                row["negatives"], row["negative_scores"], row["negative_origins"] = [], [], []
    builder.write(folder)


def job(release: Path, model: Path, out: Path, resources: Resources | None = None, **recipe: object) -> Job:
    """Return a short job on one CPU, its workspace beside the model."""
    asked = {"max_steps": 6, "batch_size": 8, "learning_rate": 1e-3} | recipe
    kept = resources or Resources(save_every=100, cpu=True, trackers=())
    return Job(release, str(model), out, out.parent / "workspace", Recipe(**asked), kept, offline=True)  # type: ignore[arg-type]
