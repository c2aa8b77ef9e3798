"""The Prefect flows of a build; importing this file imports Prefect.

`medi build` and `python -m pipelines.build` run the steps that are missing as a flow; a deployment is the whole build
as a flow, with the former inside. Tasks are NO_CACHE (the store knows what is done), work on a group of units each,
and hand on small records, never tables.
"""

from collections.abc import Mapping
from pathlib import Path

import httpx
from prefect import Task, flow, task
from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.exceptions import PrefectException
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from rich.console import Console

from medi.errors import MediError
from medi.fetch import Unreachable
from medi.release.manifest import REPORT
from pipelines.build.context import Context
from pipelines.build.prefect_home import NoServer, canceller, ready_server, reason, task_runner
from pipelines.build.prefect_progress import progress_shown
from pipelines.build.progress import reporter
from pipelines.build.run import (
    STEPS,
    BuildResult,
    Job,
    Json,
    Step,
    build,
    conclude,
    failed,
    options_of,
    run_plainly,
    run_step,
    settings_from,
)
from pipelines.build.summary import result_markdown
from pipelines.stopping import ending_at_once, wait_for_nobody

NAME = "medi-build"


class StepFailed(MediError):
    """A step failed, wholly or in some units: its task is red in Prefect. `step` is what it came to all the same."""

    def __init__(self, step: Step) -> None:
        """Take the step as the only argument, so that the error can travel between processes."""
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        """Return the errors, a line each."""
        return "\n".join(self.step.errors)


def _may_pass(tried: object, run: TaskRun, state: "State[object]") -> bool:
    """Return whether a failed fetch is worth another try: below medi's own error lies one of the network or the disk.

    What is wrong with the data or the call, or is not there, has no such cause; a host that is dead was tried enough.
    """
    error = getattr(state.data, "__cause__", None)
    return error is not None and error.__cause__ is not None and not isinstance(error, Unreachable)


def _task(kind: str) -> "Task[[str, Context, Step], Step]":
    """Return the Prefect task of one kind of step; its runs are named after their group."""
    retries = {"retries": 2, "retry_delay_seconds": [5, 30], "retry_condition_fn": _may_pass} if kind == "fetch" else {}

    @task(name=kind, task_run_name=f"{kind} {{name}}", cache_policy=NO_CACHE, persist_result=False, **retries)
    def step(name: str, context: Context, before: Step) -> Step:
        """Run one kind of step for one group, as a task of Prefect."""
        try:
            ended = run_step(kind, context, before.group)
        except MediError as error:
            raise StepFailed(failed(before.group, error)) from error
        if ended.errors:
            raise StepFailed(ended)
        return ended

    return step


TASKS = {kind: _task(kind) for kind in STEPS}


def _run_name() -> str:
    """Return the name of a flow run: the preset or the raw folder, and the seed."""
    options = flow_run.parameters.get("options") or {}
    what = Path(str(options["raw"])).name if options.get("raw") else options.get("preset", "sample")
    return f"medi {what}, seed {options.get('seed', 0)}"


@flow(name=NAME, flow_run_name=_run_name, persist_result=False, validate_parameters=False)
def build_flow(options: Mapping[str, Json]) -> dict[str, object]:
    """Build a release as `medi build` does; return its content digest, and the seconds that each source took.

    `options` are those of `medi build` by the names of `Settings`, for example `{"preset": "lite", "seed": 1}`. What is
    missing runs as a flow inside this one, with the runner and the workers of the options.

    Raises:
        MediError: a source failed; what others made is kept, nothing is published.
    """
    result = build(settings_from(options), Console(stderr=True))
    return {"content_digest": result.content_digest, "seconds": result.seconds}


def run_in_prefect(job: Job) -> BuildResult:
    """Run the steps of a build as a flow, publish, and show the final table as the flow's artifact.

    Where Prefect fails (a server does not answer, or dies), the build says so and goes on without it to the same bytes.

    Raises:
        UsageError: the runner is not installed.
        MediError: a source failed; what others made is kept, nothing is published.
    """
    settings = job.context.settings
    runner = task_runner(settings.runner, settings.workers)
    ended: list[Step] = []

    @flow(name=NAME, flow_run_name=_run_name, task_runner=runner, persist_result=False, validate_parameters=False)
    def steps(options: Mapping[str, Json]) -> BuildResult:
        """Run what is missing, and publish."""
        # Inside the flow, because Prefect sets a handler of its own for SIGTERM when the flow begins.
        with ending_at_once(canceller()):
            with progress_shown():
                ended.extend(_ordered(job))
            result = conclude(job, ended)
        create_markdown_artifact(
            key=NAME,
            markdown=f"{result_markdown(result.units, result.seconds)}\n\ncontent digest `{result.content_digest}`\n",
            description=f"Planned and got rows by source; the release is {result.out}",
        )
        create_link_artifact(
            link=(result.out / REPORT).absolute().as_uri(), link_text=REPORT, key=f"{NAME}-report",
            description="What was built, row by row; open it on the machine that built it",
        )  # fmt: skip
        return result

    with ending_at_once(canceller()):
        try:
            ready_server()
            return steps(options_of(settings))
        except NoServer as problem:
            reporter().say(f"{problem}; the build goes on without it")
        except (httpx.HTTPError, PrefectException) as problem:
            reporter().say(f"Prefect failed ({reason(problem)}); the build goes on without it")
            wait_for_nobody()
        return conclude(job, ended or run_plainly(job))


def _ordered(job: Job) -> list[Step]:
    """Return what the steps came to. Groups run beside each other, the steps of one in their order.

    A group goes on without its units that failed; one kind of step is begun for all groups, then the next, so that how
    much there is to embed is known before it begins.
    """
    ended: list[Step] = []
    latest = {group.name: Step(group, 0.0) for group in job.plan.groups}
    running: dict[str, PrefectFuture[Step]] = {}
    for kind in STEPS:
        for name in latest:
            if name in running:
                latest[name] = _outcome(running.pop(name))
                ended.append(latest[name])
            if bool(latest[name].group.units) != (kind == "fetch"):
                running[name] = TASKS[kind].submit(name, job.context, latest[name])
    return ended + [_outcome(future) for future in running.values()]


def _outcome(future: PrefectFuture[Step]) -> Step:
    """Wait for a task; return what its step came to, whether it failed or not. Raises what nobody foresaw."""
    outcome: Step | BaseException = future.result(raise_on_failure=False)
    if isinstance(outcome, StepFailed):
        return outcome.step
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
