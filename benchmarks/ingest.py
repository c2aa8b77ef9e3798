"""Ingest beside unpacking alone and beside datasets' reader: a gz of a million lines, of which a quota is drawn."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.paired import Benchmark, Measured, Ratio, main, measure
from benchmarks.texts import array, query_and_positives, write_lines

LINES, QUOTA_ROWS = 1_000_000, 25_000
ARRAYS, OBJECTS = "arrays.jsonl.gz", "objects.jsonl.gz"


def prepare(folder: Path) -> str:
    """Write the same lines as arrays and as objects."""
    unpacked_bytes = write_lines(folder / ARRAYS, LINES, array)
    write_lines(folder / OBJECTS, LINES, query_and_positives)
    packed_bytes = (folder / ARRAYS).stat().st_size
    return (
        f"{LINES:,} lines of two texts ({unpacked_bytes / 1e6:,.0f} MB, {packed_bytes / 1e6:,.0f} MB as gz; invented "
        f"words from a seed), quota {QUOTA_ROWS:,}. isal.igzip and medi read arrays, datasets objects: on arrays it "
        "fails."
    )


def ingested(path: Path, source_name: str) -> Measured:
    """Measure ingest of a file of two texts a line, as a source of that layout is read."""
    import pyarrow as pa

    from medi.ingest import IngestParams, ingest
    from medi.read import raw_batches
    from medi.sources import by_name

    source = by_name(source_name)
    # Arrow loads pandas when it first sees a list, once a process.
    pa.array([0])

    def work() -> Mapping[str, float | str]:
        table, counts = ingest(
            IngestParams(QUOTA_ROWS), source, source.variants[0], lambda: raw_batches([(path, path.name)])
        )
        return {"rows": len(table), "lines": int(str(counts.facts["lines_read"]))}

    return measure(work)


def of_arrays(folder: Path) -> Measured:
    """Measure ingest of arrays of two."""
    return ingested(folder / ARRAYS, "gooaq_pairs")


def of_objects(folder: Path) -> Measured:
    """Measure ingest of objects with `query` and `pos`."""
    return ingested(folder / OBJECTS, "amazon-qa")


def unpacked(folder: Path) -> Measured:
    """Measure isal.igzip alone: the file in blocks of a megabyte, which are forgotten."""
    from isal import igzip

    def work() -> Mapping[str, float | str]:
        with igzip.open(folder / ARRAYS, "rb") as file:
            for _ in iter(partial(file.read, 1 << 20), b""):
                pass
        return {}

    return measure(work)


def by_datasets(folder: Path) -> Measured:
    """Measure datasets.load_dataset, which unpacks and parses every line into Arrow files; its cache is new."""
    import tempfile

    from datasets import load_dataset

    def work() -> Mapping[str, float | str]:
        with tempfile.TemporaryDirectory(dir=folder) as cache:
            rows = load_dataset("json", data_files=str(folder / OBJECTS), split="train", cache_dir=cache)
            return {"rows": len(rows)}

    return measure(work)


WAYS: dict[str, Callable[[Path], Measured]] = {
    "medi, arrays": of_arrays,
    "medi, objects": of_objects,
    "isal.igzip alone": unpacked,
    "datasets": by_datasets,
}
BENCHMARK = Benchmark(
    "benchmarks.ingest",
    "Ingest",
    prepare,
    WAYS,
    [
        Ratio("isal.igzip alone", "medi, arrays", least=0.5),
        Ratio("datasets", "medi, objects", least=4),
    ],
)

if __name__ == "__main__":
    main(BENCHMARK)
