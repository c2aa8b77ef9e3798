"""A release: the folder a build ends in, opened by its manifest; everything about it is read from the folder alone.

`Release` is lazy: opening reads manifest.json and nothing else, rows come one row group at a time.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from medi.errors import MediError
from medi.release.manifest import FORMAT, MANIFEST, FileEntry, Manifest, manifest_fault
from medi.release.swap import finish_swap


@dataclass(frozen=True)
class Group:
    """One row group of one shard: at most 1,000 rows of one task, and where they stand."""

    shard: str
    index: int
    table: pa.Table


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

    def groups(self) -> Iterator[Group]:
        """Yield every row group in order, one in memory at a time. Raises MediError where a shard cannot be read."""
        for entry in self.shards():
            with open_parquet(self.root / entry["path"]) as file:
                for index in range(file.num_row_groups):
                    yield Group(entry["path"], index, file.read_row_group(index))

    def table(self) -> pa.Table:
        """Return all rows as one table. Raises MediError where a shard cannot be read."""
        return pa.concat_tables(group.table for group in self.groups())


def open_release(folder: Path) -> Release:
    """Return the release in a folder, after finishing a swap that was interrupted.

    Raises MediError where there is no folder, no manifest, a damaged one, or one of another format version.
    """
    finish_swap(folder)
    if not folder.is_dir():
        raise MediError(f"{folder} is not a folder; name the folder that `medi build` printed")
    path = folder / MANIFEST
    if not path.is_file():
        raise MediError(f"{folder} has no {MANIFEST}, so it is not a release; name the folder `medi build` printed")
    try:
        manifest = json.loads(path.read_bytes())
    except ValueError as error:
        raise MediError(f"{path} is damaged ({error}); build the release again") from None
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise MediError(f"{path} has format {found!r}, this medi reads {FORMAT!r}; use the medi that built it")
    fault = manifest_fault(manifest)
    if fault:
        raise MediError(f"{path} is damaged ({fault}); build the release again")
    return Release(folder, cast(Manifest, manifest))


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Yield a Parquet file. Raises MediError where it is absent or damaged, also while it is being read."""
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise MediError(f"{path} cannot be read ({reason}); build the release again") from None
