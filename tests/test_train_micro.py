"""Micro-batches change the padding and nothing else: loss and gradients are those of one batch of everything."""

import math
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from medi.train.loss import contrast
from medi.train.micro import Graph, MicroParams, embed_step, micro_batches
from medi.train.tokens import Padded, Tokens
from tests.ranks import small_encoder

if TYPE_CHECKING:
    import torch

ROWS, NEGATIVES = 6, 9


def test_micro_batches_hold_every_row_once_and_keep_to_the_budget() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 200)
    batches = micro_batches(lengths, MicroParams(0, multiple=8, token_budget=256))
    assert sorted(np.concatenate(batches).tolist()) == list(range(200))
    widths = [-(-lengths[rows].max() // 8) * 8 for rows in batches]
    assert all(len(rows) * width <= 256 for rows, width in zip(batches, widths, strict=True))
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(("cost_tokens", "expected"), [(1, 4), (4, 3), (100, 1)])
def test_micro_batches_cost_least_of_all_ways_to_cut(cost_tokens: int, expected: int) -> None:
    lengths = np.array([3, 12, 4, 7, 12, 3])
    batches = micro_batches(lengths, MicroParams(0, token_budget=100, cost_tokens=cost_tokens))
    ordered = sorted(lengths.tolist(), reverse=True)
    cuts = (c for n in range(6) for c in combinations(range(1, 6), n))
    ways = [[ordered[a:b] for a, b in pairwise([0, *cut, 6])] for cut in cuts]
    cheapest = min(sum(cost_tokens + len(part) * part[0] for part in way) for way in ways)
    assert sum(cost_tokens + len(rows) * int(lengths[rows].max()) for rows in batches) == cheapest
    assert len(batches) == expected


def test_a_text_longer_than_the_budget_stands_alone() -> None:
    params = MicroParams(0, token_budget=16)
    assert [rows.tolist() for rows in micro_batches(np.array([5, 300, 4]), params)] == [[1], [0, 2]]
    assert micro_batches(np.array([], dtype=int), params) == []


@pytest.mark.parametrize("budget", [40, 100_000])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_cached_step_is_the_plain_step(budget: int, dropout: float) -> None:
    """Also with dropout: the second pass must drop what the first one dropped."""
    plain, cached = (_step(MicroParams(0, token_budget=budget, graph_bytes=way), dropout) for way in (math.inf, 0))
    _same(plain, cached)


def test_a_step_is_cached_where_its_graph_would_be_too_large() -> None:
    """One row of 10 tokens, two of 4: 18 tokens and 100 + 2 x 16 pairs of tokens."""
    graph = Graph(token_bytes=1000, pair_bytes=10)
    assert graph.bytes([(1, 10), (2, 4)]) == 18 * 1000 + 132 * 10
    for graph_bytes, passes in ((19_320, 2), (19_319, 4)):
        texts = Tokens.of([[1] * 10, [2] * 4, [3] * 4], [0, 0, 0])
        params = MicroParams(0, cost_tokens=1, graph_bytes=graph_bytes, graph=graph)
        seen = []

        def encode(padded: Padded, seen: list[int] = seen) -> "torch.Tensor":
            """Note the pass, and give a vector that has a gradient."""
            seen.append(len(padded.input_ids))
            return padded.input_ids[:, :4].float().requires_grad_()

        embed_step(encode, texts, lambda vectors: vectors.square().sum(), params)
        assert len(seen) == passes


def test_the_order_of_micro_batches_changes_neither_loss_nor_gradients() -> None:
    _same(_step(MicroParams(0, token_budget=40)), _step(MicroParams(0, side="left", token_budget=100_000, multiple=64)))


def test_a_step_without_texts_gives_no_gradient_and_does_not_fail() -> None:
    import torch

    encode, parameters = small_encoder(0.0)
    elsewhere = torch.nn.functional.normalize(torch.randn(3, 8, dtype=torch.float64))

    def loss_of(own: "torch.Tensor") -> "torch.Tensor":
        assert own.shape == (0, 8)
        return contrast(torch.cat([own, elsewhere]), elsewhere, own, temperature=1.0)

    for graph_bytes in (math.inf, 0):
        assert embed_step(encode, Tokens.of([], []), loss_of, MicroParams(0, graph_bytes=graph_bytes)) > 0.5
        assert all(parameter.grad is None or not parameter.grad.any() for parameter in parameters)


def _step(params: MicroParams, dropout: float = 0.0) -> list["torch.Tensor"]:
    """Return the loss of a fixed step, the gradients of its encoder, and the next number of torch's generator."""
    import torch

    random = np.random.default_rng(1)
    texts = [random.integers(1, 50, random.integers(2, 30)).tolist() for _ in range(2 * ROWS + NEGATIVES)]
    encode, parameters = small_encoder(dropout)

    def loss_of(vectors: "torch.Tensor") -> "torch.Tensor":
        return contrast(*vectors.split([ROWS, ROWS, NEGATIVES]), temperature=0.1)

    loss = embed_step(encode, Tokens.of(texts, [1] * len(texts)), loss_of, params)
    return [loss, *(parameter.grad for parameter in parameters if parameter.grad is not None), torch.rand(1)]


def _same(one: list["torch.Tensor"], other: list["torch.Tensor"]) -> None:
    assert len(one) == len(other) > 10
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-12)
