"""A release -> medi-data.json as it was released: one JSON array of records with one positive and one negative each.

The script that InstructOR was trained with cuts the array into blocks of its batch size, wherever a block begins, and
leaves out each block that mixes tasks or is short. So each task is given whole blocks, and what is over is counted.
Rows stand by what the file itself tells of them, so that a file which was imported is exported again as it was.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from medi.export.rows import Row, Tally, rows_of, tasks_of
from medi.release import Release
from medi.release.known import SUPER_NI
from medi.release.manifest import TaskEntry
from medi.schema import row_id

# What the script demands of an instruction that is not empty.
_OPENING = "Represent "


def write_medi_json(release: Release, path: Path, block_rows: int) -> Tally:
    """Write the file, of which the script loses no row where its batch size is `block_rows`.

    `task_id` counts the tasks in the file from 1. Left out: `no_negative` and `instruction` (neither empty nor a
    "Represent ..."), on which the script would stop, and `remainder`, those rows of a task that fill no block.
    """
    tally = Tally()
    with path.open("wb") as file:
        before = b"[\n"
        for entry, tables in tasks_of(release):
            for block in _blocks(_by_pair(entry, rows_of(tables)), block_rows, tally):
                tally.tasks += block.is_first
                records = (_record(row, entry["task"], tally.tasks) for row in block.rows)
                file.write(before + b",\n".join(map(orjson.dumps, records)))
                before = b",\n"
                tally.rows += block_rows
        file.write(b"\n]\n")
    return tally


class _Block(NamedTuple):
    """Rows that fill a block, and whether they are the first ones of their task."""

    rows: list[Row]
    is_first: bool


def _blocks(rows: Iterable[Row], block_rows: int, tally: Tally) -> Iterator[_Block]:
    """Yield the rows of a task in whole blocks; count in `tally` what is in none."""
    held: list[Row] = []
    is_first = True
    for row in rows:
        if reason := _unfit(row):
            tally.left_out[reason] += 1
            continue
        held.append(row)
        if len(held) == block_rows:
            tally.negatives_left_out += sum(len(row["negatives"]) - 1 for row in held)  # type: ignore[arg-type]
            yield _Block(held, is_first)
            held, is_first = [], False
    if held:
        tally.left_out["remainder"] += len(held)


def _by_pair(entry: TaskEntry, rows: Iterator[Row]) -> Iterator[Row]:
    """Return the rows of a task in the order of ids that are made of query and positive, as an import makes them.

    Those of pairs are; one of Super-NI, or of a text with a label, covers an output that is not in the file, so these
    tasks, which are small, are held and sorted.
    """
    if entry["source"] != SUPER_NI and entry["kind"] == "pair":
        return rows
    scope = entry["task"] if entry["source"] == SUPER_NI else entry["source"]
    return iter(sorted(rows, key=lambda row: row_id("", scope, str(row["query"]), str(row["positive"]))))


def _unfit(row: Row) -> str:
    """Return why the script would stop at a row, an empty string where it would not."""
    if not row["negatives"]:
        return "no_negative"
    sides = (str(row[f"{side}_instruction"]) for side in ("query", "document"))
    return "" if all(not text or text.startswith(_OPENING) for text in sides) else "instruction"


def _record(row: Row, task: str, number: int) -> dict[str, object]:
    document = row["document_instruction"]
    return {
        "query": [row["query_instruction"], row["query"]],
        "pos": [document, row["positive"]],
        "neg": [document, row["negatives"][0]],  # type: ignore[index]
        "task_id": number,
        "task_name": task,
    }
