"""A release -> a DatasetDict on disk for sentence-transformers: one data set a task, and the prompts of its columns.

Its trainer takes every row of a set to have the same columns, so a task whose rows differ in how many negatives they
have is split by that number: no row is lost, no negative made up.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from medi.export.rows import Tally, file_name, tasks_of
from medi.release import Release
from medi.schema import digest_of

PROMPTS = "prompts.json"
_SETS = "dataset_dict.json"
Prompts = dict[str, dict[str, str]]


class _Shape(NamedTuple):
    """What the rows of a set have in common."""

    negatives: int
    query_instruction: str
    document_instruction: str

    def columns(self) -> list[str]:
        """Return the names of the set's columns."""
        return ["anchor", "positive", *(f"negative_{number}" for number in range(1, self.negatives + 1))]

    def prompts(self) -> dict[str, str]:
        """Return the instruction of each column that has one."""
        sides = [self.query_instruction, *([self.document_instruction] * (self.negatives + 1))]
        return {column: side for column, side in zip(self.columns(), sides, strict=True) if side}


def write_sentence_transformers(release: Release, path: Path) -> Tally:
    """Write the folder that `datasets.load_from_disk` opens, and in it prompts.json for the trainer's `prompts`.

    A set is called as its task (`msmarco/07` is `msmarco-07`); where a task is split, the largest part is, and the
    others get `.2`, `.3`, ... behind it.
    """
    tally, taken = Tally(), {"scratch", _SETS, PROMPTS}
    prompts: Prompts = {}
    scratch = path / "scratch"
    scratch.mkdir(parents=True)
    with _without_bars():
        for entry, tables in tasks_of(release):
            tally.tasks += 1
            parts = _write_parts(scratch, tables)
            for shape, (file, rows) in sorted(parts.items(), key=lambda part: (-part[1][1], part[0])):
                name = file_name(entry["task"], taken)
                _save(file, path / name, digest_of([release.manifest["content_digest"], name])[:16])
                prompts[name] = shape.prompts()
                tally.rows += rows
    scratch.rmdir()
    _write_json(path / _SETS, {"splits": list(prompts)})
    _write_json(path / PROMPTS, {name: found for name, found in prompts.items() if found})
    return tally


def _write_parts(folder: Path, tables: Iterable[pa.Table]) -> dict[_Shape, tuple[Path, int]]:
    """Write a task's rows to an Arrow file for each shape among them; return shape -> file and rows."""
    parts: dict[_Shape, tuple[Path, int]] = {}
    writers: dict[_Shape, pa.RecordBatchStreamWriter] = {}
    with ExitStack() as opened:
        for table in tables:
            for shape, part in _by_shape(table):
                if shape not in writers:
                    file = folder / f"{len(parts)}.arrow"
                    sink = opened.enter_context(pa.OSFile(str(file), "wb"))
                    writers[shape] = opened.enter_context(pa.ipc.new_stream(sink, part.schema))
                    parts[shape] = (file, 0)
                writers[shape].write_table(part)
                parts[shape] = (parts[shape][0], parts[shape][1] + len(part))
    return parts


def _by_shape(table: pa.Table) -> Iterator[tuple[_Shape, pa.Table]]:
    """Yield the rows of each shape, as the columns of its set."""
    keyed = table.append_column("count", pc.list_value_length(table["negatives"]))
    names = ["count", "query_instruction", "document_instruction"]
    for key in keyed.group_by(names).aggregate([]).to_pylist():
        same = [pc.equal(keyed[name], pa.scalar(key[name], keyed[name].type)) for name in names]
        rows = keyed.filter(pc.and_(pc.and_(same[0], same[1]), same[2]))
        shape = _Shape(*(key[name] for name in names))
        negatives = [pc.list_element(rows["negatives"], index) for index in range(shape.negatives)]
        yield shape, pa.table([rows["query"], rows["positive"], *negatives], shape.columns())


def _save(file: Path, folder: Path, fingerprint: str) -> None:
    """Save an Arrow file as a data set's folder, and remove it. Memory does not grow with it, as it is mapped."""
    import datasets

    table = datasets.table.MemoryMappedTable.from_file(str(file))
    # The fingerprint that it would give itself is made of the file's time.
    datasets.Dataset(table, fingerprint=fingerprint).save_to_disk(str(folder))
    file.unlink()


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


@contextmanager
def _without_bars() -> Iterator[None]:
    """Let the block save data sets without a bar for each."""
    import datasets

    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()
