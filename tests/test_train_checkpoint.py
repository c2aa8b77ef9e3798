"""A checkpoint that does not fit on the disk is told as the disk's error, whichever library wrote it."""

import errno
import resource
from pathlib import Path

import pytest
import torch

from medi.train.checkpoint import Keeper
from medi.train.model import load_model


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
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most_bytes in (weights // 2, int(weights * 1.5)):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
        try:
            with pytest.raises(OSError) as error:
                keeper.save_step(2, model, optimizer)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert error.value.errno == errno.EFBIG
        assert [path.name for path in keeper.run.iterdir()] == ["step-00000001"]
