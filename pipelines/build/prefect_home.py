"""Where Prefect lives during a build: in the workspace, with time to start, and quiet on the console.

A person's own server is used where PREFECT_API_URL or their Prefect profile names one; what a person has set is never
changed, and nothing is written into the home folder. No result depends on a server: one that fails is done without.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from medi.errors import MediError, UsageError
from pipelines.build.failures import check_writable

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
    "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
}
# A temporary server that has gone does not come back: asking it again for more than a minute helps nobody.
_IMPATIENT = {"PREFECT_CLIENT_MAX_RETRIES": "3", "PREFECT_API_REQUEST_TIMEOUT": "15"}
# A new server's database takes 12 MB, and where it finds no room it is waited for until the start-up limit.
_ROOM_BYTES = 32 << 20
# A server that has just started, on a machine that is busy, takes its time to answer.
_PATIENCE_SECONDS = 30.0
# Who stops a run waits so long for a server to hear of it.
_FAREWELL_SECONDS = 2.0


# Waits for the end of the process that holds the other end of its input, and ends the server that would stay behind.
_MOURNER = """
import os, signal, sys
sys.stdin.read()
try:
    with open(f"/proc/{sys.argv[1]}/cmdline", "rb") as file:
        if b"prefect" in file.read():
            os.kill(int(sys.argv[1]), signal.SIGKILL)
except OSError:
    pass
"""


class NoServer(Exception):
    """No server can be used: the message says which and why. A build can do without it."""


def settle(workspace: Path) -> None:
    """Set Prefect's variables that are not set yet; it reads them when it is imported, so afterwards this is too late:
    inside a worker's flow, or a program that uses Prefect itself, its settings are left as they are.

    Raises:
        MediError: a person's Prefect profiles are no TOML.
    """
    if "prefect" in sys.modules:
        return
    home = workspace / "prefect"
    wanted = _QUIET | {"PREFECT_HOME": str(home), "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true"}
    if os.path.expanduser("~") == "~":
        # A person without a home (a container under some number): Prefect looks for one, whatever it is told.
        wanted["HOME"] = str(home)
    profiles = Path(os.environ.get("PREFECT_HOME") or os.path.expanduser("~/.prefect")) / "profiles.toml"
    if "PREFECT_HOME" not in os.environ:
        home.mkdir(parents=True, exist_ok=True)
    if os.access(profiles, os.R_OK):
        # Prefect looks for a person's profiles (`prefect config set`, `prefect cloud login`) in its home.
        wanted["PREFECT_PROFILES_PATH"] = str(profiles)
        _check_profiles(profiles)
    elif "PREFECT_API_URL" not in os.environ:
        wanted |= _IMPATIENT
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


def _check_profiles(profiles: Path) -> None:
    """Raise MediError where Prefect could not read a person's profiles."""
    try:
        tomllib.loads(profiles.read_text())
    except ValueError as error:
        raise MediError(f"{profiles}: no profiles of Prefect ({error}); mend the file, or use --runner none") from None


def ready_server() -> None:
    """Ask the Prefect server that a person has set whether it is there; where none is set, start the temporary one,
    which ends with this process, however that ends.

    Raises:
        MediError: the temporary one finds no room to write.
        NoServer: a person's server does not answer as one, or the temporary one does not start.
    """
    import httpx
    from prefect import get_client
    from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, PREFECT_HOME, temporary_settings

    url = PREFECT_API_URL.value()
    if not url:
        _check_room(PREFECT_HOME.value())
    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0} if url else {}):
            with get_client(httpx_settings={"timeout": _PATIENCE_SECONDS}, sync_client=True) as client:
                problem = client.api_healthcheck()
                if problem is None:
                    # Any web server may answer; only one of Prefect's tells its version.
                    client.raise_for_api_version_mismatch_once()
    except (httpx.HTTPError, httpx.InvalidURL, RuntimeError, ValueError) as raised:
        problem = raised
    if problem is None:
        return None if url else _mourn()
    if not url:
        raise NoServer(f"Prefect's temporary server does not start ({reason(problem)})")
    # An address may carry a password.
    place = re.sub(r"//[^/@]*@", "//", url)
    raise NoServer(f"the Prefect server at {place}, which PREFECT_API_URL names, does not answer ({reason(problem)})")


def canceller() -> Callable[[str], None]:
    """Return what tells a person's server that the flow run of this moment was stopped, and why: it would be shown as
    running for good. The temporary server ends with the process, and is not told.
    """
    from prefect.runtime import flow_run
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_KEY, PREFECT_API_URL

    url, key, user = (setting.value() for setting in (PREFECT_API_URL, PREFECT_API_KEY, PREFECT_API_AUTH_STRING))
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key.get_secret_value()}"
    elif user:
        headers["Authorization"] = f"Basic {b64encode(user.get_secret_value().encode()).decode()}"
    place = f"{url}/flow_runs/{flow_run.id}/set_state"

    def tell(message: str) -> None:
        """Set the run's state; a server that does not take it does not hold up the end."""
        state = {"type": "CANCELLED", "name": "Cancelled", "message": message}
        body = json.dumps({"state": state, "force": True}).encode()
        with suppress(OSError, ValueError):
            request = urllib.request.Request(place, body, headers)
            urllib.request.urlopen(request, timeout=_FAREWELL_SECONDS).close()

    return tell if url and flow_run.id else lambda message: None


def _mourn() -> None:
    """Have a process of its own end the temporary server when this one is gone: killed, it could not do so itself."""
    from prefect.server.api.server import SubprocessASGIServer

    if server := SubprocessASGIServer().server_process:
        call = [sys.executable, "-I", "-S", "-c", _MOURNER, str(server.pid)]
        _mourners.append(subprocess.Popen(call, stdin=subprocess.PIPE, start_new_session=True))


# They are held, as their inputs would end with them.
_mourners: list["subprocess.Popen[bytes]"] = []


def reason(problem: BaseException) -> str:
    """Return in a few words what lies at the bottom of one of Prefect's errors."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    words = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {words[:200]}" if words else type(problem).__name__


def _check_room(home: Path) -> None:
    """Raise MediError where the temporary server's home cannot be written, or has no room for its database."""
    check_writable(home, "PREFECT_HOME")
    home.mkdir(parents=True, exist_ok=True)
    free_bytes = shutil.disk_usage(home).free
    if free_bytes < _ROOM_BYTES:
        raise MediError(
            f"{home}: {free_bytes / 1e6:.1f} MB are free, and Prefect's own server needs {_ROOM_BYTES / 1e6:.0f}; make "
            "room there, or use --runner none"
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
        raise UsageError(f"--runner {name}: not installed; pip install '.[{name}]', or use threads") from None
