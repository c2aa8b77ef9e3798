"""Helpers of the tests of reading and ingest: lines as raw batches, a source's pool, the rows of a task."""

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa

from medi.ingest import IngestParams, ingest, ingest_task
from medi.schema import Counts
from medi.source import Bad, Page, RawBatch
from medi.sources import by_name


def batches(files: dict[str, list[bytes]], batch_rows: int = 7) -> Iterator[RawBatch]:
    """Give lines as a reader would, a few a batch."""
    for name, lines in files.items():
        offset_bytes = 0
        for start in range(0, len(lines), batch_rows):
            part = lines[start : start + batch_rows]
            offsets = []
            for line in part:
                offsets.append(offset_bytes)
                offset_bytes += len(line) + 1
            yield RawBatch(name, True, range(start + 1, start + 1 + len(part)), offsets, part)


def json_lines(values: Iterable[object]) -> list[bytes]:
    return [json.dumps(value, ensure_ascii=False).encode() for value in values]


def pool(
    files: dict[str, list[bytes]] | list[object],
    params: IngestParams | None = None,
    origin: str = "gooaq_pairs",
    pages: list[Page] | None = None,
) -> tuple[list[dict], Counts]:
    """Return the rows of a source's pool (`origin` is SOURCE or SOURCE:VARIANT) and its counts."""
    if isinstance(files, list):
        files = {"raw.jsonl": json_lines(files)}
    name, _, variant = origin.partition(":")
    source = by_name(name)
    chosen = source.variant(variant) if variant else source.variants[0]
    given = None if pages is None else lambda wanted: [page for page in pages if page.page_id in wanted]
    table, counts = ingest(params or IngestParams(1_000), source, chosen, lambda: batches(files), given)
    return table.to_pylist(), counts


def task(instances: list[object], **fields: object) -> dict[str, object]:
    """Return a task file's object, English throughout."""
    languages = dict.fromkeys(("Input_language", "Output_language", "Instruction_language"), ["English"])
    examples: dict[str, list] = {"Positive Examples": [], "Negative Examples": []}
    return {"Definition": ["Do X."], **languages, **examples, "Instances": instances, **fields}


def rows_of_task(
    instances: list[object], params: IngestParams | None = None, **fields: object
) -> tuple[list[dict], Counts]:
    """Return a task's rows and counts; `fields` are put into its file."""
    return rows_of_bytes(json.dumps(task(instances, **fields)).encode(), params)


def rows_of_bytes(raw: bytes | Bad, params: IngestParams | None = None) -> tuple[list[dict], Counts]:
    table, counts = ingest_task(params or IngestParams(600), "super_ni/tasks/task9001_odd.name-x.json", raw)
    assert isinstance(table, pa.Table)
    return table.to_pylist(), counts
