"""Prefect at its worst: no home, a server that dies, hangs, does not start or is none: the same bytes, or one line."""

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.builds import REPO, files_of, medi_build, options, undone
from tests.disks import SOMEBODY, small_disk

# What of Prefect a person must not see.
NOISE = re.compile(r"traceback|is locked|error +\||warning|exception|prefect\.|[╭│╰]|aborted", re.IGNORECASE)
ON = "; the build goes on without it"


def call_of(raw: Path, workspace: Path, encoder: Path) -> list[str]:
    """Return a build in Prefect."""
    threads = ["--runner", "threads", "--workers", "2"]
    return [sys.executable, "-m", "pipelines.build", *map(str, options(raw, workspace, encoder)), *threads]


def of_prefect(errors: str) -> list[str]:
    """Return the lines that name Prefect; nothing else of it may be there."""
    lines = errors.splitlines()
    assert not [line for line in lines if NOISE.search(line)], errors
    return [line for line in lines if "Prefect" in line]


@pytest.mark.slow
def test_two_builds_at_once_without_a_home_and_with_one_that_is_closed(
    built: Path, cut: Path, tiny_encoder: Path
) -> None:
    # Below /tmp itself, because nobody else may look into pytest's folders.
    with TemporaryDirectory() as name, small_disk(Path(name) / "home") as disk:
        folder = Path(name)
        folder.chmod(0o755)
        if disk.run("true", before=tuple(SOMEBODY)).returncode:
            pytest.skip("nobody may become another user here: there is no setpriv, or this is not root")
        disk.remount("ro")
        for given in (cut, tiny_encoder):
            shutil.copytree(given, folder / given.name)
        undone(built, folder / "w", "instruct")
        for path in [folder / "w", *(folder / "w").rglob("*")]:
            os.chown(path, 12345, 12345)
        call = call_of(folder / cut.name, folder / "w", folder / tiny_encoder.name)
        running = []
        for number, home in enumerate((["-u", "HOME"], [f"HOME={disk.folder}"])):
            # Another id: whose home nobody knows, and for whom a closed folder is closed.
            as_somebody = [*disk.inside, *SOMEBODY, "env", *home, *call, "--out", str(folder / "w" / f"out{number}")]
            running.append(subprocess.Popen(as_somebody, cwd=REPO, stderr=subprocess.PIPE, text=True))
        ended = [(build.communicate(timeout=300)[1], build.returncode) for build in running]
        for number, (errors, code) in enumerate(ended):
            assert (code, of_prefect(errors)) == (0, []), errors
            assert files_of(folder / "w" / f"out{number}") == files_of(built / "out")
        assert list(disk.seen.iterdir()) == []


@contextmanager
def building(call: list[str], workspace: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a build that waits for its encoder's device, which it gets when the block ends."""
    env = os.environ | variables
    with (workspace / "encoder.lock").open("w") as device:
        fcntl.flock(device, fcntl.LOCK_EX)
        build = subprocess.Popen(call, cwd=REPO, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        until = time.monotonic() + 200
        while not waits(build.pid) and build.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        yield build


def waits(process: int) -> bool:
    """Return whether a process waits for a file's lock."""
    lines = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and f" {process} " in line for line in lines)


def servers_of(process: int) -> list[int]:
    """Return the process ids of the Prefect servers that a process has started."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    found = [int(child) for listed in children for child in listed.read_text().split()]
    return [child for child in found if b"uvicorn" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="there is no /proc to find the server in")
@pytest.mark.parametrize("raw_is_whole", [True, False])
def test_a_server_that_dies_changes_nothing(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path, raw_is_whole: bool
) -> None:
    workspace, raw = tmp_path / "w", tmp_path / "raw"
    undone(built, workspace, "instruct")
    shutil.copytree(cut, raw)
    if not raw_is_whole:
        (raw / "embedding_training_data" / "gooaq_pairs.jsonl.gz").write_bytes(b"junk")
    call = call_of(raw, workspace, tiny_encoder)
    with building(call, workspace, PREFECT_CLIENT_MAX_RETRIES="1") as build:
        (server,) = servers_of(build.pid)
        os.kill(server, signal.SIGKILL)
    _, errors = build.communicate(timeout=120)
    assert of_prefect(errors) == [f"Prefect failed (ConnectError: [Errno 111] Connection refused){ON}"]
    failed = [line for line in errors.splitlines() if line.startswith("medi: ")]
    if raw_is_whole:
        assert (build.returncode, failed) == (0, []), errors
        assert files_of(workspace / "out") == files_of(built / "out")
    else:
        assert build.returncode == 1 and len(failed) == 1 and "gooaq_pairs.jsonl.gz" in failed[0], errors
        assert not (workspace / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="there is no /proc to find the server in")
def test_a_build_that_is_killed_leaves_no_server(built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    """It cannot end its server itself, and where the process alone is killed (memory ran out), nobody else did."""
    undone(built, tmp_path, "instruct")
    with building(call_of(cut, tmp_path, tiny_encoder), tmp_path) as build:
        (server,) = servers_of(build.pid)
        build.kill()
        build.communicate(timeout=60)
        until = time.monotonic() + 20
        while is_alive(server) and time.monotonic() < until:
            time.sleep(0.05)
        assert not is_alive(server)


def is_alive(process: int) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="there is no /proc to find the server in")
def test_a_server_that_hangs_changes_nothing(built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    undone(built, tmp_path, "instruct")
    hasty = {"PREFECT_CLIENT_MAX_RETRIES": "0", "PREFECT_API_REQUEST_TIMEOUT": "5"}
    with building(call_of(cut, tmp_path, tiny_encoder), tmp_path, **hasty) as build:
        (server,) = servers_of(build.pid)
        os.kill(server, signal.SIGSTOP)
    _, errors = build.communicate(timeout=120)
    assert of_prefect(errors) == [f"Prefect failed (ReadTimeout: timed out){ON}"]
    assert build.returncode == 0 and files_of(tmp_path / "out") == files_of(built / "out")
    # Nobody else would ever end it.
    assert not is_alive(server)


@pytest.mark.slow
def test_a_server_that_does_not_start_changes_nothing(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    undone(built, tmp_path, "instruct")
    prefect = ["--runner", "threads"]
    hasty = {"PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "1"}
    done = medi_build(*options(cut, tmp_path, tiny_encoder), *prefect, environment=hasty)
    (line,) = of_prefect(done.stderr)
    assert line.startswith("Prefect's temporary server does not start (RuntimeError: Timed out") and line.endswith(ON)
    assert done.returncode == 0 and files_of(tmp_path / "out") == files_of(built / "out")


class Stranger(BaseHTTPRequestHandler):
    """A web server that is none of Prefect's: it has a page for everything."""

    def do_GET(self) -> None:
        """Answer with a page."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>welcome</html>")

    def log_message(self, format: str, *args: object) -> None:
        """Keep the console of the tests quiet."""


@contextmanager
def listening(kind: str) -> Iterator[int]:
    """Yield the port of a server that takes connections and never answers, or is a stranger."""
    if kind == "silent":
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server.getsockname()[1]
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "why"), [("silent", "ReadTimeout: timed out"), ("stranger", "JSONDecodeError: ")])
def test_a_server_that_is_none_is_one_line_soon(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path, kind: str, why: str
) -> None:
    undone(built, tmp_path / "w", "instruct")
    home = tmp_path / "home" / ".prefect"
    home.mkdir(parents=True)
    with listening(kind) as port:
        url = f"http://127.0.0.1:{port}/api"
        # A person's profile names it, as `prefect config set` has written it.
        (home / "profiles.toml").write_text(f'active = "x"\n\n[profiles.x]\nPREFECT_API_URL = "{url}"\n')
        call = [*options(cut, tmp_path / "w", tiny_encoder), "--runner", "threads"]
        done = medi_build(*call, environment={"HOME": str(home.parent)})
    (line,) = of_prefect(done.stderr)
    assert line.startswith(f"the Prefect server at {url}, which PREFECT_API_URL names, does not answer ({why}")
    assert line.endswith("; the build goes on without it")
    assert done.returncode == 0 and files_of(tmp_path / "w" / "out") == files_of(built / "out")


def test_profiles_that_prefect_cannot_read_are_one_line(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    undone(built, tmp_path / "w", "instruct")
    profiles = tmp_path / "home" / "profiles.toml"
    profiles.parent.mkdir()
    profiles.write_text('active = "x')
    call = [*options(cut, tmp_path / "w", tiny_encoder), "--runner", "threads"]
    done = medi_build(*call, environment={"PREFECT_HOME": str(tmp_path / "home")})
    (line,) = of_prefect(done.stderr)
    assert done.returncode == 1 and line.startswith(f"medi: {profiles}: no profiles of Prefect (")
    assert line.endswith("; mend the file, or use --runner none")
