"""A build from settings to release: look what is missing, run its steps (in Prefect or plainly), publish.

Prefect orders, retries downloads and shows the run; it decides nothing about what is built. What is missing is known
before it starts: a build that finds all in place starts neither Prefect nor torch.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from rich.console import Console

from medi.errors import MediError
from medi.release import open_release
from medi.release.swap import finish_swap, refuse_strangers
from medi.shards import manifest_head, same_release, write_release
from medi.store import remove_orphans
from pipelines.build import progress
from pipelines.build.contents import Finished, contents_of, finished
from pipelines.build.context import Context, prepare
from pipelines.build.fetching import located, obtain, show_plan
from pipelines.build.prefect_home import settle, task_runner
from pipelines.build.steps import Missing, encode_texts, finish, ingest_step, lengths_to_encode, missing_texts
from pipelines.build.summary import show_result
from pipelines.build.units import Group, Plan, plan_groups
from pipelines.presets import Settings, resolve

Json = None | bool | int | float | str | list[str] | dict[str, str]


@dataclass(frozen=True)
class BuildResult:
    """Where the release is, its content digest, and the seconds each source took in this run."""

    out: Path
    content_digest: str
    units: tuple[Finished, ...]
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """What one step of a group came to: the group with its files, the seconds, and the error that ended it."""

    group: Group
    seconds: float
    error: str = ""


# What each kind of step does with a group; every one finds finished artifacts in the store and goes on from there.
STEPS = ("fetch", "ingest", "embed", "mine")


def run_step(kind: str, context: Context, group: Group) -> Step:
    """Run one step of a group. A unit that fails is named in the result and left out of the group; the others go on."""
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
                lengths |= lengths_to_encode(context, unit)
            if kind != "embed":
                progress.reporter().advance(kind, rows=rows.rows)
        except MediError as error:
            errors.append(str(error) if unit.name in str(error) else f"{unit.name}: {error}")
            failed.add(unit.name)
    if kind == "ingest":
        progress.reporter().expect("embed", len(missing_texts(context, lengths)))
    if kind == "embed":
        encode_texts(context, lengths)
    group = replace(group, units=tuple(unit for unit in group.units if unit.name not in failed))
    return Step(group, time.monotonic() - began, "\n".join(errors))


def build(settings: Settings, console: Console | None = None) -> BuildResult:
    """Build a release and return where it is. A build that finds all in place starts neither Prefect nor torch.

    Raises:
        UsageError: the call is wrong, for example a named source has no file.
        MediError: a source failed; what others made is kept, nothing is published.
    """
    context = prepare(settings)
    finish_swap(settings.out)
    refuse_strangers(settings.out)
    remove_orphans(context.workspace / "store")
    reporter = progress.Reporter(console or Console(stderr=True), quiet=console is None)
    before = progress.use(reporter)
    try:
        with reporter:
            plan = plan_groups(context)
            plan = replace(plan, groups=tuple(located(context, group) for group in plan.groups))
            for name in plan.absent:
                reporter.say(f"{name}: no file in {settings.raw}, left out")
            done = look(context, plan.groups)
            if done is None:
                show_plan(context, plan.groups, reporter)
            result = publish(context, done, {}) if done else _run(context, plan)
        show_result(reporter, result.out, result.content_digest, result.units, result.seconds)
        return result
    finally:
        progress.use(before)


def _run(context: Context, plan: Plan) -> BuildResult:
    """Run what is missing with the chosen runner, and publish."""
    settings = context.settings
    if settings.runner == "none":
        expect(plan)
        return conclude(context, plan, run_plainly(context, plan.groups))
    settle(settings.workspace)
    runner = task_runner(settings.runner, settings.workers)
    from pipelines.build.flow import build_flow

    seconds = build_flow.with_options(task_runner=runner)(options_of(settings))
    groups = [obtain(context, group) for group in plan.groups]
    return conclude(context, replace(plan, groups=tuple(groups)), [], seconds)


def expect(plan: Plan) -> None:
    """Tell the reporter what is to do; how much there is to embed is known later."""
    units = sum(max(1, len(group.units or group.task_names)) for group in plan.groups)
    for kind, steps in (("ingest", units), ("embed", 0), ("mine", units)):
        progress.reporter().expect(kind, steps)


def conclude(
    context: Context, plan: Plan, steps: Sequence[Step], seconds: Mapping[str, float] | None = None
) -> BuildResult:
    """Publish what the steps made.

    Raises:
        MediError: steps failed; the message has one line for each unit.
    """
    errors = [line for step in steps for line in step.error.splitlines()]
    if errors:
        raise MediError("\n".join(dict.fromkeys(errors)))
    took = dict(seconds or {})
    for step in steps:
        took[step.group.source] = took.get(step.group.source, 0.0) + step.seconds
    latest = {step.group.name: step.group for step in steps}
    done = look(context, [latest.get(group.name, group) for group in plan.groups])
    if done is None:
        raise MediError("the build ended with a step undone; run the same command again")
    return publish(context, done, took)


def options_of(settings: Settings) -> dict[str, Json]:
    """Return the settings as the flow's parameters, with a JSON form."""
    plain = {f.name: getattr(settings, f.name) for f in fields(settings)}
    texts = {name: str(plain[name]) for name in _PATHS if plain[name] is not None}
    return plain | texts | {"sources": list(settings.sources), "variants": dict(settings.variants)}


def settings_from(options: Mapping[str, Json]) -> Settings:
    """Return the settings of a flow's parameters. Raises UsageError as `presets.resolve` does."""
    given: dict[str, object] = dict(options)
    given |= {name: Path(str(given[name])) for name in _PATHS if given.get(name) is not None}
    if given.get("sources") is not None:
        given["sources"] = tuple(given["sources"])  # type: ignore[arg-type]
    return resolve(str(given.pop("preset", "sample")), **given)


_PATHS = ("raw", "out", "workspace")


def look(context: Context, groups: Sequence[Group]) -> list[Finished] | None:
    """Return the finished units where every step's result is in the store, else None. Computes nothing."""
    units = [unit for group in groups for unit in group.units]
    if not all(group.units for group in groups):
        return None
    try:
        return finished(context, units, {unit.name: finish(context, unit, look=True) for unit in units})
    except Missing:
        return None


def run_plainly(context: Context, groups: Sequence[Group]) -> list[Step]:
    """Run the steps in this process: one kind of step for all groups, then the next."""
    steps: list[Step] = []
    for kind in STEPS:
        steps += [guarded(lambda k, g: run_step(k, context, g), kind, group) for group in groups]
        groups = [step.group for step in steps[-len(groups) :]]
    return steps


def guarded(run: Callable[[str, Group], Step], kind: str, group: Group) -> Step:
    """Run a step; a MediError of the whole group becomes its result, with no unit left, so that other groups go on."""
    try:
        return run(kind, group)
    except MediError as error:
        return Step(replace(group, units=()), 0.0, f"{group.name}: {error}")


def publish(context: Context, done: list[Finished], seconds: dict[str, float]) -> BuildResult:
    """Write the release, or leave it untouched where it is what this build would write."""
    settings = context.settings
    run: dict[str, object] = {
        "seconds": {name: round(value, 3) for name, value in sorted(seconds.items())},
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "paths": {"out": str(settings.out), "raw": str(settings.raw or ""), "workspace": str(settings.workspace)},
        "resources": {"workers": settings.workers, "runner": settings.runner, "memory_bytes": settings.memory_bytes},
    }
    contents = contents_of(context, done, run)
    if same_release(settings.out, manifest_head(contents)):
        digest = open_release(settings.out).manifest["content_digest"]
    else:
        digest = write_release(settings.out, contents)
    return BuildResult(settings.out, digest, tuple(done), seconds)
