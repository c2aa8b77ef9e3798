"""Keeps what stages made: a table and the record of how it came to be, under a key that names both.

A key hashes the stage, its version, the unit, the params and the *contents* of the inputs; machines, paths and threads
never. An artifact is written under a temporary name, its record last, then renamed: existing means complete. The record
also says what the table's bytes must be.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from medi.errors import MediError
from medi.publish import digest_of_files, fsync, publishing, write_json

_BYTES = "table_bytes"


@dataclass(frozen=True)
class Record:
    """What an artifact is and how it came to be; `content` is the digest of its table's values."""

    stage: str
    version: int
    unit: str
    params: dict[str, Any]
    inputs: dict[str, str]
    key: str
    content: str
    rows: int
    counts: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the record as a dict with a JSON form."""
        return asdict(self)


class Store:
    """The artifacts of a workspace, one folder each: `<root>/<stage>/<key>/{table.arrow, record.json}`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._whole: set[Path] = set()

    def find(self, stage: str, key: str) -> Record | None:
        """Return the record of a finished artifact, or None. Raises MediError where the record is damaged."""
        path = self.root / stage / key / "record.json"
        try:
            return Record(**_said(path)[0])
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise MediError(f"{path}: damaged record ({error}); delete its folder and run the command again") from None

    def open(self, record: Record) -> pa.Table:
        """Return the artifact's table, memory-mapped. Raises MediError where the file is gone or damaged."""
        path = self.root / record.stage / record.key / "table.arrow"
        try:
            self._check(path)
            with pa.memory_map(str(path)) as source:
                return pa.ipc.open_file(source).read_all()
        except (OSError, ValueError) as error:
            raise MediError(f"{path}: cannot be read ({error}); delete its folder and run the command again") from None

    def write(self, record: Record, table: pa.Table) -> Record:
        """Store the table under the record's key; of two workers with one key the first one's stays. Returns it."""
        with publishing(self.root / record.stage / record.key) as temporary:
            path = temporary / "table.arrow"
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=65_536)
            fsync(path)
            write_json(temporary / "record.json", with_digest(record, path))
        return self.find(record.stage, record.key) or record

    def _check(self, path: Path) -> None:
        """Pass where a table is what was written, which is looked at once. Raises OSError where it is not."""
        if path in self._whole:
            return
        _, digest = _said(path.with_name("record.json"))
        # Artifacts of before the digest are believed as they were.
        if digest is not None and digest_of_files(path) != digest:
            raise OSError("its bytes are not those that were written")
        self._whole.add(path)


def with_digest(record: Record, table: Path) -> dict[str, Any]:
    """Return what an artifact's record.json holds: the record, and the digest of its table's bytes."""
    return record.to_json() | {_BYTES: digest_of_files(table)}


def _said(path: Path) -> tuple[dict[str, Any], str | None]:
    """Return what a record.json holds of the Record, and the digest of the table's bytes where it has one."""
    said = dict(json.loads(path.read_bytes()))
    return said, said.pop(_BYTES, None)
