"""A small encoder, and one training step of it on a rank's share of the rows: what the processes of a test run."""

import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medi.train.batches import shares
from medi.train.loss import contrast
from medi.train.micro import MicroParams, embed_step
from medi.train.ranks import gather, sum_gradients
from medi.train.tokens import Padded, Tokens

if TYPE_CHECKING:
    import torch

# Negatives of each row of a step. Shared by two, the third leaves a rank without rows, the fourth without negatives.
STEPS = ([2, 0, 1, 3, 0, 0, 1], [1, 1, 4, 1], [1], [0, 0, 2])


def small_encoder(
    dropout: float = 0.0, sparse: bool = False
) -> tuple[Callable[[Padded], "torch.Tensor"], list["torch.nn.Parameter"]]:
    """Return an attention layer in float64 as `encode` takes it, and its parameters; equal ones each time.

    `sparse` is how a model's table of tokens is trained on a CPU.
    """
    import torch

    torch.manual_seed(0)
    table = torch.nn.Embedding(50, 8, dtype=torch.float64, sparse=sparse)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout, batch_first=True, dtype=torch.float64)

    def encode(batch: Padded) -> "torch.Tensor":
        states = layer(table(batch.input_ids), src_key_padding_mask=batch.attention_mask == 0)
        pooled = (states * batch.pooled_mask[:, :, None]).sum(1) / batch.pooled_mask.sum(1, keepdim=True)
        return torch.nn.functional.normalize(pooled)

    return encode, [*table.parameters(), *layer.parameters()]


def step(rank: int, world: int, negatives: list[int], cached: bool) -> list["torch.Tensor"]:
    """Return the loss of a step and the gradients of all ranks, as one rank sees them."""
    random = np.random.default_rng(sum(negatives))
    of_row = np.repeat(np.arange(len(negatives)), negatives)
    texts = [random.integers(1, 50, random.integers(2, 30)).tolist() for _ in range(2 * len(negatives) + len(of_row))]
    queries, positives, others = np.split(np.arange(len(texts)), [len(negatives), 2 * len(negatives)])
    parts = shares(np.array(negatives), world)
    owned = [np.isin(of_row, rows) for rows in parts]
    mine = np.concatenate([queries[parts[rank]], positives[parts[rank]], others[owned[rank]]])
    encode, parameters = small_encoder(sparse=world > 1)

    def loss_of(vectors: "torch.Tensor") -> "torch.Tensor":
        columns = gather(vectors, [len(rows) for rows in parts], [int(own.sum()) for own in owned])
        return contrast(*columns, temperature=0.1)

    tokens = Tokens.of(texts, [1] * len(texts)).take(mine)
    loss = embed_step(encode, tokens, loss_of, MicroParams(0, token_budget=60, graph_bytes=0 if cached else math.inf))
    sum_gradients(parameters)
    return [loss, *(parameter.grad for parameter in parameters if parameter.grad is not None)]


def work(rank: int, world: int, folder: Path) -> None:
    """Meet the other ranks over gloo, take all steps, plain and cached, and leave what came of them in the folder."""
    import torch
    from torch import distributed

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    meet = f"file://{folder / 'meet'}"
    distributed.init_process_group("gloo", meet, timedelta(minutes=2), rank=rank, world_size=world)
    results = [step(rank, world, negatives, cached) for negatives in STEPS for cached in (False, True)]
    torch.save(results, folder / f"{rank}.pt")
    distributed.destroy_process_group()
    torch.set_num_threads(threads)
