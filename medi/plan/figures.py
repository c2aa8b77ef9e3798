"""A number of a plan and how it is known: read here and now, counted by an earlier build or release, or guessed."""

from collections.abc import Iterable
from dataclasses import dataclass

EXACT, COUNTED, GUESSED = "exact", "counted", "guessed"
# From the surest to the least sure: a sum is as sure as its least sure part.
BASES = (EXACT, COUNTED, GUESSED)
_MARKS = {EXACT: "", COUNTED: "'", GUESSED: "~"}


@dataclass(frozen=True)
class Figure:
    """A value and its `basis`, one of BASES."""

    value: float
    basis: str = GUESSED

    def scaled(self, factor: float, basis: str = EXACT) -> "Figure":
        """Return the figure times a factor of that basis."""
        return Figure(self.value * factor, least_sure((self.basis, basis)))

    def shown(self, text: str | None = None) -> str:
        """Return the value, or its `text`, with the mark of its basis: none, `'` counted before, `~` guessed."""
        return f"{_MARKS[self.basis]}{f'{self.value:,.0f}' if text is None else text}"

    def to_json(self) -> dict[str, float | str]:
        """Return value and basis."""
        return {"value": round(self.value, 3), "basis": self.basis}


def least_sure(bases: Iterable[str]) -> str:
    """Return the basis of what is made of parts with these bases."""
    return max(bases, key=BASES.index, default=EXACT)


def total(figures: Iterable[Figure]) -> Figure:
    """Return the sum; parts that are nothing do not make it less sure."""
    parts = list(figures)
    return Figure(sum(f.value for f in parts), least_sure(f.basis for f in parts if f.value or f.basis == EXACT))
