"""Writing a release's shards beside a bare Parquet file of the same rows, and reading both with pandas."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.paired import Benchmark, Measured, Ratio, main, measure
from benchmarks.texts import pairs

if TYPE_CHECKING:
    import pyarrow as pa

    from medi.release.manifest import SourceEntry, TaskEntry
    from medi.shards import Contents

ROWS, TASKS, NEGATIVES = 200_000, 20, 4
COMPRESSION = {"compression": "zstd", "compression_level": 3}
EXAMPLES_FILE, BARE, RELEASE = "examples.arrow", "bare.parquet", "release"


def examples(rows: int, task: int, of_tasks: int, random: np.random.Generator) -> "pa.Table":
    """Return the EXAMPLES of one task of many: pairs of invented text, four negatives each, sorted by id."""
    import pyarrow as pa

    from medi.schema import EXAMPLES, row_id

    name = f"task{task:04d}" if of_tasks > 1 else "task"
    found = [pair for portion in pairs(rows, seed=task) for pair in portion]
    ids = [row_id("super_ni", name, query, positive) for query, positive in found]
    order = np.argsort(np.array(ids))
    query, positive = ([found[place][side] for place in order] for side in (0, 1))
    drawn = random.integers(0, rows, (rows, NEGATIVES))
    offsets = pa.array(np.arange(0, rows * NEGATIVES + 1, NEGATIVES, dtype=np.int32))
    scores = random.random((rows, NEGATIVES), dtype=np.float32)

    def same(text: str) -> "pa.Array":
        return pa.array([text]).take(pa.array(np.zeros(rows, dtype=np.int32)))

    def lists(items: "pa.Array") -> "pa.Array":
        return pa.ListArray.from_arrays(offsets, items)

    columns = {
        "id": pa.array(ids).take(pa.array(order)),
        "source": same("super_ni"),
        "task": same(name),
        "kind": same("pair"),
        "query_instruction": same("Represent the question for retrieving answers:"),
        "query": pa.array(query),
        "document_instruction": same("Represent the answer for retrieval:"),
        "positive": pa.array(positive),
        "label": pa.nulls(rows, pa.string()),
        "negatives": lists(pa.array(positive).take(pa.array(drawn.reshape(-1)))),
        "negative_labels": pa.array([[]] * rows, pa.list_(pa.string())),
        "positive_score": pa.array(random.random(rows, dtype=np.float32)),
        "negative_scores": lists(pa.array(scores.reshape(-1))),
        "negative_origins": lists(pa.array(["mined"] * (rows * NEGATIVES))),
        "licence": same("Apache-2.0"),
        "origin": pa.array([f"{name}.json#{place}" for place in order]),
    }
    return pa.table([columns[field] for field in EXAMPLES.names], schema=EXAMPLES)


def prepare(folder: Path) -> str:
    """Write the rows as an Arrow file, a batch a task, and both results, for the ways that read."""
    import pyarrow as pa

    from medi.schema import EXAMPLES

    random = np.random.default_rng(0)
    with pa.OSFile(str(folder / EXAMPLES_FILE), "wb") as sink, pa.ipc.new_file(sink, EXAMPLES) as writer:
        for task in range(TASKS):
            table = examples(ROWS // TASKS, task, TASKS, random)
            writer.write_batch(table.combine_chunks().to_batches()[0])
    by_medi(folder)
    bare(folder)
    sizes = [sum(path.stat().st_size for path in (folder / name).rglob("*.parquet")) for name in (RELEASE,)]
    return (
        f"{ROWS:,} rows of {TASKS} tasks, {NEGATIVES} negatives each, invented text from a seed; zstd, level 3. medi "
        "checks the order of ids, digests all columns and the files, and writes row groups of 1,000. The "
        f"release has {sizes[0] / 1e6:,.0f} MB of Parquet, the bare file {(folder / BARE).stat().st_size / 1e6:,.0f}."
    )


def tables(folder: Path) -> "list[pa.Table]":
    """Return the tasks' rows, in memory."""
    import pyarrow as pa

    with pa.OSFile(str(folder / EXAMPLES_FILE)) as file:
        reader = pa.ipc.open_file(file)
        return [pa.Table.from_batches([reader.get_batch(task)]) for task in range(reader.num_record_batches)]


def by_medi(folder: Path) -> Measured:
    """Measure the shards of a release."""
    import shutil

    from medi.shards import write_shards

    given = tables(folder)
    shutil.rmtree(folder / RELEASE, ignore_errors=True)
    (folder / RELEASE).mkdir()

    def work() -> Mapping[str, float | str]:
        files, _ = write_shards(folder / RELEASE, contents(given))
        return {"rows": sum(entry.get("rows", 0) for entry in files)}

    return measure(work)


def contents(given: "list[pa.Table]") -> "Contents":
    """Return what a release is written from: the tasks' rows, sorted as a build's are."""
    from medi.schema import POSITIVES
    from medi.shards import Contents

    rows = sum(map(len, given))
    names = [table["task"][0].as_py() for table in given]
    source: SourceEntry = {
        "name": "super_ni",
        "licence": "Apache-2.0",
        "symmetric": True,
        "clusters": False,
        "given_negatives": False,
        "variant": "tasks",
        "citation": "",
        "files": [],
        "planned": rows,
        "got": rows,
        "dropped": {},
        "mended": {},
    }
    tasks: list[TaskEntry] = [
        {
            "task": name,
            "source": "super_ni",
            "kind": "pair",
            "symmetric": True,
            "planned": len(table),
            "got": len(table),
            "dropped": {},
            "slots": {},
            "evidence": {},
        }
        for name, table in zip(names, given, strict=True)
    ]
    return Contents(
        params={},
        sources=[source],
        tasks=tasks,
        records=[],
        examples=lambda: given,
        positives=lambda: [POSITIVES.empty_table()],
        run={},
    )


def bare(folder: Path) -> Measured:
    """Measure pyarrow alone, at its defaults but for the compression: all rows in one call."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = pa.concat_tables(tables(folder))

    def work() -> Mapping[str, float | str]:
        parquet.write_table(rows, folder / BARE, **COMPRESSION)
        return {"rows": len(rows)}

    return measure(work)


def read(path: Path) -> Measured:
    """Measure pandas.read_parquet of a file, or of all files in a folder."""
    import pandas

    def work() -> Mapping[str, float | str]:
        return {"rows": len(pandas.read_parquet(path))}

    return measure(work)


WAYS: dict[str, Callable[[Path], Measured]] = {
    "medi, shards": by_medi,
    "pyarrow alone": bare,
    "pandas reads the shards": lambda folder: read(folder / RELEASE / "data"),
    "pandas reads the bare file": lambda folder: read(folder / BARE),
}
BENCHMARK = Benchmark(
    "benchmarks.shards",
    "Shards",
    prepare,
    WAYS,
    [
        Ratio("pyarrow alone", "medi, shards", least=0.7),
        Ratio("pandas reads the bare file", "pandas reads the shards", least=0.95),
    ],
)

if __name__ == "__main__":
    main(BENCHMARK)
