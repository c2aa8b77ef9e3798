"""Each kind of violation: a good release, one thing broken, exactly one line that names it."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from medi.errors import MediError
from medi.release import manifest
from medi.release.verify import verify
from medi.schema import EXAMPLES, row_id, table_of
from pipelines.cli.verify import verify as verify_command
from tests.builds import REPO
from tests.release_builder import Builder, Row, tiny
from tests.unprivileged import as_a_person

SHARD = "data/train-00000-of-00001.parquet"
LABEL, TEXT = "task001_yes_or_no", "task002_rewrite"


def lines_of(builder: Builder, out: Path) -> list[str]:
    builder.write(out)
    return list(verify(out))


def test_a_good_release_is_clean(tmp_path: Path) -> None:
    assert lines_of(tiny(1001), tmp_path / "x") == []


def test_a_folder_that_may_not_be_read_is_not_missing(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x")
    (tmp_path / "x" / "data").chmod(0)
    call = as_a_person([sys.executable, "-m", "pipelines.cli.app", "verify", str(tmp_path / "x")])
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=REPO)
    (tmp_path / "x" / "data").chmod(0o755)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"medi: {tmp_path}/x/data: permission denied; check the path and its permissions\n"


def rehash(row: Row) -> None:
    row["id"] = row_id(str(row["source"]), str(row["source"]), str(row["query"]), str(row["positive"]))


def change(task: str, rehashed: bool = False, **changes: object) -> Callable[[Builder], None]:
    """Return what changes fields of the first row of a task, giving it the id of its new texts where asked."""

    def apply(builder: Builder) -> None:
        row = builder.row(task)
        row.update(changes)
        if rehashed:
            rehash(row)

    return apply


ROW_FAULTS: dict[str, tuple[Callable[[Builder], None], str, str]] = {
    "id": (change("asks", id="asks/0000000000000000"), "asks", "the id is not the hash of the row's texts, asks/"),
    "super_ni id": (change(LABEL, id="super_ni/7"), LABEL, "the id is not super_ni/ and 16 hex digits"),
    "query": (change("asks", True, query="\u200b"), "asks", "the query has no visible character"),
    "positive": (change("asks", True, positive=" \u00ad"), "asks", "the positive has no visible character"),
    "negative": (change("asks", negatives=["n", "\n"]), "asks", "negatives[1] has no visible character"),
    "null": (change("asks", negatives=[None, "n"]), "asks", "negatives[0] has no visible character"),
    "kind": (change("asks", kind="pairs"), "asks", "the kind is 'pairs', not one of pair, label, text"),
    "other kind": (change("asks", kind="text"), "asks", "the kind is 'text', the manifest says 'pair'"),
    "label": (change(LABEL, label=None), LABEL, "the kind is 'label' and there is no label"),
    "scores": (change("asks", negative_scores=[0.5]), "asks", "2 negatives and 1 negative_scores"),
    "origins": (change("asks", negative_origins=["mined"]), "asks", "2 negatives and 1 negative_origins"),
    "labels": (change(LABEL, negative_labels=[]), LABEL, "kind 'label', 1 negatives and 0 negative_labels"),
    "no labels": (
        change("asks", negative_labels=["a", "b"]), "asks", "kind 'pair', 2 negatives and 2 negative_labels",
    ),
    "origin": (
        change(TEXT, negative_origins=["found"]),
        TEXT, "negative_origins[0] is 'found', not one of given, mined, random",
    ),
    "cosine": (change("asks", positive_score=1.5), "asks", "positive_score is 1.5, not between -1 and 1"),
    "nan": (
        change("asks", negative_scores=[0.5, float("nan")]), "asks", "negative_scores[1] is nan, not between -1 and 1",
    ),
    "two cosines": (change(TEXT, negative_scores=[-2.5]), TEXT, "negative_scores[0] is -2.5, not between -2 and 2"),
    "own label": (
        change(LABEL, negative_labels=["yes"]), LABEL, "negatives[0] has the label 'yes', the query's own is 'yes'",
    ),
    "self": (change("asks", True, positive=" query 0\nof asks"), "asks", "the positive is the query"),
    "negative is query": (change("asks", negatives=["n", "query  0 of asks "]), "asks", "negatives[1] is the query"),
    "negative is positive": (
        change("asks", negatives=["positive 0 of\tasks", "n"]), "asks", "negatives[0] is the positive",
    ),
    "two blanks": (
        change("asks", query_instruction="Represent the  question:"),
        "asks", "the query_instruction 'Represent the  question:' has two blanks in a row",
    ),
    "ends in blank": (
        change(TEXT, document_instruction="Represent answer: "),
        TEXT, "the document_instruction 'Represent answer: ' ends in a blank",
    ),
    "ending": (
        change(TEXT, query_instruction="Represent the question;"),
        TEXT, "the query_instruction 'Represent the question;' ends in ';', others in ':'",
    ),
    "licence": (change("asks", licence="MIT"), "asks", "the licence is 'MIT', the manifest says 'cc-by-4.0'"),
    "slot": (
        change("twins", document_instruction="Represent the reply:"),
        "twins", "the document_instruction does not say 'answer', a slot of the manifest",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROW_FAULTS)
def test_a_row_that_breaks_a_rule_is_named(tmp_path: Path, name: str) -> None:
    spoil, task, expected = ROW_FAULTS[name]
    builder = tiny()
    spoil(builder)
    found = lines_of(builder, tmp_path / "x")
    assert len(found) == 1, found
    assert found[0].startswith(f"{SHARD}: {builder.row(task)['id']}: {expected}")


@pytest.mark.parametrize(
    ("known", "negative", "line"),
    [
        ([("asks", "query 0 of asks", "N")], " N\n", "negatives[0] is a known positive of the query"),
        ([("asks", "N", "query 0 of asks")], "N", None),  # asks is not symmetric
        ([("twins", "N", "query 0 of twins")], "N", "negatives[0] is a known positive of the query"),
        (
            [("twins", "query 0 of twins", "M"), ("twins", "N", "M")],  # one cluster through M
            "N",
            "negatives[0] is a known positive of the query",
        ),
        ([("asks", "query 0 of asks", "M"), ("asks", "N", "M")], "N", None),
        ([("asks", "query 1 of asks", "N")], "N", None),
    ],
)
def test_known_positives_are_no_negatives(tmp_path: Path, known: list, negative: str, line: str | None) -> None:
    builder = tiny()
    builder.extra_positives = known
    row = builder.row(known[0][0])
    row["negatives"] = [negative, "another"]
    found = lines_of(builder, tmp_path / "x")
    assert found == ([f"{SHARD}: {row['id']}: {line}"] if line else [])


def test_super_ni_positives_hold_one_way_and_in_their_task(tmp_path: Path) -> None:
    """The mined pair (0, its positive) of one task says nothing about the other direction, nor about another task."""
    builder = tiny()
    zero, one, other = builder.row(LABEL, 0), builder.row(LABEL, 1), builder.row(TEXT, 0)
    one["query"], one["negatives"] = zero["positive"], [zero["query"]]
    other["query"], other["negatives"] = zero["query"], [zero["positive"]]
    assert lines_of(builder, tmp_path / "x") == []


def test_a_pair_that_the_audit_lacks_is_named(tmp_path: Path) -> None:
    builder, other = tiny(), tiny()
    builder.positives = other.positives  # type: ignore[method-assign]
    row = builder.row("asks")
    row["positive"] = "another answer"
    rehash(row)
    expected = f"{SHARD}: {row['id']}: the pair is not in the audit file of known positives"
    assert lines_of(builder, tmp_path / "x") == [expected]


def test_an_id_that_comes_twice_in_a_source_is_named(tmp_path: Path) -> None:
    builder = tiny()
    first, second = builder.row(LABEL), builder.row(TEXT)
    second["id"] = first["id"]
    assert lines_of(builder, tmp_path / "x") == [f"{SHARD}: {first['id']}: the id is not unique"]


def test_an_instruction_of_no_words_is_no_fault(tmp_path: Path) -> None:
    builder = tiny()
    change("asks", query_instruction="", document_instruction="")(builder)
    assert lines_of(builder, tmp_path / "x") == []


def edit_manifest(out: Path, edit: Callable[[dict], None]) -> None:
    path = out / "manifest.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


MANIFEST_FAULTS: dict[str, tuple[Callable[[dict], None], list[str]]] = {
    "digest": (
        lambda m: m.update(content_digest="0" * 64),
        ["manifest.json: the content digest is {digest}, the manifest says " + "0" * 64],
    ),
    "quota": (
        lambda m: m["sources"][0].update(planned=3),
        ["manifest.json: source asks: got 4 rows, planned 3"],
    ),
    "task quota": (lambda m: m["tasks"][3].update(planned=3), [f"manifest.json: task {TEXT}: got 4 rows, planned 3"]),
    "drawn": (
        lambda m: m["sources"][1].update(drawn=9),
        ["manifest.json: source twins: drew 9 rows, got 4 and dropped 3"],
    ),
    "source sum": (
        lambda m: m["sources"][2].update(got=7, drawn=10),
        ["manifest.json: source super_ni: got 7 rows, its tasks got another number"],
    ),
    "task rows": (
        lambda m: (m["tasks"][2].update(got=3, drawn=3), m["tasks"][3].update(got=5, drawn=5, planned=5)),
        [
            f"manifest.json: task {LABEL}: got 3 rows, the shards have 4",
            f"manifest.json: task {TEXT}: got 5 rows, the shards have 4",
        ],
    ),
    "no entry": (
        lambda m: m.update(sources=m["sources"][1:] + [m["sources"][0] | {"name": "other", "got": 0, "drawn": 3}]),
        ["manifest.json: source asks has tasks and no entry"],
    ),
    "audit rows": (
        lambda m: m["files"][1].update(rows=15),
        [f"{manifest.POSITIVES_FILE}: has 16 rows, the manifest says 15"],
    ),
    "shard rows": (lambda m: m["files"][2].update(rows=15), [f"{SHARD}: has 16 rows, the manifest says 15"]),
}


@pytest.mark.parametrize("name", MANIFEST_FAULTS)
def test_a_manifest_that_says_something_else_is_named(tmp_path: Path, name: str) -> None:
    edit, expected = MANIFEST_FAULTS[name]
    digest = tiny().write(tmp_path / "x")
    edit_manifest(tmp_path / "x", edit)
    found = [line for line in verify(tmp_path / "x") if "against the order" not in line]
    assert found == [line.format(digest=digest) for line in expected]


def test_files_that_are_missing_more_or_changed_are_named(tmp_path: Path) -> None:
    out = tmp_path / "x"
    tiny().write(out)
    (out / "notes.txt").write_text("mine")
    card, audit = out / "README.md", out / "audit" / "positives.parquet"
    card.write_bytes(card.read_bytes().replace(b"MEDI", b"MIDI"))
    audit.unlink()
    found = list(verify(out))
    assert found[:2] == ["notes.txt: is not in the manifest", found[1]]
    assert found[1].startswith("README.md: has SHA-256 ") and ", the manifest says " in found[1]
    assert found[2:] == ["audit/positives.parquet: is missing"]


def test_a_damaged_shard_is_named_and_the_rest_still_checked(tmp_path: Path) -> None:
    out = tmp_path / "x"
    builder = tiny()
    change(TEXT, positive_score=9.0)(builder)
    builder.write(out, shard_bytes=1)
    first = out / "data" / "train-00000-of-00004.parquet"
    size = first.stat().st_size
    first.write_bytes(first.read_bytes()[:100])
    found = list(verify(out))
    assert found[0] == f"data/train-00000-of-00004.parquet: has 100 bytes, the manifest says {size}"
    assert found[1].startswith(f"{first} cannot be read (") and "\n" not in found[1]
    assert found[2].endswith("positive_score is 9.0, not between -2 and 2") and len(found) == 3


def test_a_missing_shard_is_one_line(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x", shard_bytes=1)
    (tmp_path / "x" / "data" / "train-00003-of-00004.parquet").unlink()
    assert list(verify(tmp_path / "x")) == ["data/train-00003-of-00004.parquet: is missing"]


def test_shards_are_named_by_their_number(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x")
    (tmp_path / "x" / SHARD).rename(tmp_path / "x" / "data" / "train.parquet")
    edit_manifest(tmp_path / "x", lambda m: m["files"][2].update(path="data/train.parquet"))
    assert list(verify(tmp_path / "x")) == [f"data/train.parquet: should be named {SHARD}"]


def rewrite(out: Path, tables: list[pa.Table], name: str = SHARD, compression: str = "zstd") -> list[str]:
    """Write the only shard (or the audit file) anew, each table a row group, and return what verify says."""
    with pq.ParquetWriter(
        out / name,
        tables[0].schema,
        compression=compression,
        store_schema=b"pandas" in (tables[0].schema.metadata or {}),
    ) as w:
        for table in tables:
            w.write_table(table)
    content = (out / name).read_bytes()

    def edit(found: dict) -> None:
        entry = next(entry for entry in found["files"] if entry["path"] == name)
        entry.update(size=len(content), sha256=hashlib.sha256(content).hexdigest())

    edit_manifest(out, edit)
    return list(verify(out))


def shard_tables(builder: Builder) -> list[pa.Table]:
    return list(builder.examples())  # type: ignore[arg-type]


def test_row_groups_that_mix_tasks_or_are_too_long_are_named(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x")
    found = rewrite(tmp_path / "x", [pa.concat_tables(shard_tables(tiny()))])
    assert found == [f"{SHARD}: row group 0: mixes 4 tasks"]
    tiny(1001).write(tmp_path / "y")
    found = rewrite(tmp_path / "y", shard_tables(tiny(1001)))
    assert found == [f"{SHARD}: row group {index}: has 1001 rows, not 1 to 1000" for index in range(4)]


def test_an_empty_shard_is_named(tmp_path: Path) -> None:
    builder = tiny()
    builder.write(tmp_path / "x")
    for entry in (*builder.sources, *builder.tasks):
        entry["got"] = entry["drawn"] = 0
        entry["dropped"] = {}
    edit_manifest(tmp_path / "x", lambda m: m.update(sources=builder.sources, tasks=builder.tasks))
    found = rewrite(tmp_path / "x", [table_of([], EXAMPLES)])
    assert f"{SHARD}: has no rows" in found


def test_rows_out_of_order_are_named(tmp_path: Path) -> None:
    builder = tiny()
    builder.write(tmp_path / "x")
    asks, *others = shard_tables(builder)
    ids = asks.column("id").to_pylist()
    found = rewrite(tmp_path / "x", [asks.take([1, 0, 2, 3]), *others])
    assert found[0] == f"{SHARD}: {ids[0]}: stands after {ids[1]}, against the order by source, task and id"
    assert len(found) == 2 and "the content digest is" in found[1]


@pytest.mark.parametrize("change", ["order", "type"])
def test_other_columns_are_named(tmp_path: Path, change: str) -> None:
    tiny().write(tmp_path / "x")
    table = pa.concat_tables(shard_tables(tiny()))
    if change == "order":
        table = table.select(sorted(EXAMPLES.names))
    else:
        table = table.set_column(11, "positive_score", table.column("positive_score").cast(pa.float64()))
    found = rewrite(tmp_path / "x", [table])
    assert len(found) == 1 and found[0].startswith(f"{SHARD}: has the columns ")
    assert ("positive_score double" in found[0]) == (change == "type")


def test_pandas_metadata_is_named(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x")
    tables = [table.replace_schema_metadata({"pandas": "{}"}) for table in shard_tables(tiny())]
    assert rewrite(tmp_path / "x", tables) == [f"{SHARD}: has pandas metadata"]


def test_an_audit_file_of_another_shape_is_named(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x")
    found = rewrite(tmp_path / "x", [pa.table({"source": ["asks"]})], manifest.POSITIVES_FILE)
    path = tmp_path / "x" / "audit" / "positives.parquet"
    assert found == [f"{path} has the columns ['source']; build the release again"]


def test_a_file_that_is_not_zstd_is_named(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x")
    found = rewrite(tmp_path / "x", shard_tables(tiny()), compression="snappy")
    assert found == [f"{SHARD}: column id is compressed as SNAPPY, not as ZSTD"]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"query": "0123456789ABCDEF"}, "row group 0: the query '0123456789ABCDEF' is not 16 hex digits"),
        ({"positive": "abc"}, "row group 0: the positive 'abc' is not 16 hex digits"),
        ({"task": "other"}, "task other of twins is not in the manifest"),
    ],
)
def test_a_row_of_the_audit_file_of_another_form_is_named(tmp_path: Path, changes: dict[str, str], line: str) -> None:
    tiny().write(tmp_path / "x")
    path = tmp_path / "x" / manifest.POSITIVES_FILE
    rows = pq.read_table(path)
    extra = {"source": "twins", "task": "twins", "query": "0" * 16, "positive": "1" * 16} | changes
    more = pa.concat_tables([rows, pa.Table.from_pylist([extra], schema=rows.schema)])
    edit_manifest(tmp_path / "x", lambda m: m["files"][1].update(rows=len(more)))
    assert rewrite(tmp_path / "x", [more], manifest.POSITIVES_FILE) == [f"{manifest.POSITIVES_FILE}: {line}"]


def test_the_licence_of_a_task_is_the_one_its_file_states(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x")
    evidence = {"ingest": {"licence": "CC0"}}
    edit_manifest(tmp_path / "x", lambda m: m["tasks"][2].update(evidence=evidence))
    found = list(verify(tmp_path / "x"))
    assert len(found) == 4 and all(line.endswith("is 'cc-by-4.0', the manifest says 'CC0'") for line in found)


@pytest.mark.parametrize(
    ("stated", "pool_rows", "line"),
    [
        ({"given": 4, "mined": 4}, 4, None),
        ({"given": 5, "mined": 9}, 9, None),  # some rows of the pool were over the quota
        ({"given": 4, "mined": 9}, 4, "9 mined negatives, the shards have 4"),
        ({"given": 4, "mined": 3}, 9, "3 mined negatives, the shards have 4"),
        ({"given": 4, "mined": 4, "random": 1}, 4, "1 random negatives, the shards have 0"),
        ({"mined": 4}, 9, "0 given negatives, the shards have 4"),
    ],
)
def test_the_account_of_mining_is_that_of_the_rows(
    tmp_path: Path, stated: dict[str, int], pool_rows: int, line: str | None
) -> None:
    tiny().write(tmp_path / "x")
    evidence = {"pool_rows": pool_rows, "mine": {"negatives": stated}}
    for changed in (evidence, {"cluster_of": {"task": "all of it", "got": 4, **evidence}}):
        edit_manifest(tmp_path / "x", lambda m, changed=changed: m["tasks"][1].update(evidence=changed))
        unit = "all of it" if "cluster_of" in changed else "twins"
        said = f"manifest.json: the evidence of {unit} says that mining gave {line}"
        assert list(verify(tmp_path / "x")) == ([said] if line else [])


def test_a_release_without_its_run_is_named(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x")
    (tmp_path / "x" / "run.json").unlink()
    assert list(verify(tmp_path / "x")) == ["run.json: is missing"]


def test_sources_stand_as_in_table_5_whatever_the_manifest_says(tmp_path: Path) -> None:
    builder = tiny()
    names = {"asks": "NQ", "twins": "gooaq_pairs"}
    for entry in builder.sources:
        entry["name"] = names.get(entry["name"], entry["name"])
    for entry in builder.tasks:
        entry["source"], entry["task"] = (
            names.get(entry["source"], entry["source"]),
            names.get(entry["task"], entry["task"]),
        )
    builder.rows = {(names.get(s, s), names.get(t, t)): rows for (s, t), rows in builder.rows.items()}
    for (source, task), rows in builder.rows.items():
        for row in rows:
            row.update(source=source, task=task)
            if source != "super_ni":
                rehash(row)
    expected = "manifest.json: source gooaq_pairs stands after NQ, against the order of Table 5"
    assert lines_of(builder, tmp_path / "x") == [expected]


def test_the_command_prints_lines_and_exits_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x"
    tiny().write(out)
    verify_command(out)
    assert capsys.readouterr().out == f"{out}: clean\n"
    (out / "a\x1b[31m.txt").write_text("")
    with pytest.raises(typer.Exit) as stop:
        verify_command(out)
    assert stop.value.exit_code == 1
    assert capsys.readouterr().out == "a\\x1b[31m.txt: is not in the manifest\n"
    with pytest.raises(MediError, match="is not a folder"):
        verify_command(tmp_path / "absent")
