"""`medi build`: takes the options of a build to its Settings, runs it, and prints the folder of the release."""

import json
from pathlib import Path
from typing import cast

import typer
from rich.console import Console

from medi.errors import UsageError
from pipelines.cli import options
from pipelines.cli.own import own_sources
from pipelines.presets import Settings, resolve

PAIRS_FIELDS = ("query_field", "positive_field", "negatives_field", "label_field")


def build(
    context: typer.Context, preset: options.Preset = "sample", profile: options.Profile = None, raw: options.Raw = None,
    sources: options.Sources = None, source: options.SourceFiles = None, pairs: options.PairsPlace = None,
    query_field: options.QueryField = None, positive_field: options.PositiveField = None,
    negatives_field: options.NegativesField = None, label_field: options.LabelField = None,
    name: options.PairsName = None, rows: options.PairsRows = None, super_ni_tasks: options.SuperNiTasks = None,
    licences: options.Licences = None, variant: options.Variant = None, take: options.Take = None,
    scale: options.Scale = None, seed: options.Seed = None, encoder: options.Encoder = None,
    revision: options.Revision = None, dtype: options.Dtype = None, out: options.Out = None,
    workspace: options.Workspace = None, workers: options.Workers = None, runner: options.Runner = None,
    memory: options.Memory = None, offline: options.Offline = None, max_bad_rows: options.MaxBadRows = None,
    strict: options.Strict = False, check_all_lines: options.CheckAllLines = False, negatives: options.Negatives = None,
    strategy: options.Strategy = None, skip_top: options.SkipTop = None, window: options.Window = None,
    min_score: options.MinScore = None, max_score: options.MaxScore = None,
    absolute_margin: options.AbsoluteMargin = None, relative_margin: options.RelativeMargin = None,
    sampling: options.Sampling = None, fill: options.Fill = None, rescore: options.Rescore = None,
    ivf_from: options.IvfFrom = None, show_params: options.ShowParams = False,
) -> None:  # fmt: skip
    """Turn raw files into MEDI shards.

    The result is a folder with Parquet shards, a manifest and a card; its path is printed.
    """
    settings = settings_of(
        context, preset=preset, profile=profile, raw=raw, sources=sources, source=source, pairs=pairs,
        query_field=query_field, positive_field=positive_field, negatives_field=negatives_field,
        label_field=label_field, name=name, rows=rows, super_ni_tasks=super_ni_tasks, licences=licences,
        variant=variant, take=take, scale=scale, seed=seed, encoder=encoder, revision=revision, dtype=dtype,
        out=out, workspace=workspace, workers=workers, runner=runner, memory=memory, offline=offline,
        negatives=negatives, strategy=strategy, skip_top=skip_top, window=window, min_score=min_score,
        max_score=max_score, absolute_margin=absolute_margin, relative_margin=relative_margin,
        sampling=sampling, fill=fill, rescore=rescore, ivf_from=ivf_from, max_bad_rows=max_bad_rows,
        strict=strict, check_all_lines=check_all_lines, show_params=show_params,
    )  # fmt: skip
    if settings.show_params:
        _print_params(settings)
        return
    from pipelines.build import build as run

    print(run(settings, Console(stderr=True)).out)


def settings_of(
    context: typer.Context, *, preset: str, source: list[Path] | None, pairs: str | None, name: str | None,
    rows: int | None, sources: str | None, variant: list[str] | None, memory: str | None, **options: object,
) -> Settings:  # fmt: skip
    """Return the settings that the options of a build ask for. Raises UsageError where they cannot be."""
    fields = {field: cast(str | None, options.pop(field)) for field in PAIRS_FIELDS}
    names = _names(sources)
    if names is not None and "super_ni" not in names and options.get("super_ni_tasks") is not None:
        raise UsageError("--super-ni-tasks: says something of super_ni, which is not built; name it in --sources too")
    return resolve(
        preset, own=own_sources(source, pairs, fields, name, rows), sources=names, variants=_variants(variant),
        memory_bytes=memory, debug=bool(context.find_root().params.get("debug")), **options,
    )  # fmt: skip


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
