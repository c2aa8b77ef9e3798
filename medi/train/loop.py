"""The loop: a planned step after another, each a batch made ahead, one loss over all ranks, one update of the weights.

It stands on accelerate for devices and processes. The ranks sum their gradients once a step, behind the last
micro-batch, and not in hooks that would fire in each of them.
"""

import hashlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medi.errors import MediError
from medi.train.batches import Step, TaskRows, plan
from medi.train.collate import Batch, Collator, ahead, collate
from medi.train.loss import Masks, contrast
from medi.train.micro import MicroParams, embed_step, micro_batches
from medi.train.model import encode, graph, graph_bytes_at_most, parameters
from medi.train.ranks import gather, sum_gradients
from medi.train.recipe import Recipe, Resources
from medi.train.tokens import Padded, Tokens

if TYPE_CHECKING:
    import torch
    from accelerate import Accelerator
    from sentence_transformers import SentenceTransformer

_IDS_SHOWN = 64


@dataclass(frozen=True)
class Trainer:
    """All that steps are made of: the model and its optimizer, the planned tasks, what collates them, the recipe."""

    model: "SentenceTransformer"
    optimizer: "torch.optim.Optimizer"
    accelerator: "Accelerator"
    tasks: Sequence[TaskRows]
    collator: Collator
    recipe: Recipe
    resources: Resources

    @property
    def micro(self) -> MicroParams:
        """Return how texts meet in a forward pass. Padding stands on the right, whatever the tokenizer's side: there it
        moves no position.
        """
        on_gpu = self.accelerator.device.type == "cuda"
        budget = self.resources.token_budget or (32_768 if on_gpu else 1_024)
        pad_id = self.model.tokenizer.pad_token_id or 0
        # A GPU is slow to begin a micro-batch, and likes lengths that are multiples of 8.
        multiple, cost_tokens = (8, 2_048) if on_gpu else (1, 48)
        graph_bytes = 0 if self.resources.cached else graph_bytes_at_most(self.accelerator.device)
        return MicroParams(pad_id, "right", multiple, budget, cost_tokens, graph_bytes, graph(self.model))


class StepDone(NamedTuple):
    """What a step came to; tokens and truncated texts are those of all ranks. `step` counts from 1."""

    step: int
    epoch: int
    task: str
    loss: float
    learning_rate: float
    gradient_norm: float
    rows: int
    tokens: int
    padded_tokens: int
    truncated: int
    waited_seconds: float
    seconds: float


def new_optimizer(model: "SentenceTransformer", recipe: Recipe) -> "torch.optim.Optimizer":
    """Return AdamW over the model's parameters, its betas and epsilon torch's own."""
    import torch

    # Fused takes a quarter of the time on a CPU, a sixth of a second a step that every rank would take.
    return torch.optim.AdamW(parameters(model), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True)


def planned(tasks: Sequence[TaskRows], recipe: Recipe, first_step: int = 0) -> Iterator[tuple[int, Step]]:
    """Yield (epoch, step) from a step on, counted over all epochs, to the last of the recipe."""

    def endless() -> Iterator[tuple[int, Step]]:
        """Yield the steps of one epoch after another."""
        epoch, skipped = 0, first_step
        while True:
            steps = plan(tasks, recipe.plan, epoch).steps
            yield from ((epoch, step) for step in steps[skipped:])
            skipped = max(0, skipped - len(steps))
            epoch += 1

    return islice(endless(), max(0, recipe.max_steps - first_step))


def train(trainer: Trainer, first_step: int = 0) -> Iterator[StepDone]:
    """Train from a step on and yield each one that is done, the weights then being those behind it.

    Raises:
        MediError: a loss or a gradient is not finite, which names the rows of the batch, or memory is too small.
    """
    import torch

    recipe = trainer.recipe
    began = time.perf_counter()
    steps = planned(trainer.tasks, recipe, first_step)
    batches = ahead(lambda item: (item[0], collate(trainer.collator, item[1])), steps, trainer.resources.prefetch)
    for number, ((epoch, batch), waited_seconds) in enumerate(batches, first_step):
        # Each step has its own seed, so that a run that goes on draws the dropout of one that was never stopped.
        torch.manual_seed(_seed(recipe.seed, number, trainer.collator.rank))
        rate = recipe.learning_rate_at(number)
        loss, norm = _update(trainer, batch, rate, number)
        tokens, padded, truncated = _summed(trainer, batch)
        now = time.perf_counter()
        yield StepDone(
            number + 1, epoch, batch.task, loss, rate, norm, len(batch.ids), tokens, padded, truncated, waited_seconds,
            now - began,
        )  # fmt: skip
        began = time.perf_counter()


def _update(trainer: Trainer, batch: Batch, rate: float, number: int) -> tuple[float, float]:
    """Update the weights by one step; return the loss and the norm of the gradient before it was clipped."""
    import torch

    weights = parameters(trainer.model)
    try:
        loss = step_loss(trainer, batch)
        sum_gradients(weights)
        norm = torch.nn.utils.clip_grad_norm_(weights, trainer.recipe.max_grad_norm)
    except torch.OutOfMemoryError as error:
        raise MediError(
            f"step {number + 1}: {str(error).splitlines()[0]}; give --grad-cache, or a smaller --token-budget or "
            "--batch-size"
        ) from None
    measured = float(loss), float(norm)
    if not all(map(math.isfinite, measured)):
        raise MediError(_not_finite(batch, number, *measured))
    for group in trainer.optimizer.param_groups:
        group["lr"] = rate
    trainer.optimizer.step()
    trainer.optimizer.zero_grad(set_to_none=True)
    return measured


def step_loss(trainer: Trainer, batch: Batch) -> "torch.Tensor":
    """Return the loss of a step over all ranks, a detached scalar; this rank's part of the gradients is then added."""
    import torch

    device = trainer.accelerator.device
    recipe = trainer.recipe
    masks = Masks(*(mask.to(device) for mask in batch.masks))

    def encoded(padded: Padded) -> "torch.Tensor":
        """Return the vectors of a micro-batch, in the recipe's arithmetic."""
        with torch.autocast(device.type, torch.bfloat16, enabled=recipe.dtype == "bfloat16"):
            return encode(trainer.model, padded)

    def loss_of(vectors: "torch.Tensor") -> "torch.Tensor":
        """Return the loss of the whole step, with the vectors of all ranks."""
        columns = gather(vectors, batch.rows, batch.negatives)
        return contrast(*columns, masks, recipe.temperature, recipe.forward_candidates)

    return embed_step(encoded, batch.tokens, loss_of, trainer.micro)


def _not_finite(batch: Batch, number: int, loss: float, norm: float) -> str:
    """Return the line for a run that diverges, with the ids of the batch."""
    shown = " ".join(batch.ids[:_IDS_SHOWN])
    more = f" and {len(batch.ids) - _IDS_SHOWN} more" if len(batch.ids) > _IDS_SHOWN else ""
    return (
        f"step {number + 1} of task {batch.task}: the loss is {loss}, the gradient's norm {norm}; look at its rows "
        f"({shown}{more}), or lower --learning-rate under another --out"
    )


def _summed(trainer: Trainer, batch: Batch) -> list[int]:
    """Return tokens, tokens with their padding, and cut texts of a step, over all ranks."""
    import torch

    numbers = [int(batch.tokens.lengths.sum()), padded_tokens(batch.tokens, trainer.micro), batch.truncated]
    if trainer.collator.world == 1:
        return numbers
    total = trainer.accelerator.reduce(torch.tensor(numbers, device=trainer.accelerator.device))
    return total.tolist()  # pyright: ignore[reportAttributeAccessIssue]


def padded_tokens(tokens: Tokens, micro: MicroParams) -> int:
    """Return how many tokens the micro-batches of a step have, padding included."""
    parts = micro_batches(tokens.lengths, micro)
    widths = [-(-int(tokens.lengths[part].max()) // micro.multiple) * micro.multiple for part in parts]
    return sum(len(part) * width for part, width in zip(parts, widths, strict=True))


def _seed(seed: int, step: int, rank: int) -> int:
    digest = hashlib.sha256(np.array([seed, step, rank], dtype="<i8").tobytes()).digest()
    return int.from_bytes(digest[:7], "little")


def share_seen(tasks: Sequence[TaskRows], recipe: Recipe) -> float:
    """Return which share of the rows the whole run sees at least once."""
    ends = [task.first_row + len(task.negatives) for task in tasks]
    is_seen = np.zeros(max(ends), dtype=bool)
    total = sum(len(task.negatives) for task in tasks)
    before = -1
    for number, (_, step) in enumerate(planned(tasks, recipe), 1):
        is_seen[step.rows] = True
        if number % 4096 == 0:
            # Later epochs may bring nothing new.
            if is_seen.sum() == before:
                break
            before = is_seen.sum()
    return float(is_seen.sum() / total)
