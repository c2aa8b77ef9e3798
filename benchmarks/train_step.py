"""Times one training step of MiniLM beside those of sentence-transformers.

    python -m benchmarks.train_step [--negatives 1 4] [--dropout off on] [--repeats 3] [--threads 2] [--without-mnrl]

Texts are token ids with the lengths of real shards (log-normal, mean 78, median 56, cut at 256). A step is forward,
loss and backward. With dropout off all ways have one loss, which is printed; with dropout on they do what a trainer
does. The ways take turns, and medians are printed. MNRL over 64 rows takes 7 GB with one negative, and more than 20
with four, or with dropout: give --without-mnrl or fewer --rows there.
"""

import argparse
import itertools
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medi.fetch.encoder import MINILM, find_encoder
from medi.fetch.settings import Settings
from medi.train.loss import contrast
from medi.train.micro import MicroParams, embed_step
from medi.train.model import encode, load_model
from medi.train.ranks import sum_gradients
from medi.train.tokens import Tokens, pad

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

MNRL = "sentence-transformers, MNRL"
MEDIAN_TOKENS, SPREAD, LONGEST_TOKENS = 56, 0.814, 256


def main() -> None:
    """Print a table for each number of negatives, without and with dropout."""
    import torch
    from sentence_transformers import SentenceTransformer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--negatives", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budgets", type=int, nargs="+", default=[1024])
    parser.add_argument("--dropout", nargs="+", choices=["off", "on"], default=["off", "on"])
    parser.add_argument("--without-mnrl", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    folder = find_encoder(MINILM, None, Settings(Path(tempfile.mkdtemp()), offline=True)).folder
    model = load_model(MINILM, folder, LONGEST_TOKENS, "cpu")
    theirs = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    for negatives, dropout in itertools.product(options.negatives, options.dropout):
        tokens = texts(options.rows, negatives)
        ways = ours(model, tokens, options.rows, options.budgets) | peers(theirs, tokens, options.rows)
        if options.without_mnrl:
            del ways[MNRL]
        said = f"{options.rows} rows, {negatives} negatives a row, {tokens.lengths.sum()} tokens, dropout {dropout}"
        print(f"\n{said}\n", flush=True)
        table(ways, [each.train(dropout == "on") for each in (model, theirs)], options.repeats)


def texts(rows: int, negatives: int) -> Tokens:
    """Return random texts: queries, positives, then the first negative of each row, the second, ..."""
    random = np.random.default_rng(negatives)
    drawn = random.lognormal(np.log(MEDIAN_TOKENS), SPREAD, rows * (2 + negatives))
    lengths = drawn.astype(int).clip(3, LONGEST_TOKENS)
    ids = [[101, *random.integers(1000, 30000, length - 2), 102] for length in lengths]
    return Tokens.of(ids, [0] * len(ids))


Way = Callable[[], "torch.Tensor"]


def ours(model: "SentenceTransformer", tokens: Tokens, rows: int, budgets: list[int]) -> dict[str, Way]:
    """Return our step, by the tokens of a micro-batch, plain, cached and in bfloat16."""
    import torch

    def loss_of(vectors: "torch.Tensor") -> "torch.Tensor":
        return contrast(*vectors.split([rows, rows, len(tokens) - 2 * rows]))

    def step(budget: int, cached: bool, half: bool) -> "torch.Tensor":
        params = MicroParams(0, token_budget=budget, graph_bytes=0 if cached else math.inf)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            loss = embed_step(partial(encode, model), tokens, loss_of, params)
        sum_gradients(model.parameters())
        return loss

    ways: dict[str, Way] = {}
    for budget in budgets:
        ways[f"medi, {budget} tokens"] = partial(step, budget, False, False)
        ways[f"medi, {budget} tokens, cached"] = partial(step, budget, True, False)
        ways[f"medi, {budget} tokens, bfloat16"] = partial(step, budget, False, True)
    return ways


def peers(model: "SentenceTransformer", tokens: Tokens, rows: int) -> dict[str, Way]:
    """Return the losses of sentence-transformers over columns padded to their longest text, as its collator does."""
    from sentence_transformers.sentence_transformer.losses import (
        CachedMultipleNegativesRankingLoss,
        MultipleNegativesRankingLoss,
    )

    said = {"scale": 100, "directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    losses = {
        MNRL: MultipleNegativesRankingLoss(model, **said),
        "sentence-transformers, CachedMNRL(8)": CachedMultipleNegativesRankingLoss(model, mini_batch_size=8, **said),
    }
    columns = [pad(tokens, part, 0) for part in np.split(np.arange(len(tokens)), len(tokens) // rows)]

    def step(loss_of: Callable) -> "torch.Tensor":
        features = [{"input_ids": c.input_ids, "attention_mask": c.attention_mask} for c in columns]
        loss = 2 * loss_of(features, None)
        loss.backward()
        return loss.detach()

    return {name: partial(step, loss_of) for name, loss_of in losses.items()}


def table(ways: dict[str, Way], models: list["SentenceTransformer"], repeats: int) -> None:
    """Run the ways in turn, and print the median seconds of each, how many times the first way's, and its loss.

    CPU seconds are beside those of the clock: on a machine that others use, they say more.
    """
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    losses = {}
    for _ in range(repeats):
        for name, way in ways.items():
            for model in models:
                model.zero_grad(set_to_none=True)
            began = time.perf_counter(), time.process_time()
            losses[name] = float(way())
            seconds[name].append((time.perf_counter() - began[0], time.process_time() - began[1]))
            told = "{:.2f} s, {:.2f} s of CPU".format(*seconds[name][-1])
            print(f"{name}: {told}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    medians = {name: [statistics.median(part) for part in zip(*taken, strict=True)] for name, taken in seconds.items()}
    first, first_cpu = next(iter(medians.values()))
    print("| way | median s | of the first | median CPU s | of the first | loss |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, (wall, cpu) in medians.items():
        times = f"{wall:.2f} | {wall / first:.2f} | {cpu:.2f} | {cpu / first_cpu:.2f}"
        print(f"| {name} | {times} | {losses[name]:.5f} |", flush=True)


if __name__ == "__main__":
    main()
