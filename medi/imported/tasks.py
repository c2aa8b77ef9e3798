"""The examples of a source -> its tasks as EXAMPLES on disk, its known positives, and what the manifest says of both.

Rows are cleaned as those of a raw file are; what is asked for in the rows of a release (ids, no negative that is a
known positive) is made here.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from medi.imported.spill import Spilled
from medi.ingest.clean import Row, clean, merge
from medi.release.known import SUPER_NI, Known
from medi.release.manifest import RawFile, SourceEntry, TaskEntry
from medi.schema import EXAMPLES, POSITIVES, fold, row_id, table_of, text_id
from medi.source import Drop, Fields
from medi.sources import ALL

UNKNOWN = "unknown"
VARIANT = "medi-data"
# As many as a build may mine.
_MOST_NEGATIVES = 16
_DECLARED = {source.name: source for source in ALL}
_TASK_FILE = re.compile(r"task\d+_")


@dataclass
class Imported:
    """A source with its tasks: entries of the manifest, and where the rows and the positives of each task are."""

    entry: SourceEntry
    tasks: list[TaskEntry] = field(default_factory=list)
    rows: list[Path] = field(default_factory=list)
    positives: list[Path] = field(default_factory=list)


def source_of(task: str) -> str:
    """Return the source of a task: that of Table 5 which its name tells (msmarco for msmarco/07), else its own name."""
    name = task.partition("/")[0]
    if name in _DECLARED:
        return name
    return SUPER_NI if _TASK_FILE.match(task) else task


def import_source(name: str, parts: Iterable[Spilled], file: RawFile, mended: Counter[str]) -> Imported:
    """Clean the tasks of a source and write them beside their spilled files; `mended` are the repairs made so far."""
    source = Imported(_source_entry(name, file))
    seen, dropped, mends = set[bytes](), Counter[str](), +mended
    for part in sorted(parts, key=lambda part: part.task):
        # A Super-NI id covers the task, so there equal pairs of two tasks are two rows.
        cleaned = _clean(part, file["name"], set() if name == SUPER_NI else seen, mends)
        source.positives.append(_write(part.path.with_suffix(".positives"), _positives(name, part, cleaned.rows)))
        source.rows.append(_write(part.path.with_suffix(".rows"), _examples(source.entry, part, cleaned.rows)))
        part.path.unlink()
        source.tasks.append(_task_entry(source.entry, part.task, cleaned))
        dropped.update(cleaned.dropped)
    mends["neg_is_known_positive"] += _strike_positives(source)
    got = sum(task["got"] for task in source.tasks)
    drawn = got + dropped.total()
    source.entry |= {
        "planned": drawn, "got": got, "drawn": drawn, "dropped": dict(sorted(dropped.items())),
        "mended": dict(sorted((+mends).items())),
    }  # fmt: skip
    return source


def read(path: Path) -> pa.Table:
    """Return a table that was written here, memory-mapped."""
    with pa.memory_map(str(path)) as mapped:
        return pa.ipc.open_file(mapped).read_all()


def _write(path: Path, table: pa.Table) -> Path:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return path


class _Cleaned(NamedTuple):
    """The rows of a task by folded identity, and those that were left out, by reason."""

    rows: dict[bytes, Row]
    dropped: Counter[str]


def _clean(part: Spilled, file: str, seen: set[bytes], mends: Counter[str]) -> _Cleaned:
    """Return the clean rows of a task; equal ones are merged, and left out where another task had them (`seen`)."""
    rows: dict[bytes, Row] = {}
    dropped = Counter[str]()
    for number, query, positive, negative in part.rows():
        try:
            row = clean(Fields(query, positive, (), () if negative is None else (negative,)), _MOST_NEGATIVES, mends)
        except Drop as drop:
            dropped[str(drop)] += 1
            continue
        row.origin = f"{file}#{number}"
        if row.identity in rows:
            merge(rows[row.identity], row, _MOST_NEGATIVES, mends)
        if row.identity in rows or row.identity in seen:
            dropped["duplicate"] += 1
        else:
            rows[row.identity] = row
    seen.update(rows)
    return _Cleaned(rows, dropped)


def _positives(source: str, part: Spilled, rows: dict[bytes, Row]) -> pa.Table:
    """Return the known positives of a task: the pair of each row."""
    scope: dict[str, object] = {"source": source, "task": part.task if source == SUPER_NI else source}
    pairs = ((text_id(fold(row.query)), text_id(fold(row.positive))) for row in rows.values())
    return table_of((scope | {"query": query, "positive": positive} for query, positive in pairs), POSITIVES)


def _examples(source: SourceEntry, part: Spilled, rows: dict[bytes, Row]) -> pa.Table:
    """Return the rows of a task as EXAMPLES, sorted by id; what the file does not tell (scores, labels) is null."""
    scope = part.task if source["name"] == SUPER_NI else source["name"]
    same = {
        "source": source["name"], "task": part.task, "kind": "pair", "licence": source["licence"],
        "query_instruction": part.query_instruction, "document_instruction": part.document_instruction,
        "negative_labels": [],
    }  # fmt: skip
    return table_of(
        (
            same | {
                "id": row_id(source["name"], scope, row.query, row.positive), "query": row.query,
                "positive": row.positive, "origin": row.origin,
            } | _negatives(row.negatives)
            for row in rows.values()
        ),
        EXAMPLES,
    ).sort_by("id")  # fmt: skip


def _negatives(texts: Sequence[str]) -> dict[str, object]:
    return {
        "negatives": list(texts), "negative_scores": [None] * len(texts), "negative_origins": ["given"] * len(texts),
    }  # fmt: skip


def _strike_positives(source: Imported) -> int:
    """Take the negatives that are a positive of their query in another row out of the files; return how many."""
    known = Known(pa.concat_tables([read(path) for path in source.positives]), source.entry)
    struck = 0
    for path, entry in zip(source.rows, source.tasks, strict=True):
        rows, before = read(path).to_pylist(), struck
        for row in rows:
            query = text_id(fold(row["query"]))
            kept = [t for t in row["negatives"] if not known.is_positive(entry["task"], query, text_id(fold(t)))]
            struck += len(row["negatives"]) - len(kept)
            row |= _negatives(kept)
        if struck > before:
            path.unlink()
            _write(path, table_of(rows, EXAMPLES))
    return struck


def _source_entry(name: str, file: RawFile) -> SourceEntry:
    """Return the entry of a source, without its counts; what Table 5 does not tell is unknown."""
    declared = _DECLARED.get(name)
    return {
        "name": name,
        "licence": declared.licence if declared else UNKNOWN,
        "symmetric": bool(declared and declared.symmetric),
        "clusters": bool(declared and declared.clusters),
        "given_negatives": True,
        "variant": VARIANT,
        "citation": declared.citation if declared else "",
        "files": [file],
        "planned": 0,
        "got": 0,
        "dropped": {},
        "mended": {},
    }


def _task_entry(source: SourceEntry, task: str, cleaned: _Cleaned) -> TaskEntry:
    """Return the entry of a task."""
    drawn = len(cleaned.rows) + cleaned.dropped.total()
    return {
        "task": task,
        "source": source["name"],
        "kind": "pair",
        "symmetric": source["symmetric"],
        "planned": drawn,
        "got": len(cleaned.rows),
        "drawn": drawn,
        "dropped": dict(sorted(cleaned.dropped.items())),
        "slots": {},
        "evidence": {},
    }
