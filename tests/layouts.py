"""Every layout of raw data as a small good file, and the real way of reading one: what tests damage and hold to rules.

Records are the variants' own samples, numbered; `read_rows` asserts what must hold whatever a file is.
"""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from medi.ingest import IngestParams, ingest, ingest_task
from medi.read import raw_batches, read_whole, wanted_pages
from medi.schema import Counts, is_visible
from medi.source import Source, Variant
from medi.sources import by_name

RECORDS = 5
# A task's texts: neither choices nor a label set, so that each instance is a row.
_TASK_FILE = "super_ni/tasks/task9001_x.json"
_PAGES = b"".join(
    json.dumps({"wikipedia_id": page, "wikipedia_title": page, "text": [page, "It is there.\n", "More.\n"]}).encode()
    + b"\n"
    for page in ("12", "15")
)
ANY_NUMBER = 10**9


@dataclass(frozen=True)
class Layout:
    """A layout: the variant that stands for it, and whether its files are lines, elements, Parquet or one task."""

    source_name: str
    variant_name: str
    kind: str

    @property
    def source(self) -> Source:
        return by_name(self.source_name)

    @property
    def variant(self) -> Variant:
        return self.source.variant(self.variant_name)


LAYOUTS = {
    "array of two": Layout("gooaq_pairs", "hub", "lines"),
    "array of three": Layout("AllNLI", "hub", "lines"),
    "set": Layout("WikiAnswers", "hub", "lines"),
    "query and pos": Layout("amazon-qa", "hub", "lines"),
    "query, pos, neg": Layout("msmarco", "hub", "lines"),
    "KILT": Layout("fever", "kilt", "lines"),
    "MedMCQA": Layout("medmcqa", "files", "lines"),
    "DPR": Layout("NQ", "dpr", "elements"),
    "PubMedQA": Layout("pubmed", "files", "elements"),
    "Parquet": Layout("wow", "multi_train", "parquet"),
    "Super-NI": Layout("super_ni", "tasks", "task"),
}


# Tables are no collection's own files: a person's are read like this. Of their cells, none is a list.
TABLES = {kind.upper(): Layout("amazon-qa", "hub", kind) for kind in ("csv", "tsv")}


def numbered(value: object, number: int) -> object:
    """Return a record with the number behind each of its texts; pages keep their ids."""
    if isinstance(value, str):
        return f"{value} {number}"
    if isinstance(value, list):
        return [numbered(item, number) for item in value]
    if isinstance(value, dict):
        return {key: item if key == "wikipedia_id" else numbered(item, number) for key, item in value.items()}
    return value


def records_of(layout: Layout) -> list:
    sample = json.loads(layout.variant.sample)
    if layout.kind == "task":
        return [{"id": f"t-{n}", "input": f"The sky was blue {n}", "output": [f"so {n}"]} for n in range(RECORDS)]
    return [numbered(sample, number) for number in range(RECORDS)]


def content_of(layout: Layout) -> bytes:
    """Return the bytes of a good file of RECORDS records, of which each gives a row."""
    records = records_of(layout)
    if layout.kind == "lines":
        return b"".join(json.dumps(record).encode() + b"\n" for record in records)
    if layout.kind == "parquet":
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(records), sink)
        return sink.getvalue()
    if layout.kind in ("csv", "tsv"):
        text = io.StringIO(newline="")
        cells = [[record["query"], record["pos"][0] + ', "so"'] for record in records]
        delimiter, quoting = (",", csv.QUOTE_MINIMAL) if layout.kind == "csv" else ("\t", csv.QUOTE_NONE)
        csv.writer(text, delimiter=delimiter, quoting=quoting, quotechar=None if quoting else '"').writerows(
            [["query", "pos"], *cells]
        )
        return text.getvalue().encode()
    if layout.kind == "task":
        return json.dumps(json.loads(layout.variant.sample) | {"Instances": records}).encode()
    keyed = layout.variant.files[0].keyed
    return json.dumps({str(n): record for n, record in enumerate(records)} if keyed else records).encode()


def query_of(layout: Layout, number: int) -> str:
    """Return the text that is the query of a record."""
    texts: Iterator[str] = _texts(records_of(layout)[number])
    return next(text for text in texts if not text.startswith(("t-", "q7 ", "a1 ")))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def read_file(path: Path, layout: Layout, params: IngestParams, pages: bytes = _PAGES) -> tuple[list[dict], Counts]:
    """Return the rows and counts of a file by the real reader and the real ingest."""
    if layout.kind == "task":
        table, counts = ingest_task(params, _TASK_FILE, read_whole(path))
        return table.to_pylist(), counts
    beside = path.with_name("pages")
    beside.write_bytes(pages)
    keyed = any(file.keyed for file in layout.variant.files)
    table, counts = ingest(
        params,
        layout.source,
        layout.variant,
        lambda: raw_batches([(path, f"raw.{layout.kind}" if layout in TABLES.values() else "raw")], keyed),
        (lambda wanted: wanted_pages([(beside, "pages")], wanted)) if layout.variant.pages else None,
    )
    return table.to_pylist(), counts


def read_rows(
    path: Path, layout: Layout, content: bytes, params: IngestParams | None = None
) -> tuple[list[dict], Counts]:
    """Write a file, read it as `read_file` does, every bad row allowed, and check what must hold of any file."""
    path.write_bytes(content)
    rows, counts = read_file(path, layout, params or IngestParams(1_000, max_bad_rows=ANY_NUMBER))
    counts.check("reading")
    ids = [row["id"] for row in rows]
    assert ids == sorted(set(ids)) and counts.rows_out == len(rows)
    for row in rows:
        texts = [row["query"], *row["other_positives"], *row["negatives"], *row["references"]]
        assert all(map(is_visible, texts if row["positive"] is None else [*texts, row["positive"]]))
    bad = counts.facts.get("quarantine", [])
    assert bool(bad) == bool(counts.dropped["bad"])
    json.dumps(counts.to_json(), ensure_ascii=False, allow_nan=False).encode()
    return rows, counts
