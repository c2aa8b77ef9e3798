"""The paper's ablations: which tasks are trained on, and how much their instructions say.

They need no other shards: the manifest names the slots of each instruction, and a level is another rendering of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from medi.errors import UsageError
from medi.instruct import Slots, Style, render
from medi.release.manifest import Json
from medi.train.data import Instructions, Task

Level = Literal["none", "tag", "simple", "detailed"]
Side = Literal["all", "symmetric", "asymmetric"]

SUPER_NI = "super_ni"


@dataclass(frozen=True)
class Ablation:
    """What is left out. `level` `detailed` is what the shards say; `super_ni` False leaves out all of its tasks."""

    level: Level = "detailed"
    tasks: Side = "all"
    super_ni: bool = True

    def check(self) -> "Ablation":
        """Return self. Raises UsageError for a word that names no level or no kind of task."""
        for option, value, known in (("level", self.level, Level), ("tasks", self.tasks, Side)):
            if value not in get_args(known):
                raise UsageError(f"--{option} {value}: give one of {', '.join(get_args(known))}")
        return self


def chosen(tasks: Iterable[Task], ablation: Ablation) -> list[Task]:
    """Return the tasks that are trained on, in their order. Raises UsageError where none is left."""
    kept = [task for task in tasks if _is_kept(task, ablation)]
    if not kept:
        wanted = f"--tasks {ablation.tasks}" + ("" if ablation.super_ni else " --no-super-ni")
        raise UsageError(f"{wanted}: leaves no task of this release; leave one of the options out")
    return kept


def _is_kept(task: Task, ablation: Ablation) -> bool:
    is_wanted = ablation.tasks == "all" or task.entry["symmetric"] == (ablation.tasks == "symmetric")
    return is_wanted and (ablation.super_ni or task.entry["source"] != SUPER_NI)


def instructions(task: Task, level: Level) -> Instructions:
    """Return what stands before the task's texts at this level. Raises UsageError where the manifest has no slots."""
    if level == "detailed":
        return task.instructions
    if level == "none":
        return Instructions("", "")
    source, slots = task.entry["source"], task.entry["slots"]
    if not isinstance(slots, dict) or not set(Instructions._fields) <= set(slots):
        raise UsageError(f"--level {level}: the manifest has no slots for task {task.name}; give --level detailed")
    # The mark that ends every instruction of the release.
    style = Style(sentence="", ending=task.instructions.query[-1:] or ":", level=level)
    tag = task.name if source == SUPER_NI else source
    return Instructions(*(render(_slots(slots[side]), style, tag) for side in Instructions._fields))


def _slots(words: Json) -> Slots:
    return Slots(**{name: str(word) for name, word in words.items()}) if isinstance(words, dict) else Slots("")
