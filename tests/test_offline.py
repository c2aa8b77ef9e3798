"""Offline means: not one call to the network, also none that fails quietly; and nothing goes to the home folder."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from medi.fetch import (
    SUPER_NI_COMMIT,
    Settings,
    download,
    fetch_encoder,
    fetch_tasks,
    find_encoder,
    prefix,
    remote_files,
)
from medi.source import File, Source, Variant, pair
from tests.hub_server import Hub, Repository, environment, serving

# Runs in a child before anything else: every attempt to reach a network is noted, then refused.
GUARD = """
import os, socket
def refuse(*args, **kwargs):
    with open(os.environ["ATTEMPTS"], "a") as file:
        file.write(repr(args) + "\\n")
    raise OSError("the network is closed in this test")
socket.socket.connect = socket.socket.connect_ex = socket.socket.sendto = refuse
socket.getaddrinfo = socket.gethostbyname = socket.create_connection = refuse
"""
CHILD = """
import json, sys
from pathlib import Path
from medi.errors import MediError
from medi.fetch import *
from tests.test_offline import BIG, PLAIN, TASKS
settings = Settings(Path(sys.argv[1]), offline=sys.argv[2] == "offline", attempts=1)
calls = {
    "big": lambda: prefix(remote_files(BIG, BIG.variants[0], settings)[0], 1, settings).sha256,
    "plain": lambda: download(PLAIN, PLAIN.variants[0], settings).files[0].sha256,
    "chosen": lambda: choose_variant(PLAIN, None, settings)[0].name,
    "sizes": lambda: remote_sizes(PLAIN, PLAIN.variants[0], settings),
    "tasks": lambda: [file.sha256 for file in fetch_tasks(TASKS, settings)],
    "encoder": lambda: fetch_encoder(find_encoder("o/t5", None, settings), settings).name,
}
said = {}
for name, call in calls.items():
    try:
        said[name] = call()
    except MediError as error:
        said[name] = str(error)
print(json.dumps(said))
"""
TASKS = ["task001_a", "task002_b"]


def source(place: str, file: File) -> Source:
    """A source with one variant of one file."""
    return Source("nq", 50000, False, "", "", (Variant("dpr", "pairs", {}, pair, "", place, (file,)),))


BIG = source("hub:o/n", File("o/big.jsonl", "big.jsonl"))
PLAIN = source("https://data.example/dpr", File("dpr_format/nq-train.json", "nq-train.json", 77))


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A Hub that has all that the child asks for."""
    tasks = {f"/allenai/natural-instructions/{SUPER_NI_COMMIT}/tasks/{name}.json": b"{}" for name in TASKS}
    hub = Hub(
        datasets={"o/n": Repository({"big.jsonl": b"x" * (5 << 20)})},
        models={"o/t5": Repository({"config.json": b"{}", "model.safetensors": b"w"})},
        plain=tasks | {"/dpr/nq-train.json": b"[]"},
    )
    with serving(hub), environment(HF_ENDPOINT=hub.address, MEDI_MIRROR=hub.address):
        yield hub


def run_child(tmp_path: Path, mode: str, guarded: bool, **variables: str) -> dict[str, object]:
    """What a child process says of the workspace, with a home of its own and, if guarded, without sockets."""
    (tmp_path / "guard").mkdir(exist_ok=True)
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "guard/sitecustomize.py").write_text(GUARD if guarded else "")
    root = str(Path(__file__).resolve().parent.parent)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HF_HOME", "XDG_"))}
    env |= {"PYTHONPATH": os.pathsep.join([str(tmp_path / "guard"), root]), "HOME": str(tmp_path / "home")}
    env |= {"ATTEMPTS": str(tmp_path / "attempts")} | variables
    command = [sys.executable, "-c", CHILD, str(tmp_path / "ws"), mode]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_offline_gives_what_is_here_without_a_call(hub: Hub, tmp_path: Path) -> None:
    settings = Settings(tmp_path / "ws")
    (big,) = remote_files(BIG, BIG.variants[0], settings)
    expected = {
        "big": prefix(big, 1, settings).sha256,
        "plain": download(PLAIN, PLAIN.variants[0], settings).files[0].sha256,
        "chosen": "dpr",
        "sizes": {"dpr_format/nq-train.json": 2},
        "tasks": [file.sha256 for file in fetch_tasks(TASKS, settings)],
        "encoder": fetch_encoder(find_encoder("o/t5", None, settings), settings).name,
    }
    assert run_child(tmp_path, "offline", guarded=True) == expected
    assert not (tmp_path / "attempts").exists()


def test_offline_names_what_is_missing_and_the_command_without_a_call(hub: Hub, tmp_path: Path) -> None:
    said = run_child(tmp_path, "offline", guarded=True)
    assert not (tmp_path / "attempts").exists()
    once = "run the same command once without --offline"
    assert said["big"] == f"nq: offline, and big.jsonl of hub:o/n is not in {tmp_path / 'ws/hub'}; {once}"
    assert said["plain"] == (
        f"nq: offline, and nq-train.json of https://data.example/dpr is not in {tmp_path / 'ws/hub'}; {once}"
    )
    assert said["sizes"] == {"dpr_format/nq-train.json": 77}
    assert said["tasks"] == (
        f"super_ni: offline, and tasks/task001_a.json, tasks/task002_b.json are not in {tmp_path / 'ws/hub'}; "
        "run the same command once without --offline"
    )
    assert said["encoder"] == f"offline, and model o/t5 is not in {tmp_path / 'ws/hub'}; {once}"


def test_the_guard_sees_calls(hub: Hub, tmp_path: Path) -> None:
    # Without this, the Hub's client asks for something of its own.
    said = run_child(tmp_path, "online", guarded=True, HF_HUB_DISABLE_TELEMETRY="1")
    host = hub.address.removeprefix("http://")
    assert said["plain"] == (
        f"https://data.example/dpr nq-train.json: {host} cannot be reached (the network is closed in this test); "
        "run again with a network"
    )
    # One host is all that is asked for, in three attempts, whatever is to be had from it.
    assert (tmp_path / "attempts").read_text().count("127.0.0.1") == 3


def test_the_hubs_own_offline_switch_is_heard(hub: Hub, tmp_path: Path) -> None:
    said = run_child(tmp_path, "online", guarded=True, HF_HUB_OFFLINE="1")
    assert said["big"] == "hub dataset o/n: HF_HUB_OFFLINE forbids the network; unset it, or use --offline"
    assert not (tmp_path / "attempts").exists()


def test_nothing_goes_to_the_home_folder(hub: Hub, tmp_path: Path) -> None:
    said = run_child(tmp_path, "online", guarded=False)
    assert said["encoder"] == "a" * 40
    assert list((tmp_path / "home").rglob("*")) == []
    assert sorted(path.name for path in (tmp_path / "ws").iterdir() if not path.name.startswith(".")) == [
        "hub", "medi.lock.json",
    ]
