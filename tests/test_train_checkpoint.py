"""A checkpoint that does not fit on the disk is told as the disk's error, whichever library wrote it."""

import errno
from pathlib import Path

import pytest
import torch

from medi.train.checkpoint import Keeper
from medi.train.model import load_model
from tests.limits import files_of_at_most


def test_a_file_that_does_not_fit_is_an_error_of_the_disk(tiny_encoder: Path, tmp_path: Path) -> None:
    """safetensors writes the weights, torch the optimizer's state, which is twice as large."""
    model = load_model("tiny", tiny_encoder, None, "cpu")
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    keeper = Keeper(tmp_path / "out", {"max_steps": 2})
    whole = keeper.save_step(1, model, optimizer)
    weights = (whole / "model.safetensors").stat().st_size
    assert weights * 1.5 < (whole / "optimizer.pt").stat().st_size
    for most_bytes in (weights // 2, int(weights * 1.5)):
        with pytest.raises(OSError) as error, files_of_at_most(most_bytes):
            keeper.save_step(2, model, optimizer)
        assert (error.value.errno, error.value.filename) == (errno.EFBIG, str(keeper.run))
        assert [path.name for path in keeper.run.iterdir()] == ["step-00000001"]
