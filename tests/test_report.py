"""The report of a release: what it counts and warns of, that it is made from the folder alone, and lets nothing out."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from medi.errors import UsageError
from medi.profiles import Rules
from medi.release import open_release
from medi.release.manifest import Json
from medi.release.verify import verify
from medi.report.entries import Report, entries_of
from medi.report.page import report_page
from medi.report.rows import cut, read_tasks, together
from medi.report.warnings import forbids_commerce, warnings_of
from medi.shards import renew_report, write_release
from pipelines.cli.app import line_of
from pipelines.cli.report import report
from tests.builds import REPO
from tests.limits import files_of_at_most
from tests.release_builder import Builder, pair_row, source_entry, task_entry, tiny

HOSTILE = "</script><script>document.title='taken'</script><!--slot d3-->&\u2028\u202e\x1b[2J\"'"


def data_of(page: str) -> dict[str, object]:
    """Return the data block of a page, as the page's own script reads it."""
    return json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[0])


def write(builder: Builder, out: Path, measures: dict[str, Json] | None = None) -> Path:
    """Write a release with measures and return its folder."""
    write_release(out, replace(builder.contents(), measures=lambda: measures))
    return out


def measures_of_tiny() -> dict[str, Json]:
    """Return what audit/measures.json would hold of the tiny release."""
    keys = [("asks", "asks"), ("twins", "twins"), ("super_ni", "task001_yes_or_no"), ("super_ni", "task002_rewrite")]
    tasks: list[Json] = [
        {
            "source": source, "task": task, "query_tokens": [4, 3, 1], "query_tokens_median": 5,
            "document_tokens": [7, 8], "document_tokens_median": 8, "negative_ranks": [0, 3, 0, 1],
            "place": [number / 10, -number / 20], "nearest": [keys[number - 1][1]],
        }
        for number, (source, task) in enumerate(keys)
    ]  # fmt: skip
    return {"max_length_tokens": 256, "tasks": tasks}


def test_a_release_has_its_report_and_making_it_again_changes_nothing(tmp_path: Path) -> None:
    out = write(tiny(), tmp_path / "out", measures_of_tiny())
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.rglob("*") if path.is_file()}
    assert {path.name for path in before} >= {"report.html", "measures.json"}
    assert list(verify(out)) == []
    assert renew_report(out) == out / "report.html"
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.rglob("*") if path.is_file()} == before
    moved = shutil.copytree(out, tmp_path / "elsewhere" / "other")
    assert report_page(open_release(moved)) == (out / "report.html").read_text(encoding="utf-8")


def test_an_older_release_gets_one_that_says_what_it_lacks(tmp_path: Path) -> None:
    out = write(tiny(), tmp_path / "out")
    manifest = json.loads((out / "manifest.json").read_bytes())
    manifest["files"] = [entry for entry in manifest["files"] if entry["path"] != "report.html"]
    (out / "manifest.json").write_text(json.dumps(manifest))
    (out / "report.html").unlink()
    assert list(verify(out)) == []
    renew_report(out)
    assert list(verify(out)) == []
    data = data_of((out / "report.html").read_text(encoding="utf-8"))
    assert "keeps no measures" in str(data["notice"]) and data["max_length_tokens"] is None


def test_a_damaged_report_is_found_and_written_anew(tmp_path: Path) -> None:
    out = write(tiny(), tmp_path / "out")
    whole = (out / "report.html").read_bytes()
    (out / "report.html").write_bytes(whole[:1000])
    assert list(verify(out)) == [f"report.html: has 1000 bytes, the manifest says {len(whole)}"]
    renew_report(out)
    assert list(verify(out)) == [] and (out / "report.html").read_bytes() == whole


def test_entries_tell_counts_scores_and_examples(tmp_path: Path) -> None:
    out = write(tiny(), tmp_path / "out", measures_of_tiny())
    data = data_of((out / "report.html").read_text(encoding="utf-8"))
    assert data["numbers"] == [
        ["rows", "16"], ["of planned", "100%"], ["tasks", "4"], ["sources", "3"], ["negatives a row", "1.50"],
        ["given", "33%"], ["mined", "67%"],
    ]  # fmt: skip
    entries = {entry["name"]: entry for entry in data["entries"]}  # type: ignore[index,union-attr]
    assert list(entries) == ["asks", "twins", "super_ni: all 2 tasks", "task001_yes_or_no", "task002_rewrite"]
    asks = entries["asks"]
    assert (asks["is_source"], asks["planned"], asks["got"], asks["origins"]) == (True, 4, 4, [4, 4, 0])
    assert (asks["positive"], asks["negative"], asks["query_tokens"]) == (0.75, 0.375, 5)
    # 0.75 opens bin 70 of steps of 0.025 from -1; 0.25 and 0.5 are 10 bins apart.
    assert asks["plots"]["cosine_positives"] == [70, 4]
    assert asks["plots"]["cosine_negatives"] == [50, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]
    assert asks["plots"]["query_tokens"] == [4, 3, 1] and asks["category"] == "Embedding sets"
    assert [example["why"] for example in asks["examples"]] == ["highest positive score", "at random", "at random"]
    assert asks["examples"][0]["negatives"][0][1:] == [0.5, "given", None]
    label, text = entries["task001_yes_or_no"], entries["task002_rewrite"]
    assert label["labels"] == [["yes", 4]] and label["examples"][0]["negatives"][0][3] == "no"
    # s_pos 1.5 and s_neg -0.25, in steps of 0.05 from -2.
    assert text["plots"]["sum_positives"] == [70, 4] and text["plots"]["sum_negatives"] == [35, 4]
    whole = entries["super_ni: all 2 tasks"]
    assert (whole["kind"], whole["got"], whole["positive"]) == ("label, text", 8, None)
    assert whole["plots"]["query_tokens"] == [4, 6, 2] and whole["plots"]["cosine_positives"] == [75, 4]


def test_thresholds_are_drawn_where_they_decided(tmp_path: Path) -> None:
    release = open_release(write(tiny(), tmp_path / "out"))
    rules = Rules(max_score=0.9, relative_margin=0.05, absolute_margin=0.1, max_positive_score=0.98)
    entries = entries_of(Report(release.manifest, rules, read_tasks(release)))
    lines = {str(entry["name"]): entry["lines"] for entry in entries}
    assert lines["asks"] == [
        [0.9, "--max-score 0.9 for mined negatives"],
        [0.65, "--absolute-margin 0.1, from the median positive"],
        [0.713, "--relative-margin 0.05, from the median positive"],
    ]
    assert lines["task001_yes_or_no"] == [
        [0.9, "--max-score 0.9 for mined negatives"], [0.98, "positives score less"],
    ]  # fmt: skip
    assert lines["task002_rewrite"] == [[0.98, "positives score less"]]
    crossed = entries_of(Report(release.manifest, replace(rules, rescore={"name": "m"}), read_tasks(release)))
    assert crossed[0]["lines"] == []


def warned() -> Builder:
    """Return a release in which there is something of each kind to warn of."""
    made = tiny()
    for row in made.rows["asks", "asks"][:1]:
        row["negative_scores"] = [0.75, 0.25]
    for rows, licence in ((made.rows["twins", "twins"], "CC BY-NC 4.0"), (made.rows["asks", "asks"], "Unknown")):
        for row in rows:
            row["licence"] = licence
    for row in made.rows["super_ni", "task001_yes_or_no"]:
        row["negative_scores"] = [0.96]
    made.sources[0]["planned"] = made.tasks[0]["planned"] = 10
    made.tasks[1]["evidence"] = {"tokens": {"full_texts": 3, "texts": 10}}
    made.tasks[2] |= {"drawn": 8, "dropped": {"duplicate_input": 3, "over_quota": 1}}
    one_class = task_entry("super_ni", "task000_one", "label", 0)
    made.tasks.insert(2, one_class | {"evidence": {"ingest": {"skipped": "single_class"}}})  # type: ignore[arg-type]
    tally: Json = {"listed": 9, "chosen": 5, "dropped": {"above_max_score": 4}}
    short: Json = {"candidates": tally, "negatives": {"mined": 5}, "queries_short": 1, "negatives_missing": 2}
    made.tasks[4]["evidence"] = {"mine": short}
    return made


def test_warnings_say_what_and_where(tmp_path: Path) -> None:
    made = warned()
    contents = replace(made.contents(), params={"absent": {"sources": ["npr"], "super_ni_tasks": []}})
    write_release(tmp_path / "out", contents)
    release = open_release(tmp_path / "out")
    found = warnings_of(Report(release.manifest, Rules(max_score=0.9), read_tasks(release)))
    assert [(warning["title"], warning["notes"]) for warning in found] == [
        ("Without rows", [["npr", "no file of it was there"], ["task000_one", "single_class"]]),
        ("Licences that forbid commercial use", [["twins", "CC BY-NC 4.0; 4 rows"]]),
        ("Negatives that score as high as the positive", [["asks", "1 of 4 rows (25%)"]]),
        (
            "Short of negatives",
            [
                [
                    "task002_rewrite",
                    "1 query short (2 negatives missing); above_max_score struck out 4 candidates: raise --max-score "
                    "0.9",
                ]
            ],
        ),
        ("Far below their quota", [["asks", "4 of 10 rows (40%)"]]),
        ("Texts longer than the encoder reads", [["twins", "3 of 10 texts (30%)"]]),
        ("Negatives that are nearly the query", [["task001_yes_or_no", "half of its negatives score 0.96 or more"]]),
        ("Many rows dropped", [["task001_yes_or_no", "3 of 8 rows: duplicate_input 3"]]),
        ("Licences that are not stated", [["asks", "Unknown; 4 rows"]]),
    ]


@pytest.mark.parametrize(
    ("licence", "forbids"),
    [
        ("CC BY-NC-SA 3.0", True), ("non-commercial use", True), ("Noncommercial", True), ("unstated (research)", True),
        ("CC BY 4.0", False), ("Apache-2.0", False), ("SNLI: CC BY-SA 4.0; MultiNLI: OANC and others", False),
    ],
)  # fmt: skip
def test_which_licences_forbid_commercial_use(licence: str, forbids: bool) -> None:
    assert forbids_commerce(licence) is forbids


def test_nothing_in_data_ends_its_block_or_acts(tmp_path: Path) -> None:
    made = tiny()
    row = made.row("asks")
    row |= {"query": HOSTILE, "positive": f"positive {HOSTILE}", "licence": HOSTILE, "origin": HOSTILE}
    row["negatives"] = [f"negative {HOSTILE}", "other"]
    page = (write(made, tmp_path / "out") / "report.html").read_text(encoding="utf-8")
    assert page.count("<script") == page.count("</script>") == 5
    assert not {"\u2028", "\u202e", "\x1b"} & set(page) and "document.title='taken'<" not in page
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy[0].startswith("default-src 'none'; ") and policy[0].count("'sha256-") == 4
    entries = data_of(page)["entries"]
    shown = [example["query"] for example in entries[0]["examples"]]  # type: ignore[index,call-overload]
    assert "\\u202e\\x1b[2J" in next(text for text in shown if "</script>" in text)


def test_long_texts_are_cut() -> None:
    assert cut("x" * 300) == "x" * 300
    assert cut("x" * 1301) == "x" * 300 + "… (1,301 characters)"
    # Three bytes each; 301 are no whole number of them.
    assert cut("長" * 101, 301) == "長" * 100 + "… (101 characters)"
    assert cut("a\tb\u200f") == "a\\tb\\u200f"


def test_330_tasks_of_long_texts_stay_below_5_mb(tmp_path: Path) -> None:
    made = Builder({}, [source_entry("super_ni", 330 * 6, symmetric=True)], [])
    for number in range(330):
        task = f"task{number:03d}_of_long_texts_in_a_script_of_three_bytes"
        rows = [pair_row("super_ni", n, task) for n in range(6)]
        for n, row in enumerate(rows):
            texts = {name: f"{name} {n} {number} " + "長い文" * 400 for name in ("query", "positive")}
            row |= texts | {"negatives": [f"a{n} " + "否" * 900, f"b{n} " + "定" * 900], "positive_score": n / 10}
            row["query_instruction"] = row["document_instruction"] = "Represent the example: " + "指示" * 600
        made.rows["super_ni", task] = rows
        made.tasks.append(task_entry("super_ni", task, "pair", 6))
    out = write(made, tmp_path / "out")
    assert 1_000_000 < (out / "report.html").stat().st_size < 5_000_000


def test_sums_of_tasks(tmp_path: Path) -> None:
    rows = read_tasks(open_release(write(tiny(), tmp_path / "out")))
    whole = together(rows.values())
    assert (whole.rows, dict(whole.origins)) == (16, {"given": 8, "mined": 16})
    np.testing.assert_array_equal(np.sort(whole.positives["cosine"]), [0.75] * 8 + [0.875] * 4)
    np.testing.assert_array_equal(whole.negatives["sum"], [-0.25] * 4)


def medi(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `medi report` in a process of its own."""
    call = [sys.executable, "-m", "pipelines.cli.app", "report", *map(str, args)]
    return subprocess.run(call, capture_output=True, text=True, check=False, cwd=REPO)


def test_the_command_writes_it_and_says_where(tmp_path: Path) -> None:
    out = write(tiny(), tmp_path / "out")
    done = medi(out)
    assert (done.returncode, done.stdout) == (0, f"{out / 'report.html'}\n")
    assert done.stderr == "no lengths in tokens, ranks or map: the release has no audit/measures.json\n"
    done = medi(out, "--out", tmp_path / "page.html")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'page.html'}\n")
    assert (tmp_path / "page.html").read_bytes() == (out / "report.html").read_bytes()


def test_a_report_that_finds_no_room_leaves_the_one_before(tmp_path: Path) -> None:
    out = write(tiny(), tmp_path / "out")
    (out / "report.html").write_text("before")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with files_of_at_most(300), pytest.raises(OSError) as full:
        renew_report(out)
    assert line_of(full.value).startswith(f"{out}: file too large; raise the limit")
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    page = tmp_path / "page.html"
    page.write_text("before")
    with files_of_at_most(300), pytest.raises(OSError) as full:
        report(out, page)
    assert line_of(full.value).startswith(f"{page}: file too large; raise the limit")
    assert page.read_text() == "before" and sorted(path.name for path in tmp_path.iterdir()) == ["out", "page.html"]


def test_a_report_goes_through_a_link_and_a_pipe(tmp_path: Path) -> None:
    out = write(tiny(), tmp_path / "out")
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("before")
    link.symlink_to(page)
    report(out, link)
    assert link.is_symlink() and page.read_bytes() == (out / "report.html").read_bytes()
    done = medi(out, "--out", "/dev/stdout")
    assert done.stdout == f"{page.read_text()}/dev/stdout\n"


def test_what_is_no_release_is_one_line(tmp_path: Path) -> None:
    done = medi(tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "has no manifest.json" in done.stderr
    with pytest.raises(UsageError):
        renew_report(tmp_path / "absent")
    out = write(tiny(), tmp_path / "out", measures_of_tiny())
    (out / "audit" / "measures.json").write_text('{"tasks": [1]}')
    done = medi(out)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "not as medi writes a release" in done.stderr
