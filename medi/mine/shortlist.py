"""Vectors to shortlists: from products in bfloat16, the documents that can be among the best, and what bounds the rest.

Processors with matrix units take such products several times as fast as those in float32. What that loses is bounded,
by the roundings of both vectors, of the product and of the exact score, and all within that bound of the k-th are
listed. Documents are looked at by the maximum of each 16 first, so that few scores are ever compared.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import torch

# With fewer documents or dimensions the float32 product of FAISS takes no longer than what surrounds one here.
_LEAST_DOCUMENTS, _LEAST_DIMENSIONS = 2_048, 256
# Documents that are looked at together, and those that are rounded together, to stay in the cache.
_GROUP, _PART = 16, 2_048
# Longer lists are left to a scan, which costs no more then.
_LONGEST = 1_024
# A query's share of what is made beside its scores: groups, lists, keys.
_QUERY_BYTES = 32_768
# Half the distance of neighbouring bfloat16, and that of float32, for numbers just above 1, and a little more.
_HALF_STEP, _STEP = 2.0**-9 * 1.01, 2.0**-23 * 1.01
# Matrix units take numbers below 2^-126 for 0.
_FLUSHED = 2.0**-100


class Shortlists(NamedTuple):
    """For each query documents, `numbers` int64 [b, c], -1 behind them; the others score at most `floor` float64 [b].

    Where a list would be too long there is none, and `floor` is infinite.
    """

    numbers: np.ndarray
    floor: np.ndarray


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
    def of(documents: np.ndarray) -> "Halves":
        """Return the documents float32 [m, D], rounded; what they have in common is taken off, as it orders nothing."""
        import torch

        vectors = torch.empty(documents.shape, dtype=torch.bfloat16)
        mean, length, lost = documents.mean(axis=0), 0.0, 0.0
        for start in range(0, len(documents), _PART):
            exact = torch.from_numpy(documents[start : start + _PART] - mean)
            vectors[start : start + len(exact)] = exact
            rounded = vectors[start : start + len(exact)].float()
            length = max(length, float(_lengths(rounded).max()))
            lost = max(lost, float(_lengths(exact.sub_(rounded)).max()))
        # The difference from the mean was rounded too.
        return Halves(vectors, mean, length, lost + (length + lost) * _STEP)

    def room(self, queries: int) -> "torch.Tensor":
        """Return where the scores of so many queries are written, again and again: bfloat16 [groups, 16, queries]."""
        import torch

        # Documents lie in rows: so products are written where they stay, and maxima are taken of whole rows.
        scores = torch.empty((-(-len(self.vectors) // _GROUP), _GROUP, queries), dtype=torch.bfloat16)
        scores.view(-1, queries)[len(self.vectors) :] = -torch.inf
        return scores

    def query_bytes(self) -> int:
        """Return what one query takes while it is looked for."""
        return len(self.vectors) * 2 + _QUERY_BYTES

    def best(self, queries: np.ndarray, wanted: np.ndarray, room: "torch.Tensor") -> Shortlists:
        """Return shortlists that hold the `wanted` int64 [b] best of each query float32 [b, D]; for large b, fast."""
        import torch

        exact = torch.tensor(queries)
        asked = exact.bfloat16()
        error, means = self._error(exact, asked.float()), queries @ self.mean.astype(np.float64)
        scores = room.view(-1, room.shape[2])[: len(self.vectors)]
        torch.mm(self.vectors, asked.T, out=scores)
        # Read as whole numbers, which compare faster, bfloat16 above 0 keep their order and stay above all others.
        maxima = room.view(torch.int16).amax(dim=1).view(torch.bfloat16).T.contiguous().float().numpy()
        last = _nth(maxima, wanted).astype(np.float64)
        # Numbers too large for float32 give no bound, and no list.
        with np.errstate(invalid="ignore", over="ignore"):
            # The last wanted one scores exactly at least this: what cannot reach it is not listed.
            least = last - np.abs(last) * _HALF_STEP - error
            cut = least - error - np.abs(least - error) * _HALF_STEP
            floor = cut + np.abs(cut) * _HALF_STEP + error + means
        numbers, short = _listed(room, maxima, cut)
        return Shortlists(numbers, np.where(short, floor, np.inf))

    def _error(self, exact: "torch.Tensor", rounded: "torch.Tensor") -> np.ndarray:
        """Return what a query's product, before it is rounded itself, is off by at most, float64 [b]."""
        length, lost, rest = (_lengths(part) for part in (exact, exact - rounded, rounded))
        summed = (exact.shape[1] + 4) * _STEP * rest * self.length + (1 + rest + self.length) * _FLUSHED
        # The exact score is one in float32.
        told = _STEP * length * (self.length + self.lost + float(np.linalg.norm(self.mean.astype(np.float64))))
        return length * self.lost + lost * self.length + summed + told


def pays(documents: np.ndarray, wanted: int) -> bool:
    """Return whether shortlists are faster than FAISS here: whether there are matrix units, and enough to multiply."""
    enough = len(documents) >= max(_LEAST_DOCUMENTS, 2 * wanted * _GROUP)
    return enough and documents.shape[1] >= _LEAST_DIMENSIONS and _has_matrix_units()


@cache
def _has_matrix_units() -> bool:
    """Return whether this processor multiplies matrices of bfloat16."""
    import torch

    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


def _lengths(vectors: "torch.Tensor") -> np.ndarray:
    import torch

    return torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64).numpy()


def _nth(scores: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return of each row the score that `wanted` [b] of its scores [b, g], this one included, reach."""
    most = int(wanted.max())
    top = np.partition(scores, -most, axis=1)[:, -most:]
    top.sort(axis=1)
    return top[np.arange(len(top)), -wanted]


def _listed(grouped: "torch.Tensor", maxima: np.ndarray, cut: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of all that score at least `cut`, int64 [b, c], and which lists are short enough, bool [b]."""
    import torch

    picked = maxima >= cut[:, None]
    short = (cut > 0) & (picked.sum(axis=1) <= _LONGEST)
    rows, groups = np.nonzero(picked & short[:, None])
    scores = grouped[torch.from_numpy(groups), :, torch.from_numpy(rows)].float().numpy()
    pairs, steps = np.nonzero(scores >= cut[rows, None])
    rows, documents = rows[pairs], groups[pairs] * _GROUP + steps
    lengths = np.bincount(rows, minlength=len(cut))
    short &= lengths <= _LONGEST
    there = short[rows]
    places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    numbers = np.full((len(cut), int(lengths[short].max(initial=0))), -1, dtype=np.int64)
    numbers[rows[there], places[there]] = documents[there]
    return numbers, short
