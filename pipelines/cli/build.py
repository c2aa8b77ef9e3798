"""`medi build`: takes the options of a build to its Settings, runs it, and prints the folder of the release."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from medi.errors import UsageError
from pipelines.presets import Settings, resolve


def build(
    context: typer.Context,
    preset: Annotated[str, typer.Option(metavar="sample|lite|full", help="What is built.")] = "sample",
    profile: Annotated[str | None, typer.Option(metavar="paper|clean", help="The rules of mining.")] = None,
    raw: Annotated[Path | None, typer.Option(metavar="DIR", help="Read local files; download nothing.")] = None,
    sources: Annotated[str | None, typer.Option(metavar="A,B", help="Only these sources.")] = None,
    super_ni_tasks: Annotated[str | None, typer.Option(metavar="all|listed|FILE", help="Which Super-NI tasks.")] = None,
    variant: Annotated[list[str] | None, typer.Option(metavar="SOURCE=NAME", help="Origin of a source.")] = None,
    take: Annotated[str | None, typer.Option(metavar="hash|first", help="Drawn by hash, or from the start.")] = None,
    scale: Annotated[float | None, typer.Option(metavar="F", help="Multiply every quota.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of every draw.  [default: 0]")] = None,
    encoder: Annotated[str | None, typer.Option(metavar="NAME_OR_PATH", help="The mining encoder.")] = None,
    revision: Annotated[str | None, typer.Option(metavar="R", help="Its revision on the Hub.")] = None,
    dtype: Annotated[str | None, typer.Option(metavar="float32|bfloat16", help="Its arithmetic.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The release.")] = None,
    workspace: Annotated[Path | None, typer.Option(metavar="DIR", help="Downloads and artifacts.")] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", help="Units at once.")] = None,
    runner: Annotated[str | None, typer.Option(metavar="threads|dask|ray|none", help="Who runs them.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="BYTES", help="Memory to keep to, such as 8G.")] = None,
    offline: Annotated[bool | None, typer.Option("--offline", help="No network call at all.")] = None,
    max_bad_rows: Annotated[str | None, typer.Option(metavar="N|P%", help="Bad rows a source may have.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Mended rows are bad rows.")] = False,
    check_all_lines: Annotated[bool, typer.Option("--check-all-lines", help="Parse undrawn lines too.")] = False,
    negatives: Annotated[int | None, typer.Option(metavar="N", help="Negatives of a row.")] = None,
    strategy: Annotated[str | None, typer.Option(metavar="passage|s_neg", help="What pairs are searched by.")] = None,
    skip_top: Annotated[int | None, typer.Option(metavar="N", help="Pass over the N nearest.")] = None,
    window: Annotated[int | None, typer.Option(metavar="N", help="Look at the N nearest, at most 64.")] = None,
    min_score: Annotated[float | None, typer.Option(metavar="F", help="Least score of a mined negative.")] = None,
    max_score: Annotated[float | None, typer.Option(metavar="F", help="Highest score of one.")] = None,
    absolute_margin: Annotated[float | None, typer.Option(metavar="F", help="How far below the positive.")] = None,
    relative_margin: Annotated[float | None, typer.Option(metavar="F", help="The same, as a share of it.")] = None,
    sampling: Annotated[str | None, typer.Option(metavar="top|random", help="Which of the window.")] = None,
    fill: Annotated[str | None, typer.Option(metavar="none|other_rows|random", help="What rows in need get.")] = None,
    rescore: Annotated[str | None, typer.Option(metavar="MODEL", help="A cross-encoder that rescores.")] = None,
    show_params: Annotated[bool, typer.Option("--show-params", help="Print what decides the bytes, no build.")] = False,
) -> None:
    """Turn raw files into MEDI shards.

    The result is a folder with Parquet shards, a manifest and a card; its path is printed.
    """
    settings = resolve(
        preset, profile=profile, raw=raw, sources=_names(sources), super_ni_tasks=super_ni_tasks,
        variants=_variants(variant), take=take, scale=scale, seed=seed, encoder=encoder, revision=revision, dtype=dtype,
        out=out, workspace=workspace, workers=workers, runner=runner, memory_bytes=memory, offline=offline,
        negatives=negatives, strategy=strategy, skip_top=skip_top, window=window, min_score=min_score,
        max_score=max_score, absolute_margin=absolute_margin, relative_margin=relative_margin, sampling=sampling,
        fill=fill, rescore=rescore, max_bad_rows=max_bad_rows, strict=strict, check_all_lines=check_all_lines,
        show_params=show_params, debug=bool(context.find_root().params.get("debug")),
    )  # fmt: skip
    if settings.show_params:
        _print_params(settings)
        return
    from pipelines.build import build as run

    print(run(settings, Console(stderr=True)).out)


def _print_params(settings: Settings) -> None:
    """Print, as JSON, what decides the bytes of this build apart from the files it reads."""
    from pipelines.build.contents import params_of
    from pipelines.build.context import prepare

    print(json.dumps(params_of(prepare(settings)), indent=1))


def _names(text: str | None) -> tuple[str, ...] | None:
    """Return the names of a comma-separated list. Raises UsageError for a list of nothing."""
    if text is None:
        return None
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UsageError("--sources: empty; name at least one, or leave the option out for all")
    return names


def _variants(pairs: list[str] | None) -> dict[str, str] | None:
    """Return source -> variant of `SOURCE=NAME` options. Raises UsageError for another form or a source named twice."""
    if not pairs:
        return None
    chosen: dict[str, str] = {}
    for pair in pairs:
        source, equals, name = pair.partition("=")
        if not equals or not name or source in chosen:
            raise UsageError(f"--variant {pair}: give SOURCE=NAME, once for each source")
        chosen[source] = name
    return chosen
