"""A release -> rows by number: each shard is checked, decoded once into an Arrow file of the workspace, and mapped.

Rows are numbered in the order of the release, so a task is one run of numbers; nothing is read before it is asked for.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from medi.errors import MediError
from medi.publish import fsync, publishing, write_json
from medi.release import Release, open_parquet, open_release, read_group
from medi.release.digests import sha256_of
from medi.release.manifest import MANIFEST, FileEntry, TaskEntry
from medi.release.verify import verify
from medi.schema import digest_of
from medi.store import Record, Store, with_digest

# What a trainer reads of a shard; another list is another artifact.
COLUMNS = (
    "id", "source", "task", "query_instruction", "query", "document_instruction", "positive", "label", "negatives",
    "negative_labels",
)  # fmt: skip
_DECODED, _VERIFIED, _VERSION = "decoded", "verified", 1

Say = Callable[[str], None]


class Instructions(NamedTuple):
    """What stands before the texts of a task: before its queries, and before its positives and negatives."""

    query: str
    document: str


@dataclass(frozen=True)
class Task:
    """A task of the release: rows `first_row` to `first_row + rows`, the manifest's entry, the shards' instructions.

    `negatives` (int32 [rows]) says how many negatives each row has.
    """

    entry: TaskEntry
    first_row: int
    instructions: Instructions
    negatives: np.ndarray

    @property
    def name(self) -> str:
        """Return the task's name."""
        return self.entry["task"]

    @property
    def rows(self) -> int:
        """Return how many rows the task has."""
        return len(self.negatives)


@dataclass(frozen=True)
class Data:
    """The rows of a release, mapped: `batches` follow one another, `starts` are the numbers of their first rows."""

    manifest_digest: str
    content_digest: str
    tasks: tuple[Task, ...]
    batches: tuple[pa.RecordBatch, ...]
    starts: np.ndarray

    def take(self, rows: np.ndarray) -> pa.Table:
        """Return the rows of these numbers, in their order, with the columns of COLUMNS."""
        owners = np.searchsorted(self.starts, rows, side="right") - 1
        order = np.argsort(owners, kind="stable")
        parts = []
        for batch in np.unique(owners):
            inside = rows[order][owners[order] == batch] - self.starts[batch]
            parts.append(self.batches[batch].take(pa.array(inside)))
        found = pa.Table.from_batches(parts, self.batches[0].schema)
        return found.take(pa.array(np.argsort(order, kind="stable")))


def open_data(folder: Path, store: Store, say: Say = lambda line: None) -> Data:
    """Return the rows of the release in a folder. What was checked and decoded before is not checked row by row again.

    Raises:
        MediError: the folder is no release, or one that `medi verify` finds fault with.
    """
    release = open_release(folder)
    manifest_digest = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()
    _check(release, manifest_digest, store, say)
    batches: list[pa.RecordBatch] = []
    for entry in release.shards():
        batches += store.open(_decoded(release, entry, store, say)).to_batches()
    counts = [0, *(len(batch) for batch in batches)]
    starts = np.cumsum(counts, dtype=np.int64)[:-1]
    tasks = tuple(_tasks(release, batches, starts))
    return Data(manifest_digest, release.manifest["content_digest"], tasks, tuple(batches), starts)


def _check(release: Release, manifest_digest: str, store: Store, say: Say) -> None:
    """Raise MediError where the release does not verify: every row the first time, later the digests of its files."""
    known = store.find(_VERIFIED, manifest_digest[:32])
    if known is None:
        say(f"verifying {release.root}")
    for wrong in verify(release.root) if known is None else _changed(release):
        raise MediError(f"{release.root} does not verify: {wrong}; `medi verify` says all, build the release again")
    if known is None:
        empty = pa.table({"id": pa.array([], pa.string())})
        counts: dict[str, object] = {}
        inputs = {MANIFEST: manifest_digest}
        key = manifest_digest[:32]
        store.write(Record(_VERIFIED, _VERSION, "release", {}, inputs, key, manifest_digest, 0, counts), empty)


def _changed(release: Release) -> Iterator[str]:
    """Yield the shards that are not, byte for byte, those of the manifest."""
    for entry in release.shards():
        path = release.root / entry["path"]
        if not path.is_file():
            yield f"{entry['path']}: is missing"
            continue
        if sha256_of(path) != entry["sha256"]:
            yield f"{entry['path']}: is not the file of the manifest"


def _decoded(release: Release, entry: FileEntry, store: Store, say: Say) -> Record:
    """Return the record of a shard's Arrow file, which is written where there is none, one row group after another."""
    params, inputs = {"columns": list(COLUMNS)}, {"shard": entry["sha256"]}
    key = digest_of({"stage": _DECODED, "version": _VERSION, "params": params, "inputs": inputs})[:32]
    found = store.find(_DECODED, key)
    if found:
        return found
    say(f"decoding {entry['path']}")
    # The table is what the shard says, so the shard's digest is that of the content.
    rows = entry.get("rows", 0)
    record = Record(_DECODED, _VERSION, "shard", params, inputs, key, entry["sha256"], rows, {})
    with publishing(store.root / _DECODED / key) as temporary, open_parquet(release.root / entry["path"]) as shard:
        path = temporary / "table.arrow"
        schema = pa.schema([shard.schema_arrow.field(name) for name in COLUMNS])
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for group in range(shard.num_row_groups):
                writer.write_table(read_group(shard, group, list(COLUMNS)).combine_chunks())
        fsync(path)
        write_json(temporary / "record.json", with_digest(record, path))
    return record


def _tasks(release: Release, batches: Sequence[pa.RecordBatch], starts: np.ndarray) -> Iterator[Task]:
    """Yield the tasks in reading order; a row group, and so a batch, never mixes two.

    Raises MediError where a task has several instructions on one side: a batch of it would hold no single one.
    """
    entries = {(entry["source"], entry["task"]): entry for entry in release.manifest["tasks"]}
    names = [(batch["source"][0].as_py(), batch["task"][0].as_py()) for batch in batches]
    first = 0
    while first < len(batches):
        last = next((i for i in range(first, len(batches)) if names[i] != names[first]), len(batches))
        part = pa.Table.from_batches(batches[first:last])
        sides = [pc.unique(part[f"{side}_instruction"]).to_pylist() for side in Instructions._fields]
        if max(map(len, sides)) > 1:
            raise MediError(f"task {names[first][1]} has several instructions on one side; build the release again")
        counts = pc.list_value_length(part["negatives"]).to_numpy()
        yield Task(entries[names[first]], int(starts[first]), Instructions(sides[0][0], sides[1][0]), counts)
        first = last
