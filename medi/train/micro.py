"""Embeds the texts of a step in micro-batches of like length: the loss stays what it is, the padding goes.

`plain` keeps the graph of the whole step; `cached` keeps vectors only, and runs each micro-batch a second time for its
gradient, so that a step may be larger than memory. Loss and gradients are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medi.train.tokens import Padded, Side, Tokens, pad

if TYPE_CHECKING:
    import torch

Encode = Callable[[Padded], "torch.Tensor"]
LossOf = Callable[["torch.Tensor"], "torch.Tensor"]


@dataclass(frozen=True)
class MicroParams:
    """How texts meet in a forward pass; none of it changes the loss.

    `token_budget`: at most so many tokens, padding included, a micro-batch. `cached`: gradient cache.
    """

    pad_id: int
    side: Side = "right"
    multiple: int = 8
    token_budget: int = 2048
    cached: bool = False


def micro_batches(lengths: np.ndarray, token_budget: int, multiple: int = 1) -> list[np.ndarray]:
    """Return the row numbers of each micro-batch, longest texts first; each row stands in exactly one."""
    raise NotImplementedError


def embed_step(encode: Encode, tokens: Tokens, loss_of: LossOf, params: MicroParams) -> "torch.Tensor":
    """Return the loss of a step, a detached scalar, and add its gradients to the parameters behind `encode`.

    `tokens` are all texts of the step on this rank (queries, positives, negatives, one after the other); `encode`
    gives a float tensor [n, D] for a padded batch; `loss_of` takes the vectors [len(tokens), D] in the texts' order.
    """
    raise NotImplementedError
