"""What a person is told about a release: numbers, random rows that a seed repeats, a screen that no text can harm."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from medi.errors import UsageError
from medi.release import Release, open_release
from medi.release.inspect import QUANTILES, Spread, random_rows, summarise
from medi.schema import row_id
from medi.screen import shown
from pipelines.cli.inspect import inspect
from tests.release_builder import tiny

EVIL = "\x1b[31m[red]x[/red]\u202e \u2066y\tz\n"


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """Five rows a task; the query of one is four times as long and full of controls."""
    builder = tiny(5)
    row = builder.row("asks", 4)
    row["query"] = EVIL + "a" * 500
    row["id"] = row_id("asks", "asks", str(row["query"]), str(row["positive"]))
    builder.row("asks", 0)["positive_score"] = 0.25
    builder.write(tmp_path / "x")
    return open_release(tmp_path / "x")


def spread(release: Release, measure: str, name: str | None = None) -> Spread:
    return next(spread for spread in summarise(release, name).spreads if spread.measure == measure)


def test_tasks_are_counted_with_their_negatives(release: Release) -> None:
    summary = summarise(release)
    assert summary.rows == 20 and summary.content_digest == release.manifest["content_digest"]
    assert [(task.task, task.kind, task.rows, task.planned_rows, task.negatives) for task in summary.tasks] == [
        ("asks", "pair", 5, 5, 10),
        ("twins", "pair", 5, 5, 10),
        ("task001_yes_or_no", "label", 5, 5, 5),
        ("task002_rewrite", "text", 5, 5, 5),
    ]
    assert [task.origins for task in summary.tasks] == [{"given": 5, "mined": 5}] * 2 + [{"mined": 5}] * 2


def test_lengths_and_scores_are_spread_by_hand(release: Release) -> None:
    """Four queries of asks have 15 characters, one has 526; scores are 0.25 once and 0.75 four times."""
    long = len(EVIL) + 500
    assert spread(release, "query_characters", "asks") == Spread(
        "query_characters", 5, (15, 15, 15, 15, 15, long, long)
    )
    scores = spread(release, "pair_positive_score", "asks")
    assert scores == Spread("pair_positive_score", 5, (0.25, 0.25, 0.75, 0.75, 0.75, 0.75, 0.75))
    assert spread(release, "pair_positive_score").count == 10
    assert spread(release, "text_negative_score").quantiles == (-0.25,) * len(QUANTILES)
    assert spread(release, "negatives_per_row").quantiles == (1, 1, 1, 1, 2, 2, 2)


def test_a_name_is_a_task_or_a_source(release: Release) -> None:
    assert [task.task for task in summarise(release, "super_ni").tasks] == ["task001_yes_or_no", "task002_rewrite"]
    assert summarise(release, "task002_rewrite").rows == 5
    with pytest.raises(UsageError, match=r"no task .*'task001_yes_or_on' in .*; did you mean task001_yes_or_no\?$"):
        summarise(release, "task001_yes_or_on")
    with pytest.raises(UsageError, match=rf"source '\?' in {release.root}; `medi inspect {release.root}` lists all"):
        random_rows(release, 1, 0, "?")


def test_a_seed_repeats_its_rows_and_another_seed_has_others(tmp_path: Path) -> None:
    tiny(1500).write(tmp_path / "x", shard_bytes=1)
    release = open_release(tmp_path / "x")
    rows = random_rows(release, 50, 1)
    assert random_rows(release, 50, 1) == rows
    assert random_rows(release, 50, 2) != rows
    assert len({row["id"] for row in rows}) == 50
    assert len({row["task"] for row in rows}) == 4
    assert {row["task"] for row in random_rows(release, 50, 1, "twins")} == {"twins"}


def test_more_rows_than_there_are_gives_all(release: Release) -> None:
    everything = [row["id"] for table in release.tables() for row in table.to_pylist()]
    assert [row["id"] for row in random_rows(release, 100, 0)] == everything
    assert random_rows(release, 0, 0) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Grüße, 世界 ½", "Grüße, 世界 ½"),
        (EVIL, "\\x1b[31m[red]x[/red]\\u202e \\u2066y\\tz\\n"),
        ("a\u2028b\u0085c\ufeff", "a\\u2028b\\x85c\\ufeff"),
        ("a\u00a0b", "a b"),
    ],
)
def test_texts_are_made_harmless(text: str, expected: str) -> None:
    assert shown(text) == expected


def run(*arguments: str) -> str:
    app = typer.Typer()
    app.command()(inspect)
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_screen_is_80_columns_wide_and_shows_no_control(release: Release) -> None:
    output = run(str(release.root), "--n", "100")
    lines = output.splitlines()
    assert max(len(line) for line in lines if "digest" not in line) <= 80
    assert lines[0] == "20 rows of 4 tasks"
    assert [line.split() for line in lines if line.startswith("task001")] == [
        ["task001_yes_or_no", "label", "5", "1.00", "-", "100%"]
    ]
    assert [line.split() for line in lines if line.startswith("pair positive")] == [
        ["pair", "positive", "score", "10", "0.25", "0.25", "0.75", "0.75", "0.75", "0.75", "0.75"]
    ]
    assert not set(output) & {"\x1b", "\u202e", "\u2066", "\t"}
    together = "".join(output.split())
    assert "query\\x1b[31m[red]x[/red]\\u202e\\u2066y\\tz\\naaaa" in together
    assert f"aaa…({len(EVIL) + 500}characters)" in together
    # Instructions stand once, before the texts: two where the sides differ.
    row = next(row for row in random_rows(release, 100, 0) if row["task"] == "asks")
    both = f"for queries{row['query_instruction']}for documents{row['document_instruction']}query"
    assert both.replace(" ", "") in together
    assert "negative[0.250,mined]othernegative0ofasks" in together


def test_a_row_stands_under_its_id_and_says_its_labels(release: Release) -> None:
    lines = [line.rstrip() for line in run(str(release.root), "--task", "task001_yes_or_no", "--n", "1").splitlines()]
    [row] = random_rows(release, 1, 0, "task001_yes_or_no")
    place = next(number for number, line in enumerate(lines) if line.startswith(f"{row['id']} ──"))
    number = str(row["query"]).split()[1]
    assert lines[place + 1] == "task          task001_yes_or_no (kind label)"
    assert f"query         [label yes] input {number} of task001_yes_or_no" in lines
    assert f"positive      [0.875] input {number} of task001_yes_or_no, chosen" in lines
    assert f"negative      [0.500, mined, label no] input {number} of task001_yes_or_no, against" in lines


def test_a_long_name_gives_way_to_the_numbers(tmp_path: Path) -> None:
    builder = tiny(2)
    name = "task003_" + "a_very_long_name_" * 6
    rows = builder.rows.pop(("super_ni", "task002_rewrite"))
    builder.rows["super_ni", name] = [row | {"task": name} for row in rows]
    builder.tasks[3]["task"] = name
    builder.write(tmp_path / "x")
    line = next(line for line in run(str(tmp_path / "x")).splitlines() if line.startswith("task003"))
    assert len(line.rstrip()) <= 80
    assert line.split() == [name[:48] + "…", "text", "2", "1.00", "-", "100%"]


def test_json_holds_whole_texts_in_ascii(release: Release) -> None:
    output = run(str(release.root), "--json", "--task", "asks", "--n", "5", "--seed", "3")
    found = json.loads(output)
    assert output.isascii() and "\x1b" not in output
    assert sorted(found) == [
        "content_digest", "mining", "profile", "quantiles", "rows", "rules", "sample", "searched", "shortages",
        "spreads", "tasks",
    ]  # fmt: skip
    assert found["rows"] == 5 and [task["task"] for task in found["tasks"]] == ["asks"]
    assert EVIL + "a" * 500 in [row["query"] for row in found["sample"]]


CANDIDATES = {
    "candidates": {
        "listed": 115_426,
        "chosen": 5_277,
        "dropped": {"known_positive": 1_762, "near_duplicate": 1, "not_needed": 106_342, "relative_margin": 2_044},
    },
    "given": {"listed": 1_776, "chosen": 1_776, "dropped": {}},
    "negatives": {"given": 1_776, "mined": 5_277},
    "queries_short": 17,
    "negatives_missing": 51,
    "positive_scores": [0.0753, 0.4044, 0.6168, 0.7296, 0.8338, 0.9326, 0.9952],
    "negative_scores": [-0.0117, 0.2962, 0.3623, 0.4142, 0.4983, 0.7226, 0.9883],
}
FILLED = {
    "candidates": {"listed": 10, "chosen": 4, "dropped": {"not_needed": 6}},
    "draws": {"listed": 8, "chosen": 1, "dropped": {"repeated": 7}},
    "negatives": {"mined": 4, "random": 1},
    "queries_short": 0,
    "negatives_missing": 0,
    "positive_scores": [1.5] * 7,
    "negative_scores": [-0.25] * 7,
}
JUDGED = {"rule": "small_label_set", "distinct_outputs": 2, "instances": 9, "labels": {"yes": 7, "no\x1b": 2}}
LABELLED = {"mine": FILLED, "ingest": {"kind": "label", "evidence": JUDGED}}
RULES = {"profile": "clean", "mining": {"negatives": 4, "relative_margin": 0.05, "balanced": True, "fill": "none"}}


def mined_release(folder: Path, *evidence: dict[str, object], params: dict[str, object] = RULES) -> str:
    """Write a tiny release whose tasks have this evidence, and return its folder."""
    builder = tiny(2)
    for task, found in zip(builder.tasks, evidence, strict=False):
        task["evidence"] = found  # type: ignore[typeddict-item]
    builder.write(folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["params"] |= params
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return str(folder)


def after(output: str, beginning: str) -> list[str]:
    """Return the lines of a screen from the first with this beginning on."""
    lines = [line.rstrip() for line in output.splitlines()]
    assert max(len(line) for line in lines if "digest" not in line) <= 80
    return lines[next(place for place, line in enumerate(lines) if line.startswith(beginning)) :]


def test_the_whole_release_shows_the_sums_of_mining(tmp_path: Path) -> None:
    folder = mined_release(tmp_path / "x", {"mine": CANDIDATES}, {}, LABELLED)
    assert after(run(folder, "--n", "0"), "mining") == [
        "mining in the whole pool of 2 tasks",
        "profile clean: negatives 4, relative_margin 0.05, balanced",
        "negatives  listed chosen share dropped by rule",
        "given       1,776  1,776   25%",
        "mined     115,436  5,281   75% not_needed 106,348, relative_margin 2,044,",
        "                               known_positive 1,762, near_duplicate 1",
        "random          8      1 <0.1% repeated 7",
        "17 queries short (51 negatives missing), in 1 of 2 tasks; why: --task NAME",
    ]


def test_one_task_shows_all_of_its_mining(tmp_path: Path) -> None:
    folder = mined_release(tmp_path / "x", {"mine": CANDIDATES}, {}, LABELLED)
    assert after(run(folder, "--n", "0", "--task", "asks"), "mining") == [
        "mining in the whole pool of asks",
        "profile clean: negatives 4, relative_margin 0.05, balanced",
        "negatives  listed chosen share dropped by rule",
        "given       1,776  1,776   25%",
        "mined     115,426  5,277   75% not_needed 106,342, relative_margin 2,044,",
        "                               known_positive 1,762, near_duplicate 1",
        "asks: 17 queries short (51 negatives missing); relative_margin struck out 2,044",
        "candidates: lower --relative-margin 0.05, or try --fill other_rows",
        "",
        "score    least   5%  25%  50%  75%  95% most",
        "positive  0.08 0.40 0.62 0.73 0.83 0.93 1.00",
        "negative -0.01 0.30 0.36 0.41 0.50 0.72 0.99",
    ]
    label = after(run(folder, "--n", "0", "--task", "task001_yes_or_no"), "task001_yes_or_no:")
    assert label[:7] == [
        "task001_yes_or_no: label task (a small label set): 2 distinct of 9 answers: yes",
        "7, no\\x1b 2",
        "mining in the whole pool of task001_yes_or_no",
        "profile clean: negatives 4, relative_margin 0.05, balanced",
        "negatives listed chosen share dropped by rule",
        "mined         10      4   80% not_needed 6",
        "random         8      1   20% repeated 7",
    ]


def test_a_cluster_shows_the_mining_of_its_source(tmp_path: Path) -> None:
    folder = mined_release(tmp_path / "x", {"cluster_of": {"task": "all asks", "mine": FILLED}}, params={})
    lines = after(run(folder, "--n", "0", "--task", "asks"), "mining")
    assert lines[:2] == ["mining in the whole pool of all asks", "profile unknown"]


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (
            {"mine": {"mined_negatives": 2, "queries_short": 0, "negatives_missing": 0}},
            "no account: built by an earlier version of medi",
        ),
        ({}, "no account: nothing was mined"),
    ],
)
def test_without_an_account_it_says_why(tmp_path: Path, evidence: dict[str, object], expected: str) -> None:
    folder = mined_release(tmp_path / "x", evidence, params={"profile": "paper"})
    assert after(run(folder, "--n", "0"), "mining") == ["mining", "profile paper", expected]
    assert json.loads(run(folder, "--json"))["shortages"] == []


def test_no_name_in_a_manifest_harms_the_screen(tmp_path: Path) -> None:
    evil = "[red]x\x1b[31m\u202e"
    facts = {**CANDIDATES, "candidates": {"listed": 9, "chosen": 0, "dropped": {evil: 9}}}
    judged = {"evidence": JUDGED | {"rule": evil}, "kind": evil}
    params = {"profile": evil, "mining": {"fill": evil, "negatives": 4}}
    folder = mined_release(
        tmp_path / "x", {"cluster_of": {"task": evil, "mine": facts}, "ingest": judged}, params=params
    )
    for arguments in ((), ("--task", "asks")):
        output = run(folder, "--n", "0", *arguments)
        assert not set(output) & {"\x1b", "\u202e"}
        lines, harmless = after(output, "mining"), "[red]x\\x1b[31m\\u202e"
        assert lines[0].endswith(f"pool of {harmless}") and lines[1].startswith(
            f"profile {harmless}: negatives 4, fill"
        )
        assert f"{harmless} 9" in "".join(lines)


def test_json_has_the_account_too(tmp_path: Path) -> None:
    folder = mined_release(tmp_path / "x", {"mine": CANDIDATES}, {}, LABELLED)
    found = json.loads(run(folder, "--json"))
    assert found["profile"] == "clean" and found["rules"] == {"negatives": 4, "relative_margin": 0.05, "balanced": True}
    assert found["mining"]["units"] == ["asks", "task001_yes_or_no"]
    assert found["mining"]["candidates"]["dropped"]["not_needed"] == 106_348
    assert found["mining"]["positive_scores"] == [] and found["mining"]["negatives_missing"] == 51
    assert [line.partition(";")[0] for line in found["shortages"]] == ["asks: 17 queries short (51 negatives missing)"]
    assert [task["verdict"] for task in found["tasks"]][::2] == [
        "", "label task (a small label set): 2 distinct of 9 answers: yes 7, no\x1b 2",
    ]  # fmt: skip
