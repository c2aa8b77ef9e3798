"""A release: the folder a build ends in, opened by its manifest; everything about it is read from the folder alone.

`Release` is lazy: opening reads manifest.json and nothing else, rows come one row group at a time.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from medi.errors import MediError, UsageError
from medi.release.manifest import FORMAT, MANIFEST, FileEntry, Manifest, manifest_fault
from medi.release.swap import finish_swap


@dataclass(frozen=True)
class Place:
    """Where a row group stands: its shard, its number in there, its rows."""

    shard: str
    group: int
    rows: int


@dataclass(frozen=True)
class Release:
    """An opened release: its folder and its manifest; rows are read only when they are asked for."""

    root: Path
    manifest: Manifest

    def shards(self) -> list[FileEntry]:
        """Return the manifest's entries of the data files, in reading order."""
        return [entry for entry in self.manifest["files"] if entry["path"].startswith("data/")]

    def rows(self) -> int:
        """Return the number of rows in all shards, by the manifest."""
        return sum(entry.get("rows", 0) for entry in self.shards())

    def places(self, name: str | None = None) -> Iterator[Place]:
        """Yield the row groups in reading order, or those of one task or source. Raises MediError as `tables`."""
        for entry in self.shards():
            with open_parquet(self.root / entry["path"]) as file:
                for index in range(file.num_row_groups):
                    if name is None or name in _names(file, index):
                        yield Place(entry["path"], index, file.metadata.row_group(index).num_rows)

    def tables(self, name: str | None = None) -> Iterator[pa.Table]:
        """Yield EXAMPLES tables of at most 1,000 rows in order: all rows, or those of one task or source.

        Raises MediError where a shard is absent or damaged.
        """
        for entry in self.shards():
            with open_parquet(self.root / entry["path"]) as file:
                for index in range(file.num_row_groups):
                    if name is None or name in _names(file, index):
                        yield read_group(file, index)

    def read(self, place: Place) -> pa.Table:
        """Return the rows of one row group. Raises MediError where its shard is absent or damaged."""
        with open_parquet(self.root / place.shard) as file:
            return read_group(file, place.group)


def _names(file: pq.ParquetFile, group: int) -> tuple[str, str]:
    """Return the source and the task of a row group, which its first row tells."""
    first = read_group(file, group, ["source", "task"]).slice(0, 1).to_pylist()[0]
    return first["source"], first["task"]


def open_release(folder: Path) -> Release:
    """Return the release in a folder, after finishing a swap that was interrupted.

    Raises UsageError where there is no folder or no manifest, MediError where it is damaged or of another format.
    """
    finish_swap(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name the folder that `medi build` printed")
    path = folder / MANIFEST
    if not path.is_file():
        raise UsageError(f"{folder} has no {MANIFEST}, so it is not a release; name the folder `medi build` printed")
    try:
        manifest = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise MediError(f"{path} is damaged ({error}); build the release again") from None
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise MediError(f"{path} has format {found!r}, this medi reads {FORMAT!r}; use the medi that built it")
    fault = manifest_fault(manifest)
    if fault:
        raise MediError(f"{path} is damaged ({fault}); build the release again")
    return Release(folder, cast(Manifest, manifest))


@contextmanager
def as_written(release: Release) -> Iterator[None]:
    """Let the block take a release for one that medi wrote: evidence and params have no form that opening checks.

    Raises MediError where it is another.
    """
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError, pa.ArrowException) as error:
        what = f"{release.root} is not as medi writes a release ({type(error).__name__}: {error})"
        raise MediError(f"{what}; `medi verify` says more, or build it again") from error


def read_group(file: pq.ParquetFile, group: int, columns: list[str] | None = None) -> pa.Table:
    """Return a row group, or some of its columns. Raises ArrowInvalid where a text is not UTF-8: Parquet may lie."""
    table = file.read_row_group(group, columns=columns)
    table.validate(full=True)
    return table


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Yield a Parquet file. Raises MediError where it is absent or damaged, also while it is being read."""
    with reading(path), pq.ParquetFile(path) as file:
        yield file


@contextmanager
def reading(path: Path) -> Iterator[Path]:
    """Yield the path. Raises MediError, one line, where Arrow says that the file is absent or damaged."""
    try:
        yield path
    except (OSError, pa.ArrowException) as error:
        raise MediError(f"{path} cannot be read ({_reason(path, error)}); build the release again") from None


def _reason(path: Path, error: Exception) -> str:
    """Return in a few words why a file cannot be read: Arrow wraps what the system says, and names the path again."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return " ".join(str(error).replace(f"path '{path}' ", "").split())
