"""`medi reselect DIR`: takes other mining options for a finished release and prints the folder of the new one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from medi.errors import UsageError
from pipelines.cli import options


def reselect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release.")], profile: options.Profile = None,
    negatives: options.Negatives = None, skip_top: options.SkipTop = None, window: options.Window = None,
    min_score: options.MinScore = None, max_score: options.MaxScore = None,
    absolute_margin: options.AbsoluteMargin = None, relative_margin: options.RelativeMargin = None,
    sampling: options.Sampling = None, fill: options.Fill = None, rescore: options.Rescore = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The new release. [default: in its place]")] = None,
) -> None:  # fmt: skip
    """Choose other negatives for a release.

    Nothing is encoded or searched again: they come from the 64 candidates that the workspace keeps of every row. What
    is not given stays as it was.
    """
    asked = {
        "profile": profile, "negatives": negatives, "skip_top": skip_top, "window": window, "min_score": min_score,
        "max_score": max_score, "absolute_margin": absolute_margin, "relative_margin": relative_margin,
        "sampling": sampling, "fill": fill, "rescore": rescore,
    }  # fmt: skip
    from pipelines.build.reselect import reselect as run

    print(run(folder, _given(asked), out, Console(stderr=True)).out)


def _given(asked: Mapping[str, object]) -> dict[str, object]:
    """Return the options that were given. Raises UsageError where there is none."""
    changes = {name: value for name, value in asked.items() if value is not None}
    if not changes:
        raise UsageError("reselect: nothing to change; name a mining option, such as --negatives 4")
    return changes
