"""What names a source of a person's own: small and picklable, so that every process can load the rest of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

# As many as a set of the middle of Table 5 gives.
QUOTA_ROWS = 50_000
# More is a slip: no set has so many, and numbers of rows are to fit into 64 bits after scaling.
MOST_ROWS = 1_000_000_000


@dataclass(frozen=True)
class SourceFile:
    """A Python file as it was when it was named: another digest is another source."""

    path: Path
    sha256: str

    @property
    def what(self) -> str:
        """Return the file as a person named it."""
        return f"--source {self.path.name}"


@dataclass(frozen=True)
class Pairs:
    """What was asked for, and how many rows it may give; `place` is an absolute path, or a name on the Hub."""

    place: str
    query_field: str
    positive_field: str = ""
    negatives_field: str = ""
    label_field: str = ""
    name: str = ""
    rows: int | None = None
    quota_rows: int = QUOTA_ROWS

    FIELDS: ClassVar = ("query_field", "positive_field", "negatives_field", "label_field")

    @property
    def is_file(self) -> bool:
        """Return whether the place is a file on this disk."""
        return Path(self.place).is_absolute()

    @property
    def what(self) -> str:
        """Return the place as a person named it."""
        return f"--pairs {Path(self.place).name if self.is_file else self.place}"

    def asked(self) -> Iterator[tuple[str, str | int | None]]:
        """Yield (name, value) of what was asked for beside the place."""
        yield from ((name, getattr(self, name)) for name in (*self.FIELDS, "name", "rows"))

    def fields(self) -> dict[str, str]:
        """Return our name -> theirs of the fields that are read."""
        theirs = {name.removesuffix("_field"): getattr(self, name) for name in self.FIELDS}
        return {ours: name for ours, name in theirs.items() if name}
