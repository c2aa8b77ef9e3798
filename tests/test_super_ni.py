"""A Super-NI task file becomes rows whatever its shape, and its kind is decided by evidence; the real 134 by eye."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from medi.errors import MediError
from medi.ingest import IngestParams, ingest_task
from medi.schema import ROWS, row_id
from medi.source import Bad
from tests.raw_lines import rows_of_bytes, rows_of_task, task

NAME = "task9001_odd.name-x"


def instance(text: str, *outputs: object, **fields: object) -> dict[str, object]:
    return {"input": text, "output": list(outputs), **fields}


def labelled(count: int, labels: tuple[str, ...] = ("Yes", "No.")) -> list[object]:
    return [instance(f"is {i} odd?", labels[i % len(labels)], id=f"task9001-{i:02}") for i in range(count)]


def test_a_row_is_what_its_instance_says() -> None:
    rows, _ = rows_of_task([instance("lamp#desk", "A lamp lit.", "The lamp was on.", id="t-1"), instance("tree", "B")])
    assert list(rows[0]) == ROWS.names
    by_query = {row["query"]: row for row in rows}
    row = by_query["lamp#desk"]
    assert row["id"] == row_id("super_ni", NAME, "lamp#desk", None, "A lamp lit.")
    assert (row["task"], row["positive"], row["label"]) == (NAME, None, None)
    assert (row["output"], row["references"]) == ("A lamp lit.", ["A lamp lit.", "The lamp was on."])
    assert row["origin"] == f"super_ni/tasks/{NAME}.json#t-1"
    assert by_query["tree"]["origin"] == f"super_ni/tasks/{NAME}.json#1"


def test_one_instance_with_several_references_is_one_row() -> None:
    rows, counts = rows_of_task([instance("lamp#desk#night", "A lamp lit the desk.", "At night it was on.")])
    assert [row["references"] for row in rows] == [["A lamp lit the desk.", "At night it was on."]]
    assert "skipped" not in counts.facts


def test_equal_inputs_are_merged_in_the_order_of_their_references() -> None:
    instances = [instance("lamp  desk", "B", "a"), instance("lamp desk ", "A", "B "), instance("tree", "C")]
    rows, counts = rows_of_task(instances)
    merged = {row["output"]: row for row in rows}
    assert set(merged) == {"A", "C"}
    assert merged["A"]["query"] == "lamp desk " and merged["A"]["references"] == ["A", "B ", "a"]
    assert merged["A"]["origin"].endswith("#0")
    assert (counts.rows_in, counts.dropped, counts.facts["merged_inputs"]) == (3, {"duplicate_input": 1}, 1)


def test_the_order_of_instances_does_not_matter() -> None:
    rng = random.Random(0)
    instances = [
        instance(f"q{' ' * rng.randint(1, 2)}{rng.randint(0, 30)}", f"x{rng.randint(0, 9)}", id=f"t-{i}")
        for i in range(90)
    ]
    rows, counts = rows_of_task(instances)
    for _ in range(5):
        rng.shuffle(instances)
        again, recounted = rows_of_task(instances)
        assert again == rows and recounted.to_json() == counts.to_json()


def test_label_tasks_have_normal_labels_and_outputs_as_found() -> None:
    rows, counts = rows_of_task(labelled(40, ("Yes", "No.", " no")))
    assert counts.facts["kind"] == "label"
    assert {(row["output"], row["label"]) for row in rows} == {("Yes", "yes"), ("No.", "no"), (" no", "no")}


def test_an_input_with_two_labels_is_left_out() -> None:
    extra = [
        instance("is 3 odd?", "Yes"),
        instance("is 3  odd?", "no"),
        instance("both?", "yes", "no"),
        instance("x", "no", "No."),
    ]
    rows, counts = rows_of_task([*labelled(40), *extra])
    assert not {"is 3 odd?", "is 3  odd?", "both?"} & {row["query"] for row in rows}
    assert counts.dropped == {"conflicting_labels": 4} and len(rows) == 40


def test_a_task_of_one_class_is_skipped() -> None:
    rows, counts = rows_of_task([instance(f"q{i}", "Yes" if i % 2 else "yes.") for i in range(30)])
    assert rows == []
    assert (counts.rows_in, counts.rows_out, counts.dropped) == (30, 0, {"single_class": 30})
    assert counts.facts["skipped"] == "single_class"


def test_a_task_that_has_one_class_left_is_skipped() -> None:
    rows, counts = rows_of_task([*labelled(30, ("Yes",)), instance("is 1 odd?", "No")])
    assert rows == [] and counts.facts["skipped"] == "single_class"
    assert counts.dropped == {"conflicting_labels": 2, "single_class": 29}


@pytest.mark.parametrize(
    ("fields", "mended", "mends"),
    [
        ({"Definition": "Do X."}, {"text_for_list": 1}, "text_for_list in Definition"),
        ({"Definition": ["Do X.", "Do it another way."]}, {}, ""),
        (
            {"Definition": "Do X.", "Input_language": "English", "Categories": "Naming"},
            {"text_for_list": 3},
            "text_for_list in Categories, text_for_list in Definition, text_for_list in Input_language",
        ),
        (
            {"Domains": ["Sea", None, 5, 6]},
            {"null_in_list": 1, "number_as_text": 1},
            "null_in_list in Domains, number_as_text in Domains[2], number_as_text in Domains[3]",
        ),
        ({"Instance License": None}, {}, ""),
        ({"Instance License": ["x\ud800"]}, {"lone_surrogate": 1}, "lone_surrogate"),
    ],
)
def test_mends_of_what_a_file_says_of_itself_are_counted_and_bad_when_strict(
    fields: dict, mended: dict, mends: str
) -> None:
    rows, counts = rows_of_task([instance("a", "b")], **fields)
    assert (len(rows), counts.facts["definition"], counts.mended) == (1, "Do X.", mended)
    strict = IngestParams(600, strict=True)
    if not mended:
        assert rows_of_task([instance("a", "b")], strict, **fields)[0] == rows
        return
    with pytest.raises(MediError, match=re.escape(f"{NAME}.json: needs mending ({mends}), which --strict")):
        rows_of_task([instance("a", "b")], strict, **fields)


@pytest.mark.parametrize("key", ["Definition", "Categories", "Instance License"])
def test_a_field_of_another_type_fails_the_task(key: str) -> None:
    with pytest.raises(MediError, match=rf"{NAME}.json: {key} is an object with the keys 'x' where a text belongs"):
        rows_of_task([instance("a", "b")], **{key: {"x": 1}})


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (Bad("the file is empty (0 bytes); fetch or make it again"), "the file is empty .*; fetch or make it again$"),
        (b"{", "not JSON.*; 1 bad of 1 .* put the file that belongs here in its place, or mend it$"),
        (b'\xef\xbb\xbf{"Instances": []}', "the key.*; 1 bad of 1 "),
    ],
)
def test_a_damaged_file_is_one_bad_record_which_may_be_allowed(raw: bytes | Bad, reason: str) -> None:
    with pytest.raises(MediError, match=f"^{NAME}: super_ni/tasks/{NAME}.json: {reason}"):
        rows_of_bytes(raw)
    rows, counts = rows_of_bytes(raw, IngestParams(600, max_bad_rows=1))
    assert (rows, counts.rows_in, counts.dropped, counts.facts["skipped"]) == ([], 1, {"bad": 1}, "bad file")
    assert not counts.mended
    assert (counts.facts["definition"], counts.facts["licence"]) == ("", "Unknown")
    assert [row["origin"] for row in counts.facts["quarantine"]] == [f"super_ni/tasks/{NAME}.json"]  # type: ignore[union-attr]


@pytest.mark.parametrize("key", ["Definition", "Input_language", "Output_language", "Instruction_language"])
@pytest.mark.parametrize("value", [[], "", [" "], None, "absent"])
def test_a_missing_definition_or_language_names_file_and_key(key: str, value: object) -> None:
    record = task([instance("a", "b")])
    record[key] = value
    if value == "absent":
        del record[key]
    with pytest.raises(MediError, match=f"^{NAME}: super_ni/tasks/{NAME}.json: the key '{key}' is missing or empty"):
        rows_of_bytes(json.dumps(record).encode())


def test_keys_in_lower_case_are_accepted_and_counted() -> None:
    record = task([{"Input": "a", "output": ["b"]}])
    record["input_language"] = record.pop("Input_language")
    rows, counts = rows_of_bytes(json.dumps(record).encode())
    assert [row["query"] for row in rows] == ["a"] and counts.mended == {"coerced_keys": 2}


@pytest.mark.parametrize(
    ("field", "language", "skipped"),
    [
        ("Input_language", ["Spanish"], "language Input_language Spanish"),
        ("Output_language", "French", "language Output_language French"),
        ("Instruction_language", ["English", "German"], "language Instruction_language German"),
    ],
)
def test_another_language_is_skipped_by_name(field: str, language: object, skipped: str) -> None:
    rows, counts = rows_of_task([instance("a", "b"), instance("c", "d")], **{field: language})
    assert (rows, counts.facts["skipped"], counts.dropped) == ([], skipped, {"other_language": 2})
    assert counts.facts["definition"] == "Do X."


@pytest.mark.parametrize(
    ("output", "references", "mends"),
    [
        ("yes", ["yes"], {"text_for_list": 1}),
        ([5], ["5"], {"number_as_text": 1}),
        ([5.0], ["5.0"], {"number_as_text": 1}),
        ([True, None], ["true"], {"number_as_text": 1, "null_in_list": 1}),
        (["caf\udc00"], ["caf\ufffd"], {"lone_surrogate": 1}),
        (["ca\0fe"], ["cafe"], {"nul": 1}),
    ],
)
def test_outputs_are_mended_to_texts(output: object, references: list[str], mends: dict[str, int]) -> None:
    rows, counts = rows_of_task([{"input": "q", "output": output}])
    assert [row["references"] for row in rows] == [references] and counts.mended == mends


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"input": "q", "output": [["a"]]}, r"output\[0\] is an array of 1 where a text belongs"),
        ({"input": "q"}, "the key 'output' is missing"),
        ({"input": ["q"], "output": ["a"]}, "input is an array of 1"),
        ("q", "expected an object with the key 'input', found a text"),
    ],
)
def test_a_bad_instance_fails_the_task_unless_it_is_allowed(broken: object, reason: str) -> None:
    instances = [instance("a", "b"), broken]
    with pytest.raises(MediError, match=rf"{NAME}.json#1: {reason}.*; 1 bad of 2 records"):
        rows_of_task(instances)
    rows, counts = rows_of_task(instances, IngestParams(600, max_bad_rows=1))
    assert [row["query"] for row in rows] == ["a"] and counts.dropped == {"bad": 1}


def test_empty_references_are_left_out_and_counted() -> None:
    rows, counts = rows_of_task([instance("a", "", "b", "\u200b"), instance("c", "d")])
    assert sorted(row["references"] for row in rows) == [["b"], ["d"]] and counts.facts["reference_empty"] == 2


@pytest.mark.parametrize("output", ["yes", [5], [True], [None, "a"], ["a\ud800"]])
def test_strict_makes_mended_instances_bad(output: object) -> None:
    with pytest.raises(MediError, match="#0: needs mending .*, which --strict forbids"):
        rows_of_task([{"input": "q", "output": output}], IngestParams(600, strict=True))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (instance("q", None), "null"),
        (instance("q", ""), "empty_text"),
        (instance("q"), "empty_text"),
        (instance(" \u200b", "a"), "empty_text"),
        ({"input": None, "output": ["a"]}, "null"),
    ],
)
def test_instances_without_text_are_dropped(bad: object, reason: str) -> None:
    rows, counts = rows_of_task([instance("a", "b"), bad])
    assert len(rows) == 1 and counts.dropped == {reason: 1}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{", "not JSON.*; 1 bad of 1 .* put the file that belongs here in its place, or mend it$"),
        (b"[]", "expected an object with the key 'Instances', found an array of 0"),
        (b'{"Instances": {}}', "'Instances' is no array"),
        (b'{"Instances": [], "Instances": []}', "the key 'Instances' stands twice"),
    ],
)
def test_a_file_that_is_no_task_is_named(raw: bytes, reason: str) -> None:
    with pytest.raises(MediError, match=f"{NAME}.json: {reason}"):
        rows_of_bytes(raw)


def test_a_bom_is_mended_and_metadata_may_be_text_or_list() -> None:
    record = task([instance("a", "b")], Categories="Title Generation", **{"Instance License": ["MIT", "CC0"]})
    _, counts = rows_of_bytes(b"\xef\xbb\xbf" + json.dumps(record).encode())
    assert counts.mended == {"bom": 1, "text_for_list": 1}
    assert (counts.facts["categories"], counts.facts["licence"]) == (["Title Generation"], "MIT, CC0")
    assert rows_of_task([instance("a", "b")])[1].facts["licence"] == "Unknown"


def test_the_locale_does_not_matter(tmp_path: Path) -> None:
    """C10: the case's text, and a digest of the rows."""
    path = tmp_path / "task1_x.json"
    path.write_text(json.dumps(task([instance("café – 100 °C", "œuf")]), ensure_ascii=False), encoding="utf-8")
    code = (
        "import sys, pathlib; from medi.ingest import *; from medi.read import *; from medi.schema import digest_table;"
        "p = pathlib.Path(sys.argv[1]); t, _ = ingest_task(IngestParams(600), p.name, read_whole(p));"
        "print(digest_table(t), ascii(t['query'][0].as_py()))"
    )
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    seen = {
        subprocess.run(
            [sys.executable, "-c", code, path], env={**here, **locale}, capture_output=True, check=True
        ).stdout
        for locale in ({"LC_ALL": "C", "PYTHONUTF8": "0"}, {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"})
    }
    assert len(seen) == 1 and ascii("café – 100 °C").encode() in seen.pop()


@pytest.mark.parametrize(("take", "quota_rows", "drawn"), [("hash", 12, 500), ("first", 12, 120), ("first", 1, 100)])
def test_a_task_is_read_whole_but_for_a_quick_look(take: str, quota_rows: int, drawn: int) -> None:
    raw = json.dumps(task([instance(f"input {n}", f"an answer of its own, {n}") for n in range(500)])).encode()
    table, counts = ingest_task(IngestParams(quota_rows, take=take), "super_ni/tasks/task1_a.json", raw)
    assert (len(table), counts.rows_in, counts.facts["lines_read"]) == (drawn, drawn, 500)
    assert {f"input {n}" for n in range(drawn)} == set(table["query"].to_pylist())
