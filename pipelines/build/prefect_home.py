"""Where Prefect lives during a build: in the workspace, with time to start, and quiet on the console.

A person's own server is used where PREFECT_API_URL or their Prefect profile names one; what a person has set is never
changed, and nothing is written into the home folder.
"""

import os
import sys
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
    """Set Prefect's variables that are not set yet; it reads them when it is imported, so afterwards this is too late:
    inside a worker's flow, or a program that uses Prefect itself, its settings are left as they are.
    """
    if "prefect" in sys.modules:
        return
    home = workspace / "prefect"
    wanted = _QUIET | {"PREFECT_HOME": str(home), "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true"}
    profiles = Path("~/.prefect/profiles.toml").expanduser()
    if "PREFECT_HOME" not in os.environ:
        home.mkdir(parents=True, exist_ok=True)
        if profiles.is_file():
            # Prefect looks for a person's profiles (`prefect config set`, `prefect cloud login`) in its home.
            wanted["PREFECT_PROFILES_PATH"] = str(profiles)
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


def check_server() -> None:
    """Ask the Prefect server that a person has set, if any, whether it is there.

    Raises:
        UsageError: it does not answer.
    """
    from prefect import get_client
    from prefect.settings import PREFECT_API_URL

    url = PREFECT_API_URL.value()
    if not url:
        return
    with get_client(sync_client=True) as client:
        problem = client.api_healthcheck()
    if problem is not None:
        raise UsageError(
            f"the Prefect server at {url} does not answer ({type(problem).__name__}): start it, or unset "
            "PREFECT_API_URL (`prefect config unset PREFECT_API_URL` where a profile sets it), or use --runner none"
        )


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
