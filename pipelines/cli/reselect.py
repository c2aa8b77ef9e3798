"""`medi reselect DIR`: takes other mining options for a finished release and prints the folder of the new one."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from medi.errors import UsageError


def reselect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release.")],
    profile: Annotated[str | None, typer.Option(metavar="paper|clean", help="The rules of mining.")] = None,
    negatives: Annotated[int | None, typer.Option(metavar="N", help="Negatives of a row.")] = None,
    skip_top: Annotated[int | None, typer.Option(metavar="N", help="Pass over the N nearest.")] = None,
    window: Annotated[int | None, typer.Option(metavar="N", help="Look at the N nearest, at most 64.")] = None,
    min_score: Annotated[float | None, typer.Option(metavar="F", help="Least score of a mined negative.")] = None,
    max_score: Annotated[float | None, typer.Option(metavar="F", help="Highest score of one.")] = None,
    absolute_margin: Annotated[float | None, typer.Option(metavar="F", help="How far below the positive.")] = None,
    relative_margin: Annotated[float | None, typer.Option(metavar="F", help="The same, as a share of it.")] = None,
    sampling: Annotated[str | None, typer.Option(metavar="top|random", help="Which of the window.")] = None,
    fill: Annotated[str | None, typer.Option(metavar="none|other_rows|random", help="What rows in need get.")] = None,
    rescore: Annotated[str | None, typer.Option(metavar="MODEL", help="A cross-encoder that rescores.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The new release.  [default: in its place]")] = None,
) -> None:
    """Choose other negatives for a release, without encoding or searching again.

    They come from the 64 candidates that the workspace keeps of every row; options that are not given stay as they were.
    """
    asked = {
        "profile": profile, "negatives": negatives, "skip_top": skip_top, "window": window, "min_score": min_score,
        "max_score": max_score, "absolute_margin": absolute_margin, "relative_margin": relative_margin,
        "sampling": sampling, "fill": fill, "rescore": rescore,
    }  # fmt: skip
    changes = {name: value for name, value in asked.items() if value is not None}
    if not changes:
        raise UsageError("reselect: nothing to change; name a mining option, such as --negatives 4")
    from pipelines.build.reselect import reselect as run

    print(run(folder, changes, out, Console(stderr=True)).out)
