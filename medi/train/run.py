"""A release and a model -> a trained model in OUT: everything is checked and printed first, then the loop runs.

A run that was stopped goes on behind its last kept step, to the same weights: the same command may be repeated.
"""

import importlib.util
import json
import math
import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from medi import fetch
from medi.encoder import arithmetic_of, slowness_of
from medi.errors import MediError, UsageError
from medi.screen import many
from medi.store import Store
from medi.train.ablations import SUPER_NI, chosen, instructions
from medi.train.batches import TaskRows, plan
from medi.train.checkpoint import Keeper
from medi.train.collate import Collator, long_instructions, max_length_tokens, own_tokenizer, refuse_long
from medi.train.data import Data, Instructions, Task, open_data
from medi.train.journal import Journal
from medi.train.loop import StepDone, Trainer, new_optimizer, share_seen, train
from medi.train.model import load_model, tokenizer_of
from medi.train.recipe import Recipe, Resources

if TYPE_CHECKING:
    import torch
    from accelerate import Accelerator
    from sentence_transformers import SentenceTransformer

# Names that people say without their owner.
_OWNER = "sentence-transformers"
_FAMILIES = ("gtr-t5-", "sentence-t5-")


@dataclass(frozen=True)
class Job:
    """What a person asks for. `epochs`, where it is given, decides the recipe's steps; `resume` begins no new run."""

    release: Path
    model: str
    out: Path
    workspace: Path
    recipe: Recipe = field(default_factory=Recipe)
    resources: Resources = field(default_factory=Resources)
    epochs: float | None = None
    revision: str | None = None
    resume: bool = False
    offline: bool = False


class Watcher(Protocol):
    """Who hears of a run."""

    def say(self, message: str) -> None:
        """Take a line for a person."""

    def begin(self, first_step: int, steps: int, share_seen: float) -> None:
        """Take where the run begins, how many steps it has in all, and which share of the rows it sees."""

    def step(self, done: StepDone) -> None:
        """Take a step that is done."""


class Trained(NamedTuple):
    """Where the model is, the steps behind it, and the mean over tasks of the losses of their first and last steps."""

    out: Path
    steps: int
    first_loss: float
    last_loss: float


class _Ready(NamedTuple):
    """What is known before the first step."""

    recipe: Recipe
    tasks: list[TaskRows]
    collator: Collator
    model: "SentenceTransformer"
    dropped: Mapping[str, Counter[str]]


def run(job: Job, watcher: Watcher) -> Trained:
    """Train as the job says and return where the model is; where OUT is that model already, nothing is done.

    Raises:
        UsageError: an option cannot be, or OUT is another run's.
        MediError: the release does not verify, the model cannot be trained, or a loss is not finite.
    """
    if importlib.util.find_spec("accelerate") is None:
        raise UsageError("training needs accelerate: pip install '.[train]'")
    job.recipe.check()
    job.resources.check()
    accelerator = _accelerator(job)
    ready = _prepare(job, accelerator, watcher)
    keeper = Keeper(job.out, ready.recipe.to_json() | job.resources.drawn(), job.resources.keep)
    with accelerator.main_process_first():
        keeper.check()
    if keeper.is_done():
        watcher.say(f"{job.out} is the model of this recipe already")
        return Trained(job.out, ready.recipe.max_steps, *keeper.losses())
    with keeper.alone() if accelerator.is_main_process else nullcontext():
        return _go_on(job, ready, accelerator, keeper, watcher)


def _go_on(job: Job, ready: _Ready, accelerator: "Accelerator", keeper: Keeper, watcher: Watcher) -> Trained:
    """Train behind the last step that was kept, or from the start. Raises UsageError where --resume finds none."""
    first_step = (keeper.steps() or [0])[-1]
    if job.resume and not first_step:
        raise UsageError(f"--resume: {keeper.run} holds no step to go on from; leave the option out to begin")
    _announce(ready, first_step, accelerator.device, watcher)
    model = ready.model
    if first_step:
        model = load_model(job.model, keeper.folder(first_step), ready.recipe.max_length, accelerator.device)
    if job.resources.compile:
        model[0].model.compile(dynamic=True)
    trainer = Trainer(
        model, new_optimizer(model, ready.recipe), accelerator, ready.tasks, ready.collator, ready.recipe, job.resources
    )
    if first_step:
        keeper.load_optimizer(first_step, trainer.optimizer)
    at_wandb = {"dir": str(keeper.run)} | ({"mode": "offline"} if job.offline else {})
    # Steps that are taken twice are shown once.
    at_tensorboard = {"purge_step": first_step + 1} if first_step else {}
    accelerator.init_trackers("medi-train", init_kwargs={"wandb": at_wandb, "tensorboard": at_tensorboard})
    return _loop(trainer, keeper, Journal(keeper.run), first_step, watcher)


def _accelerator(job: Job) -> "Accelerator":
    """Return accelerate's view of devices and processes. Without a GPU, several processes meet over gloo."""
    import torch
    from accelerate import Accelerator

    wanted = [name for name in job.resources.trackers if importlib.util.find_spec(name) is not None]
    cpu = job.resources.cpu or ("LOCAL_RANK" in os.environ and not torch.cuda.is_available())
    return Accelerator(cpu=cpu, log_with=[*wanted] or None, project_dir=Keeper(job.out, {}).run)


def _prepare(job: Job, accelerator: "Accelerator", watcher: Watcher) -> _Ready:
    """Return the recipe in full, the planned tasks and the model; what is left out has been said."""
    how = fetch.Settings(job.workspace, offline=job.offline, say=watcher.say)
    with accelerator.main_process_first():
        data = open_data(job.release, Store(job.workspace / "store"), watcher.say)
        files = fetch.find_encoder(_full_name(job.model), job.revision, how)
        folder = fetch.fetch_encoder(files, how)
    model = load_model(job.model, folder, job.recipe.max_length, accelerator.device)
    longest = int(model.max_seq_length or 0)
    collator = Collator(
        data, _named(data, job.recipe), own_tokenizer(tokenizer_of(model), longest), job.recipe.negatives,
        job.recipe.mask_same_label, accelerator.process_index, accelerator.num_processes,
    )  # fmt: skip
    collator, left_out = _without_long(collator, job.recipe, watcher)
    recipe = replace(
        job.recipe, max_length=longest, left_out=left_out, model={"name": files.name, "revision": files.revision},
        release={"content_digest": data.content_digest, "manifest_sha256": data.manifest_digest},
    )  # fmt: skip
    kept = {name for name, _ in collator.tasks}
    rows = [_task_rows(task, recipe) for task in data.tasks if task.name in kept]
    first_epoch = plan(rows, recipe.plan, 0)
    if job.epochs is not None:
        recipe = replace(recipe, max_steps=max(1, math.ceil(len(first_epoch.steps) * job.epochs)))
    return _Ready(recipe, rows, collator, model, first_epoch.dropped)


def _named(data: Data, recipe: Recipe) -> list[tuple[str, Instructions]]:
    """Return the names and instructions of the tasks that the ablation leaves."""
    return [(task.name, instructions(task, recipe.ablation.level)) for task in chosen(data.tasks, recipe.ablation)]


def _without_long(collator: Collator, recipe: Recipe, watcher: Watcher) -> tuple[Collator, tuple[str, ...]]:
    """Return the collator without the tasks whose instruction leaves no room for text, and their names.

    Raises MediError where there are such tasks and they are not to be skipped.
    """
    too_long = long_instructions(collator.tokenizer, collator.tasks)
    if not recipe.skip_long_instructions:
        refuse_long(too_long, max_length_tokens(collator.tokenizer))
    if too_long:
        names = ", ".join(f"{name} ({tokens} tokens)" for name, tokens in sorted(too_long.items()))
        watcher.say(f"left out, as their instructions leave no room for text: {names}")
    kept = [(name, told) for name, told in collator.tasks if name not in too_long]
    return replace(collator, tasks=kept), tuple(sorted(too_long))


def _task_rows(task: Task, recipe: Recipe) -> TaskRows:
    """Return a task as the plan sees it: a Super-NI task is a data set on its own, a cluster part of its source's."""
    source = task.entry["source"]
    negatives = task.negatives if recipe.negatives is None else np.minimum(task.negatives, recipe.negatives)
    return TaskRows(task.name, task.name if source == SUPER_NI else source, task.first_row, negatives)


def _announce(ready: _Ready, first_step: int, device: "torch.device", watcher: Watcher) -> None:
    """Say the recipe, what the plan leaves out of an epoch, and where the run begins."""
    for name, value in ready.recipe.to_json().items():
        watcher.say(f"  {name.replace('_', ' ')}: {value if isinstance(value, str) else json.dumps(value)}")
    reasons: dict[str, list[str]] = {}
    for task, dropped in sorted(ready.dropped.items()):
        for reason, rows in dropped.items():
            reasons.setdefault(reason, []).append(f"{task} {rows}")
    for reason, parts in reasons.items():
        watcher.say(f"rows an epoch leaves out ({reason}): {', '.join(parts)}")
    if first_step:
        watcher.say(f"going on behind step {first_step:,}")
    dtype = ready.recipe.dtype
    if device.type == "cpu" and (slowness := slowness_of(dtype, arithmetic_of(dtype, with_gpu=False))):
        watcher.say(slowness)
    watcher.begin(first_step, ready.recipe.max_steps, share_seen(ready.tasks, ready.recipe))


def _loop(trainer: Trainer, keeper: Keeper, journal: Journal, first_step: int, watcher: Watcher) -> Trained:
    """Run the steps and keep what they come to; return where the model is.

    Raises MediError where a loss is not finite: the message names the last good step.
    """
    accelerator, steps = trainer.accelerator, trainer.recipe.max_steps
    is_main = accelerator.is_main_process
    if is_main:
        journal.begin(first_step)
    kept_seconds = time.monotonic()
    try:
        for done in train(trainer, first_step):
            if is_main:
                journal.add(done)
                accelerator.log({name: getattr(done, name) for name in _LOGGED}, step=done.step)
                is_due = time.monotonic() - kept_seconds > _KEEP_SECONDS
                if (is_due or done.step % trainer.resources.save_every == 0) and done.step < steps:
                    keeper.save_step(done.step, trainer.model, trainer.optimizer)
                    kept_seconds = time.monotonic()
            watcher.step(done)
        first_loss, last_loss = journal.losses()
        if is_main:
            watcher.say(_account(journal, trainer.recipe))
            facts = {"first loss": first_loss, "last loss": last_loss, "truncated texts": dict(journal.truncated())}
            keeper.publish(trainer.model, facts)
        accelerator.wait_for_everyone()
    except MediError as error:
        kept = keeper.steps()
        last = f"the last step kept before it is {keeper.folder(kept[-1])}" if kept else "no step was kept yet"
        raise MediError(f"{error}; {last}") from error
    finally:
        accelerator.end_training()
    return Trained(keeper.out, steps, first_loss, last_loss)


def _account(journal: Journal, recipe: Recipe) -> str:
    """Return what a person should know of a finished run: what was cut, and whether batches were there in time."""
    cut = journal.truncated()
    most = ", ".join(f"{task} {texts:,}" for task, texts in cut.most_common(_TASKS_SHOWN))
    told = f"{cut.total():,}" + (f" in {many(len(cut), 'task')}, most in {most}" if cut else "")
    idle = journal.steps_without_gradient()
    return (
        f"texts cut at {recipe.max_length} tokens: {told}; waited for batches {journal.waited_share():.2%} of the time"
    ) + (f"; {idle:,} steps changed nothing: masks left no text to tell a positive from" if idle else "")


_TASKS_SHOWN = 3
# A run that is stopped loses no more than this, however slow its steps.
_KEEP_SECONDS = 600.0
_LOGGED = ("loss", "learning_rate", "gradient_norm", "tokens", "padded_tokens", "waited_seconds", "seconds")


def _full_name(name: str) -> str:
    return f"{_OWNER}/{name}" if name.startswith(_FAMILIES) and not Path(name).is_dir() else name
