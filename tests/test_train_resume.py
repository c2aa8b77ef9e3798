"""A run that is killed goes on where it was: the same command gives the weights of a run that nobody touched."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Once
from tests.training import write_release

REPO = Path(__file__).resolve().parent.parent
OPTIONS = "--max-steps 30 --batch-size 7 --learning-rate 1e-3 --save-every 6 --keep 1 --cpu --offline".split()


@pytest.fixture(scope="session")
def release(once: Once) -> Path:
    return once("train-release", write_release)


def start(release: Path, model: Path, folder: Path, name: str, launcher: list[str]) -> subprocess.Popen[str]:
    places = ["--model", model, "--out", folder / name, "--workspace", folder]
    command = ["pipelines.cli.app", "train", release, *places, *OPTIONS, "--trackers", "none"]
    call = [sys.executable, "-m", *launcher, *command]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(call, cwd=REPO, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "end"),
    # A launcher that is told to end ends its ranks.
    [([], signal.SIGKILL), ("torch.distributed.run --standalone --nproc-per-node 2 -m".split(), signal.SIGTERM)],
    ids=["one process", "two ranks"],
)
def test_a_killed_run_goes_on_to_the_same_bytes(
    release: Path, tiny_encoder: Path, tmp_path: Path, launcher: list[str], end: signal.Signals
) -> None:
    finish(start(release, tiny_encoder, tmp_path, "whole", launcher))
    process = start(release, tiny_encoder, tmp_path, "killed", launcher)
    kept = tmp_path / "killed.run"
    while not list(kept.glob("step-*")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(end)
    process.communicate()
    last = sorted(kept.glob("step-*"))[-1]
    # As if it had been killed while it wrote: half a step under its temporary name.
    shutil.copytree(last, kept / f".tmp-{os.uname().nodename}-{process.pid}-0-0")
    (kept / "steps.jsonl").write_text((kept / "steps.jsonl").read_text() + '{"step": 9')
    said = finish(start(release, tiny_encoder, tmp_path, "killed", launcher))
    assert f"going on behind step {int(last.name[-8:])}\n" in said
    for name in ("model.safetensors", "tokenizer.json", "modules.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert [path.name for path in kept.iterdir() if path.name.startswith(".")] == []
    assert len((kept / "steps.jsonl").read_text().splitlines()) == 30
    assert [path.name for path in kept.glob("step-*")] == ["step-00000024"]
