"""Embeds the texts of a step in micro-batches of like length: the loss stays what it is, the padding goes.

The plain step keeps the graph of all of them; the cached one keeps vectors only, and runs each micro-batch a second
time for its gradient, so that a step may be larger than memory. Loss and gradients are the same.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medi.train.tokens import Padded, Side, Tokens, pad

if TYPE_CHECKING:
    import torch

Encode = Callable[[Padded], "torch.Tensor"]
LossOf = Callable[["torch.Tensor"], "torch.Tensor"]


class Graph(NamedTuple):
    """What a model keeps for its backward pass: bytes a padded token, and bytes a pair of tokens of one text."""

    token_bytes: int
    pair_bytes: int

    def bytes(self, padded: Iterable[Sequence[int]]) -> int:
        """Return the bytes of micro-batches by their shapes (texts, width)."""
        return sum(texts * width * (self.token_bytes + self.pair_bytes * width) for texts, width in padded)


@dataclass(frozen=True)
class MicroParams:
    """How texts meet in a forward pass; none of it changes the loss.

    `token_budget`: at most so many tokens, padding included, a micro-batch. `cost_tokens`: a micro-batch takes as long
    as so many tokens before it has any (48 on two CPU cores). `graph_bytes`: a step whose graph would be larger takes
    the gradient cache, 0 for every step; how large it is, `graph` says.
    """

    pad_id: int
    side: Side = "right"
    multiple: int = 1
    token_budget: int = 1024
    cost_tokens: int = 48
    graph_bytes: float = math.inf
    graph: Graph = Graph(1, 0)


def micro_batches(lengths: np.ndarray, params: MicroParams) -> list[np.ndarray]:
    """Return the row numbers of each micro-batch, longest texts first; each row stands in exactly one.

    Of all ways to cut the sorted texts into micro-batches within the budget it is the one that costs least: padding in
    wide ones against the fixed cost of many. A text longer than the budget stands alone.
    """
    order = np.argsort(-lengths, kind="stable")
    widths = -(-lengths[order] // params.multiple) * params.multiple
    count = len(order)
    # From the end on: what the texts behind a place cost at least, and where their first micro-batch ends.
    least, stop = np.zeros(count + 1), np.zeros(count, dtype=int)
    for start in range(count - 1, -1, -1):
        most = max(1, params.token_budget // int(widths[start]))
        sizes = np.arange(1, min(most, count - start) + 1)
        costs = params.cost_tokens + sizes * widths[start] + least[start + 1 : start + 1 + len(sizes)]
        best = int(costs.argmin())
        least[start], stop[start] = costs[best], start + 1 + best
    batches, start = [], 0
    while start < count:
        batches.append(order[start : stop[start]])
        start = stop[start]
    return batches


def embed_step(encode: Encode, tokens: Tokens, loss_of: LossOf, params: MicroParams) -> "torch.Tensor":
    """Return the loss of a step, a detached scalar, and add its gradients to the parameters behind `encode`.

    `tokens` are all texts of the step on this rank (queries, positives, negatives, one after the other); `encode`
    gives a float tensor [n, D] for a padded batch; `loss_of` takes the vectors [len(tokens), D] in the texts' order.
    """
    import torch

    # A rank without rows of a step runs a blank, whose vector is left out again: it must meet the others all the same.
    texts = tokens if len(tokens) else Tokens.of([[params.pad_id]], [0])
    batches = micro_batches(texts.lengths, params)
    padded = [pad(texts, rows, params.pad_id, params.side, params.multiple) for rows in batches]
    places = torch.from_numpy(np.argsort(np.concatenate(batches))[: len(tokens)])

    def ordered_loss(vectors: "torch.Tensor") -> "torch.Tensor":
        """Return the loss of vectors that stand in the micro-batches' order."""
        return loss_of(vectors[places.to(vectors.device)])

    if params.graph.bytes(batch.input_ids.shape for batch in padded) > params.graph_bytes:
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
    vectors = torch.cat(parts).requires_grad_()
    loss = loss_of(vectors)
    gradients = torch.autograd.grad(loss, vectors)[0].split([len(part) for part in parts])
    for batch, state, gradient in zip(padded, states, gradients, strict=True):
        # The same dropout as in the first pass, or the gradient would be another vector's.
        _set_random_state(state)
        encode(batch).backward(gradient)
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
