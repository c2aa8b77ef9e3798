"""The Prefect flow of a build; importing this file imports Prefect.

Tasks are NO_CACHE (the store knows what is done), work on a group of units each, and hand on small records, never
tables. `medi build`, `python -m pipelines.build` and a deployment run this one flow.
"""

from collections.abc import Mapping
from pathlib import Path

from prefect import Task, flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run

from pipelines.build.context import Context, prepare
from pipelines.build.run import STEPS, Json, Step, conclude, expect, guarded, run_step, settings_from
from pipelines.build.summary import result_markdown
from pipelines.build.units import plan_groups


def _task(kind: str) -> "Task[[str, Context, Step], Step]":
    """Return the Prefect task of one kind of step; its runs are named after their group."""

    @task(name=kind, task_run_name=f"{kind} {{name}}", cache_policy=NO_CACHE, persist_result=False)
    def step(name: str, context: Context, before: Step) -> Step:
        return guarded(lambda k, g: run_step(k, context, g), kind, before.group)

    return step


TASKS = {kind: _task(kind) for kind in STEPS}


def _run_name() -> str:
    """Return the name of a flow run: the preset or the raw folder, and the seed."""
    options = flow_run.parameters.get("options") or {}
    what = Path(str(options["raw"])).name if options.get("raw") else options.get("preset", "sample")
    return f"medi {what}, seed {options.get('seed', 0)}"


@flow(name="medi-build", flow_run_name=_run_name, persist_result=False, validate_parameters=False)
def build_flow(options: Mapping[str, Json]) -> dict[str, float]:
    """Build a release; return the seconds that each source took.

    `options` are those of `medi build` by the names of `Settings`, for example `{"preset": "lite", "seed": 1}`. Groups
    run beside each other, the steps of one (fetch, ingest, embed, mine) in their order.

    Raises:
        MediError: a source failed; what others made is kept, nothing is published.
    """
    context = prepare(settings_from(options))
    plan = plan_groups(context)
    expect(plan)
    ended: list[PrefectFuture[Step]] = []
    latest: dict[str, Step | PrefectFuture[Step]] = {group.name: Step(group, 0.0) for group in plan.groups}
    for kind in STEPS:
        # One kind of step for all groups, then the next: how much there is to embed is known before it begins.
        for group in plan.groups:
            if kind != "fetch" or not group.units:
                future = TASKS[kind].submit(group.name, context, latest[group.name])  # type: ignore[arg-type]
                latest[group.name] = future
                ended.append(future)
    result = conclude(context, plan, [future.result() for future in ended])
    create_markdown_artifact(
        key="medi-build",
        markdown=f"{result_markdown(result.units, result.seconds)}\n\ncontent digest `{result.content_digest}`\n",
        description=f"Planned and got rows by source; the release is {result.out}",
    )
    return result.seconds
