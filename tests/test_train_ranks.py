"""Processes that share a step have the single process's loss and gradients; ranks may hold rows of any number."""

from pathlib import Path

import numpy as np

from tests.ranks import STEPS, step, work


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
