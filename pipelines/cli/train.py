"""`medi train DIR --model M --out CKPT`: takes the options of a run, trains, and prints the folder of the model."""

import os
from collections.abc import Mapping

from rich.console import Console

from medi.errors import UsageError
from pipelines.cli import train_options as of


def train(
    release: of.Release, model: of.Model, out: of.Out, max_steps: of.MaxSteps = None, epochs: of.Epochs = None,
    batch_size: of.BatchSize = None, negatives: of.Negatives = None, temperature: of.Temperature = None,
    forward_candidates: of.ForwardCandidates = None, mask_same_label: of.MaskSameLabel = False,
    sampling: of.Sampling = None, sampling_temperature: of.SamplingTemperature = None, remainder: of.Remainder = None,
    level: of.Level = None, no_instructions: of.NoInstructions = False, tasks: of.Tasks = None,
    no_super_ni: of.NoSuperNi = False, skip_long_instructions: of.SkipLongInstructions = False,
    max_length: of.MaxLength = None, learning_rate: of.LearningRate = None, warmup_ratio: of.WarmupRatio = None,
    weight_decay: of.WeightDecay = None, max_grad_norm: of.MaxGradNorm = None, dtype: of.Dtype = None,
    seed: of.Seed = None, resume: of.Resume = False, save_every: of.SaveEvery = None, keep: of.Keep = None,
    token_budget: of.TokenBudget = None, grad_cache: of.GradCache = False, compile: of.Compile = False,
    cpu: of.Cpu = False, trackers: of.Trackers = "tensorboard,wandb", revision: of.Revision = None,
    workspace: of.Workspace = None, offline: of.Offline = False, runner: of.Runner = "none",
) -> None:  # fmt: skip
    """Train an embedding model on a release.

    CKPT becomes an ordinary sentence-transformers folder; its path is printed. A run that was stopped goes on when the
    same command is run again.
    """
    options: dict[str, object] = {
        "release": str(release), "model": model, "out": str(out), "max_steps": max_steps, "epochs": epochs,
        "batch_size": batch_size, "negatives": negatives, "temperature": temperature,
        "forward_candidates": forward_candidates, "mask_same_label": mask_same_label, "sampling": sampling,
        "sampling_temperature": sampling_temperature, "remainder": remainder, "tasks": tasks,
        "level": _level(level, no_instructions), "super_ni": not no_super_ni, "max_length": max_length,
        "skip_long_instructions": skip_long_instructions, "learning_rate": learning_rate, "warmup_ratio": warmup_ratio,
        "weight_decay": weight_decay, "max_grad_norm": max_grad_norm, "dtype": dtype, "seed": seed, "resume": resume,
        "save_every": save_every, "keep": keep, "token_budget": token_budget, "cached": grad_cache, "compile": compile,
        "cpu": cpu, "trackers": _trackers(trackers), "revision": revision, "workspace": workspace and str(workspace),
        "offline": offline,
    }  # fmt: skip
    _train(options, runner)


def _train(options: Mapping[str, object], runner: str) -> None:
    """Train, and say what came of it: the folder on stdout, the losses on stderr. Raises UsageError for a runner."""
    if runner not in ("none", "prefect"):
        raise UsageError(f"--runner {runner}: give none or prefect")
    from pipelines.training import Shown, job_of

    job = job_of(options)
    is_first = os.environ.get("RANK", "0") == "0"
    with Shown(Console(stderr=True), quiet=not is_first) as shows:
        if runner == "prefect" and is_first:
            from pipelines.build.prefect_home import settle

            settle(job.workspace)
            from pipelines.train import train_in_prefect

            trained = train_in_prefect(options, shows)
        else:
            from medi.train.run import run

            trained = run(job, shows)
    if is_first:
        first, last = trained.first_loss, trained.last_loss
        told = f"{first:.4f} in the first steps of the tasks, {last:.4f} in their last"
        alone = f"{first:.4f}; no task had a second step to compare it with"
        shows.say(f"mean loss {told if first != last else alone}")
        print(trained.out)


def _level(level: str | None, no_instructions: bool) -> str | None:
    """Return the level that was asked for. Raises UsageError where two were."""
    if no_instructions and level not in (None, "none"):
        raise UsageError(f"--no-instructions and --level {level}: give one of them")
    return "none" if no_instructions else level


def _trackers(text: str) -> list[str]:
    """Return the trackers of a comma-separated list. Raises UsageError for one that is not known."""
    names = [name.strip() for name in text.split(",") if name.strip() and name.strip() != "none"]
    for name in names:
        if name not in ("tensorboard", "wandb"):
            raise UsageError(f"--trackers {name}: give tensorboard, wandb, both with a comma, or none")
    return names
