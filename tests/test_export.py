"""Releases handed on: what each format holds, what it leaves out and says so, and what stands where it goes."""

import json
import socket
from collections import Counter
from pathlib import Path

import orjson
import pytest

from medi.errors import MediError, UsageError
from medi.export import FORMATS, export
from medi.export.rows import file_name
from medi.release import open_release
from pipelines.cli.app import line_of, main
from tests.limits import files_of_at_most
from tests.release_builder import Builder, tiny


def release_of(folder: Path, builder: Builder) -> list[dict[str, object]]:
    """Write the release and return its rows."""
    builder.write(folder)
    return [row for table in open_release(folder).tables() for row in table.to_pylist()]


def uneven(rows: int = 5) -> Builder:
    """Return a release of which `asks` has a row without negatives, and one with a single one."""
    builder = tiny(rows)
    for index, kept in ((0, 0), (1, 1)):
        row = builder.row("asks", index)
        for name in ("negatives", "negative_scores", "negative_origins"):
            row[name] = row[name][:kept]  # type: ignore[index]
    return builder


def lines_of(path: Path) -> list[dict[str, object]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def accepted(records: list[dict[str, object]], batch_size: int) -> list[dict[str, object]]:
    """Return the records that the original script trains on, by the rule that it is known for.

    It cuts the list at every multiple of the batch size, and takes a block where all its records have the task_name of
    the first and there are as many as the batch size. Of those it takes, each text is a list of an instruction, which
    is empty or begins with "Represent ", and a text.
    """
    taken = []
    for start in range(0, len(records), batch_size):
        block = records[start : start + batch_size]
        if len(block) == batch_size and {record["task_name"] for record in block} == {block[0]["task_name"]}:
            taken += block
    for record in taken:
        for side in ("query", "pos", "neg"):
            instruction, text = record[side]  # type: ignore[misc]
            assert instruction == "" or instruction.startswith("Represent ")
            assert isinstance(text, str)
    return taken


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4])
def test_medi_json_loses_nothing_in_the_original_script(batch_size: int, tmp_path: Path) -> None:
    rows = release_of(tmp_path / "r", uneven())
    tally = export(tmp_path / "r", "medi-json", tmp_path / "medi-data.json", batch_size)
    records = json.loads((tmp_path / "medi-data.json").read_bytes())
    assert len(accepted(records, batch_size)) == len(records) == tally.rows
    # Four tasks of five rows, one of which has no negative.
    whole = {1: 19, 2: 16, 3: 12, 4: 16}[batch_size]
    assert tally.rows == whole and tally.left_out == +Counter(no_negative=1, remainder=19 - whole)
    by_texts = {(row["query"], row["positive"]): row for row in rows}
    for record in records:
        row = by_texts[record["query"][1], record["pos"][1]]
        assert record["query"][0] == row["query_instruction"] and record["task_name"] == row["task"]
        assert record["pos"][0] == record["neg"][0] == row["document_instruction"]
        assert record["neg"][1] == row["negatives"][0]  # type: ignore[index]
        assert sorted(record) == ["neg", "pos", "query", "task_id", "task_name"]
    names = dict.fromkeys(record["task_name"] for record in records)
    assert [records[0]["task_id"], records[-1]["task_id"]] == [1, len(names)]
    assert tally.tasks == len(names) == 4


def test_the_rule_of_the_script_bites_where_tasks_are_not_whole_blocks(tmp_path: Path) -> None:
    """Without a batch size all rows are there, of which the script would leave out every block that mixes tasks."""
    release_of(tmp_path / "r", tiny(5))
    assert export(tmp_path / "r", "medi-json", tmp_path / "m").rows == 20
    records = json.loads((tmp_path / "m").read_bytes())
    assert len(accepted(records, 4)) == 8


def test_medi_json_leaves_out_what_the_script_stops_at(tmp_path: Path) -> None:
    builder = tiny(3)
    builder.row("asks", 2)["query_instruction"] = "Find the answer:"
    builder.row("twins", 0)["document_instruction"] = ""
    release_of(tmp_path / "r", builder)
    tally = export(tmp_path / "r", "medi-json", tmp_path / "m", 1)
    assert (tally.rows, tally.left_out) == (11, {"instruction": 1})
    assert tally.negatives_left_out == 5  # the builder gives pairs two negatives


def test_jsonl_is_the_columns_of_the_shards(tmp_path: Path) -> None:
    rows = release_of(tmp_path / "r", uneven())
    assert export(tmp_path / "r", "jsonl", tmp_path / "rows.jsonl").rows == 20
    assert lines_of(tmp_path / "rows.jsonl") == rows
    import datasets
    import pandas

    read = datasets.load_dataset("json", data_files=str(tmp_path / "rows.jsonl"), cache_dir=str(tmp_path / "c"))
    assert read["train"].to_list() == rows
    assert pandas.read_json(tmp_path / "rows.jsonl", lines=True)["id"].tolist() == [row["id"] for row in rows]


@pytest.mark.parametrize("to", FORMATS)
def test_an_export_that_finds_no_room_names_its_place(to: str, tmp_path: Path) -> None:
    release_of(tmp_path / "r", tiny())
    with pytest.raises(OSError) as full, files_of_at_most(300):
        export(tmp_path / "r", to, tmp_path / "out")
    assert line_of(full.value).startswith(f"{tmp_path / 'out'}: file too large; raise the limit")
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_an_export_takes_the_place_of_an_export_and_of_nothing_else(tmp_path: Path) -> None:
    release_of(tmp_path / "r", tiny())
    out = tmp_path / "out"
    for to in FORMATS:
        export(tmp_path / "r", to, out)
    receipt = json.loads((tmp_path / "out.receipt.json").read_bytes())
    assert (receipt["to"], receipt["rows"], receipt["content_digest"]) == (
        "jsonl", 16, open_release(tmp_path / "r").manifest["content_digest"],
    )  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.receipt.json", "r"]
    with out.open("ab") as file:
        file.write(b"{}\n")
    before = out.read_bytes()
    with pytest.raises(MediError, match="out was changed since medi exported it; name another --out"):
        export(tmp_path / "r", "jsonl", out)
    (tmp_path / "out.receipt.json").unlink()
    with pytest.raises(MediError, match="out exists and is not an export of medi"):
        export(tmp_path / "r", "jsonl", out)
    assert out.read_bytes() == before
    (tmp_path / "r.receipt.json").write_text('{"format": "medi-export/1", "files": []}')
    release_of(tmp_path / "other", tiny())
    with pytest.raises(MediError, match="r was changed since medi exported it"):
        export(tmp_path / "other", "flagembedding", tmp_path / "r")
    for inside in (tmp_path / "r", tmp_path / "r" / "data" / "rows.jsonl"):
        with pytest.raises(UsageError, match="lies in the release; name a path outside of"):
            export(tmp_path / "r", "jsonl", inside)
    (tmp_path / "empty").mkdir()
    assert export(tmp_path / "r", "tevatron", tmp_path / "empty").rows == 16 and (tmp_path / "empty").is_file()
    assert not list(tmp_path.glob(".tmp*"))


def test_equal_releases_give_equal_bytes_and_a_killed_export_leaves_nothing_for_long(tmp_path: Path) -> None:
    release_of(tmp_path / "r", uneven())
    # As left by process 1 of an earlier boot.
    orphan = tmp_path / f".tmp-{socket.gethostname()}-1-0-0"
    orphan.mkdir()
    for to in FORMATS:
        files = []
        for name in ("first", "second"):
            export(tmp_path / "r", to, tmp_path / f"{to}.{name}")
            files.append(json.loads((tmp_path / f"{to}.{name}.receipt.json").read_bytes())["files"])
        assert files[0] == files[1] and files[0]
    assert not orphan.exists()


def test_a_folder_with_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    release_of(tmp_path / "r", tiny())
    for to in ("flagembedding", "sentence-transformers"):
        export(tmp_path / "r", to, tmp_path / to)
        export(tmp_path / "r", to, tmp_path / to)
        (tmp_path / to / "notes.txt").write_text("mine")
        with pytest.raises(MediError, match="was changed since"):
            export(tmp_path / "r", to, tmp_path / to)
        assert (tmp_path / to / "notes.txt").read_text() == "mine"


def test_files_of_tasks_have_plain_names_of_their_own() -> None:
    taken = {"scratch"}
    tasks = ["msmarco/07", "task349_squad2.0_x-y", "../up", "NQ", "nq", "scratch", "\u4efb\u52a1", ".", "a" * 300]
    assert [file_name(task, taken) for task in tasks] == [
        "msmarco-07", "task349_squad2.0_x-y", "up", "NQ", "nq.2", "scratch.2", "task", "task.2", "a" * 200,
    ]  # fmt: skip


def test_what_cannot_be_exported_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    builder = tiny(1)
    for rows in builder.rows.values():
        rows[0] |= {name: [] for name in rows[0] if str(name).startswith("negative")}
    release_of(tmp_path / "r", builder)
    for to in ("medi-json", "flagembedding", "tevatron"):
        with pytest.raises(MediError, match=rf"none of its rows can be a row of {to} \(no_negative: 4\)"):
            export(tmp_path / "r", to, tmp_path / "out")
    with pytest.raises(UsageError, match="--to csv: there is no such format; give one of medi-json, sentence-"):
        export(tmp_path / "r", "csv", tmp_path / "out")
    with pytest.raises(UsageError, match="is not a release"):
        export(tmp_path, "jsonl", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_a_damaged_shard_leaves_nothing(tmp_path: Path) -> None:
    release_of(tmp_path / "r", tiny())
    shard = next((tmp_path / "r" / "data").iterdir())
    shard.write_bytes(shard.read_bytes()[:-40])
    for to in FORMATS:
        with pytest.raises(MediError, match="cannot be read"):
            export(tmp_path / "r", to, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_the_command_says_what_was_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release_of(tmp_path / "r", uneven())
    out = str(tmp_path / "m.json")
    assert main(["export", str(tmp_path / "r"), "--to", "medi-json", "--out", out, "--batch-size", "4"]) == 0
    said = capsys.readouterr()
    assert said.out == out + "\n"
    assert said.err.splitlines() == [
        "16 rows of 4 tasks",
        "left out: 1 row, no_negative (the format needs one)",
        "left out: 3 rows, remainder (too few of their task for another 4)",
        "left out: 7 negatives beyond the first of a row",
    ]
    for wrong in (["--to", "jsonl", "--batch-size", "4"], ["--to", "medi-json", "--batch-size", "0"]):
        assert main(["export", str(tmp_path / "r"), "--out", out, *wrong]) == 2
        assert "medi: --batch-size" in capsys.readouterr().err
    assert len(orjson.loads((tmp_path / "m.json").read_bytes())) == 16
