"""Writes the bundled sample data, `data/sample`: our own texts in the upstream layouts, under the paths of `--raw DIR`.

    python scripts/make_sample.py [FOLDER]

The same bytes come out each time: every set draws from its own seeded generator, and gz files carry no time.
"""

import gzip
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sample_facts import dirt, kilt, rng_of
from sample_facts.dirt import Json
from sample_facts.label_tasks import label_tasks
from sample_facts.odd_tasks import odd_tasks
from sample_facts.sets import SETS, Set
from sample_facts.task import encode
from sample_facts.text_tasks import text_tasks

HOME = Path(__file__).parent.parent / "data" / "sample"
TEST_TASKS = ("task9003_medi_caption_entailment", "task9012_medi_question_rewriting")
EXCLUDED_TASKS = ("task9018_medi_spanish_diminutive_generation",)
TASKS_README = (
    "# Tasks of the sample\n\nEach file is one task in the layout of Super-NaturalInstructions v2. "
    "They are made by `scripts/make_sample.py`.\n"
)


def main(folder: Path) -> None:
    """Write all files of the sample below the folder; files that are there are replaced."""
    for source, found in SETS.items():
        write(folder / found.path, packed(source, found))
    pages = kilt.knowledge_source(kilt.world().pages)
    write(folder / "kilt/knowledgesource-sample.json", b"".join(dirt.dumped(page) + b"\n" for page in pages))
    write_tasks(folder / "super_ni")


def packed(source: str, found: Set) -> bytes:
    """Return the bytes of a source's file, dirt and all."""
    records = dirt.soiled(source, found.records())
    if found.layout == "parquet":
        return parquet(records)
    if found.layout == "array":
        content = json.dumps(records, ensure_ascii=False, indent=1).encode()
    elif found.layout == "keyed":
        rng = rng_of(f"keys {source}")
        keys = sorted(rng.sample(range(9_000_000, 30_000_000), len(records)))
        content = json.dumps(dict(zip(map(str, keys), records, strict=True)), indent=4).encode()
    else:
        content = dirt.lines_of(source, records)
    return gzip.compress(content, 9, mtime=0) if found.path.endswith(".gz") else content


def parquet(records: list[Json]) -> bytes:
    """Return the records as a Parquet file with the columns of the first."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(records), sink, compression="zstd", row_group_size=40)
    return sink.getvalue().to_pybytes()


def write_tasks(folder: Path) -> None:
    """Write the Super-NI tasks, the lists of the splits, and a README that readers must pass over."""
    records = {task.name: task.record() for task in (*label_tasks(), *text_tasks())} | odd_tasks()
    for name, record in records.items():
        mark = b"\xef\xbb\xbf" if name.startswith("task9020") else b""
        write(folder / "tasks" / f"{name}.json", mark + encode(record))
    write(folder / "tasks/README.md", TASKS_README.encode())
    train = [name for name in records if name not in TEST_TASKS + EXCLUDED_TASKS]
    for split, names in (("train", train), ("test", TEST_TASKS), ("excluded", EXCLUDED_TASKS)):
        write(folder / f"splits/default/{split}_tasks.txt", "".join(f"{name}\n" for name in names).encode())


def write(path: Path, content: bytes) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HOME)
