"""prefect.yaml works: a server, a pool, `prefect deploy`, and one run that a worker takes from the pool."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

PREFECT = [sys.executable, "-m", "prefect"]


def prefect(*args: str, env: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        [*PREFECT, "--no-prompt", *args], env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A Prefect server with a home of its own; gives the environment that points at it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = os.environ | {
        "PREFECT_HOME": str(tmp_path / "home"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    call = [*PREFECT, "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen(call, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(f"{env['PREFECT_API_URL']}/health", seconds=180)
        yield env
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def wait_for(url: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            assert time.monotonic() < until, f"{url} does not answer"
            time.sleep(0.3)


@pytest.mark.slow
def test_the_readme_s_deployments_build_a_release_and_train_on_it(
    server: dict[str, str], repo_root: Path, tmp_path: Path, tiny_encoder: Path
) -> None:
    rows = [[f"Title {n} of the day", f"Article {n} about the city and its people."] for n in range(12)]
    raw = tmp_path / "raw" / "embedding_training_data"
    raw.mkdir(parents=True)
    (raw / "agnews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"raw": str(raw.parent), "encoder": str(tiny_encoder), "workspace": str(tmp_path / "workspace")}

    pool, deploy, worker = re.findall(r"^prefect (.*)$", (repo_root / "README.md").read_text(), flags=re.MULTILINE)
    prefect(*pool.split(), env=server, folder=repo_root)
    prefect(*deploy.split(), env=server, folder=repo_root)

    def run(name: str, options: dict[str, object]) -> str:
        """Ask for a run of a deployment, let a worker take it, and return what the worker said."""
        asked = ("--param", f"options={json.dumps(options)}")
        prefect("deployment", "run", name, *asked, env=server, folder=tmp_path)
        return prefect(*worker.split(), "--run-once", env=server, folder=tmp_path)

    told = run("medi-build/build", options)
    written = tmp_path / "workspace" / "medi" / "raw-raw" / "manifest.json"
    assert written.exists(), told
    manifest = json.loads(written.read_text())
    assert [(source["name"], source["got"]) for source in manifest["sources"]] == [("agnews", 12)]

    out = tmp_path / "model"
    told = run(
        "medi-train/train",
        {
            "release": str(written.parent), "model": str(tiny_encoder), "out": str(out), "max_steps": 2,
            "batch_size": 4, "workspace": str(tmp_path / "workspace"), "cpu": True, "trackers": [],
        },
    )  # fmt: skip
    assert (out / "modules.json").exists(), told
    assert len((tmp_path / "model.run" / "steps.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_server_hears_that_a_build_was_stopped(
    server: dict[str, str], repo_root: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """It showed the run as running for good."""
    call = [sys.executable, "-m", "pipelines.build", "--sources", "xsum,npr", "--workspace", str(tmp_path / "w")]
    with subprocess.Popen(call, env=server, cwd=repo_root, stderr=subprocess.PIPE, start_new_session=True) as build:
        until = time.monotonic() + 300
        # From here on the flow runs, and its tasks take minutes.
        while not list((tmp_path / "w" / "store").glob("tokens/*/record.json")):
            assert build.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        os.killpg(build.pid, number)
        build.communicate(timeout=60)
    assert build.returncode == 128 + number
    asked = urllib.request.Request(
        f"{server['PREFECT_API_URL']}/flow_runs/filter", b"{}", {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        (run,) = json.load(answer)
    assert (run["state_type"], run["name"]) == ("CANCELLED", "medi sample, seed 0")
    assert "the same command again to go on" in run["state"]["message"]
