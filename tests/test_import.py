"""A released medi-data.json made a release: the same texts there and back, what is mended, what is refused."""

import gzip
import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from medi.errors import MediError, UsageError
from medi.export import export
from medi.imported import import_file
from medi.imported.spill import Spill
from medi.release import open_release
from medi.release.verify import verify
from medi.schema import row_id
from medi.store import Store
from medi.train.data import open_data
from medi.train.run import run
from pipelines.cli.app import line_of, main
from tests.limits import files_of_at_most
from tests.release_builder import tiny
from tests.training import Heard, job

Record = dict[str, object]
QUERY, ANSWER = "Represent the question for retrieving answers:", "Represent the answer for retrieval:"


def record(number: int, task: str = "NQ", **changes: object) -> Record:
    """Return a record of a released file."""
    return {
        "query": [QUERY, f"question {number}"],
        "pos": [ANSWER, f"answer {number}"],
        "neg": [ANSWER, f"wrong answer {number}"],
        "task_name": task,
    } | changes


def written(folder: Path, records: list[object]) -> Path:
    """Write a released file and return its path."""
    path = folder / "medi-data.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return path


def rows_of(folder: Path) -> list[dict[str, object]]:
    """Return the rows of a release that verifies."""
    assert list(verify(folder)) == []
    return [row for table in open_release(folder).tables() for row in table.to_pylist()]


def test_there_and_back_are_the_same_texts_instructions_and_tasks(tmp_path: Path) -> None:
    tiny(6).write(tmp_path / "r")
    export(tmp_path / "r", "medi-json", tmp_path / "medi-data.json")
    summary = import_file(tmp_path / "medi-data.json", tmp_path / "back")
    assert (summary.rows, summary.tasks, summary.left_out) == (24, 4, {})
    names = ("source", "task", "query_instruction", "query", "document_instruction", "positive")
    before, after = (
        sorted((*(str(row[name]) for name in names), row["negatives"][0]) for row in rows_of(tmp_path / folder))  # type: ignore[index]
        for folder in ("r", "back")
    )
    assert before == after
    # Ids are made of the texts; of a Super-NI row also of its output, which is not in such a file.
    ids = [{row["id"] for row in rows_of(tmp_path / f) if row["source"] != "super_ni"} for f in ("r", "back")]
    assert ids[0] == ids[1] and len(ids[0]) == 12
    again = export(tmp_path / "back", "medi-json", tmp_path / "again.json")
    assert again.rows == 24
    # Sources of no known name stand behind those of Table 5, so the numbers of tasks differ, and nothing else.
    first, second = (
        Counter(json.dumps({**one, "task_id": 0}) for one in json.loads((tmp_path / name).read_bytes()))
        for name in ("medi-data.json", "again.json")
    )
    assert first == second


@pytest.mark.parametrize("batch_size", [1, 4])
def test_export_import_export_gives_the_same_bytes(tmp_path: Path, batch_size: int) -> None:
    # Ids of Super-NI rows cover the output, so those of an import, and with them its order, are others.
    builder = tiny(50)
    for source in ("asks", "twins"):
        del builder.rows[source, source]
    builder.sources, builder.tasks = builder.sources[2:], builder.tasks[2:]
    builder.write(tmp_path / "r")
    export(tmp_path / "r", "medi-json", tmp_path / "first.json", batch_size)
    import_file(tmp_path / "first.json", tmp_path / "back")
    tally = export(tmp_path / "back", "medi-json", tmp_path / "again.json", batch_size)
    assert (tally.rows, tally.tasks, tally.left_out) == (100 if batch_size == 1 else 96, 2, {})
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "first.json").read_bytes()
    texts = [[row["query"] for row in rows_of(tmp_path / name)] for name in ("r", "back")]
    assert texts[0] != texts[1]


def test_what_is_told_of_a_task_comes_from_its_name(tmp_path: Path) -> None:
    records = [
        record(1, "my set"), record(2, "task391_causal"), record(3, "msmarco/04"), record(4), record(5, "msmarco/03"),
        {**record(6), "task_name": None, "task_id": 7},
    ]  # fmt: skip
    path = written(tmp_path, records)
    import_file(path, tmp_path / "r")
    manifest = open_release(tmp_path / "r").manifest
    told = {
        "name": "medi-data.json",
        "size": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    assert manifest["params"] == {"imported": {**told, "records": 6, "bad": {}}}
    assert [(entry["name"], entry["licence"], entry["got"]) for entry in manifest["sources"]] == [
        ("NQ", "CC BY-SA 3.0", 1),
        ("msmarco", "non-commercial research", 2),
        ("super_ni", "Apache-2.0; instances as their sources", 1),
        ("my set", "unknown", 1),
        ("task_id_7", "unknown", 1),
    ]
    assert all(entry["files"] == [told] and entry["variant"] == "medi-data" for entry in manifest["sources"])
    assert [entry["task"] for entry in manifest["tasks"]] == [
        "NQ", "msmarco/03", "msmarco/04", "task391_causal", "my set", "task_id_7",
    ]  # fmt: skip
    first = rows_of(tmp_path / "r")[0]
    assert first == {
        "id": row_id("NQ", "NQ", "question 4", "answer 4"), "source": "NQ", "task": "NQ", "kind": "pair",
        "query_instruction": QUERY, "query": "question 4", "document_instruction": ANSWER, "positive": "answer 4",
        "label": None, "negatives": ["wrong answer 4"], "negative_labels": [], "positive_score": None,
        "negative_scores": [None], "negative_origins": ["given"], "licence": "CC BY-SA 3.0",
        "origin": "medi-data.json#3",
    }  # fmt: skip


def test_rows_are_mended_left_out_and_counted(tmp_path: Path) -> None:
    records = [
        record(12, pos=[ANSWER, None]),
        record(1),
        record(1, neg=[ANSWER, "another wrong answer"]),
        record(2, pos=[ANSWER, "question  2 "]),
        record(3, query=[QUERY, "\u200b"]),
        record(4, neg=[ANSWER, "answer 5"]),
        record(5, query=[QUERY, "question 4"]),
        record(6, neg=[ANSWER, " question 6"]),
        record(7, pos=[f" {ANSWER} ", 1917], neg=[ANSWER, True]),
        record(8, query=["only the question"], pos=["only the answer"], neg=["only the wrong answer"]),
        record(9, neg=None),
        record(10, query=[QUERY, "half \ud83d of a face"]),
        record(11, neg=["Represent another document:", "wrong"]),
        record(13, query=[QUERY, "a", "b"]),
        record(14, task_name=""),
        record(15, pos="a text alone"),
        "a text",
    ]
    summary = import_file(written(tmp_path, records), tmp_path / "r")
    bad = {
        "instructions_differ": 1,
        "null in pos": 1,
        "'query' is an array of 3, not [instruction, text]": 1,
        "'pos' is a text, not [instruction, text]": 1,
        "neither 'task_name' nor 'task_id' names a task": 1,
        "expected an object with the key 'query', found a text": 1,
    }
    dropped = {"duplicate": 1, "empty_text": 1, "identity_pair": 1}
    assert (summary.rows, summary.left_out) == (8, dropped | bad)
    assert open_release(tmp_path / "r").manifest["params"]["imported"]["bad"] == bad  # type: ignore[index, call-overload]
    by_query = {(row["query"], row["positive"]): row for row in rows_of(tmp_path / "r")}
    assert by_query["question 1", "answer 1"]["negatives"] == ["wrong answer 1", "another wrong answer"]
    assert by_query["question 4", "answer 4"]["negatives"] == []  # a positive of the same query in another row
    assert by_query["question 6", "answer 6"]["negatives"] == []
    assert by_query["question 7", "1917"]["negatives"] == ["true"]
    assert by_query["question 7", "1917"]["document_instruction"] == ANSWER
    assert by_query["half \ufffd of a face", "answer 10"]["negatives"] == ["wrong answer 10"]
    alone = by_query["only the question", "only the answer"]
    # A batch holds one pair of instructions, so rows with another are a task of their own.
    assert (alone["task"], alone["query_instruction"], alone["document_instruction"]) == ("NQ#2", "", "")
    (entry,) = open_release(tmp_path / "r").manifest["sources"]
    assert entry["mended"] == {
        "lone_surrogate": 1, "neg_is_known_positive": 1, "neg_is_query": 1, "no_instruction": 3, "no_negative": 1,
        "number_as_text": 2,
    }  # fmt: skip
    assert (entry.get("drawn"), entry["got"], entry["dropped"]) == (11, 8, dropped)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"set": ["a", "b"]}]', "medi-data.json#0 is no record of a medi-data.json (the key 'query' is missing"),
        (b'[["a", "b"]]', "medi-data.json#0 is no record of a medi-data.json (expected an object with the key 'query'"),
        (b'{"data": [1, 2]}', "medi-data.json:1 is no record of a medi-data.json (the key 'query' is missing"),
        (b"[]", "medi-data.json: the file holds no record"),
        (b" [\n ]\n", "medi-data.json: the file holds no record"),
        (
            b'[{"query": "q", "pos": ["i", "p"], "neg": ["i", "n"], "task_id": 1}]',
            "medi-data.json#0 is no record of a medi-data.json ('query' is a text, not [instruction, text]); give an",
        ),
        (b"", "medi-data.json: "),
        (b"<html><body>Google Drive</body></html>", "medi-data.json: an HTML page in place of data"),
        (json.dumps([record(1), record(2)]).encode()[:-30], "medi-data.json: not JSON after 1 record"),
        (
            json.dumps([record(1, pos=[ANSWER, "question 1"])]).encode(),
            "none of its records can be a row of a release (identity_pair: 1)",
        ),
    ],
)
def test_a_file_of_another_shape_is_one_line_and_leaves_nothing(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "medi-data.json").write_bytes(content)
    with pytest.raises(MediError) as caught:
        import_file(tmp_path / "medi-data.json", tmp_path / "r")
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["medi-data.json"]


@pytest.mark.parametrize("most_bytes", [20, 2_000])
def test_an_import_that_finds_no_room_names_its_place(most_bytes: int, tmp_path: Path) -> None:
    path, out = written(tmp_path, [record(number) for number in range(50)]), tmp_path / "r"
    with files_of_at_most(most_bytes), pytest.raises(OSError) as full:
        import_file(path, out)
    assert line_of(full.value).startswith(f"{out}: file too large; raise the limit")
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_what_stands_at_out_is_not_replaced(tmp_path: Path) -> None:
    path = written(tmp_path, [record(1)])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(MediError, match="out exists and is not a release of medi"):
        import_file(path, tmp_path / "out")
    with pytest.raises(UsageError, match="absent.json is not a file"):
        import_file(tmp_path / "absent.json", tmp_path / "r")


def test_equal_files_give_equal_releases_in_whatever_order_and_packing(tmp_path: Path) -> None:
    records: list[object] = [record(number, f"set {number % 3}") for number in range(60)]
    first = import_file(written(tmp_path, records), tmp_path / "a")
    with gzip.open(tmp_path / "lines.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in reversed(records))
    second = import_file(tmp_path / "lines.jsonl.gz", tmp_path / "b")
    assert first.digest == second.digest and second.rows == 60


def test_instructions_stay_as_they_were_found(tmp_path: Path) -> None:
    """Of a release that medi built, all end in one mark and none has two blanks in a row."""
    found = ["Represent the question;", "Represent  the question:", "Represent the question", ""]
    records = [record(number, f"set {number}", query=[words, "q"]) for number, words in enumerate(found)]
    import_file(written(tmp_path, records), tmp_path / "r")
    assert [row["query_instruction"] for row in rows_of(tmp_path / "r")] == found


def test_words_of_the_file_do_not_fill_the_manifest(tmp_path: Path) -> None:
    strange = [{"k" * 500 + str(number): 1} for number in range(3)] + [{f"key {number}": 1} for number in range(30)]
    summary = import_file(written(tmp_path, [record(1), *strange]), tmp_path / "r")
    # The first 200 characters of the long ones are one reason.
    assert summary.left_out.pop("another reason") == 11 and sum(summary.left_out.values()) == 22
    assert len(summary.left_out) == 20 and max(map(len, summary.left_out)) == 200


def test_spilling_keeps_every_example_in_order(tmp_path: Path) -> None:
    from medi.imported.records import Example

    spill = Spill(tmp_path)
    for number in range(10):
        spill.add(number, Example(f"t{number % 2}", "", f"q{number}", "", "p", None))
        spill.flush()
    assert [[row[0] for row in part.rows()] for part in spill.tasks.values()] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_counts_of_one_are_told_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [record(1)])
    assert main(["import", str(path), "--out", str(tmp_path / "r")]) == 0
    assert capsys.readouterr().err.splitlines()[1:4] == [
        "sorting 1 record into 1 task", "writing and verifying the release", "1 row of 1 task",
    ]  # fmt: skip


def test_the_other_commands_work_on_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [record(number, task) for number in range(4) for task in ("NQ", "mine")])
    out = str(tmp_path / "r")
    assert main(["import", str(path), "--out", out]) == 0
    said = capsys.readouterr()
    assert said.out == f"{out}\n"
    assert said.err.splitlines()[:4] == [
        f"reading {path}", "sorting 8 records into 2 tasks", "writing and verifying the release", "8 rows of 2 tasks",
    ]  # fmt: skip
    assert main(["verify", out]) == 0
    assert main(["inspect", out, "--task", "mine", "--n", "1"]) == 0
    assert "wrong answer" in capsys.readouterr().out
    assert main(["diff", out, out]) == 0
    assert main(["report", out]) == 0 and "wrong answer" in (tmp_path / "r" / "report.html").read_text()
    data = open_data(tmp_path / "r", Store(tmp_path / "store"))
    assert [(task.name, task.rows, task.instructions) for task in data.tasks] == [
        ("NQ", 4, (QUERY, ANSWER)), ("mine", 4, (QUERY, ANSWER)),
    ]  # fmt: skip


def test_a_model_trains_on_it(tmp_path: Path, tiny_encoder: Path) -> None:
    records = [record(number, task) for number in range(8) for task in ("NQ", "mine")]
    import_file(written(tmp_path, records), tmp_path / "r")
    heard = Heard()
    run(job(tmp_path / "r", tiny_encoder, tmp_path / "out" / "model", max_steps=3, batch_size=4), heard)
    assert [done.step for done in heard.steps] == [1, 2, 3]
    assert (tmp_path / "out" / "model" / "modules.json").is_file()
