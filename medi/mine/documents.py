"""Documents that are searched, and what a search needs of them, made once for several searches."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from medi.mine.halves import Halves, has_matrix_units
from medi.mine.scores import lengths_of
from medi.mine.shortlist import tells_apart
from medi.mine.singles import Singles
from medi.mine.vectors import Rows

# With fewer documents or dimensions FAISS takes no longer than what surrounds a product here.
_LEAST_DOCUMENTS, _LEAST_DIMENSIONS = 2_048, 256


@dataclass(frozen=True)
class Documents:
    """What is searched, m vectors. Shortlists are made `by_halves` or not; where None, as this processor is faster."""

    vectors: Rows
    by_halves: bool | None = None

    @staticmethod
    def of(vectors: "np.ndarray | Rows | Documents") -> "Documents":
        """Return vectors float32 [m, D] as what is searched."""
        return vectors if isinstance(vectors, Documents) else Documents(Rows.of(vectors))

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Return the lengths of the vectors, float64 [m]; MediError where one is none."""
        return lengths_of(self.vectors, "document")

    @cached_property
    def proposer(self) -> Halves | Singles:
        """Return what makes shortlists of the documents."""
        by_halves = has_matrix_units() if self.by_halves is None else self.by_halves
        return Halves.of(self.vectors) if by_halves else Singles(self.vectors, self.lengths)

    def suit_shortlists(self, wanted: int) -> bool:
        """Return whether shortlists of so many wanted documents are faster than FAISS."""
        large = len(self) >= _LEAST_DOCUMENTS and self.vectors.dimension >= _LEAST_DIMENSIONS
        return large and tells_apart(len(self), wanted)
