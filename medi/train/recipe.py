"""Everything that decides the weights of a run, by the names of the command's options; and what decides its speed.

Equal recipes give equal weights on equal processors, so a run that was stopped may go on where its recipe is the same.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Literal, get_args

from medi.errors import UsageError
from medi.train.ablations import Ablation
from medi.train.batches import PlanParams, Remainder, Sampling
from medi.train.loss import ForwardCandidates

Dtype = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Recipe:
    """What decides the weights. The defaults are the paper's: 20,000 steps, AdamW 2e-5, temperature 0.01.

    `batch_size` are the rows of a step over all processes; `negatives` is the most of a row, None for all it has;
    `max_length` is in tokens, None for the model's own; `dtype` is the arithmetic, the weights are float32 in both.
    `model`, `release` and `left_out` are filled in when the run begins: what was trained, on what, without what.
    """

    max_steps: int = 20_000
    batch_size: int = 64
    negatives: int | None = None
    temperature: float = 0.01
    forward_candidates: ForwardCandidates = "all"
    mask_same_label: bool = False
    sampling: Sampling = "size"
    sampling_temperature: float = 2.0
    remainder: Remainder = "keep"
    ablation: Ablation = field(default_factory=Ablation)
    skip_long_instructions: bool = False
    max_length: int | None = None
    learning_rate: float = 2e-5
    warmup_ratio: float = 0.1
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    dtype: Dtype = "float32"
    seed: int = 0
    model: Mapping[str, str] = field(default_factory=dict)
    release: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def plan(self) -> PlanParams:
        """Return what the plan of the batches depends on."""
        return PlanParams(
            self.seed, self.batch_size, self.sampling, self.sampling_temperature, self.remainder,
            needs_negatives=self.forward_candidates == "negatives",
        )  # fmt: skip

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of a step, from 0: up in a straight line for the warm-up, then down towards 0."""
        warm_up = math.ceil(self.max_steps * self.warmup_ratio)
        if step < warm_up:
            return self.learning_rate * (step + 1) / warm_up
        return self.learning_rate * (self.max_steps - step) / max(1, self.max_steps - warm_up)

    def check(self) -> "Recipe":
        """Return self. Raises UsageError for a value that no run can have; the message names the option."""
        for option, known in _CHOICES.items():
            if getattr(self, option) not in known:
                raise UsageError(f"--{_dashed(option)} {getattr(self, option)}: give one of {', '.join(known)}")
        for option, (is_good, wanted) in _RANGES.items():
            value = getattr(self, option)
            if value is not None and not is_good(value):
                raise UsageError(f"--{_dashed(option)} {value}: give {wanted}")
        if self.forward_candidates == "negatives" and self.negatives == 0:
            told = "no query would have a negative to tell its positive from"
            raise UsageError(
                f"--forward-candidates negatives and --negatives 0: {told}; give more --negatives, or "
                "--forward-candidates all"
            )
        self.ablation.check()
        return self

    def to_json(self) -> dict[str, object]:
        """Return the recipe as a dict with a JSON form, the ablation's options among the others."""
        plain: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "ablation"}
        given = {"model": dict(self.model), "release": dict(self.release), "left_out": list(self.left_out)}
        return plain | asdict(self.ablation) | given


@dataclass(frozen=True)
class Resources:
    """What decides speed, memory and how much is kept; of the weights only rounding, and what dropout draws for a text.

    `token_budget`: padded tokens a micro-batch, None for what suits the device. `cached`: gradient cache, for steps
    larger than memory. `save_every` in steps, of which the last `keep` stay. `prefetch`: steps made ready ahead.
    `trackers`: who is told of the losses.
    """

    token_budget: int | None = None
    cached: bool = False
    compile: bool = False
    cpu: bool = False
    save_every: int = 500
    keep: int = 2
    prefetch: int = 4
    trackers: tuple[str, ...] = ("tensorboard",)

    def drawn(self) -> dict[str, object]:
        """Return what decides which numbers dropout draws for which text; a run goes on with the same only."""
        return {"token_budget": self.token_budget, "compile": self.compile}

    def check(self) -> "Resources":
        """Return self. Raises UsageError for a number below 1 or too large to be meant."""
        is_good, wanted = _WHOLE
        for option in ("token_budget", "save_every", "keep", "prefetch"):
            if (value := getattr(self, option)) is not None and not is_good(value):
                raise UsageError(f"--{_dashed(option)} {value}: give {wanted}")
        return self


def difference(before: Mapping[str, object], now: Mapping[str, object]) -> str:
    """Return the first option in which two recipes differ, as `--batch-size 64, not 32`; "" where there is none."""
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            return f"--{_dashed(name)} {before.get(name)}, not {now.get(name)}"
    return ""


def _dashed(name: str) -> str:
    return name.replace("_", "-")


_CHOICES = {
    "forward_candidates": get_args(ForwardCandidates),
    "sampling": get_args(Sampling),
    "remainder": get_args(Remainder),
    "dtype": get_args(Dtype),
}
_ABOVE_0 = (lambda value: math.isfinite(value) and value > 0, "a number above 0")
_MOST = 2**31 - 1
_WHOLE = (lambda value: 1 <= value <= _MOST, f"at least 1, at most {_MOST}")
_RANGES = {
    "max_steps": _WHOLE,
    "batch_size": _WHOLE,
    "negatives": (lambda value: 0 <= value <= _MOST, f"0 or more, at most {_MOST}"),
    "temperature": _ABOVE_0,
    "sampling_temperature": _ABOVE_0,
    "max_length": (lambda value: value >= 24, "at least 24 tokens: 16 are for the text"),
    "learning_rate": (lambda value: 0 < value < 1e30, "a number above 0 and below 1e30"),
    "warmup_ratio": (lambda value: 0 <= value < 1, "a share from 0 to below 1"),
    "weight_decay": (lambda value: math.isfinite(value) and value >= 0, "0 or more"),
    "max_grad_norm": _ABOVE_0,
    "seed": (lambda value: 0 <= value <= _MOST, f"a whole number from 0 to {_MOST}"),
}
