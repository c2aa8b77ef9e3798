"""Processes that share a step have the single process's loss and gradients; ranks may hold rows of any number."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.conftest import Once
from tests.ranks import STEPS, step, work
from tests.test_train_loop import calm
from tests.training import write_release

REPO = Path(__file__).resolve().parent.parent


def test_two_processes_have_the_loss_and_the_gradients_of_one(tmp_path: Path) -> None:
    import torch
    from torch.multiprocessing import get_context

    expected = [step(0, 1, negatives, cached) for negatives in STEPS for cached in (False, True)]
    other = get_context("spawn").Process(target=work, args=(1, 2, tmp_path), daemon=True)
    other.start()
    work(0, 2, tmp_path)
    other.join()
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt")
        assert len(found) == len(expected) == 8
        for mine, theirs in zip(found, expected, strict=True):
            assert len(mine) == len(theirs) == 14
            for one, single in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(one, single, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="session")
def release(once: Once) -> Path:
    return once("train-release", write_release)


@pytest.mark.slow
def test_a_run_of_two_processes_has_the_losses_and_the_weights_of_one(
    release: Path, tiny_t5_encoder: Path, tmp_path: Path, once: Once
) -> None:
    """Seven rows a step, and a last step of six: the ranks' shares differ, and so do their negatives."""
    model = once("calm-t5", lambda folder: calm(tiny_t5_encoder, folder))
    options = "--max-steps 6 --batch-size 7 --learning-rate 1e-3 --cpu --offline".split()
    launcher = "torch.distributed.run --standalone --nproc-per-node 2 -m".split()
    losses, weights = [], []
    for name, before in (("one", []), ("two", launcher)):
        places = ["--model", model, "--out", tmp_path / name, "--workspace", tmp_path]
        call = [sys.executable, "-m", *before, "pipelines.cli.app", "train", release, *places, *options]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(call, cwd=REPO, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, f"{tmp_path / name}\n"), done.stderr
        steps = (tmp_path / f"{name}.run" / "steps.jsonl").read_text().splitlines()
        losses.append([json.loads(step)["loss"] for step in steps])
        weights.append(load_file(tmp_path / name / "model.safetensors"))
    assert len(losses[0]) == 6
    np.testing.assert_allclose(losses[1], losses[0], atol=1e-4)
    assert max(float(np.abs(weights[1][key] - weights[0][key]).max()) for key in weights[0]) < 5e-4
