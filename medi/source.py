"""What a source of raw rows is: where its files are, what one raw line looks like, and how a line becomes a row.

Sources are declared as data in `medi/sources/`, one file a collection; a Variant is one plausible origin of a source.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Fields:
    """What one raw line says, before cleaning: texts as found; `mended` names the repairs that were needed."""

    query: str
    positive: str
    other_positives: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()


class Drop(Exception):
    """A line that is left out and counted; its message is the reason, one snake_case word (`set_of_one`)."""


class Bad(Exception):
    """A line that fails its source (wrong shape or type); its message is the reason in plain words."""


@dataclass(frozen=True)
class File:
    """A raw file: `pattern` is a glob below the `--raw` folder; `remote` the path in the place's repository (or glob)."""

    pattern: str
    remote: str = ""
    size_bytes: int | None = None


@dataclass(frozen=True)
class Variant:
    """One origin of a source: a place, its files, their layout, and the callable that reads one record.

    `place` is `hub:OWNER/NAME` (a dataset repository), an https address, or "" where a person must fetch the files
    (`how` then says what to fetch and where to put it). `sample` is an invented raw line in the true layout.
    """

    name: str
    layout: str
    fields: dict[str, str]
    read: Callable[[Json], Fields]
    sample: str
    place: str
    files: tuple[File, ...]
    lines: int | None = None
    given_negatives: bool = False
    pages: File | None = None
    how: str = ""
    revision: str = "main"


@dataclass(frozen=True)
class Source:
    """One of the 31 rows of Table 5. `variants` stand in order of plausibility; the first one is the default."""

    name: str
    quota_rows: int
    symmetric: bool
    licence: str
    citation: str
    variants: tuple[Variant, ...]
    clusters: bool = False
    notes: tuple[str, ...] = field(default=())

    def variant(self, name: str) -> Variant:
        """Return the variant of that name. Raises KeyError where there is none."""
        return {v.name: v for v in self.variants}[name]
