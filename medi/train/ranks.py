"""Brings the processes of a run together: vectors are gathered before the loss, gradients summed after it.

Every rank computes the loss of the whole step from the same vectors, but differentiates its own rows alone; so the sum
of the ranks' gradients is the single process's gradient, whatever slices the ranks hold, an empty one included.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch


class Columns(NamedTuple):
    """The vectors of a step: queries and positives [B, D], negatives [N, D]."""

    queries: "torch.Tensor"
    positives: "torch.Tensor"
    negatives: "torch.Tensor"


def gather(local: "torch.Tensor", rows: Sequence[int], negatives: Sequence[int]) -> Columns:
    """Return the columns of the whole step, in the order of its rows.

    `local` [2 * rows[rank] + negatives[rank], D] holds this rank's queries, positives and negatives; `rows` and
    `negatives` say how many each rank has (the plan tells every rank). With one process nothing is sent.
    """
    raise NotImplementedError


def sum_gradients(parameters: Iterable["torch.nn.Parameter"]) -> None:
    """Add up each parameter's gradient over all ranks, in place; a rank without a gradient gives zeros."""
    raise NotImplementedError
