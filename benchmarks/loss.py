"""Times the loss alone, forward and backward, beside the released script's way: a cosine at a time in a double loop.

    python -m benchmarks.loss [--rows 4 32 64 128] [--dimensions 768] [--repeats 3] [--threads 2]

The double loop is written from the description of the script, with one negative a row; values and gradients are
compared.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch

from medi.train.loss import contrast

TEMPERATURE = 0.01


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[4, 32, 64, 128])
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print("| rows | double loop, ms | medi, ms | times | difference of value | of gradients, relative |")
    print("| --- | --- | --- | --- | --- | --- |")
    for rows in options.rows:
        columns = vectors(rows, options.dimensions)
        slow_ms, slow = timed(double_loop, columns, options.repeats)
        fast_ms, fast = timed(
            partial(contrast, temperature=TEMPERATURE, forward_candidates="negatives"), columns, 20 * options.repeats
        )
        value, gradients = differences(slow, fast)
        times = slow_ms / fast_ms
        print(f"| {rows} | {slow_ms:.1f} | {fast_ms:.2f} | {times:.0f} | {value:.1e} | {gradients:.1e} |", flush=True)


def vectors(rows: int, dimensions: int) -> list[torch.Tensor]:
    """Return unit vectors of queries, positives and one negative a row, alike enough for a loss above 0."""
    torch.manual_seed(rows)
    drawn = (1 + 0.3 * torch.randn(rows, dimensions) for _ in range(3))
    return [torch.nn.functional.normalize(column) for column in drawn]


def double_loop(queries: torch.Tensor, positives: torch.Tensor, negatives: torch.Tensor) -> torch.Tensor:
    """Return the loss, each cosine computed alone and appended to the row's."""
    cosine = torch.nn.CosineSimilarity(dim=0)
    total = torch.zeros(())
    for i in range(len(queries)):
        own = (cosine(queries[i], positives[i]) / TEMPERATURE)[None]
        ahead, behind = own, own
        for j in range(len(queries)):
            ahead = torch.cat([ahead, (cosine(queries[i], negatives[j]) / TEMPERATURE)[None]])
            if j != i:
                behind = torch.cat([behind, (cosine(queries[j], positives[i]) / TEMPERATURE)[None]])
        for scores in (ahead, behind):
            total = total - torch.log_softmax(scores, 0)[0]
    return total / len(queries)


def timed(loss_of: Callable, columns: list[torch.Tensor], repeats: int) -> tuple[float, list[torch.Tensor]]:
    """Return the median milliseconds of forward and backward, the loss and its gradients."""
    taken, result = [], []
    for _ in range(repeats):
        leaves = [column.detach().requires_grad_() for column in columns]
        began = time.perf_counter()
        loss = loss_of(*(torch.nn.functional.normalize(leaf) for leaf in leaves))
        loss.backward()
        taken.append(1000 * (time.perf_counter() - began))
        result = [loss.detach(), *(leaf.grad for leaf in leaves)]
    return statistics.median(taken), result


def differences(one: list[torch.Tensor], other: list[torch.Tensor]) -> tuple[float, float]:
    """Return how far the losses are apart, and the gradients, relative to the largest of each column."""
    columns = list(zip(one[1:], other[1:], strict=True))
    return float((one[0] - other[0]).abs()), max(float((a - b).abs().max() / a.abs().max()) for a, b in columns)


if __name__ == "__main__":
    main()
