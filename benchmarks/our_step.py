"""Our step of training, timed: in this process, or shared by several of one thread each, as a launcher starts them.

Texts are token ids with the lengths of real shards, the same in every process; each rank embeds its share of the rows,
gathers all vectors and adds up the gradients, as `medi train` does.
"""

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medi.encoder_names import MINILM
from medi.train.batches import shares
from medi.train.loss import contrast
from medi.train.micro import MicroParams, embed_step
from medi.train.model import encode, load_model
from medi.train.ranks import gather, sum_gradients
from medi.train.tokens import Tokens

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

MEDIAN_TOKENS, SPREAD, LONGEST_TOKENS = 56, 0.814, 256


class Asked(NamedTuple):
    """A step: its rows, negatives a row, whether dropout is on, tokens of a micro-batch, gradient cache, bfloat16."""

    rows: int
    negatives: int
    dropout: bool
    budget_tokens: int
    cached: bool = False
    half: bool = False


class Taken(NamedTuple):
    """What a step came to: its loss, seconds of the clock, seconds of all processes' CPU."""

    loss: float
    seconds: float
    cpu_seconds: float


def texts(rows: int, negatives: int) -> Tokens:
    """Return random texts: queries, positives, then the first negative of each row, the second, ..."""
    random = np.random.default_rng(negatives)
    drawn = random.lognormal(np.log(MEDIAN_TOKENS), SPREAD, rows * (2 + negatives))
    lengths = drawn.astype(int).clip(3, LONGEST_TOKENS)
    ids = [[101, *random.integers(1000, 30000, length - 2), 102] for length in lengths]
    return Tokens.of(ids, [0] * len(ids))


def new_model(folder: Path) -> "SentenceTransformer":
    """Return the model that our steps train."""
    return load_model(MINILM, folder, LONGEST_TOKENS, "cpu")


def timed(model: "SentenceTransformer", dropout: bool, step: Callable[[], "torch.Tensor"]) -> Taken:
    """Return what a step came to that leaves its gradients at the model's weights; those before it are forgotten."""
    model.train(dropout)
    model.zero_grad(set_to_none=True)
    began, began_cpu = time.perf_counter(), time.process_time()
    loss = float(step())
    return Taken(loss, time.perf_counter() - began, time.process_time() - began_cpu)


def take(model: "SentenceTransformer", asked: Asked, rank: int = 0, world: int = 1) -> Taken:
    """Return what a step came to on this rank: forward, loss, backward, and the sum of the ranks' gradients."""
    import torch

    whole = texts(asked.rows, asked.negatives)
    columns = np.arange(len(whole)).reshape(-1, asked.rows)
    parts = shares(whole.lengths[columns].sum(axis=0), world)
    tokens = whole.take(columns[:, parts[rank]].ravel())
    heights = [len(part) for part in parts]

    def loss_of(vectors: "torch.Tensor") -> "torch.Tensor":
        """Return the loss of the whole step, with the vectors of all ranks."""
        return contrast(*gather(vectors, heights, [asked.negatives * height for height in heights]))

    def step() -> "torch.Tensor":
        """Return the loss, the gradients being those of the whole step."""
        with torch.autocast("cpu", torch.bfloat16, enabled=asked.half):
            loss = embed_step(partial(encode, model), tokens, loss_of, params)
        sum_gradients(model.parameters())
        return loss

    params = MicroParams(0, token_budget=asked.budget_tokens, graph_bytes=0 if asked.cached else math.inf)
    return timed(model, asked.dropout, step)


@contextmanager
def ranks(folder: Path, world: int) -> Iterator[Callable[[Asked], Taken]]:
    """Start so many processes of one thread each; what is given has them take a step.

    The clock is the slowest rank's, CPU seconds are those of all.
    """
    from torch.multiprocessing import get_context

    context = get_context("spawn")
    with tempfile.TemporaryDirectory() as meet:
        pipes = [context.Pipe() for _ in range(world)]
        processes = [
            context.Process(target=_work, args=(rank, world, folder, f"file://{meet}/meet", end), daemon=True)
            for rank, (_, end) in enumerate(pipes)
        ]
        for process, (_, end) in zip(processes, pipes, strict=True):
            process.start()
            # A rank that dies then ends our waiting for it.
            end.close()

        def together(asked: Asked) -> Taken:
            """Return what a step of all ranks came to."""
            for ours, _ in pipes:
                ours.send(asked)
            losses, seconds, cpu_seconds = zip(*(ours.recv() for ours, _ in pipes), strict=True)
            return Taken(losses[0], max(seconds), sum(cpu_seconds))

        yield together
        for process, (ours, _) in zip(processes, pipes, strict=True):
            ours.close()
            process.join()


def _work(rank: int, world: int, folder: Path, meet: str, end: Connection) -> None:
    """Meet the other ranks over gloo, and take steps until nobody asks any more."""
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    distributed.init_process_group("gloo", meet, rank=rank, world_size=world)
    model = new_model(folder)
    while True:
        try:
            asked = end.recv()
        except EOFError:
            break
        distributed.barrier()
        end.send(take(model, asked, rank, world))
    distributed.destroy_process_group()
