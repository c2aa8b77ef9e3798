"""How the report and the card tell counts and shares, and how tasks of one source stand together in its warnings."""

from dataclasses import replace
from pathlib import Path

import pytest

from medi.profiles import Rules
from medi.release import open_release
from medi.release.manifest import Json
from medi.report.entries import Report, entries_of
from medi.report.page import report_page
from medi.report.rows import read_tasks
from medi.report.warnings import warnings_of
from medi.report.words import percent
from pipelines.cli.app import main
from tests.release_builder import Builder, pair_row, source_entry, task_entry, task_row, tiny
from tests.test_report import data_of


def report_of(made: Builder, folder: Path) -> Report:
    """Write a release and return what its report is made of."""
    made.write(folder)
    release = open_release(folder)
    return Report(release.manifest, Rules(), read_tasks(release))


def notes_of(report: Report, title: str) -> tuple[Json, Json]:
    """Return how many tasks and sources a warning found, and its lines."""
    return next((w["found"], w["notes"]) for w in warnings_of(report) if w["title"] == title)


def clusters(rows: int = 3) -> Builder:
    """Return a release of one source of two clusters, for which 175,000 rows were planned."""
    evidence: Json = {"cluster_of": {"task": "twins", "planned": 175_000, "got": 2 * rows}}
    made = Builder({}, [source_entry("twins", 2 * rows, clusters=True, planned=175_000)], [])
    for number in range(2):
        task = f"twins/0{number}"
        made.rows["twins", task] = [pair_row("twins", 10 * number + n, task) for n in range(rows)]
        made.tasks.append(task_entry("twins", task, "pair", rows) | {"evidence": evidence})  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        (0, 9, "0%"), (3, 25_000, "<0.1%"), (1, 1000, "0.1%"), (94, 10_000, "0.9%"), (95, 10_000, "1%"), (1, 3, "33%"),
        (994, 1000, "99%"), (996, 1000, ">99%"), (9, 9, "100%"), (0, 0, "–"),
    ],
)  # fmt: skip
def test_a_share_reads_as_none_or_all_only_where_it_is(part: int, whole: int, words: str) -> None:
    assert percent(part, whole) == words


def test_a_source_of_two_licences_is_two_lines(tmp_path: Path) -> None:
    made = tiny()
    for row, licence in zip(made.rows["asks", "asks"], ("CC BY-NC 4.0", "CC BY-NC 3.0", "CC BY-NC 3.0"), strict=False):
        row["licence"] = licence
    assert notes_of(report_of(made, tmp_path / "out"), "Licences that forbid commercial use") == (
        1, [["asks", "CC BY-NC 3.0; 2 rows"], ["asks", "CC BY-NC 4.0; 1 row"]],
    )  # fmt: skip


def test_tasks_of_a_source_are_one_line_of_a_warning_that_opens(tmp_path: Path) -> None:
    made = tiny()
    for number, (task, planned) in enumerate((("task001_yes_or_no", 9), ("task002_rewrite", 12))):
        made.tasks[2 + number]["planned"] = planned
        for row in made.rows["super_ni", task]:
            row["licence"] = "Unknown"
    made.tasks[0]["planned"] = made.sources[0]["planned"] = 100
    report = report_of(made, tmp_path / "out")
    inner: Json = [["task002_rewrite", "4 of 12 rows (33%)"], ["task001_yes_or_no", "4 of 9 rows (44%)"]]
    assert notes_of(report, "Far below their quota") == (
        3, [["asks", "4 of 100 rows (4%)"], ["super_ni", "2 tasks, 13 rows missing", inner]],
    )  # fmt: skip
    both = [[task, "Unknown; 4 rows"] for task in ("task001_yes_or_no", "task002_rewrite")]
    assert notes_of(report, "Licences that are not stated") == (2, [["super_ni", "2 tasks, 8 rows", both]])


@pytest.mark.parametrize(("planned", "is_far"), [(8, False), (9, True)])
def test_far_below_is_less_than_half(tmp_path: Path, planned: int, is_far: bool) -> None:
    made = tiny()
    made.tasks[0]["planned"] = made.sources[0]["planned"] = planned
    titles = [warning["title"] for warning in warnings_of(report_of(made, tmp_path / "out"))]
    assert titles == ["Far below their quota"] * is_far


def test_clusters_have_no_plan_of_their_own(tmp_path: Path) -> None:
    report = report_of(clusters(), tmp_path / "out")
    assert [(entry["name"], entry["planned"]) for entry in entries_of(report)] == [
        ("twins: all 2 tasks", 175_000), ("twins/00", None), ("twins/01", None),
    ]  # fmt: skip
    assert notes_of(report, "Far below their quota") == (1, [["twins", "6 of 175,000 rows (<0.1%)"]])


def test_one_is_one_row_of_one_task_of_one_source(tmp_path: Path) -> None:
    task = "task001_yes_or_no"
    made = Builder({("super_ni", task): [task_row(task, "label", 0)]}, [source_entry("super_ni", 1)], [])
    made.tasks.append(task_entry("super_ni", task, "label", 1))
    made.row(task)["licence"] = "CC BY-NC 4.0"
    made.write(tmp_path / "out")
    data = data_of(report_page(open_release(tmp_path / "out")))
    assert data["numbers"][:4] == [["row", "1"], ["of planned", "100%"], ["task", "1"], ["source", "1"]]  # type: ignore[index]
    names = [entry["name"] for entry in data["entries"]]  # type: ignore[index,union-attr]
    assert names == ["super_ni: its one task", task]
    assert data["warnings"][0]["notes"] == [[task, "CC BY-NC 4.0; 1 row"]]  # type: ignore[index]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "models: 1 row of 1 task\nfrom 1 source, in the manner" in card


@pytest.mark.parametrize("has_super_ni", [True, False])
def test_the_card_tells_of_super_ni_only_where_it_is(tmp_path: Path, has_super_ni: bool) -> None:
    made = tiny()
    if not has_super_ni:
        made = replace(
            made, rows={key: rows for key, rows in made.rows.items() if key[0] != "super_ni"},
            sources=made.sources[:2], tasks=made.tasks[:2],
        )  # fmt: skip
    made.write(tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert ("Super-NaturalInstructions is paired by cosine too" in card) is has_super_ni
    assert "joined with their instructions" + (";\n" if has_super_ni else ".\n") in card


def test_inspect_tells_shares_in_the_same_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tiny(rows=4)
    rows = [pair_row("asks", n) for n in range(300)]
    for row in rows[1:]:
        row["negative_origins"] = ["mined", "mined"]
    made.rows["asks", "asks"] = rows
    made.tasks[0]["got"] = made.tasks[0]["planned"] = made.tasks[0]["drawn"] = 300
    made.write(tmp_path / "out")
    assert main(["inspect", str(tmp_path / "out"), "--task", "asks", "--n", "0"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("asks "))
    assert line.split() == ["asks", "pair", "300", "2.00", "0.2%", ">99%"]
