"""Vectors to shortlists by products in bfloat16, which matrix units take many times as fast as those in float32.

What that loses is bounded by the roundings of both vectors, of the product and of the exact score.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from medi.mine.engine import Proposal
from medi.mine.kept import BFLOAT16, FLUSHED
from medi.mine.shortlist import shortlists
from medi.mine.vectors import Rows

if TYPE_CHECKING:
    import torch

# Documents that are rounded together, to stay in the cache.
_PART = 256
# The distance of neighbouring float32 (24 bits) just above 1, and a little more.
_STEP = 2.0**-23 * 1.01
# Sums of greater products may be infinite on their way.
_GREATEST = 2.0**120
# What is shorter may have a length of 0 in float32, as its squares have.
_NO_LENGTH = 2.0**-50


@cache
def has_matrix_units() -> bool:
    """Return whether this processor multiplies matrices of bfloat16."""
    import torch

    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


@dataclass(frozen=True)
class Halves:
    """Documents less their mean in bfloat16 [m, D], the mean float32 [D]; the greatest length of one, and of what the
    roundings took from one.
    """

    vectors: "torch.Tensor"
    mean: np.ndarray
    length: float
    lost: float
    kept = BFLOAT16

    @staticmethod
    def of(documents: Rows) -> "Halves":
        """Return the documents [m, D], rounded; what they have in common is taken off, as it orders nothing."""
        import torch

        vectors = BFLOAT16.empty(len(documents), documents.dimension)
        parts, mean = range(0, len(documents), _PART), np.zeros(documents.dimension)
        # Where a sum is none, neither is the bound.
        with np.errstate(over="ignore", invalid="ignore"):
            for start in parts:
                mean += documents.part(slice(start, start + _PART)).sum(axis=0)
        mean = (mean / len(documents)).astype(np.float32)
        common, length, lost = torch.from_numpy(mean), 0.0, 0.0
        rests, rounded = (torch.empty((_PART, documents.dimension)) for _ in range(2))
        for start in parts:
            part = documents.tensor(slice(start, start + _PART))
            rest, near = rests[: len(part)], rounded[: len(part)]
            torch.sub(part, common, out=rest)
            vectors[start : start + len(part)] = rest
            near.copy_(vectors[start : start + len(part)])
            length = max(length, float(_lengths(near).max()))
            lost = max(lost, float(_lengths(rest.sub_(near)).max()))
        # The difference from the mean was rounded too.
        return Halves(vectors, mean, length, lost + (length + lost) * _STEP)

    def best(self, queries: Rows, rows: slice, lengths: np.ndarray, wanted: np.ndarray) -> Proposal:
        """Return shortlists that hold the `wanted` int64 [b] best of each of some queries, and are bounded so.

        `lengths` float64 [b] are those of the queries. Where a list would be too long there is none, and the bound of
        the others is infinite.
        """
        import torch

        whole = queries.tensor(rows)
        asked = whole.bfloat16()
        error = self._error(lengths, _lengths(whole - asked))

        def multiply(part: slice, products: "torch.Tensor") -> None:
            """Multiply some documents with the queries."""
            torch.mm(self.vectors[part], asked.T, out=products)

        numbers, rough, floor = shortlists(multiply, len(self.vectors), wanted, error, self.kept)
        # By torch: numpy's threads would not be those of this lane.
        means = torch.mv(whole, torch.from_numpy(self.mean)).numpy().astype(np.float64)
        error += np.abs(rough).max(axis=1, initial=0) * self.kept.lost
        # Where there is no bound the mean's product may be none either.
        np.add(floor, means, out=floor, where=np.isfinite(floor))
        return Proposal(numbers, rough + means[:, None], error, floor)

    def _error(self, length: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """Return what a query's score, before its product is rounded itself, is off by at most, float64 [b].

        The roundings took `lost` [b] from vectors of `length` [b].
        """
        dimension, most = len(self.mean), length + lost
        summed = (dimension + 4) * _STEP * most * self.length + (1 + most + self.length) * FLUSHED
        # The mean's own product, and the exact score, are in float32 too.
        mean = float(np.linalg.norm(self.mean.astype(np.float64)))
        told = _STEP * length * ((dimension + 4) * mean + self.length + self.lost)
        error = length * self.lost + lost * self.length + summed + told
        return np.where(most * max(self.length, mean) < _GREATEST, error, np.inf)


def _lengths(vectors: "torch.Tensor") -> np.ndarray:
    """Return what vectors float32 [b, D] are no longer than, and hardly shorter, float64 [b]."""
    import torch

    lengths = torch.linalg.vector_norm(vectors, dim=1).numpy().astype(np.float64)
    return lengths * (1 + (vectors.shape[1] + 4) * _STEP) + _NO_LENGTH
