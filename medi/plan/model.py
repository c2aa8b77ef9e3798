"""An encoder's settings -> how much one batch costs: its floating-point operations and the bytes of its weights."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from medi.plan.lengths import Shapes


@dataclass(frozen=True)
class Model:
    """The shape of a transformer's encoder: layers, width of its states, of attention and of the feed-forward part."""

    layers: int
    width: int
    attention: int
    inner: int
    gated: bool = False
    vocabulary: int = 32_000

    @property
    def parameters(self) -> int:
        """Return the weights that every token is multiplied with."""
        feed_forward = (3 if self.gated else 2) * self.width * self.inner
        return self.layers * (4 * self.width * self.attention + feed_forward)

    @property
    def weight_bytes(self) -> int:
        """Return what the model takes in memory in float32, its embeddings included."""
        return 4 * (self.parameters + self.vocabulary * self.width)

    def flops(self, batches: np.ndarray, shapes: Shapes) -> float:
        """Return the operations of so many batches of each shape, float [len(shapes)]: two a weight and token, and of
        attention, scores and their sums, two each a pair of tokens.
        """
        lengths, rows = (np.array(side, dtype=np.float64) for side in zip(*shapes, strict=True))
        of_batch = rows * lengths * (2 * self.parameters + 4 * self.layers * self.attention * lengths)
        return float((batches * of_batch).sum())


# Of models that are not here, and the tokens that they read at most; as their config.json says on the Hub.
KNOWN = {
    "sentence-transformers/all-MiniLM-L6-v2": (Model(6, 384, 384, 1_536), 256),
    "sentence-transformers/sentence-t5-base": (Model(12, 768, 768, 3_072), 256),
    "sentence-transformers/sentence-t5-large": (Model(24, 1_024, 1_024, 4_096), 256),
    "sentence-transformers/sentence-t5-xl": (Model(24, 1_024, 4_096, 16_384), 256),
    "sentence-transformers/sentence-t5-xxl": (Model(24, 1_024, 16_384, 65_536), 256),
}
# What nobody knows is taken for a model of the size of BERT base.
UNKNOWN = (Model(12, 768, 768, 3_072), 512)


def model_of(config: Mapping[str, object]) -> Model | None:
    """Return the shape that a config.json tells, of BERT's and T5's families alike; None where it tells none."""

    def number(*names: str) -> int:
        """Return the first of these fields that is a whole number, else 0."""
        found = (config.get(name) for name in names)
        return next((value for value in found if isinstance(value, int)), 0)

    layers = number("num_layers", "num_hidden_layers", "n_layers")
    width = number("d_model", "hidden_size", "dim")
    inner = number("d_ff", "intermediate_size", "hidden_dim") or 4 * width
    attention = number("num_heads") * number("d_kv") or width
    gated = str(config.get("feed_forward_proj", "")).startswith("gated")
    if not layers or not width:
        return None
    return Model(layers, width, attention, inner, gated, number("vocab_size") or 32_000)
