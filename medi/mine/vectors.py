"""A matrix of vectors to those that are looked for, or among: rows of it in some order, copied block by block only."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Rows:
    """Vectors float32 [n, D]: the rows `at` int64 [n] of a matrix, or all of it where None.

    Values from column `negated` on have their sign turned, if that is given; with `twice` each vector comes twice, one
    behind the other: as it is, and so turned.
    """

    matrix: np.ndarray
    at: np.ndarray | None = None
    negated: int | None = None
    twice: bool = False

    @staticmethod
    def of(vectors: "np.ndarray | Rows") -> "Rows":
        """Return an array's rows, as float32 one behind the other; an array that is so is not copied."""
        return vectors if isinstance(vectors, Rows) else Rows(np.ascontiguousarray(vectors, dtype=np.float32))

    def __len__(self) -> int:
        return len(self.matrix if self.at is None else self.at) * (1 + self.twice)

    @property
    def dimension(self) -> int:
        """Return D."""
        return self.matrix.shape[1]

    def are_twice(self, others: "Rows") -> bool:
        """Return whether these are all of the others, each twice."""
        return self.twice and self.matrix is others.matrix and self.at is others.at is None

    def part(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some of the vectors, float32 [b, D]; a view where they lie so."""
        if self.twice:
            numbers, turned = np.divmod(np.arange(len(self))[rows], 2)
            vectors = self.matrix[numbers if self.at is None else self.at[numbers]]
            vectors[turned == 1, self.negated :] *= -1
            return vectors
        vectors = self.matrix[rows if self.at is None else self.at[rows]]
        if self.negated is not None:
            vectors = vectors.copy()
            np.negative(vectors[:, self.negated :], out=vectors[:, self.negated :])
        return vectors

    def tensor(self, rows: slice | np.ndarray) -> "torch.Tensor":
        """Return some of the vectors, float32 [b, D]; a copy where they must not be written, as torch knows no such."""
        import torch

        vectors = self.part(rows)
        return torch.from_numpy(vectors if vectors.flags.writeable else vectors.copy())

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """Return the rows of the matrix where vectors lie, given by number; -1 for -1."""
        return numbers if self.at is None else np.where(numbers >= 0, self.at.take(numbers, mode="clip"), -1)
