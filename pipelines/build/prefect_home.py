"""Where Prefect lives during a build: in the workspace, with time to start, and quiet on the console.

A person's own server is used where PREFECT_API_URL names one; what a person has set is never changed.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from medi.errors import UsageError

if TYPE_CHECKING:
    from prefect.futures import PrefectFuture
    from prefect.task_runners import TaskRunner

    from pipelines.build.run import Step

_QUIET = {
    # Start-up took 19 to 22 s on a fresh home; the default limit is 20 s.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    # "database is locked" is harmless noise of the temporary server; its work is retried.
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
}


def settle(workspace: Path) -> None:
    """Set Prefect's variables that are not set yet; it reads them when it is imported, so call this before."""
    wanted = dict(_QUIET)
    if "PREFECT_API_URL" not in os.environ:
        home = workspace / "prefect"
        home.mkdir(parents=True, exist_ok=True)
        wanted["PREFECT_HOME"] = str(home)
        wanted["PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"] = "true"
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


def task_runner(name: str, workers: int) -> "TaskRunner[PrefectFuture[Step]]":
    """Return the task runner of that name (`threads`, `dask`, `ray`) with at most `workers` tasks at once.

    Raises:
        UsageError: its package is not installed.
    """
    if name == "threads":
        from prefect.task_runners import ThreadPoolTaskRunner

        return ThreadPoolTaskRunner(max_workers=workers)  # pyright: ignore[reportReturnType]
    try:
        if name == "dask":
            from prefect_dask.task_runners import DaskTaskRunner

            cluster = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
            return DaskTaskRunner(cluster_kwargs=cluster)  # pyright: ignore[reportReturnType]
        from prefect_ray.task_runners import RayTaskRunner

        init = {"num_cpus": workers, "include_dashboard": False}
        return RayTaskRunner(init_kwargs=init)  # pyright: ignore[reportReturnType]
    except ImportError:
        raise UsageError(f"--runner {name}: not installed; pip install 'medi[{name}]', or use threads") from None
