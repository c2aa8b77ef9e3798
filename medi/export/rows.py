"""A release -> its tasks in order, each with its rows one row group at a time, so memory does not grow with it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import orjson
import pyarrow as pa

from medi.errors import MediError
from medi.release import Release
from medi.release.manifest import TaskEntry

Row = dict[str, object]
_UNFIT = re.compile(r"[^\w.-]+", re.ASCII)


@dataclass
class Tally:
    """What became of the rows of a release: rows in = rows + sum(left_out), where `rows` are in the export.

    `negatives_left_out` are those of rows that are in it, for a format that has no room for more.
    """

    tasks: int = 0
    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    negatives_left_out: int = 0


def tasks_of(release: Release) -> Iterator[tuple[TaskEntry, Iterator[pa.Table]]]:
    """Yield each task that has rows, in reading order, with its row groups, which must be taken before the next task.

    Raises MediError where a shard is absent or damaged, or holds a task that the manifest does not name.
    """
    entries = {(entry["source"], entry["task"]): entry for entry in release.manifest["tasks"]}
    for key, tables in groupby(release.tables(), lambda table: (table["source"][0].as_py(), table["task"][0].as_py())):
        if key not in entries:
            raise MediError(
                f"{release.root}: task {key[1]} of {key[0]} is not in the manifest; build the release again"
            )
        yield entries[key], tables


def rows_of(tables: Iterable[pa.Table]) -> Iterator[Row]:
    """Yield the rows of some tables as dicts, column to value."""
    for table in tables:
        yield from table.to_pylist()


def write_lines(path: Path, records: Iterable[Row]) -> int:
    """Write a JSON object a line; return how many. A file without lines is not left behind."""
    count = 0
    with path.open("wb") as file:
        for record in records:
            file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
            count += 1
    if not count:
        path.unlink()
    return count


def file_name(task: str, taken: set[str]) -> str:
    """Return a name for a task's file that no other one has (`msmarco/07` is `msmarco-07`), and note it in `taken`."""
    plain = _UNFIT.sub("-", task).strip(".-")[:200] or "task"
    name, number = plain, 2
    while name.lower() in taken:
        name, number = f"{plain}.{number}", number + 1
    taken.add(name.lower())
    return name
