"""Ragged token ids of many texts, and how some of them become one padded batch.

Nothing is padded before the micro-batch is known: texts of all columns of a step lie here end to end, and only the rows
that meet in a forward pass are padded, to the longest of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import torch

Side = Literal["right", "left"]


@dataclass(frozen=True)
class Tokens:
    """Token ids of n texts, special tokens included; text i owns `ids[offsets[i]:offsets[i + 1]]`.

    `pooled_from[i]` is the place, in the text's own ids, of the first token that is pooled: the instruction and the
    opening special token stand before it, the text and the closing special token from there on.
    """

    ids: np.ndarray
    offsets: np.ndarray
    pooled_from: np.ndarray

    def __len__(self) -> int:
        return len(self.pooled_from)

    @property
    def lengths(self) -> np.ndarray:
        """Return the tokens of each text, int64 [n]."""
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> "Tokens":
        """Return the texts of these row numbers, in their order."""
        rows = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[rows]
        offsets = _offsets(lengths)
        # Where a token stands in its text, plus where the text begins here.
        places = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - self.offsets[rows], lengths)
        return Tokens(self.ids[places], offsets, self.pooled_from[rows])

    @staticmethod
    def of(texts: Sequence[Sequence[int]], pooled_from: Sequence[int]) -> "Tokens":
        """Return the token lists of n texts as one value."""
        ids = np.concatenate([np.asarray(text, dtype=np.int32) for text in texts] or [np.empty(0, np.int32)])
        return Tokens(ids, _offsets([len(text) for text in texts]), np.asarray(pooled_from, dtype=np.int32))

    @staticmethod
    def concat(parts: Sequence["Tokens"]) -> "Tokens":
        """Return the texts of all parts, one part after the other."""
        return Tokens(
            np.concatenate([part.ids for part in parts]),
            _offsets(np.concatenate([part.lengths for part in parts])),
            np.concatenate([part.pooled_from for part in parts]),
        )


class Padded(NamedTuple):
    """One forward pass: int64 [n, width] each; `pooled_mask` is a part of `attention_mask`."""

    input_ids: "torch.Tensor"
    attention_mask: "torch.Tensor"
    pooled_mask: "torch.Tensor"


def pad(tokens: Tokens, rows: np.ndarray, pad_id: int, side: Side = "right", multiple: int = 1) -> Padded:
    """Return these rows padded to the longest of them, rounded up to a multiple; each tensor [len(rows), width]."""
    import torch

    taken = tokens.take(rows)
    lengths = taken.lengths[:, None]
    width = -(-int(lengths.max(initial=1)) // multiple) * multiple
    # The place of each column in the text's own ids: negative or beyond its length where there is padding.
    places = np.arange(width)[None, :] - (width - lengths if side == "left" else 0)
    real = (places >= 0) & (places < lengths)
    ids = np.full(real.shape, pad_id, dtype=np.int64)
    ids[real] = taken.ids
    pooled = real & (places >= taken.pooled_from[:, None])
    return Padded(*(torch.from_numpy(array.astype(np.int64)) for array in (ids, real, pooled)))


def _offsets(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """Return where each text begins and the last one ends, int64 [n + 1]."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
