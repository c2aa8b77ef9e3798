"""A build from settings to release: look what is missing, run its steps (in Prefect or plainly), publish.

Prefect orders, retries downloads and shows the run; it decides nothing about what is built. What is missing is known
before it starts: a build that finds all in place starts neither Prefect nor torch.
"""

import importlib.util
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from rich.console import Console

from medi.errors import MediError, UsageError
from medi.fetch import forget_hosts
from medi.own import spec_from, spec_json
from medi.publish import remove_orphans, writing
from medi.release import open_release
from medi.release.swap import finish_swap, refuse_strangers, remove_leftovers
from medi.release.verify import verify
from medi.shards import manifest_head, same_release, write_release
from pipelines.build import progress
from pipelines.build.contents import Finished, contents_of, finished
from pipelines.build.context import Context, prepare
from pipelines.build.failures import check_writable, failure_of, one_line
from pipelines.build.fetching import located, obtain, show_plan
from pipelines.build.keep import EVERYTHING, Missing
from pipelines.build.measuring import measures
from pipelines.build.prefect_home import settle
from pipelines.build.steps import (
    encode_texts,
    finish,
    ingest_step,
    is_skipped,
    lengths_to_encode,
    missing_texts,
    tokens_step,
)
from pipelines.build.summary import refuse_nothing, replacing_aloud, show_left_out, show_result
from pipelines.build.units import Group, Plan, Unit, plan_groups
from pipelines.presets import Settings, resolve

Json = None | bool | int | float | str | list[str] | dict[str, str] | list[dict[str, object]]


@dataclass(frozen=True)
class BuildResult:
    """Where the release is, its content digest, and the seconds each source took in this run."""

    out: Path
    content_digest: str
    units: tuple[Finished, ...]
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """What a build has to do, as it was found when it `started` (UTC)."""

    context: Context
    plan: Plan
    started: str


@dataclass(frozen=True)
class Step:
    """What one step of a group came to: the group with its files, the seconds, and a line for each unit that failed."""

    group: Group
    seconds: float
    errors: tuple[str, ...] = ()


# What each kind of step does with a group; every one finds finished artifacts in the store and goes on from there.
STEPS = ("fetch", "ingest", "embed", "mine")


def run_step(kind: str, context: Context, group: Group) -> Step:
    """Run one step of a group. A unit that fails is named in the result and left out of the group; the others go on."""
    with writing(context.workspace / "store"):
        return _worked(kind, context, group)


def _worked(kind: str, context: Context, group: Group) -> Step:
    """Run one step of a group, as `run_step` does; loading the encoder is not part of its seconds."""
    began, errors, failed = time.monotonic(), [], set()
    progress.reporter().begin(kind)
    if kind == "fetch":
        group = obtain(context, group)
    lengths: dict[str, int] = {}
    for unit in group.units if kind != "fetch" else ():
        try:
            rows = ingest_step(context, unit)
            if kind == "mine":
                finish(context, unit)
            else:
                began += _loading_seconds(context, unit)
                lengths |= lengths_to_encode(context, unit)
            if kind != "embed":
                progress.reporter().advance(kind, rows=rows.rows)
        except MediError as error:
            errors.append(one_line(unit.name, error))
            failed.add(unit.name)
    if kind == "ingest":
        progress.reporter().expect_texts("embed", missing_texts(context, lengths))
    if kind == "embed":
        began += _load(context) if missing_texts(context, lengths) else 0.0
        encode_texts(context, lengths)
    group = replace(group, units=tuple(unit for unit in group.units if unit.name not in failed))
    return Step(group, time.monotonic() - began, tuple(errors))


def _loading_seconds(context: Context, unit: Unit) -> float:
    """Load the encoder where the unit has texts that are not tokenized yet; return the seconds that took."""
    rows = ingest_step(context, unit)
    try:
        if not is_skipped(rows):
            tokens_step(context, unit, rows, EVERYTHING)
    except Missing:
        return _load(context)
    return 0.0


def _load(context: Context) -> float:
    """Load the encoder where this process has not yet, or wait for who does; return the seconds."""
    began = time.monotonic()
    context.encoder()
    seconds = time.monotonic() - began
    progress.reporter().loaded(context.spec.name, seconds)
    return seconds


def build(settings: Settings, console: Console | None = None) -> BuildResult:
    """Build a release and return where it is. A build that finds all in place starts neither Prefect nor torch.

    Raises:
        UsageError: the call is wrong, for example a named source has no file.
        MediError: a source failed; what others made is kept, nothing is published.
    """
    _check_runner(settings.runner)
    forget_hosts()
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    tidy(settings)
    reporter = progress.Reporter(console or Console(stderr=True), quiet=console is None)
    with progress.showing(reporter):
        context = prepare(settings)
        plan = plan_groups(context)
        plan = replace(plan, groups=tuple(located(context, group) for group in plan.groups))
        job = Job(context, plan, started)
        show_left_out(reporter, settings, plan)
        done = look(context, plan.groups)
        if done is None:
            check_writable(settings.workspace, "--workspace")
            check_writable(Path(os.path.realpath(settings.out)).parent, "--out")
            show_plan(context, plan, reporter)
        elif plan.failed:
            raise failure_of(plan.failed)
        result = _run(job) if done is None else publish(job, done, {})
    show_result(reporter, result.out, result.content_digest, result.units, result.seconds)
    return result


def tidy(settings: Settings) -> None:
    """Finish the swap that a killed run began, and remove what such runs left in the workspace and beside the release.

    Raises:
        MediError: what lies at the release's place is not ours.
    """
    finish_swap(settings.out)
    refuse_strangers(settings.out)
    remove_leftovers(settings.out)
    remove_orphans(settings.workspace, deep=False)
    for folder in ("store", "digests"):
        remove_orphans(settings.workspace / folder)


def _check_runner(runner: str) -> None:
    """Raise UsageError where the runner is not installed, before anything is looked at or said."""
    if runner in ("dask", "ray") and importlib.util.find_spec(f"prefect_{runner}") is None:
        raise UsageError(f"--runner {runner}: not installed; pip install '.[{runner}]', or use threads")


def _run(job: Job) -> BuildResult:
    """Run what is missing with the chosen runner, and publish."""
    expect(job.plan)
    if job.context.settings.runner == "none":
        return conclude(job, run_plainly(job))
    settle(job.context.workspace)
    from pipelines.build.flow import run_in_prefect

    return run_in_prefect(job)


def expect(plan: Plan) -> None:
    """Tell the reporter what is to do; how much there is to embed is known later."""
    units = sum(max(1, len(group.units or group.task_names)) for group in plan.groups)
    for kind, steps in (("ingest", units), ("embed", 0), ("mine", units)):
        progress.reporter().expect(kind, steps)


def conclude(job: Job, steps: Sequence[Step]) -> BuildResult:
    """Publish what the steps made.

    Raises:
        MediError: steps failed; where there are several errors, each is a note of the one that is raised.
    """
    errors = [*job.plan.failed, *(line for step in steps for line in step.errors)]
    if errors:
        raise failure_of(errors)
    took: dict[str, float] = {}
    for step in steps:
        took[step.group.source] = took.get(step.group.source, 0.0) + step.seconds
    latest = {step.group.name: step.group for step in steps}
    done = look(job.context, [latest.get(group.name, group) for group in job.plan.groups])
    if done is None:
        raise MediError("the build ended with a step undone; run the same command again")
    return publish(job, done, took)


def options_of(settings: Settings) -> dict[str, Json]:
    """Return the settings as the flow's parameters, with a JSON form."""
    plain = {f.name: getattr(settings, f.name) for f in fields(settings)}
    texts = {name: str(plain[name]) for name in _PATHS if plain[name] is not None}
    own = [spec_json(spec) for spec in settings.own]
    lists = {"sources": list(settings.sources), "licences": list(settings.licences), "own": own}
    return plain | texts | lists | {"variants": dict(settings.variants)}


def settings_from(options: Mapping[str, object]) -> Settings:
    """Return the settings of a flow's parameters. Raises UsageError as `presets.resolve` does."""
    given: dict[str, object] = dict(options)
    given |= {name: Path(str(given[name])) for name in _PATHS if given.get(name) is not None}
    for name in ("sources", "licences"):
        if isinstance(given.get(name), list):
            given[name] = tuple(given[name])  # type: ignore[arg-type]
    if given.get("own") is not None:
        given["own"] = tuple(map(spec_from, given["own"]))  # type: ignore[arg-type]
    return resolve(str(given.pop("preset", "sample")), **given)


_PATHS = ("raw", "out", "workspace")


def look(context: Context, groups: Sequence[Group]) -> list[Finished] | None:
    """Return the finished units where every step's result is in the store, else None. Computes nothing."""
    units = [unit for group in groups for unit in group.units]
    if not all(group.units for group in groups):
        return None
    try:
        return finished(context, units, {unit.name: finish(context, unit, look=EVERYTHING) for unit in units})
    except Missing:
        return None


def run_plainly(job: Job) -> list[Step]:
    """Run the steps in this process: one kind of step for all groups, then the next."""
    steps: list[Step] = []
    groups: Sequence[Group] = job.plan.groups
    for kind in STEPS:
        ended = [_guarded(kind, job.context, group) for group in groups]
        steps += ended
        groups = [step.group for step in ended if step.group.units]
    return steps


def _guarded(kind: str, context: Context, group: Group) -> Step:
    """Run a step; a MediError of the whole group becomes its result, so that other groups go on."""
    try:
        return run_step(kind, context, group)
    except MediError as error:
        return failed(group, error)


def failed(group: Group, error: MediError) -> Step:
    """Return what a step came to that failed for its whole group: no unit is left."""
    return Step(replace(group, units=()), 0.0, (one_line(group.source, error),))


def publish(job: Job, done: list[Finished], seconds: dict[str, float]) -> BuildResult:
    """Write the release, or leave it untouched where it is what this build would write. Raises MediError: no row."""
    settings = job.context.settings
    refuse_nothing(progress.reporter(), settings, done, seconds)
    run: dict[str, object] = {
        "seconds": {name: round(value, 3) for name, value in sorted(seconds.items())},
        "started": job.started,
        "paths": {"out": str(settings.out), "raw": str(settings.raw or ""), "workspace": str(settings.workspace)},
        "options": options_of(settings),
        "resources": {"workers": settings.workers, "runner": settings.runner, "memory_bytes": settings.memory_bytes},
    }
    contents = replace(contents_of(job.context, job.plan, done, run), measures=lambda: measures(job.context, done))
    if same_release(settings.out, manifest_head(contents)):
        digest = open_release(settings.out).manifest["content_digest"]
    else:
        with replacing_aloud(progress.reporter(), settings.out):
            digest = write_release(settings.out, contents, check=verify)
    return BuildResult(settings.out, digest, tuple(done), seconds)
