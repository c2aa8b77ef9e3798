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
    import torch

    heights = [2 * r + n for r, n in zip(rows, negatives, strict=True)]
    parts = [local] if len(heights) == 1 else _all(local, heights)
    split = [part.split([r, r, n]) for part, r, n in zip(parts, rows, negatives, strict=True)]
    return Columns(*(torch.cat(column) for column in zip(*split, strict=True)))


def sum_gradients(parameters: Iterable["torch.nn.Parameter"]) -> None:
    """Add up each parameter's gradient over all ranks, in place, and make it dense; where a rank has none, it is 0."""
    import torch
    from torch import distributed

    alone = not distributed.is_initialized() or distributed.get_world_size() == 1
    sums = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.to_dense()
        if parameter.requires_grad and not alone:
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            # All are under way at once: a hundred small ones in turn would take three times as long.
            sums.append(distributed.all_reduce(parameter.grad, async_op=True))
    for summed in sums:
        summed.wait()


def _all(local: "torch.Tensor", heights: Sequence[int]) -> list["torch.Tensor"]:
    """Return the vectors of every rank; those of this rank keep their graph, the others have none."""
    import torch
    from torch import distributed

    # The ranks' shapes must agree, so short ones are filled up and cut again.
    sent = local.new_zeros((max(heights), local.shape[1]))
    sent[: len(local)] = local.detach()
    received = [torch.empty_like(sent) for _ in heights]
    distributed.all_gather(received, sent)
    parts = [vectors[:height] for vectors, height in zip(received, heights, strict=True)]
    parts[distributed.get_rank()] = local
    return parts
