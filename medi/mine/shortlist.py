"""Vectors to shortlists: from products in bfloat16, the documents that can be among the best, and what bounds the rest.

Processors with matrix units take such products many times as fast as those in float32. What that loses is bounded, by
the roundings of both vectors, of the product and of the exact score, and all within that bound of the k-th are listed.
Documents are looked at by the maximum of each 16 first, so that few scores are ever compared.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from medi.mine.engine import Proposal
from medi.mine.vectors import Rows

if TYPE_CHECKING:
    import torch

# With fewer documents or dimensions the float32 product of FAISS takes no longer than what surrounds one here.
_LEAST_DOCUMENTS, _LEAST_DIMENSIONS = 2_048, 256
# Documents that are looked at together, and those that are rounded together, to stay in the cache.
_GROUP, _PART = 16, 256
# Products of so many documents and queries stay in the cache until the best of them are listed.
_TILE, _MOST_QUERIES = 4_096, 512
# Longer lists, even for a time, are left to a scan, which costs no more then; and what a query's list may take.
_LONGEST, _LISTED_BYTES = 2_048, 32_768
# Half the distance of neighbouring bfloat16 (8 bits) just above 1, the whole one of float32 (24), and a little more.
_HALF_STEP, _STEP = 2.0**-8 * 1.01, 2.0**-23 * 1.01
# Matrix units take numbers below 2^-126 for 0; sums of greater products than 2^120 may be infinite on their way.
_FLUSHED, _GREATEST = 2.0**-100, 2.0**120
# Before every product in the order of their bits.
_LOWEST = np.iinfo(np.int16).min
# What is shorter may have a length of 0 in float32, as its squares have.
_NO_LENGTH = 2.0**-50


@dataclass(frozen=True)
class Halves:
    """Documents less their mean in bfloat16 [m, D], the mean float32 [D]; the greatest length of one, and of what the
    roundings took from one.
    """

    vectors: "torch.Tensor"
    mean: np.ndarray
    length: float
    lost: float

    @staticmethod
    def of(documents: Rows) -> "Halves":
        """Return the documents [m, D], rounded; what they have in common is taken off, as it orders nothing."""
        import torch

        vectors, parts = _empty(len(documents), documents.dimension), range(0, len(documents), _PART)
        mean = np.zeros(documents.dimension)
        # Where a sum is none, neither is the bound.
        with np.errstate(over="ignore", invalid="ignore"):
            for start in parts:
                mean += documents.part(slice(start, start + _PART)).sum(axis=0)
        mean = (mean / len(documents)).astype(np.float32)
        common, length, lost = torch.from_numpy(mean), 0.0, 0.0
        rests, rounded = (torch.empty((_PART, documents.dimension)) for _ in range(2))
        for start in parts:
            part = torch.from_numpy(documents.part(slice(start, start + _PART)))
            rest, near = rests[: len(part)], rounded[: len(part)]
            torch.sub(part, common, out=rest)
            vectors[start : start + len(part)] = rest
            near.copy_(vectors[start : start + len(part)])
            length = max(length, float(_lengths(near).max()))
            lost = max(lost, float(_lengths(rest.sub_(near)).max()))
        # The difference from the mean was rounded too.
        return Halves(vectors, mean, length, lost + (length + lost) * _STEP)

    def block_rows(self, queries: int, lanes: int, scan_bytes: int) -> int:
        """Return how many queries a lane takes at once, so that all lanes have some and stay within the bytes."""
        query_bytes = 2 * _TILE + _LISTED_BYTES
        return max(1, min(scan_bytes // (lanes * query_bytes), _MOST_QUERIES, -(-queries // lanes)))

    def best(self, queries: np.ndarray, lengths: np.ndarray, wanted: np.ndarray) -> Proposal:
        """Return shortlists that hold the `wanted` int64 [b] best of each query float32 [b, D], and are bounded so.

        `lengths` float64 [b] are those of the queries. Where a list would be too long there is none, and the bound of
        the others is infinite.
        """
        import torch

        count, asked = len(queries), torch.from_numpy(queries).bfloat16()
        error = self._error(lengths, _lengths(torch.from_numpy(queries) - asked))
        # Documents lie in rows: so products are written where they stay, and maxima are taken of whole rows.
        tile, highest, lists = _empty(_TILE, count), _Highest(wanted), _Lists(count)
        cut = np.zeros(count)
        for start in range(0, len(self.vectors), _TILE):
            vectors = self.vectors[start : start + _TILE]
            groups = -(-len(vectors) // _GROUP)
            torch.mm(vectors, asked.T, out=tile[: len(vectors)])
            tile[len(vectors) : groups * _GROUP] = -torch.inf
            # Read as whole numbers, which compare faster, bfloat16 above 0 keep their order and stay above all others.
            products = tile.view(torch.int16)[: groups * _GROUP].view(groups, _GROUP, count)
            maxima = products.amax(dim=1)
            highest.add(maxima.T.contiguous().numpy())
            # So the cut rises from tile to tile, and little is listed in vain.
            cut = highest.cut(error)
            lists.add(start, products.numpy(), maxima.numpy(), cut)
        numbers, rough, short = lists.above(cut)
        # By torch: numpy's threads would not be those of this lane.
        means = torch.mv(torch.from_numpy(queries), torch.from_numpy(self.mean)).numpy().astype(np.float64)
        # Numbers too large for float32 give no bound.
        with np.errstate(invalid="ignore", over="ignore"):
            floor = np.where(short & np.isfinite(cut), cut + np.abs(cut) * _HALF_STEP + error + means, np.inf)
        error += np.abs(rough).max(axis=1, initial=0) * _HALF_STEP
        return Proposal(numbers, rough + means[:, None], error, floor)

    def _error(self, length: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """Return what a query's score, before its product is rounded itself, is off by at most, float64 [b].

        The roundings took `lost` [b] from vectors of `length` [b].
        """
        dimension, most = len(self.mean), length + lost
        summed = (dimension + 4) * _STEP * most * self.length + (1 + most + self.length) * _FLUSHED
        # The mean's own product, and the exact score, are in float32 too.
        mean = float(np.linalg.norm(self.mean.astype(np.float64)))
        told = _STEP * length * ((dimension + 4) * mean + self.length + self.lost)
        error = length * self.lost + lost * self.length + summed + told
        return np.where(most * max(self.length, mean) < _GREATEST, error, np.inf)


def pays(documents: Rows, wanted: int) -> bool:
    """Return whether shortlists are faster than FAISS here: whether there are matrix units, and enough to multiply."""
    # A tile must tell the wanted from the others.
    enough = len(documents) >= max(_LEAST_DOCUMENTS, 2 * wanted * _GROUP) and 2 * wanted * _GROUP <= _TILE
    return enough and documents.dimension >= _LEAST_DIMENSIONS and _has_matrix_units()


@cache
def _has_matrix_units() -> bool:
    """Return whether this processor multiplies matrices of bfloat16."""
    import torch

    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


def _empty(*shape: int) -> "torch.Tensor":
    """Return an array of bfloat16 to be filled; made by numpy, which asks for large pages, as torch does not."""
    import torch

    return torch.from_numpy(np.empty(shape, dtype=np.int16)).view(torch.bfloat16)


def _lengths(vectors: "torch.Tensor") -> np.ndarray:
    """Return what vectors float32 [b, D] are no longer than, and hardly shorter, float64 [b]."""
    import torch

    lengths = torch.linalg.vector_norm(vectors, dim=1).numpy().astype(np.float64)
    return lengths * (1 + (vectors.shape[1] + 4) * _STEP) + _NO_LENGTH


def _numbers_of(bits: np.ndarray) -> np.ndarray:
    """Return bfloat16, given as int16, as float32."""
    return (bits.astype(np.int32) << 16).view(np.float32)


class _Highest:
    """Of each query the `wanted` int64 [b] highest maxima of groups of products so far, bfloat16 read as int16."""

    def __init__(self, wanted: np.ndarray) -> None:
        self._wanted = wanted
        self._top = np.full((len(wanted), int(wanted.max())), _LOWEST, dtype=np.int16)

    def add(self, maxima: np.ndarray) -> None:
        """Look at more maxima [b, g]."""
        most = self._top.shape[1]
        self._top = np.partition(np.hstack([self._top, maxima]), -most, axis=1)[:, -most:]

    def cut(self, error: np.ndarray) -> np.ndarray:
        """Return below which product no document is among the wanted, float64 [b].

        Each product, before it is rounded to bfloat16, is off by `error` float64 [b] at most.
        """
        self._top.sort(axis=1)
        last = self._top[np.arange(len(self._top)), -self._wanted]
        # What is not above 0 is in no order here; nothing is cut off.
        exact = np.where(last > 0, _numbers_of(last), 0).astype(np.float64)
        # The last wanted one scores exactly at least this: what cannot reach it is not listed.
        with np.errstate(invalid="ignore", over="ignore"):
            least = exact * (1 - _HALF_STEP) - error
            return least - error - np.abs(least - error) * _HALF_STEP


def _bits_of(cut: np.ndarray) -> np.ndarray:
    """Return the greatest bfloat16 above 0 that is not above the cut [b], as int16; where there is none, the least."""
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.nextafter(np.where(cut > _FLUSHED, cut, 0).astype(np.float32), np.float32(0))
    return np.maximum(near.view(np.int32) >> 16, 1).astype(np.int16)


class _Lists:
    """The products of each query that reached the cut of their time, bfloat16 read as int16."""

    def __init__(self, count: int) -> None:
        self._lengths = np.zeros(count, dtype=np.int64)
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, first: int, products: np.ndarray, maxima: np.ndarray, cut: np.ndarray) -> None:
        """List what reaches `cut` [b] of the products [g, 16, b] of documents from `first` on; no list grows too long.

        `maxima` [g, b] are the greatest of each 16 documents.
        """
        least = _bits_of(cut)
        picked = (maxima >= least) & (self._lengths <= _LONGEST)
        # In the order of the groups, which is that of the memory.
        groups, rows = np.divmod(np.flatnonzero(picked), len(cut))
        taken = products[groups, :, rows]
        pairs, steps = np.divmod(np.flatnonzero(taken >= least[rows, None]), _GROUP)
        documents = first + groups[pairs] * _GROUP + steps
        self._parts.append((rows[pairs].astype(np.uint16), documents.astype(np.int32), taken[pairs, steps]))
        self._lengths += np.bincount(rows[pairs], minlength=len(cut))

    def above(self, cut: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what of the lists reaches `cut` [b]: documents int64 [b, c], -1 behind them, and products [b, c].

        The third value is which lists are there, bool [b]: what was listed is all, and not too long.
        """
        rows, documents, bits = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        usable = (self._lengths <= _LONGEST) & (cut > _FLUSHED)
        reached = (bits >= _bits_of(cut)[rows]) & usable[rows]
        rows, documents, bits = rows[reached], documents[reached], bits[reached]
        order = np.argsort(rows, kind="stable")
        rows, lengths = rows[order], np.bincount(rows, minlength=len(cut))
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        numbers = np.full((len(cut), int(lengths.max(initial=0))), -1, dtype=np.int64)
        products = np.zeros(numbers.shape, dtype=np.float32)
        numbers[rows, columns], products[rows, columns] = documents[order], _numbers_of(bits[order])
        return numbers, products, usable
