"""Times one training step of MiniLM beside those of sentence-transformers.

    python -m benchmarks.train_step [--negatives 1 4] [--dropout off on] [--repeats 3] [--threads 2] [--ranks 2]
                                    [--without-mnrl]

Texts are token ids with the lengths of real shards (log-normal, mean 78, median 56, cut at 256). A step is forward,
loss and backward. With dropout off all ways have one loss, which is printed; with dropout on they do what a trainer
does. The ways take turns, and medians are printed. With --ranks our step is also shared by processes of one thread
each. MNRL over 64 rows takes 7 GB with one negative, and more than 20 with four, or with dropout: give --without-mnrl
or fewer --rows there.
"""

import argparse
import itertools
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.our_step import Asked, Taken, new_model, ranks, take, texts, timed
from medi.encoder_names import MINILM
from medi.fetch.encoder import find_encoder
from medi.fetch.settings import Settings
from medi.train.tokens import pad

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

MNRL = "sentence-transformers, MNRL"

Way = Callable[[], Taken]


def main() -> None:
    """Print a table for each number of negatives, without and with dropout."""
    import torch
    from sentence_transformers import SentenceTransformer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--negatives", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--budgets", type=int, nargs="+", default=[1024])
    parser.add_argument("--dropout", nargs="+", choices=["off", "on"], default=["off", "on"])
    parser.add_argument("--without-mnrl", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    folder = find_encoder(MINILM, None, Settings(Path(tempfile.mkdtemp()), offline=True)).folder
    theirs = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    takers: dict[str, Callable[[Asked], Taken]] = {"": partial(take, new_model(folder))}
    with ranks(folder, options.ranks) if options.ranks > 1 else nullcontext() as together:
        if together:
            takers[f", {options.ranks} ranks"] = together
        for negatives, dropout in itertools.product(options.negatives, options.dropout):
            asked = Asked(options.rows, negatives, dropout == "on", 0)
            ways = ours(takers, asked, options.budgets) | peers(theirs, asked)
            if options.without_mnrl:
                del ways[MNRL]
            tokens = texts(options.rows, negatives).lengths.sum()
            said = f"{options.rows} rows, {negatives} negatives a row, {tokens} tokens, dropout {dropout}"
            print(f"\n{said}\n", flush=True)
            table(ways, options.repeats)


def ours(takers: dict[str, Callable[[Asked], Taken]], asked: Asked, budgets: list[int]) -> dict[str, Way]:
    """Return our step, by the tokens of a micro-batch, plain, cached and in bfloat16, in one process and in several."""
    kinds = {"": {}, ", cached": {"cached": True}, ", bfloat16": {"half": True}}
    return {
        f"medi, {budget} tokens{kind}{where}": partial(taker, asked._replace(budget_tokens=budget, **how))
        for budget in budgets
        for kind, how in kinds.items()
        for where, taker in takers.items()
    }


def peers(model: "SentenceTransformer", asked: Asked) -> dict[str, Way]:
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
    tokens = texts(asked.rows, asked.negatives)
    columns = [pad(tokens, part, 0) for part in np.split(np.arange(len(tokens)), 2 + asked.negatives)]

    def step(loss_of: Callable) -> "torch.Tensor":
        features = [{"input_ids": c.input_ids, "attention_mask": c.attention_mask} for c in columns]
        loss = 2 * loss_of(features, None)
        loss.backward()
        return loss.detach()

    return {name: partial(timed, model, asked.dropout, partial(step, loss_of)) for name, loss_of in losses.items()}


def table(ways: dict[str, Way], repeats: int) -> None:
    """Run the ways in turn, and print the median seconds of each, how many times the first way's, and its loss.

    CPU seconds are beside those of the clock: on a machine that others use, they say more.
    """
    taken: dict[str, list[Taken]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            taken[name].append(way())
            _, seconds, cpu = taken[name][-1]
            told = f"{name}: {seconds:.2f} s, {cpu:.2f} s of CPU, load {os.getloadavg()[0]:.1f}"
            print(told, file=sys.stderr, flush=True)
    medians = {name: [statistics.median(part) for part in zip(*all_of, strict=True)] for name, all_of in taken.items()}
    _, first, first_cpu = next(iter(medians.values()))
    print("| way | median s | of the first | median CPU s | of the first | loss |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, (_, wall, cpu) in medians.items():
        times = f"{wall:.2f} | {wall / first:.2f} | {cpu:.2f} | {cpu / first_cpu:.2f}"
        print(f"| {name} | {times} | {taken[name][-1].loss:.5f} |", flush=True)


if __name__ == "__main__":
    main()
