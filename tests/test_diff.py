"""Two releases that differ in one known thing: the diff names that thing, counts its rows, and ends with its code."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from medi.errors import MediError
from medi.release import open_release
from medi.release.diff import Diff
from medi.release.diff import diff as differences
from medi.release.diff_causes import Change
from medi.schema import row_id
from pipelines.cli.app import main
from tests.release_builder import Builder, Row, pair_row, task_entry, tiny

LABEL = "task001_yes_or_no"
UNCHANGED = {"positive": 0, "negatives": 0, "scores": 0, "instructions": 0, "licence": 0, "origin": 0}


def compared(folder: Path, change: Callable[[Builder], object], name: str | None = None, rows: int = 4) -> Diff:
    """Write a good release and one with a change; return what differs."""
    tiny(rows).write(folder / "a")
    builder = tiny(rows)
    change(builder)
    builder.write(folder / "b")
    return differences(open_release(folder / "a"), open_release(folder / "b"), name)


def edit_manifest(release: Path, edit: Callable[[dict[str, object]], object]) -> None:
    """Change the manifest of a written release."""
    path = release / "manifest.json"
    manifest = json.loads(path.read_bytes())
    edit(manifest)
    path.write_text(json.dumps(manifest))


def renamed(row: Row, query: str) -> None:
    """Give a row another query, and so another id."""
    source = str(row["source"])
    row |= {"query": query, "id": row_id(source, source, query, str(row["positive"]))}


@pytest.mark.parametrize(
    ("task", "values", "aspect"),
    [
        (LABEL, {"positive": "another"}, "positive"),
        (LABEL, {"label": "maybe"}, "positive"),
        ("asks", {"negatives": ["negative 0 of asks", "another"]}, "negatives"),
        (
            "asks",
            {"negatives": ["one"], "negative_scores": [0.5], "negative_origins": ["given"]},
            "negatives",
        ),
        ("asks", {"negatives": [], "negative_scores": [], "negative_origins": []}, "negatives"),
        ("asks", {"negative_origins": ["given", "random"]}, "negatives"),
        (LABEL, {"negative_labels": ["never"]}, "negatives"),
        ("asks", {"positive_score": 0.5}, "scores"),
        ("asks", {"positive_score": None}, "scores"),
        ("asks", {"negative_scores": [0.5, 0.125]}, "scores"),
        ("asks", {"document_instruction": "Represent:"}, "instructions"),
        ("asks", {"licence": "MIT"}, "licence"),
    ],
)
def test_a_changed_row_is_counted_under_what_changed(
    tmp_path: Path, task: str, values: dict[str, object], aspect: str
) -> None:
    found = compared(tmp_path, lambda builder: builder.row(task, 1).update(values))
    assert not found.equal and [part.task for part in found.tasks] == [task]
    part = found.tasks[0]
    assert part.changed == UNCHANGED | {aspect: 1}
    assert (part.rows_a, part.rows_b, part.removed, part.added, part.changed_rows) == (4, 4, 0, 0, 1)
    [(left, right)] = part.examples
    assert left["id"] == right["id"]
    assert {name: right[name] for name in right if right[name] != left[name]} == values


def test_a_score_moves_between_equal_texts_only(tmp_path: Path) -> None:
    def change(builder: Builder) -> None:
        builder.row("asks", 0)["negative_scores"] = [0.5, 0.375]
        builder.row("asks", 1).update(positive_score=0.6875)
        # Another negative has another score; nothing moved.
        builder.row("asks", 2).update(negatives=["another", "and another"], negative_scores=[0.0, 0.0])

    [part] = compared(tmp_path, change).tasks
    assert (part.changed["scores"], part.changed["negatives"], part.changed_rows) == (2, 1, 3)
    assert part.score_move == 0.125


def test_rows_that_one_release_lacks_are_found_beside_changed_ones(tmp_path: Path) -> None:
    """2,500 rows a task are three row groups; of those in B every fifth has another id, so groups do not meet."""
    places = range(0, 2500, 5)

    def change(builder: Builder) -> None:
        for place in places:
            renamed(builder.row("asks", place), f"other {place}")
        for place in range(1, 2500, 250):
            builder.row("asks", place)["positive_score"] = 0.25

    found = compared(tmp_path, change, rows=2500)
    [part] = found.tasks
    assert (part.rows_a, part.rows_b, part.removed, part.added) == (2500, 2500, 500, 500)
    assert part.changed == UNCHANGED | {"scores": 10} and part.score_move == 0.5
    old = sorted(str(pair_row("asks", place)["id"]) for place in places)
    assert part.removed_ids == old[:3] and len(part.examples) == 3


def test_a_row_in_another_task_of_its_source_is_told_as_moved(tmp_path: Path) -> None:
    for name, places in (("a", (0, 1, 2)), ("b", (0, 2))):
        builder = tiny()
        rows = builder.rows.pop(("asks", "asks"))
        parts = {"asks/00": [rows[p] for p in places], "asks/01": [r for p, r in enumerate(rows) if p not in places]}
        builder.rows = {("asks", task): [r | {"task": task} for r in part] for task, part in parts.items()} | dict(
            builder.rows
        )
        builder.tasks[0:1] = [task_entry("asks", task, "pair", len(part)) for task, part in parts.items()]
        builder.write(tmp_path / name)
    found = differences(open_release(tmp_path / "a"), open_release(tmp_path / "b"))
    assert found.moved == {"asks": 1}
    assert [(t.task, t.removed, t.added) for t in found.tasks] == [("asks/00", 1, 0), ("asks/01", 0, 1)]


def test_tasks_and_sources_of_one_release_alone_are_named(tmp_path: Path) -> None:
    def change(builder: Builder) -> None:
        del builder.rows["twins", "twins"], builder.sources[1], builder.tasks[1]
        builder.sources[0]["variant"] = "parquet"

    found = compared(tmp_path, change)
    assert (found.sources_removed, found.sources_added) == (["twins"], [])
    assert (found.tasks_removed, found.tasks_added) == (["twins"], [])
    assert found.sources == {"asks": [Change("variant", "jsonl", "parquet")]}
    assert [(t.task, t.rows_a, t.rows_b, t.removed) for t in found.tasks] == [("twins", 4, 0, 4)]


def test_equal_releases_still_tell_what_they_were_told(tmp_path: Path) -> None:
    found = compared(tmp_path, lambda builder: builder.row("asks").update(origin="elsewhere.jsonl:7"))
    assert found.equal and found.origin_rows == 1 and found.tasks == []
    edit_manifest(tmp_path / "b", lambda m: m["params"].update(seed=1, new={"x": 1}))  # type: ignore[attr-defined]
    run = {"versions": {"torch": "9"}, "machine": {"arithmetic": "x"}, "paths": {"out": "y"}}
    (tmp_path / "b" / "run.json").write_text(json.dumps(run))
    found = differences(open_release(tmp_path / "a"), open_release(tmp_path / "b"))
    assert found.equal
    assert found.params == [Change("seed", 0, 1), Change("new", None, {"x": 1})]
    assert found.run == [Change("versions", None, {"torch": "9"}), Change("machine", None, {"arithmetic": "x"})]


def record(stage: str, unit: str, content: str, **told: object) -> dict[str, object]:
    """Return a record as far as a diff looks at it."""
    return {"stage": stage, "unit": unit, "content": content, "version": 1, "params": {}, "inputs": {}} | told


def test_the_first_stage_that_differs_is_the_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny().write(tmp_path / "a")
    builder = tiny()
    for task in ("asks", "twins", LABEL):
        builder.row(task)["positive_score"] = 0.5
    builder.write(tmp_path / "b")
    same = [record("ingest", unit, "c") for unit in ("asks", "twins")]
    a = [record("ingest", LABEL, "c", inputs={"f.json": "0"}), record("mine", "asks", "c", params={"rules": {"n": 1}})]
    b = [record("ingest", LABEL, "d", inputs={"f.json": "1"}), record("mine", "asks", "d", params={"rules": {"n": 4}})]
    a += [record("mine", "twins", "c"), record("sample", "asks", "c")]
    b += [record("mine", "twins", "d", version=2), record("sample", "asks", "d")]
    edit_manifest(tmp_path / "a", lambda m: m.update(records=same + a))
    edit_manifest(tmp_path / "b", lambda m: m.update(records=same + b))
    found = differences(open_release(tmp_path / "a"), open_release(tmp_path / "b"))
    assert {part.task: part.cause for part in found.tasks} == {
        "asks": "mine: rules.n", "twins": "mine: version", LABEL: "ingest: f.json",
    }  # fmt: skip
    assert found.stages == [Change("mine", 1, [1, 2])]
    # What the screen says, a program is told too.
    assert found.explanations == [
        "in 1 task the difference began in mine: rules.n", "in 1 task the difference began in ingest: f.json",
        "in 1 task the difference began in mine: version",
    ]  # fmt: skip
    code, out, _ = run(capsys, tmp_path / "a", tmp_path / "b")
    told = " ".join(out.split())
    assert code == 1 and all(sentence in told for sentence in found.explanations)


@pytest.mark.parametrize(
    ("params", "beginning"),
    [
        (({"arithmetic": "cpu-avx2"}, {"arithmetic": "cuda-sm90"}), "the arithmetic is another (cpu-avx2 and cuda-sm9"),
        (({"name": "x", "dtype": "f"}, {"name": "y", "dtype": "g"}), "the encoder is another (name, dtype): every"),
        (({"name": "x"}, {"name": "x"}), "no param, stage, source or raw file that the manifests name differs: a file"),
    ],
)
def test_the_encoder_and_its_arithmetic_are_named(
    tmp_path: Path, params: tuple[dict[str, str], dict[str, str]], beginning: str
) -> None:
    compared(tmp_path, lambda builder: builder.row("asks").update(positive_score=0.5))
    for name, encoder in zip("ab", params, strict=True):
        edit_manifest(tmp_path / name, lambda m, e=encoder: m["params"].update(encoder=e))  # type: ignore[attr-defined]
    [said] = differences(open_release(tmp_path / "a"), open_release(tmp_path / "b")).explanations
    assert said.startswith(beginning)


def test_files_are_hashed_and_never_called_equal_unread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny().write(tmp_path / "a")
    for name in ("data/train-00000-of-00001.parquet", "audit/positives.parquet", "README.md"):
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        path = tmp_path / "b" / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        for sides in ("ab", "ba"):
            code, out, err = run(capsys, *(tmp_path / side for side in sides))
            assert (code, out, err.count("\n")) == (2, "", 1)
            assert err.startswith(f"medi: {path} has other bytes than its manifest says, so the release is not whole; ")
        shutil.rmtree(tmp_path / "b")


def test_a_file_that_no_manifest_names_is_told_and_a_shard_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny().write(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "notes.txt").write_text("mine")
    code, out, err = run(capsys, tmp_path / "a", tmp_path / "b")
    lines = [line.rstrip() for line in out.splitlines()]
    assert (code, err, lines[0], lines[-1]) == (0, "", "equal: the same rows", "other bytes in notes.txt")
    (tmp_path / "a" / "notes.txt").write_text("mine")
    assert "the same bytes in every file" in run(capsys, tmp_path / "a", tmp_path / "b")[1]
    (tmp_path / "b" / "manifest.json").write_bytes((tmp_path / "b" / "manifest.json").read_bytes() + b"\n")
    assert run(capsys, tmp_path / "a", tmp_path / "b")[1].rstrip().endswith("other bytes in manifest.json")
    stray = tmp_path / "b" / "data" / "train-00001-of-00002.parquet"
    shutil.copy(tmp_path / "b" / "data" / "train-00000-of-00001.parquet", stray)
    code, out, err = run(capsys, tmp_path / "a", tmp_path / "b")
    assert (code, out) == (2, "") and err.startswith(f"medi: {stray} is not in the manifest, so the release is not")


def test_a_name_limits_what_is_compared(tmp_path: Path) -> None:
    def change(builder: Builder) -> None:
        builder.row("asks")["positive_score"] = builder.row(LABEL)["positive_score"] = 0.5

    assert [part.task for part in compared(tmp_path, change, "super_ni").tasks] == [LABEL]
    assert compared(tmp_path, change, "twins").equal
    with pytest.raises(MediError, match=r"no task or source 'ask' in .*; did you mean asks\?$"):
        compared(tmp_path, change, "ask")


def test_a_manifest_that_is_not_that_of_its_rows_is_refused(tmp_path: Path) -> None:
    compared(tmp_path, lambda builder: builder.row("asks").update(positive_score=0.5))
    digest = open_release(tmp_path / "a").manifest["content_digest"]
    edit_manifest(tmp_path / "b", lambda m: m.update(content_digest=digest))
    with pytest.raises(MediError, match="have one content digest, but not the same rows: .*`medi verify` tells in wh"):
        differences(open_release(tmp_path / "a"), open_release(tmp_path / "b"))


def run(capsys: pytest.CaptureFixture[str], *args: str | Path) -> tuple[int, str, str]:
    """Run `medi diff` and return its code and what it wrote."""
    code = main(["diff", *map(str, args)])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_codes_are_those_of_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = compared(tmp_path, lambda builder: builder.row("asks").update(positive_score=0.5))
    a, b = tmp_path / "a", tmp_path / "b"
    shutil.copytree(a, tmp_path / "copy")
    code, out, err = run(capsys, a, tmp_path / "copy")
    assert (code, err) == (0, "")
    assert out.startswith("equal: the same rows, and the same bytes in every file but run.json\n")
    code, out, err = run(capsys, a, b, "--json")
    assert (code, err) == (1, "") and json.loads(out) == json.loads(json.dumps(asdict(found)))
    assert run(capsys, a, b, "--task", "twins")[0] == 0


def test_whatever_else_is_wrong_is_a_line_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared(tmp_path, lambda builder: builder.row("asks").update(positive_score=0.5))
    a, b = tmp_path / "a", tmp_path / "b"
    assert run(capsys, a)[::2] == (2, "medi: Missing argument 'B'; see `medi diff --help`\n")
    code, out, err = run(capsys, a, tmp_path / "none")
    assert (code, out) == (2, "") and err.startswith(f"medi: {tmp_path / 'none'} is not a folder; ")
    shard = b / "data" / "train-00000-of-00001.parquet"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-100])
    code, out, err = run(capsys, a, b)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert f"{shard} has {len(whole) - 100:,} bytes, not {len(whole):,}, so the release is not whole" in err
    shard.write_bytes(b"\0" * len(whole))
    assert run(capsys, a, b)[0] == 2
    shard.unlink()
    assert f"{shard} is absent" in run(capsys, a, b)[2]
    (b / "manifest.json").write_text('{"format": "other"}')
    assert run(capsys, a, b)[0] == 2


def test_the_screen_is_80_columns_wide_and_shows_no_control(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[31m[red]x[/red]\u202e"

    def change(builder: Builder) -> None:
        name = "task003_" + "a_very_long_name_" * 6
        rows = builder.rows.pop(("super_ni", "task002_rewrite"))
        builder.rows["super_ni", name] = [row | {"task": name} for row in rows]
        builder.tasks[3]["task"] = name
        builder.row("asks", 0).update(negatives=[evil], negative_scores=[0.5], negative_origins=["given"])
        builder.row("asks", 1).update(positive_score=0.5, query_instruction=evil)
        renamed(builder.row("asks", 2), evil)

    compared(tmp_path, change)
    edit_manifest(tmp_path / "b", lambda m: m["params"].update({evil: evil}))  # type: ignore[attr-defined]
    code, out, _ = run(capsys, tmp_path / "a", tmp_path / "b")
    lines = [line.rstrip() for line in out.splitlines()]
    assert code == 1 and max(len(line) for line in lines if not line.startswith("folder")) <= 80
    assert lines[0] == "different: 12 rows of 3 tasks"
    assert not set(out) & {"\x1b", "\u202e"} and "[red]x" in out
    heads = next(line.split() for line in lines if line.startswith("rows of task"))
    assert heads[3:] == ["of", "A", "removed", "added", "negatives", "scores", "instr."]
    assert [line.split()[-6:] for line in lines if line.startswith("asks")] == [["4", "1", "1", "1", "1", "1"]]
    assert "scores    of equal texts moved by 0.25 at most" in lines
    _, out, _ = run(capsys, tmp_path / "a", tmp_path / "b", "--task", "asks")
    told = " ".join(out.split())
    assert "- negative [0.500, given] negative 0 of asks" in told
    assert "+ negative [0.500, given] \\x1b[31m[red]x[/red]\\u202e" in told
    assert "+ positive [0.500] positive 1 of asks" in told and not set(out) & {"\x1b", "\u202e"}


def test_long_lists_end_with_the_option_that_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared(tmp_path, lambda builder: builder.row("asks").update(positive_score=0.5))
    edit_manifest(tmp_path / "b", lambda m: m["params"].update({f"p{n:02}": n for n in range(15)}))  # type: ignore[attr-defined]
    _, out, _ = run(capsys, tmp_path / "a", tmp_path / "b")
    assert "p11 " in out and "p12 " not in out and "and 3 more: --all" in out
    _, out, _ = run(capsys, tmp_path / "a", tmp_path / "b", "--all")
    assert "p14 " in out and "more: --all" not in out
