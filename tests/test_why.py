"""The story of a row of a real, tiny build: every part against the raw file and the release, and what is said where
a part is gone.
"""

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from medi.errors import UsageError
from medi.release import open_release
from medi.release.why import Places, Story, why
from pipelines.cli.app import main
from tests.builds import REPO, undone
from tests.release_builder import tiny

FILE = "embedding_training_data/gooaq_pairs.jsonl.gz"
TASK = "task9001_medi_sentiment_classification"


@pytest.fixture
def release(built: Path, cut: Path, tmp_path: Path) -> Path:
    """A copy of the built release that names a workspace of its own, and the raw files of the cut."""
    shutil.copytree(built / "out", tmp_path / "out")
    run = json.loads((tmp_path / "out" / "run.json").read_bytes())
    run["paths"] = {"raw": str(cut), "workspace": str(built), "out": str(tmp_path / "out")}
    (tmp_path / "out" / "run.json").write_text(json.dumps(run))
    return tmp_path / "out"


def rows_of(release: Path, name: str) -> list[dict[str, object]]:
    """Return all rows of a task or source."""
    return [row for table in open_release(release).tables(name) for row in table.to_pylist()]


def story(release: Path, row: dict[str, object], raw: Path | None = None, workspace: Path | None = None) -> Story:
    """Return the story of a row."""
    return why(open_release(release), str(row["id"]), Places(raw, workspace))


@pytest.mark.parametrize("name", ["gooaq_pairs", "NQ", "WikiAnswers", "AllNLI", "msmarco", "fever", "super_ni"])
def test_every_row_is_found_where_it_stands_and_its_choice_is_the_releases(release: Path, name: str) -> None:
    opened = open_release(release)
    rows = rows_of(release, name)
    for row in rows[:: max(1, len(rows) // 4)]:
        found = why(opened, str(row["id"]))
        assert found.row == row and found.absent == []
        assert opened.read(found.place).slice(found.place_in_group, 1).to_pylist() == [row]
        assert found.choice is not None and found.pool is not None and found.raw is not None
        listed = (*found.choice.given, *found.choice.candidates)
        assert [one.text for one in listed if one.fate == "chosen"] == row["negatives"]
        entry = next(e for e in opened.manifest["tasks"] if e["task"] == row["task"])
        assert found.slots == entry["slots"] and found.negatives_wanted == 1 and found.profile == "paper"
        assert found.given_wanted == (4 if name in ("NQ", "AllNLI", "msmarco") else 0)
        assert [one.score for one in listed if one.fate == "chosen"] == pytest.approx(row["negative_scores"], abs=1e-5)
        assert found.sentence == "Represent the[ {domain}] {text_type}[ for {objective}]:"


def test_the_raw_line_is_the_one_that_the_origin_names(release: Path, cut: Path) -> None:
    row = rows_of(release, "AllNLI")[0]
    file, _, number = str(row["origin"]).rpartition(":")
    with gzip.open(cut / file, "rt") as lines:
        line = lines.read().splitlines()[int(number) - 1]
    raw = story(release, row).raw
    assert raw is not None and (raw.file, raw.key, raw.text) == (file, number, line)
    assert raw.path == str(cut / file) and raw.size_bytes == (cut / file).stat().st_size
    assert json.loads(line)[:2] == [row["query"], row["positive"]]
    assert (raw.layout, raw.mended, raw.taken_out, raw.places) == ("array of three", [], {}, [])


def test_a_passage_is_told_by_its_place(release: Path, cut: Path) -> None:
    row = rows_of(release, "fever")[0]
    raw = story(release, row).raw
    assert raw is not None
    record = json.loads(raw.text)
    provenance = next(p for o in record["output"] for p in o.get("provenance", ()) if "wikipedia_id" in p)
    assert raw.places[0] == f"page {provenance['wikipedia_id']}, paragraph {provenance['start_paragraph_id']}"


def test_a_super_ni_row_tells_its_instance_its_output_and_the_verdict(release: Path, cut: Path) -> None:
    row = rows_of(release, TASK)[0]
    found = story(release, row)
    file, _, key = str(row["origin"]).partition("#")
    instance = next(i for i in json.loads((cut / file).read_bytes())["Instances"] if i["id"] == key)
    assert found.raw is not None and json.loads(found.raw.text) == instance
    assert found.pool is not None and found.choice is not None
    assert found.pool.output == instance["output"][0] and found.pool.references == instance["output"]
    assert found.verdict.startswith("label task (")
    assert [one.text for one in found.choice.positives if one.fate == "chosen"] == [row["positive"]]
    assert {one.label for one in found.choice.positives} == {row["label"]}
    assert row["label"] not in {one.label for one in found.choice.candidates}


def edited(cut: Path, folder: Path, edit: Callable[[list[object]], None], row: dict[str, object], end: str) -> Path:
    """Return a raw folder in which the line of a row is another record, and all its lines end otherwise."""
    raw = folder / "raw"
    shutil.copytree(cut, raw)
    file, _, number = str(row["origin"]).rpartition(":")
    lines = gzip.decompress((raw / file).read_bytes()).decode().splitlines()
    record = json.loads(lines[int(number) - 1])
    edit(record)
    lines[int(number) - 1] = json.dumps(record)
    (raw / file).write_bytes(gzip.compress((end.join(lines) + end).encode()))
    return raw


def test_what_cleaning_does_to_a_line_is_told(release: Path, cut: Path, tmp_path: Path) -> None:
    """The file is another now, so the manifest is made to name its size: what is asked is how its line is told."""
    row = rows_of(release, "AllNLI")[0]
    raw = edited(cut, tmp_path, lambda record: record.__setitem__(2, record[0]), row, "\r\n")
    file = str(row["origin"]).rpartition(":")[0]
    path = release / "manifest.json"
    manifest = json.loads(path.read_bytes())
    entry = next(f for s in manifest["sources"] for f in s["files"] if f["name"] == file)
    entry["size"] = (raw / file).stat().st_size
    path.write_text(json.dumps(manifest))
    told = story(release, row, raw).raw
    assert told is not None and told.path == str(raw / file)
    assert (told.mended, told.taken_out) == (["crlf"], {"neg_is_query": 1})


def test_what_is_gone_is_said_in_a_line_with_what_to_run(release: Path, built: Path, cut: Path, tmp_path: Path) -> None:
    row = rows_of(release, "gooaq_pairs")[0]
    empty, size = tmp_path / "empty", (cut / FILE).stat().st_size
    # A file of this name is there, but it is another.
    (empty / FILE).parent.mkdir(parents=True)
    (empty / FILE).write_bytes(b"x")
    nothing = story(release, row, empty, empty)
    assert (nothing.raw, nothing.pool, nothing.choice) == (None, None, None)
    assert nothing.absent == [
        f"raw line: {FILE}, of {size:,} bytes as when it was read, is not in {empty} and {empty}; name its folder with "
        "--raw",
        f"candidates and pool: {empty} lacks artifacts of this release; run `medi build` with the same options, and "
        "they are made again",
    ]
    assert nothing.row == row and nothing.slots
    # The workspace remembers where it read the file.
    assert story(release, row, empty).raw == story(release, row).raw
    undone(built, tmp_path / "w", "candidates", "digests")
    part = story(release, row, cut, tmp_path / "w")
    assert part.raw and part.pool and part.choice is None
    assert [line.partition(" lacks ")[0] for line in part.absent] == [f"candidates: {tmp_path / 'w'}"]
    (release / "run.json").unlink()
    assert [line.partition(";")[0] for line in story(release, row).absent] == [
        f"raw line: {FILE}, of {size:,} bytes as when it was read, is not in any folder that is known",
        "candidates and pool: run.json does not name the workspace",
    ]


def test_a_release_without_artifacts_or_files_still_tells_the_row(tmp_path: Path) -> None:
    """As one that was imported: its manifest names no record of the row's unit."""
    tiny().write(tmp_path / "x")
    row = rows_of(tmp_path / "x", "asks")[0]
    found = story(tmp_path / "x", row)
    assert found.row == row and found.slots == {"query": {"text_type": "question"}, "document": {"text_type": "answer"}}
    assert len(found.absent) == 2 and found.absent[1].startswith("candidates: the manifest names no artifacts")


@pytest.mark.parametrize(
    ("unit", "rules"), [("gooaq_pairs", {"skip_top": 1}), (TASK, {"skip_top": 1}), (TASK, {"max_positive_score": -1.0})]
)
def test_other_rules_than_those_of_the_build_are_admitted(release: Path, unit: str, rules: dict[str, float]) -> None:
    path = release / "manifest.json"
    manifest = json.loads(path.read_bytes())
    mined = next(r for r in manifest["records"] if (r["stage"], r["unit"]) == ("mine", unit))
    mined["params"]["rules"] |= rules
    path.write_text(json.dumps(manifest))
    [line] = story(release, rows_of(release, unit)[0]).absent
    assert line.startswith("candidates: the rules of this medi (mine, version 2) choose other texts than those of vers")


def test_rows_are_numbered_in_the_order_of_drawing(release: Path) -> None:
    rows = rows_of(release, "gooaq_pairs")
    pools = [found.pool for row in rows if (found := story(release, row))]
    assert sorted(pool.drawn for pool in pools if pool) == list(range(1, len(rows) + 1))
    assert {pool.rows for pool in pools if pool} == {len(rows)}


def test_an_unknown_id_is_a_line_that_names_the_nearest(release: Path) -> None:
    rows = rows_of(release, "gooaq_pairs")
    known = str(rows[3]["id"])
    with pytest.raises(UsageError, match=f"no row '{known[:-1]}' in .*; nearest are {known}, gooaq_pairs/"):
        why(open_release(release), known[:-1])
    with pytest.raises(UsageError, match=r"an id begins with its source, such as gooaq_pairs/; `medi inspect .* --n"):
        why(open_release(release), "gooaq_pair/0123456789abcdef")
    with pytest.raises(UsageError, match=r"an id is SOURCE/ and 16 hex digits; `medi inspect"):
        why(open_release(release), "\x1b")


def test_the_screen_is_80_columns_wide_and_shows_no_control(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = rows_of(release, TASK)[0]
    assert main(["inspect", str(release), "--why", str(row["id"])]) == 0
    out = capsys.readouterr().out
    lines = [line.rstrip() for line in out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert [line.partition(" ──")[0] for line in lines if "──" in line] == [
        row["id"], "raw record", "instructions", "mining: 1 negative wanted",
    ]  # fmt: skip
    assert any(line.startswith("judged    label task (") for line in lines)
    candidates = lines[next(n for n, line in enumerate(lines) if line.startswith("candidates for negatives")) :]
    assert candidates[1].split() == ["score", "became", "text"]
    assert candidates[2].split()[0] == "1" and candidates[2].split()[2] == "chosen"
    assert candidates[-1].startswith("in all: not_needed ") and candidates[-1].endswith("chosen 1")


def test_of_given_negatives_the_screen_tells_how_many_are_wanted_and_their_scores(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = rows_of(release, "NQ")[0]
    scores, given = row["negative_scores"], row["negatives"]
    assert isinstance(scores, list) and isinstance(given, list)
    assert main(["inspect", str(release), "--why", str(row["id"])]) == 0
    out = capsys.readouterr().out
    assert "mining: up to 4 given negatives wanted, mined ones where there is none ──" in out
    lines = out[out.index("negatives that the source gives: ") :].splitlines()
    assert lines[1].split() == ["score", "became", "text"]
    assert [line.split()[1:3] for line in lines[2 : 2 + len(given)]] == [[f"{s:.3f}", "chosen"] for s in scores]


def test_json_holds_it_all(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = rows_of(release, "NQ")[0]
    assert main(["inspect", str(release), "--why", str(row["id"]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["row"] == row and found["choice"]["given"][0]["fate"] == "chosen"
    assert sorted(found) == [
        "absent", "choice", "given_wanted", "negatives_wanted", "place", "place_in_group", "pool", "profile", "raw",
        "row", "rules", "sentence", "slots", "verdict",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ["--why", "NQ/0", "--task", "NQ"],
            "--why NQ/0 and --task NQ: the one shows a row, the other a task; give one",
        ),
        (["--why", "NQ/0", "--n", "0"], "--why NQ/0 and --n 0: the one shows a row, the other random rows; give one"),
        (["--why", "NQ/0", "--seed", "7"], "--why NQ/0 and --seed 7: the one shows a row, the other random rows"),
        (["--raw", "x"], "--raw x: says where --why finds what a release does not hold; give --why ID"),
        (["--workspace", "x"], "--workspace x: says where --why finds what a release does not hold; give --why ID"),
        (["--why", "NQ/0"], "no row 'NQ/0' in "),
    ],
)
def test_what_says_nothing_together_is_a_line(
    release: Path, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    assert main(["inspect", str(release), *options]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"medi: {says}") and err.count("\n") == 1


def test_the_story_needs_no_torch_and_no_faiss(release: Path) -> None:
    row = rows_of(release, "gooaq_pairs")[0]
    code = (
        "import sys; from pipelines.cli.app import main; main(['inspect', *sys.argv[1:]]);"
        "print(sorted({'torch', 'faiss', 'sentence_transformers', 'prefect'} & set(sys.modules)))"
    )
    call = [sys.executable, "-c", code, str(release), "--why", str(row["id"])]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=REPO)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
