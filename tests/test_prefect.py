"""Builds that Prefect orders: where it lives, what it shows of a failed step, equal bytes whoever runs the steps."""

import importlib.util
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.builds import REPO, cut_of_sample, files_of, medi_build
from tests.conftest import Once, build_sample

NOBODY = "http://127.0.0.1:9/api"
TEXT = "task9009_medi_news_summarization"


def settled(home: Path, workspace: Path, **variables: str) -> dict[str, str | None]:
    """Return what Prefect takes for its home and its server in a build, for a person with this home folder."""
    code = (
        "import json, sys; from pathlib import Path; from pipelines.build.prefect_home import settle\n"
        "settle(Path(sys.argv[1]))\n"
        "from prefect.settings import PREFECT_API_URL, PREFECT_HOME\n"
        "print(json.dumps({'home': str(PREFECT_HOME.value()), 'url': PREFECT_API_URL.value()}))"
    )
    mine = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    env = mine | {"HOME": str(home), "PYTHONPATH": str(REPO)} | variables
    call = [sys.executable, "-c", code, str(workspace)]
    return json.loads(subprocess.run(call, capture_output=True, text=True, check=True, env=env, cwd=workspace).stdout)


@pytest.mark.slow
def test_prefect_lives_in_the_workspace_and_asks_the_server_that_a_person_has_set(tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "w"
    home.mkdir()
    workspace.mkdir()
    inside = str(workspace / "prefect")
    assert settled(home, workspace) == {"home": inside, "url": None}
    assert settled(home, workspace, PREFECT_API_URL=NOBODY) == {"home": inside, "url": NOBODY}
    assert settled(home, workspace, PREFECT_HOME=str(tmp_path / "own")) == {"home": str(tmp_path / "own"), "url": None}
    assert list(home.iterdir()) == []
    profiles = home / ".prefect" / "profiles.toml"
    profiles.parent.mkdir()
    profiles.write_text(f'active = "cloud"\n\n[profiles.cloud]\nPREFECT_API_URL = "{NOBODY}"\n')
    assert settled(home, workspace) == {"home": inside, "url": NOBODY}
    assert [path for path in home.rglob("*") if path.is_file()] == [profiles]


@pytest.fixture(scope="session")
def two_sources(once: Once) -> Path:
    """A raw folder with two sources and one Super-NI task."""

    def cut(folder: Path) -> None:
        cut_of_sample(folder)
        for path in [*folder.glob("super_ni/tasks/*"), *folder.glob("embedding_training_data/*"), *folder.glob("*/*")]:
            if path.is_file() and not path.name.startswith(("gooaq", "AllNLI", TEXT)):
                path.unlink()

    return once("two-sources", cut)


@pytest.fixture(scope="session")
def plain(once: Once, two_sources: Path, tiny_encoder: Path) -> Path:
    """The release of the two sources, built without Prefect."""

    def build(folder: Path) -> None:
        done = medi_build(*options(two_sources, folder, tiny_encoder), "--runner", "none")
        assert done.returncode == 0, done.stderr

    return once("plain-two", build) / "out"


def options(raw: Path, workspace: Path, encoder: Path) -> list[str | Path]:
    return ["--raw", raw, "--encoder", encoder, "--workspace", workspace, "--out", workspace / "out", "--workers", "2"]


def asked(workspace: Path, question: str) -> list[tuple[str, ...]]:
    """Return what the temporary server of a build has noted."""
    with sqlite3.connect(workspace / "prefect" / "prefect.db") as database:
        return database.execute(question).fetchall()


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_one_line_and_the_build_goes_on(
    two_sources: Path, plain: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    home = {"HOME": str(tmp_path / "home"), "PREFECT_API_URL": NOBODY}
    done = medi_build(*options(two_sources, tmp_path, tiny_encoder), environment=home)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "Prefect" in line]
    assert line.startswith(f"the Prefect server at {NOBODY}, which PREFECT_API_URL names, does not answer (")
    assert line.endswith("; the build goes on without it") and not (tmp_path / "home").exists()
    assert files_of(tmp_path / "out") == files_of(plain)


@pytest.mark.slow
def test_a_failed_step_is_red_and_what_is_mended_goes_on_to_the_same_bytes(
    two_sources: Path, plain: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    raw, workspace = tmp_path / "raw", tmp_path / "w"
    shutil.copytree(two_sources, raw)
    path = raw / "embedding_training_data" / "gooaq_pairs.jsonl.gz"
    good = path.read_bytes()
    path.write_bytes(b"junk")
    failed = medi_build(*options(raw, workspace, tiny_encoder))
    errors = [line for line in failed.stderr.splitlines() if line.startswith("medi: ")]
    assert failed.returncode == 1 and len(errors) == 1 and path.name in errors[0], failed.stderr
    assert "Traceback" not in failed.stderr and not (workspace / "out").exists()
    states = dict(asked(workspace, "select name, state_type from task_run"))
    others = {
        f"{kind} {group}": "COMPLETED" for kind in ("ingest", "embed", "mine") for group in ("AllNLI", "super_ni-1")
    }
    assert states == {"ingest gooaq_pairs": "FAILED", **others}
    assert asked(workspace, "select state_type from flow_run") == [("FAILED",)]

    path.write_bytes(good)
    ((began,),) = asked(workspace, "select max(updated) from flow_run")
    done = medi_build(*options(raw, workspace, tiny_encoder))
    assert done.returncode == 0, done.stderr
    assert files_of(workspace / "out") == files_of(plain)
    states = dict(asked(workspace, "select name, state_type from task_run order by created"))
    assert set(states.values()) == {"COMPLETED"} and len(states) == 9
    made = asked(workspace, f"select key, type, data from artifact where created > '{began}'")
    shown_percent = {key: float(data) for key, kind, data in made if kind == "progress"}
    assert shown_percent == {f"medi-{stage}": 100.0 for stage in ("ingest", "embed", "mine")}
    ((link,),) = asked(workspace, "select data from artifact where key = 'medi-build-report'")
    assert f"({(workspace / 'out' / 'report.html').as_uri()})" in link
    ((shown,),) = asked(workspace, "select data from artifact where key = 'medi-build'")
    manifest = json.loads((workspace / "out" / "manifest.json").read_bytes())
    assert manifest["content_digest"] in shown
    assert all(
        f"| {s['name']}" in shown and f"| {s['planned']:,} | {s['got']:,} |" in shown for s in manifest["sources"]
    )


@pytest.mark.slow
def test_a_deployed_build_is_the_same_build(two_sources: Path, plain: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    code = (
        "import json, sys; from pathlib import Path; from pipelines.build.flow import build_flow\n"
        "print(json.dumps(build_flow(json.loads(sys.argv[1]))))"
    )
    out, workspace = tmp_path / "out", tmp_path / "w"
    asking = {"raw": two_sources, "encoder": tiny_encoder, "workspace": workspace, "out": out, "runner": "none"}
    call = [sys.executable, "-c", code, json.dumps(asking, default=str)]
    env = os.environ | {"PREFECT_HOME": str(tmp_path / "home"), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    # Its 20 s are not enough on a machine that has other work.
    env |= {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "300"}
    out.mkdir()
    (out / "thesis.tex").write_text("mine")
    refused = subprocess.run(call, capture_output=True, text=True, check=False, env=env, cwd=REPO)
    assert refused.returncode == 1 and f"{out} exists and is not a release of medi" in refused.stderr
    assert not workspace.exists()
    (out / "thesis.tex").unlink()
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=env, cwd=REPO)
    assert done.returncode == 0 and f"no file in {two_sources}, left out: " in done.stderr, done.stderr
    assert files_of(out) == files_of(plain)
    result = json.loads(done.stdout)
    assert result["content_digest"] == json.loads((out / "manifest.json").read_bytes())["content_digest"]
    assert sorted(result["seconds"]) == ["AllNLI", "gooaq_pairs", "super_ni"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reason", "again"),
    [
        ("NotThere('gone')", False),
        ("MediError('line 3 is no JSON')", False),
        ("MediError('no answer (attempt 5 of 5)')", True),
        ("Unreachable('a file', 'no host')", False),
    ],
)
def test_only_a_fetch_that_the_network_failed_is_tried_again(reason: str, again: bool) -> None:
    code = f"""
        from prefect.states import Failed
        from medi.errors import MediError
        from medi.fetch import NotThere, Unreachable
        from pipelines.build.flow import TASKS, StepFailed
        from pipelines.build.run import failed
        from pipelines.build.units import Group

        error = {reason}
        error.__cause__ = ConnectionError("cut") if {again or "Unreachable" in reason} else None
        failure = StepFailed(failed(Group("NQ", "NQ"), error))
        failure.__cause__ = error
        fetch = TASKS["fetch"]
        again = fetch.retry_condition_fn(fetch, None, Failed(data=failure))
        print(fetch.retries, again, failure, TASKS["mine"].retries)
    """
    call = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(call, capture_output=True, text=True, check=True, cwd=REPO)
    assert done.stdout.startswith(f"2 {again} ") and reason.split("'")[1] in done.stdout
    assert done.stdout.endswith(" 0\n")


@pytest.mark.slow
def test_the_whole_sample_is_the_same_in_prefect(sample_release: Path, tmp_path: Path) -> None:
    """As `make sample` builds it."""
    build_sample(tmp_path, "threads")
    assert files_of(tmp_path / "medi" / "sample") == files_of(sample_release)


def _where_installed(runner: str) -> object:
    is_absent = importlib.util.find_spec(f"prefect_{runner}") is None
    return pytest.param(runner, marks=pytest.mark.skipif(is_absent, reason=f"needs pip install '.[{runner}]'"))


@pytest.mark.parametrize("runner", [_where_installed("dask"), _where_installed("ray")])
def test_workers_in_other_processes_give_the_same_bytes(
    two_sources: Path, plain: Path, tiny_encoder: Path, tmp_path: Path, runner: str
) -> None:
    done = medi_build(*options(two_sources, tmp_path, tiny_encoder), "--runner", runner)
    assert done.returncode == 0, done.stderr
    assert files_of(tmp_path / "out") == files_of(plain)


def test_children_do_not_hear_a_terminals_ctrl_c_and_end_with_the_build() -> None:
    child = "import signal, sys, time; print('ready', flush=True); time.sleep(60)"
    code = f"""
        import subprocess, sys, time
        from pipelines.stopping import ending_at_once

        with ending_at_once():
            pass
        with ending_at_once(), ending_at_once():
            subprocess.Popen([sys.executable, "-c", {child!r}])
            time.sleep(60)
    """
    call = [sys.executable, "-c", textwrap.dedent(code)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(call, cwd=REPO, text=True, start_new_session=True, **pipes) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "ready\n"
        os.killpg(parent.pid, signal.SIGINT)
        # The pipe ends when the child has ended too.
        _, errors = parent.communicate(timeout=30)
    assert parent.returncode == 130
    assert errors == "medi: stopped by Ctrl-C; what is finished is kept: run the same command again to go on\n"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_a_build_that_embeds_in_prefect_stops_at_once(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """Prefect waits for its threads, and a thread that embeds is deaf to signals: it took minutes to stop."""
    call = [
        sys.executable,
        "-m",
        "pipelines.build",
        "--sources",
        "ccnews_title_text,npr,xsum",
        "--workspace",
        str(tmp_path),
    ]
    with subprocess.Popen(
        call, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as build:
        until = time.monotonic() + 120
        while not list((tmp_path / "store" / "tokens").glob("*/record.json")) and time.monotonic() < until:
            time.sleep(0.1)
        os.killpg(build.pid, number)
        # What is left to embed takes minutes; who waits for it fails here.
        _, errors = build.communicate(timeout=60)
    assert build.returncode == code
    assert errors.count("what is finished is kept") == 1 and "Traceback" not in errors and "fault of medi" not in errors
    assert not (tmp_path / "medi").exists()
