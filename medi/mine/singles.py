"""Vectors to shortlists by products in float32, of documents where they lie: no copy of them is made."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medi.mine.engine import Proposal, error_bound
from medi.mine.kept import FLOAT32
from medi.mine.shortlist import TILE, Multiply, shortlists
from medi.mine.vectors import Rows

if TYPE_CHECKING:
    import torch

# Documents that are copied at once, where they do not lie one behind the other.
_COPIED = 512


@dataclass(frozen=True)
class Singles:
    """Documents float32 [m, D], and their lengths float64 [m]."""

    vectors: Rows
    lengths: np.ndarray
    kept = FLOAT32

    def best(self, queries: Rows, rows: slice, lengths: np.ndarray, wanted: np.ndarray) -> Proposal:
        """Return shortlists that hold the `wanted` int64 [b] best of each of some queries, and are bounded so.

        `lengths` float64 [b] are those of the queries. Where a list would be too long there is none, and the bound of
        the others is infinite.
        """
        error = error_bound(lengths, self.lengths, self.vectors.dimension)
        asked = queries.tensor(rows)
        in_twos = queries.twice and rows.start % 2 == len(asked) % 2 == 0
        multiply = self._by_parts(asked[::2], queries.negated or 0) if in_twos else self._whole(asked)
        numbers, products, floor = shortlists(multiply, len(self.vectors), wanted, error, self.kept)
        return Proposal(numbers, products, error, floor)

    def _whole(self, asked: "torch.Tensor") -> Multiply:
        """Return what multiplies documents with queries float32 [b, D]."""
        import torch

        def multiply(part: slice, products: "torch.Tensor") -> None:
            """Multiply some documents with all queries."""
            for start in range(0, len(products), _COPIED):
                into = products[start : start + _COPIED]
                first = part.start + start
                torch.mm(self.vectors.tensor(slice(first, first + len(into))), asked.T, out=into)

        return multiply

    def _by_parts(self, asked: "torch.Tensor", middle: int) -> Multiply:
        """Return what multiplies documents with queries [x; y], float32 [b, D], and with [x; -y], in turn [2b].

        The products of x, and those of y, from column `middle` on, are taken once for both.
        """
        import torch

        left, right = (side.contiguous().T for side in (asked[:, :middle], asked[:, middle:]))
        first, second = (self.kept.empty(TILE, len(asked)) for _ in range(2))

        def multiply(part: slice, products: "torch.Tensor") -> None:
            """Multiply some documents with all queries."""
            documents = self.vectors.tensor(part)
            of_x, of_y = first[: len(documents)], second[: len(documents)]
            torch.mm(documents[:, :middle], left, out=of_x)
            torch.mm(documents[:, middle:], right, out=of_y)
            torch.add(of_x, of_y, out=products[:, ::2])
            torch.sub(of_x, of_y, out=products[:, 1::2])

        return multiply
