"""EXAMPLES tables, one a task, become a release folder: shards, audit, card, manifest; swapped into place when whole.

Equal contents give equal bytes (run.json apart): nothing here reads a clock, a host name or a path.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from medi.ahead import ahead
from medi.errors import MediError
from medi.publish import writing
from medi.release import Release, open_release
from medi.release.content import ContentDigest
from medi.release.digests import sha256_of
from medi.release.manifest import (
    CARD,
    FORMAT,
    GROUP_ROWS,
    MANIFEST,
    MEASURES_FILE,
    POSITIVES_FILE,
    REPORT,
    RUN,
    FileEntry,
    Json,
    Manifest,
    SourceEntry,
    TaskEntry,
    manifest_fault,
)
from medi.release.swap import is_ours, replacing
from medi.report.card import dataset_card
from medi.report.page import report_page
from medi.schema import EXAMPLES, POSITIVES, canonical_json

SHARD_BYTES = 256 << 20
# A folder to what is wrong with it, a line each.
Check = Callable[[Path], Iterable[str]]


@dataclass(frozen=True)
class Contents:
    """All that goes into a release.

    `examples` gives the EXAMPLES tables, one whole task a table, in final order: sources as `sources` lists them, tasks
    by name, rows by id. `positives` gives POSITIVES tables, sources in the same order; their texts are
    `text_id(fold(text))`, and the task of a source's row is the source's name. Both are called once, and two tables are
    in memory at a time. `run` is what may differ between equal builds; it goes to run.json and nowhere else. `measures`
    gives what the report shows and the rows do not tell, where anything is known of it.
    """

    params: dict[str, Json]
    sources: list[SourceEntry]
    tasks: list[TaskEntry]
    records: list[dict[str, Json]]
    examples: Callable[[], Iterable[pa.Table]]
    positives: Callable[[], Iterable[pa.Table]]
    run: dict[str, Json]
    measures: Callable[[], dict[str, Json] | None] = lambda: None


def write_release(
    out: Path, contents: Contents, shard_bytes: int = SHARD_BYTES, check: Check = lambda folder: ()
) -> str:
    """Write the release and put it in the place of `out`; return its content digest (64 hex digits).

    Raises MediError where `out` is something else than a release of ours, where there is no row, where rows, order and
    counts do not meet, or where `check` finds something wrong with what was written; `out` is then as it was.
    """
    manifest = manifest_head(contents)
    fault = manifest_fault(dict(manifest))
    if fault:
        raise _fault_of_medi(f"the manifest would be wrong: {fault}")
    with replacing(out) as folder:
        files, manifest["content_digest"] = write_shards(folder, contents, shard_bytes)
        files.append(_write_positives(folder, contents))
        if measures := contents.measures():
            files.append(_write_text(folder, MEASURES_FILE, canonical_json(measures).decode() + "\n"))
        files.append(_write_text(folder, CARD, dataset_card(manifest)))
        manifest["files"] = files
        # As it will be read, so that `medi report` gives the same bytes: in JSON, keys are sorted.
        release = Release(folder, json.loads(_json_text(manifest)))
        files.append(_write_text(folder, REPORT, report_page(release)))
        files.sort(key=lambda entry: entry["path"])
        _write_text(folder, MANIFEST, _json_text(manifest))
        _write_text(folder, RUN, _json_text(contents.run))
        for wrong in check(folder):
            raise _fault_of_medi(wrong)
    return manifest["content_digest"]


def manifest_head(contents: Contents) -> Manifest:
    """Return the manifest as far as it is known before a row is written: no digest, no files."""
    return {
        "format": FORMAT,
        "params": contents.params,
        "content_digest": "",
        "sources": contents.sources,
        "tasks": contents.tasks,
        "records": contents.records,
        "files": [],
    }


def same_release(out: Path, manifest: Mapping[str, object]) -> bool:
    """Return whether `out` is a whole release that agrees with the manifest in every key that is given and not empty.

    One without a report was written by an earlier version. Files are compared by size only; `medi verify` reads them.
    Give `manifest_head(...)` before a build: its records name every artifact by content: equal heads mean equal rows.
    """
    if not is_ours(out):
        return False
    release = open_release(out)
    known = json.loads(_json_text({key: value for key, value in manifest.items() if value}))
    paths = {entry["path"] for entry in release.manifest["files"]}
    return (
        REPORT in paths
        and {key: release.manifest.get(key) for key in known} == known
        and all(
            (out / entry["path"]).is_file() and (out / entry["path"]).stat().st_size == entry["size"]
            for entry in release.manifest["files"]
        )
    )


def renew_report(folder: Path) -> Path:
    """Write a release's report anew, enter it in the manifest, and return its path; an equal one is left alone.

    Raises UsageError where the folder is no release, MediError where it is damaged.
    """
    release = open_release(folder)
    path, text = folder / REPORT, report_page(release)
    known = {entry["path"]: entry for entry in release.manifest["files"]}
    if path.is_file() and path.read_bytes() == text.encode() and known.get(REPORT) == _file_entry(folder, path):
        return path
    news = {name: folder / f"{name}.new" for name in (REPORT, MANIFEST)}
    try:
        with writing(folder):
            known[REPORT] = {**_write_text(folder, news[REPORT].name, text), "path": REPORT}
            release.manifest["files"] = [known[name] for name in sorted(known)]
            _write_text(folder, news[MANIFEST].name, _json_text(release.manifest))
            for name, new in news.items():
                new.replace(folder / name)
    finally:
        # Where there was no room, half a file would be in the way of the next build.
        for new in news.values():
            new.unlink(missing_ok=True)
    return path


class _Order:
    """Holds the tables to the promised order and counts, naming the place where they break it."""

    def __init__(self, contents: Contents) -> None:
        self._ranks = {entry["name"]: rank for rank, entry in enumerate(contents.sources)}
        self._got = {(entry["source"], entry["task"]): entry["got"] for entry in contents.tasks}
        self._last = (-1, "")

    def check(self, table: pa.Table) -> None:
        """Pass where the next table may follow. Raises MediError where it breaks what a release promises."""
        if not table.schema.equals(EXAMPLES):
            raise _fault_of_medi(f"a table has the columns {table.schema.names}, not those of EXAMPLES")
        kinds = table.select(["source", "task"]).group_by(["source", "task"]).aggregate([]).to_pylist()
        if len(kinds) != 1:
            raise _fault_of_medi(f"a table has rows of {len(kinds)} tasks ({kinds[:2]}), not of one")
        source, task = kinds[0]["source"], kinds[0]["task"]
        if (source, task) not in self._got or source not in self._ranks:
            raise _fault_of_medi(f"{source}: task {task} has rows and no entry in the manifest")
        if (self._ranks[source], task) <= self._last:
            raise _fault_of_medi(f"{source}: task {task} comes after a task it should precede, or twice")
        self._last = (self._ranks[source], task)
        got = self._got.pop((source, task))
        if got != len(table):
            raise _fault_of_medi(f"{source}: task {task} should have {got} rows and has {len(table)}")
        ids = table.column("id").combine_chunks()
        falling = pc.index(pc.less(ids[:-1], ids[1:]), False).as_py()
        if falling >= 0:
            raise _fault_of_medi(f"{source}: task {task}: row {ids[falling + 1]} stands after row {ids[falling]}")

    def check_end(self) -> None:
        """Pass where every promised row came. Raises MediError where some did not, or where there was no row at all."""
        for (source, task), got in self._got.items():
            if got:
                raise _fault_of_medi(f"{source}: task {task} should have {got} rows and never came")
        if self._last[0] < 0:
            raise MediError("no task gave a row, so nothing is released; see why its rows were dropped")


def _fault_of_medi(what: str) -> MediError:
    return MediError(f"{what}; this is a fault of medi, please report it")


def _groups(contents: Contents, digest: ContentDigest) -> Iterator[pa.Table]:
    """Yield the row groups in order, each checked and digested."""
    order = _Order(contents)
    for table in filter(len, contents.examples()):
        order.check(table)
        for start in range(0, len(table), GROUP_ROWS):
            # A group at a time: while a whole table is digested, the writer would stand still.
            group = table.slice(start, GROUP_ROWS)
            digest.update(group)
            yield group
    order.check_end()


def write_shards(folder: Path, contents: Contents, shard_bytes: int = SHARD_BYTES) -> tuple[list[FileEntry], str]:
    """Write data/*.parquet into a release's folder; return the files' entries and the content digest.

    Raises MediError where there is no row, or where rows, order and counts do not meet.
    """
    digest = ContentDigest()
    # The next rows are digested by a thread while the writer packs those before.
    with closing(ahead(_groups(contents, digest))) as groups:
        files = _write_data(folder, groups, shard_bytes)
    return files, digest.hexdigest()


def _write_data(folder: Path, groups: Iterator[pa.Table], shard_bytes: int) -> list[FileEntry]:
    """Write the shards; one is opened by the row group it begins with, so none is empty."""
    data = folder / "data"
    data.mkdir()
    rows = []
    for first in groups:
        rows.append(_write_shard(data / str(len(rows)), first, groups, shard_bytes))
    names = [f"train-{index:05d}-of-{len(rows):05d}.parquet" for index in range(len(rows))]
    return [
        _file_entry(folder, (data / str(index)).rename(data / name), rows[index]) for index, name in enumerate(names)
    ]


def _write_shard(path: Path, first: pa.Table, rest: Iterator[pa.Table], shard_bytes: int) -> int:
    """Write row groups until the file is `shard_bytes` long (or none is left); return the number of rows."""
    rows = 0
    with pa.OSFile(str(path), "wb") as sink, _parquet_writer(sink, EXAMPLES) as writer:
        for group in chain([first], rest):
            writer.write_table(group, row_group_size=GROUP_ROWS)
            rows += len(group)
            if sink.tell() >= shard_bytes:
                break
    return rows


def _write_positives(folder: Path, contents: Contents) -> FileEntry:
    """Write the audit file, each table sorted and without repetitions, so that its bytes depend on its pairs alone."""
    path = folder / POSITIVES_FILE
    path.parent.mkdir()
    rows = 0
    with pa.OSFile(str(path), "wb") as sink, _parquet_writer(sink, POSITIVES) as writer:
        for table in filter(len, contents.positives()):
            pairs = table.group_by(POSITIVES.names).aggregate([]).select(POSITIVES.names).cast(POSITIVES)
            writer.write_table(pairs.sort_by([(name, "ascending") for name in POSITIVES.names]))
            rows += len(pairs)
    return _file_entry(folder, path, rows)


def _parquet_writer(sink: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of plain Parquet: no Arrow or pandas metadata, statistics where a reader may skip by them."""
    keys = [name for name in ("id", "source", "task", "kind") if name in schema.names]
    options = {"compression": "zstd", "compression_level": 3, "store_schema": False, "write_statistics": keys}
    return pq.ParquetWriter(sink, schema, **options)


def _write_text(folder: Path, name: str, text: str) -> FileEntry:
    (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return _file_entry(folder, folder / name)


def _file_entry(folder: Path, path: Path, rows: int | None = None) -> FileEntry:
    name, size = path.relative_to(folder).as_posix(), path.stat().st_size
    entry: FileEntry = {"path": name, "size": size, "sha256": sha256_of(path)}
    return entry if rows is None else {**entry, "rows": rows}


def _json_text(value: object) -> str:
    """Return JSON with sorted keys. Raises MediError where a value has no JSON form."""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise _fault_of_medi(f"the manifest cannot be written as JSON ({error})") from None
