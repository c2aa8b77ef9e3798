"""Runs an encoder over batches of fixed shapes, several at a time: on all cores, or on all GPUs.

Batches have fixed shapes (a token bucket, a fixed number of rows, blanks in the last batch), so a text's vector depends
on that text alone: library batching changed the bits of 18% of vectors when other texts stood beside them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medi.lanes import MOST_LANES, lanes, torch_threads

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Token buckets. Real texts are short (half of them have 19 tokens or fewer), so the short ones are narrow: with 32 as
# the first one 31% of what ran was padding, now it is 11%.
_BUCKETS = (8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512)
# 512 tokens a batch keep one core busy, and blanks cheap. A GPU wants larger batches; the shapes are part of the
# encoder's identity, so both are named in the records.
_BATCH_TOKENS, _GPU_BATCH_TOKENS = 512, 16_384
SHAPES = tuple((length, max(1, _BATCH_TOKENS // length)) for length in _BUCKETS)
GPU_SHAPES = tuple((length, _GPU_BATCH_TOKENS // length) for length in _BUCKETS)
# Of two lanes on a GPU one fills the next batch while the other computes.
_LANES_OF_GPU = 2


def shapes_for(max_length_tokens: int, shapes: Sequence[tuple[int, int]] = SHAPES) -> tuple[tuple[int, int], ...]:
    """Return the (tokens, rows) of an encoder's batches: its own maximum is the last, as it has no position beyond."""
    rows_of_last = next(rows for length, rows in shapes if length >= max_length_tokens)
    return (*(s for s in shapes if s[0] < max_length_tokens), (max_length_tokens, rows_of_last))


# Takes how many more texts are encoded.
Seen = Callable[[int], None]


def unseen(texts: int) -> None:
    """Take how many texts are encoded, for nobody."""


class _Batch(NamedTuple):
    """Some texts by their places, and the shape that they are padded to."""

    members: np.ndarray
    length: int
    rows: int


class FixedShapes:
    """An encoder: one model, or equal ones on several GPUs, run over batches of fixed shapes.

    On a CPU a lane has one thread: one batch on two cores kept 1.2 of them busy, two batches keep both. Beyond 16 cores
    lanes have more. How many there are changes no bit.
    """

    def __init__(self, models: Sequence["SentenceTransformer"], shapes: Sequence[tuple[int, int]]) -> None:
        self._models = [model.eval() for model in models]
        self._shapes = shapes
        self._pad = models[0].tokenizer.pad_token_id or 0
        on_cpu = models[0].device.type == "cpu"
        cores = torch_threads()
        self._lanes = min(cores, MOST_LANES) if on_cpu else _LANES_OF_GPU * len(models)
        self._threads = cores // self._lanes if on_cpu else 1

    def encode(self, token_ids: Sequence[Sequence[int]], seen: Seen = unseen) -> np.ndarray:
        """Return unit vectors, float32 [n, D]; a row of NaN where the model's vector is not finite or zero.

        After each batch `seen` gets its number of texts.
        """
        batches = list(self._batches(token_ids))
        if not batches:
            return np.empty((0, 0), dtype=np.float32)
        turns = (self._models[number % len(self._models)] for number in range(len(batches)))
        parts = []
        with lanes(self._lanes, self._threads) as pool:
            encoded = pool.map(partial(self._forward, token_ids), batches, turns)
            # Where this is stopped, no lane goes on to the end.
            with closing(encoded):  # pyright: ignore[reportArgumentType]
                for batch, vectors in zip(batches, encoded, strict=True):
                    parts.append(vectors)
                    seen(len(batch.members))
        out = np.empty((len(token_ids), parts[0].shape[1]), dtype=np.float32)
        for batch, vectors in zip(batches, parts, strict=True):
            out[batch.members] = vectors
        return out

    def _batches(self, token_ids: Sequence[Sequence[int]]) -> Iterator[_Batch]:
        """Yield the batches, long ones first: what is left at the end, when lanes fall idle, is short."""
        lengths = np.array([len(ids) for ids in token_ids])
        buckets = np.searchsorted([length for length, _ in self._shapes], lengths)
        for bucket, (length, rows) in reversed(list(enumerate(self._shapes))):
            members = np.flatnonzero(buckets == bucket)
            for start in range(0, len(members), rows):
                yield _Batch(members[start : start + rows], length, rows)

    def _forward(self, token_ids: Sequence[Sequence[int]], batch: _Batch, model: "SentenceTransformer") -> np.ndarray:
        """Return the unit vectors of one batch padded to [rows, length]; blank rows keep one pad token in sight."""
        import torch

        ids = np.full((batch.rows, batch.length), self._pad, dtype=np.int64)
        mask = np.zeros((batch.rows, batch.length), dtype=np.int64)
        mask[:, 0] = 1
        for row, place in enumerate(batch.members):
            tokens = token_ids[place]
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        with torch.inference_mode():
            features = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
            output = model({k: v.to(model.device) for k, v in features.items()})["sentence_embedding"]
        return unit_length(output[: len(batch.members)].float().cpu().numpy())


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """Return float32 vectors [n, D] at length 1; a row that is zero or not finite becomes NaN as a whole."""
    norms = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1))
    norms[~np.isfinite(norms) | (norms == 0)] = np.nan
    return (vectors / norms[:, None]).astype(np.float32)
