"""The bundled sample is what its script makes, and ingest counts in it exactly the dirt that was planted, by reason."""

import gzip
import io
import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medi.ingest import IngestParams, ingest
from medi.ingest.super_ni import ingest_task
from medi.read import raw_batches, wanted_pages
from medi.schema import Counts
from medi.source import Variant
from medi.sources import ALL, by_name

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "data" / "sample"
TASKS = sorted((SAMPLE / "super_ni" / "tasks").glob("*.json"))
sys.path.insert(0, str(ROOT / "scripts"))

import make_sample  # noqa: E402
from sample_facts import dirt  # noqa: E402
from sample_facts.odd_tasks import PLANTED_TASKS  # noqa: E402
from sample_facts.sets import SETS  # noqa: E402

MENDS = {*dirt.FILE, *dirt.MENDED}
NAMES = [source.name for source in ALL if source.name != "super_ni"]
LABEL_TASKS = [f"task{n}" for n in range(9001, 9009)]
TEXT_TASKS = [f"task{n}" for n in range(9009, 9017)]


def unpacked(path: Path) -> object:
    """Return what a file says, free of how a version of zlib or Arrow packs it."""
    content = path.read_bytes()
    if path.suffix == ".parquet":
        return pq.read_table(io.BytesIO(content)).to_pylist()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def files_of(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def found_variant(name: str) -> tuple[Variant, list[Path]]:
    """Return the first variant of a source that has a file in the sample, as `--raw DIR` does, and its files."""
    for variant in by_name(name).variants:
        for glob in (glob for file in variant.files for glob in (file.pattern, *file.otherwise)):
            if paths := sorted(SAMPLE.glob(glob)):
                return variant, paths
    raise AssertionError(f"{name} has no file in the sample")


@cache
def ingested(name: str) -> tuple[pa.Table, Counts]:
    source, (variant, paths) = by_name(name), found_variant(name)
    named = [(path, path.relative_to(SAMPLE).as_posix()) for path in paths]
    knowledge = [(path, path.name) for path in SAMPLE.glob(variant.pages.pattern)] if variant.pages else []
    return ingest(
        IngestParams(source.quota_rows),
        source,
        variant,
        lambda: raw_batches(named, variant.files[0].keyed),
        (lambda wanted: wanted_pages(knowledge, wanted)) if knowledge else None,
    )


@cache
def task(number: str) -> tuple[pa.Table, Counts]:
    (path,) = (path for path in TASKS if path.name.startswith(number))
    return ingest_task(IngestParams(600), path.name, path.read_bytes())


def test_the_script_makes_the_same_bytes_each_time_and_they_are_what_is_committed(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    make_sample.main(first)
    make_sample.main(second)
    made, committed = files_of(first), files_of(SAMPLE)
    assert {name: path.read_bytes() for name, path in made.items()} == {
        name: path.read_bytes() for name, path in files_of(second).items()
    }
    assert set(committed) == {*made, "README.md", "LICENSE"}
    for name, path in made.items():
        assert unpacked(path) == unpacked(committed[name]), f"{name}: run scripts/make_sample.py and commit"


def test_gz_files_carry_no_time_and_the_whole_is_small() -> None:
    packed = [path for path in files_of(SAMPLE).values() if path.suffix == ".gz"]
    assert len(packed) == 22
    assert {path.read_bytes()[4:8] for path in packed} == {bytes(4)}
    assert sum(path.stat().st_size for path in files_of(SAMPLE).values()) < 3_000_000


def test_every_embedding_source_has_a_file_and_a_plan() -> None:
    assert sorted(SETS) == sorted(NAMES)
    assert {p.source for p in dirt.PLANTED} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_ingest_counts_what_was_planted(name: str) -> None:
    _, counts = ingested(name)
    planted = dirt.planted(name)
    expected: Counter[str] = Counter()
    for kind, times in planted.items():
        if kind in dirt.DROPPED:
            expected[kind.removesuffix("_folded")] += times
    assert dict(counts.dropped) == dict(expected)
    assert dict(counts.mended) == {kind: times for kind, times in planted.items() if kind in MENDS}
    negatives = {kind: counts.facts.get(kind, 0) for kind in dirt.NEGATIVES}
    assert negatives == {kind: planted.get(kind, 0) for kind in dirt.NEGATIVES}


@pytest.mark.parametrize("name", NAMES)
def test_at_least_64_good_and_distinct_rows_are_left(name: str) -> None:
    table, counts = ingested(name)
    clean = len(SETS[name].records())
    assert counts.rows_out == table.num_rows == clean >= (160 if name == "msmarco" else 64)
    assert len(set(table["query"].to_pylist())) >= 60


def test_every_kind_of_dirt_is_planted_somewhere() -> None:
    kinds = {p.kind for p in dirt.PLANTED}
    assert kinds == {*dirt.FILE, *dirt.MENDED, *dirt.DROPPED, *dirt.NEGATIVES}


def test_provenances_cut_out_sentences_and_some_claims_need_two_pages() -> None:
    pages = {
        page["wikipedia_id"]: page["text"]
        for page in map(json.loads, (SAMPLE / "kilt/knowledgesource-sample.json").read_text("utf-8").splitlines())
    }
    together = alternative = 0
    for record in SETS["fever"].records():
        lists = [output.get("provenance", []) for output in record["output"]]
        together += any(len({place["wikipedia_id"] for place in places}) == 2 for places in lists)
        alternative += sum(map(bool, lists)) == 2
        for place in (place for places in lists for place in places):
            paragraph = pages[place["wikipedia_id"]][place["start_paragraph_id"]]
            sentence = paragraph[place["start_character"] : place["end_character"]]
            assert sentence.endswith(".") and paragraph[place["end_character"]] in " \n"
    assert (together, alternative) == (12, 10)


def test_kilt_positives_are_the_passages_of_their_pages() -> None:
    table, _ = ingested("trex")
    for query, positive in zip(table["query"].to_pylist(), table["positive"].to_pylist(), strict=True):
        subject = query.split(" [SEP] ")[0]
        assert positive.startswith(subject + " ") and len(positive.split()) <= 130


@pytest.mark.parametrize("number", LABEL_TASKS + TEXT_TASKS)
def test_the_sixteen_tasks_are_whole(number: str) -> None:
    table, counts = task(number)
    assert counts.facts["kind"] == ("label" if number in LABEL_TASKS else "text")
    assert counts.rows_in == counts.rows_out == table.num_rows >= 80
    labels = Counter(table["label"].to_pylist())
    assert labels == {None: table.num_rows} if number in TEXT_TASKS else 2 <= len(labels) <= 6
    assert number in TEXT_TASKS or min(labels.values()) >= 10


@pytest.mark.parametrize("name", list(PLANTED_TASKS))
def test_odd_tasks_count_what_was_planted(name: str) -> None:
    mended, dropped = PLANTED_TASKS[name]
    _, counts = task(name)
    assert (dict(counts.mended), dict(counts.dropped)) == (mended, dropped)


def test_choices_and_classes_are_told_apart() -> None:
    grades, _ = task("task9004")
    options, _ = task("task9015")
    assert set(grades["label"].to_pylist()) == {"0", "1", "2"}
    capital = next(row for row in options.to_pylist() if "capital of Peru" in row["query"])
    assert (capital["output"], capital["label"]) == ("Lima", None)


def test_every_source_is_read_from_the_file_that_was_made_for_it() -> None:
    for name in NAMES:
        _, paths = found_variant(name)
        assert [path.relative_to(SAMPLE).as_posix() for path in paths] == [SETS[name].path]


def test_the_splits_name_every_task_once() -> None:
    names = [path.stem for path in TASKS]
    listed = [
        line
        for split in ("train", "test", "excluded")
        for line in (SAMPLE / f"super_ni/splits/default/{split}_tasks.txt").read_text("utf-8").split()
    ]
    assert sorted(listed) == names and len(names) == 20
