"""The Prefect flow around a training run, `medi train --runner prefect`; importing this file imports Prefect.

The flow shows the run and its losses on the server; it decides neither what is trained nor where a run goes on.
"""

from collections.abc import Mapping
from pathlib import Path

import httpx
from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.exceptions import PrefectException
from prefect.runtime import flow_run
from rich.console import Console

from medi.screen import shown
from medi.train.run import Trained, run
from pipelines.build.prefect_home import NoServer, canceller, ready_server, reason
from pipelines.stopping import ending_at_once, wait_for_nobody
from pipelines.training import Shown, job_of

NAME = "medi-train"


def _run_name() -> str:
    """Return the name of a flow run: the model and the release."""
    options = flow_run.parameters.get("options") or {}
    return f"{Path(str(options.get('model'))).name} on {Path(str(options.get('release'))).name}"


@flow(name=NAME, flow_run_name=_run_name, persist_result=False, validate_parameters=False)
def train_flow(options: Mapping[str, object]) -> dict[str, object]:
    """Train as `medi train` does; return the fields of Trained, the folder as text.

    `options` are those of the command by their names, for example
    `{"release": "data/medi/sample", "model": "gtr-t5-base", "out": "gtr", "max_steps": 1000}`.

    Raises:
        MediError: as `medi train`; what the run has kept stays, and the same options go on from there.
    """
    job = job_of(options)
    with ending_at_once(canceller()), Shown(Console(stderr=True)) as shows:
        trained = run(job, shows)
    create_markdown_artifact(key=NAME, markdown=_report(trained), description=f"The model is {shown(str(trained.out))}")
    told: dict[str, object] = trained._asdict()
    return told | {"out": str(trained.out)}


def _report(trained: Trained) -> str:
    return (
        "| steps | loss of a task's first step | of its last step |\n|---:|---:|---:|\n"
        f"| {trained.steps:,} | {trained.first_loss:.4f} | {trained.last_loss:.4f} |\n"
    )


def train_in_prefect(options: Mapping[str, object], shows: Shown) -> Trained:
    """Train as a flow and return where the model is; where Prefect fails, the run goes on without it.

    Raises:
        MediError: the Prefect server that is set does not answer at the beginning, or as `medi train`.
    """
    try:
        ready_server()
        told = train_flow(options)
        return Trained(Path(str(told["out"])), *(told[name] for name in Trained._fields[1:]))  # type: ignore[arg-type]
    except NoServer as problem:
        shows.say(f"Prefect's temporary server does not start ({problem}); the run goes on without it")
    except (httpx.HTTPError, PrefectException) as problem:
        shows.say(f"Prefect failed ({reason(problem)}); the run goes on without it")
        wait_for_nobody()
    return run(job_of(options), shows)
