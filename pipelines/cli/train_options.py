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
MaxSteps = Annotated[int | None, _option("N", "Steps of the run.  [default: 20000]")]
Epochs = Annotated[float | None, _option("F", "Instead of --max-steps: passes over the rows, such as 0.5.")]
BatchSize = Annotated[int | None, _option("B", "Rows of a step over all processes.  [default: 64]")]
Negatives = Annotated[int | None, _option("N", "Hard negatives of a row, at most.  [default: all it has]")]
Temperature = Annotated[float | None, _option("T", "What cosines are divided by.  [default: 0.01]")]
ForwardCandidates = Annotated[
    str | None,
    _option(
        "all|negatives",
        "Among what a query finds its positive: all positives and negatives of the batch, or its own positive"
        " and all negatives, as the released code.  [default: all]",
    ),
]
MaskSameLabel = Annotated[bool, _flag("mask-same-label", "In label tasks, do not contrast rows of one label.")]
Sampling = Annotated[
    str | None,
    _option(
        "size|uniform|temperature",
        "Batches by task: by its rows, a data set at random first, or rows to the power of 1/T.  [default: size]",
    ),
]
SamplingTemperature = Annotated[float | None, _option("T", "T of --sampling temperature.  [default: 2]")]
Remainder = Annotated[
    str | None, _option("keep|drop", "A task's last rows that fill no batch: a smaller step, or none.  [default: keep]")
]
Level = Annotated[
    str | None, _option("none|tag|simple|detailed", "How much instructions say.  [default: what the shards say]")
]
NoInstructions = Annotated[bool, _flag("no-instructions", "The same as --level none.")]
Tasks = Annotated[
    str | None,
    _option("all|symmetric|asymmetric", "Tasks with one instruction for both sides, or with two.  [default: all]"),
]
NoSuperNi = Annotated[bool, _flag("no-super-ni", "Leave the Super-NI tasks out.")]
SkipLongInstructions = Annotated[
    bool, _flag("skip-long-instructions", "Leave out tasks whose instruction leaves less than 16 tokens for the text.")
]
MaxLength = Annotated[int | None, _option("N", "Tokens of a text.  [default: the model's]")]
LearningRate = Annotated[float | None, _option("F", "Highest, of AdamW; it falls to 0.  [default: 2e-5]")]
WarmupRatio = Annotated[float | None, _option("F", "Share of the steps in which it rises.  [default: 0.1]")]
WeightDecay = Annotated[float | None, _option("F", "Of AdamW.  [default: 0]")]
MaxGradNorm = Annotated[float | None, _option("F", "Longer gradients are cut to it.  [default: 1]")]
Dtype = Annotated[
    str | None, _option("float32|bfloat16", "Arithmetic of the model; weights stay float32.  [default: float32]")
]
Seed = Annotated[int | None, _option("N", "Of batches and dropout.  [default: 0]")]
Resume = Annotated[bool, _flag("resume", "Go on with a stopped run, and fail where there is none.")]
SaveEvery = Annotated[int | None, _option("N", "Steps from one kept step to the next.  [default: 500]")]
Keep = Annotated[int | None, _option("N", "Kept steps that stay.  [default: 2]")]
TokenBudget = Annotated[int | None, _option("N", "Padded tokens of a micro-batch.  [default: 1024, on a GPU 32768]")]
GradCache = Annotated[
    bool,
    _flag(
        "grad-cache",
        "Gradient cache in every step: less memory, a third slower.  [default: only where the graph of a step"
        " would take over a third of memory]",
    ),
]
Compile = Annotated[bool, _flag("compile", "Use torch.compile; pays on GPUs, if at all.")]
Cpu = Annotated[bool, _flag("cpu", "Use no GPU.")]
Trackers = Annotated[str, _option("A,B|none", "Who is told of the losses, of those installed.")]
Revision = Annotated[str | None, _option("R", "The model's revision on the Hub.")]
Workspace = Annotated[Path | None, _option("DIR", "Downloads and decoded shards.  [default: $MEDI_HOME, else data]")]
Offline = Annotated[bool, _flag("offline", "No network call at all.")]
Runner = Annotated[str, _option("none|prefect", "Show the run in Prefect.")]
