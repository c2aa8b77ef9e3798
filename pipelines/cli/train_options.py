"""The options of `medi train`: their types, and what `--help` says of each."""

from pathlib import Path
from typing import Annotated

import typer


def _option(metavar: str, help: str) -> object:
    return typer.Option(metavar=metavar, help=help)


def _flag(name: str, help: str) -> object:
    return typer.Option(f"--{name}", help=help)


Release = Annotated[Path, typer.Argument(metavar="DIR", help="A release.")]
Model = Annotated[str, _option("NAME_OR_PATH", "The model to begin with, such as gtr-t5-base.")]
Out = Annotated[Path, _option("CKPT", "The folder of the trained model.")]
MaxSteps = Annotated[int | None, _option("N", "Steps.  [default: 20000]")]
Epochs = Annotated[float | None, _option("F", "Instead: passes over the rows.")]
BatchSize = Annotated[int | None, _option("B", "Rows of a step over all processes.  [default: 64]")]
Negatives = Annotated[int | None, _option("N", "Negatives of a row, at most.  [default: all]")]
Temperature = Annotated[float | None, _option("T", "Of the loss.  [default: 0.01]")]
ForwardCandidates = Annotated[str | None, _option("all|negatives", "What a query is told from.")]
MaskSameLabel = Annotated[bool, _flag("mask-same-label", "Rows of one label are no negatives.")]
Sampling = Annotated[str | None, _option("size|uniform|temperature", "How tasks are drawn.")]
SamplingTemperature = Annotated[float | None, _option("T", "Of that sampling.  [default: 2]")]
Remainder = Annotated[str | None, _option("keep|drop", "What becomes of a task's last rows.")]
Level = Annotated[str | None, _option("none|tag|simple|detailed", "How much instructions say.")]
NoInstructions = Annotated[bool, _flag("no-instructions", "The same as --level none.")]
Tasks = Annotated[str | None, _option("all|symmetric|asymmetric", "Only such tasks.")]
NoSuperNi = Annotated[bool, _flag("no-super-ni", "Leave the Super-NI tasks out.")]
SkipLongInstructions = Annotated[bool, _flag("skip-long-instructions", "Leave out tasks it leaves no text.")]
MaxLength = Annotated[int | None, _option("N", "Tokens of a text.  [default: the model's]")]
LearningRate = Annotated[float | None, _option("F", "Of AdamW.  [default: 2e-5]")]
WarmupRatio = Annotated[float | None, _option("F", "Share of the steps.  [default: 0.1]")]
WeightDecay = Annotated[float | None, _option("F", "Of AdamW.  [default: 0]")]
MaxGradNorm = Annotated[float | None, _option("F", "Gradients are cut to it.  [default: 1]")]
Dtype = Annotated[str | None, _option("float32|bfloat16", "Arithmetic.  [default: float32]")]
Seed = Annotated[int | None, _option("N", "Of batches and dropout.  [default: 0]")]
Resume = Annotated[bool, _flag("resume", "Go on with a stopped run, begin none.")]
SaveEvery = Annotated[int | None, _option("N", "Steps from one kept step to the next.  [default: 500]")]
Keep = Annotated[int | None, _option("N", "Kept steps that stay.  [default: 2]")]
TokenBudget = Annotated[int | None, _option("N", "Padded tokens of a micro-batch.")]
GradCache = Annotated[bool, _flag("grad-cache", "For steps larger than memory.")]
Compile = Annotated[bool, _flag("compile", "Use torch.compile.")]
Cpu = Annotated[bool, _flag("cpu", "Use no GPU.")]
Trackers = Annotated[str, _option("A,B|none", "Who is told of the losses.")]
Revision = Annotated[str | None, _option("R", "The model's revision on the Hub.")]
Workspace = Annotated[Path | None, _option("DIR", "Downloads and decoded shards.")]
Offline = Annotated[bool, _flag("offline", "No network call at all.")]
Runner = Annotated[str, _option("none|prefect", "Show the run in Prefect.")]
