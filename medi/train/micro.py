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
    multiple: int = 1
    token_budget: int = 2048
    cached: bool = False


def micro_batches(lengths: np.ndarray, token_budget: int, multiple: int = 1) -> list[np.ndarray]:
    """Return the row numbers of each micro-batch, longest texts first; each row stands in exactly one.

    A micro-batch holds as many rows as its longest text, rounded up to the multiple, leaves room for; at least one.
    """
    order = np.argsort(-lengths, kind="stable")
    widths = -(-lengths[order] // multiple) * multiple
    batches = []
    start = 0
    while start < len(order):
        stop = start + max(1, token_budget // int(widths[start]))
        batches.append(order[start:stop])
        start = stop
    return batches


def embed_step(encode: Encode, tokens: Tokens, loss_of: LossOf, params: MicroParams) -> "torch.Tensor":
    """Return the loss of a step, a detached scalar, and add its gradients to the parameters behind `encode`.

    `tokens` are all texts of the step on this rank (queries, positives, negatives, one after the other); `encode`
    gives a float tensor [n, D] for a padded batch; `loss_of` takes the vectors [len(tokens), D] in the texts' order.
    """
    import torch

    # A rank without rows of a step runs a blank, whose vector is left out again: it must meet the others all the same.
    texts = tokens if len(tokens) else Tokens.of([[params.pad_id]], [0])
    batches = micro_batches(texts.lengths, params.token_budget, params.multiple)
    padded = [pad(texts, rows, params.pad_id, params.side, params.multiple) for rows in batches]
    places = torch.from_numpy(np.argsort(np.concatenate(batches))[: len(tokens)])

    def ordered_loss(vectors: "torch.Tensor") -> "torch.Tensor":
        return loss_of(vectors[places.to(vectors.device)])

    if params.cached:
        return _cached(encode, padded, ordered_loss)
    loss = ordered_loss(torch.cat([encode(batch) for batch in padded]))
    loss.backward()
    return loss.detach()


def _cached(encode: Encode, padded: list[Padded], loss_of: LossOf) -> "torch.Tensor":
    """Return the loss; only one micro-batch's graph lives at a time."""
    import torch

    states, parts = [], []
    with torch.no_grad():
        for batch in padded:
            states.append(_random_state())
            parts.append(encode(batch))
    after = _random_state()
    vectors = torch.cat(parts).requires_grad_()
    loss = loss_of(vectors)
    gradients = torch.autograd.grad(loss, vectors)[0].split([len(part) for part in parts])
    for batch, state, gradient in zip(padded, states, gradients, strict=True):
        # The same dropout as in the first pass, or the gradient would be another vector's.
        _set_random_state(state)
        encode(batch).backward(gradient)
    _set_random_state(after)
    return loss.detach()


def _random_state() -> list["torch.Tensor"]:
    """Return the states of torch's generators, the CPU's first."""
    import torch

    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else ())]


def _set_random_state(states: list["torch.Tensor"]) -> None:
    """Bring torch's generators back to where they were."""
    import torch

    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state_all(states[1:])
