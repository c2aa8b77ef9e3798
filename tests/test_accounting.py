"""What became of the candidates, as a person reads it: sums that add up, and for a shortage what to change."""

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from rich.console import Console

from medi.profiles import PROFILES, Rules
from medi.release import open_release
from medi.release.accounting import (
    Mining,
    Tally,
    changed_rules,
    mining_by_unit,
    mining_of,
    rules_of,
    shortage_line,
    shortages,
    total_of,
)
from medi.release.inspect import summarise
from medi.store import Record, Store
from pipelines.build.contents import Finished
from pipelines.build.mining import Mined
from pipelines.build.progress import Reporter
from pipelines.build.steps import Chain
from pipelines.build.summary import show_result
from pipelines.build.units import Unit
from tests.mining import PAPER, mined_pairs, random_vectors, rows_of
from tests.release_builder import task_entry

# Four rows: queries at right angles, each with its positive 5 degrees on. Whoever asks, the others' positives score
# 0.087, -0.087 and -0.996, its own 0.996.
_DEGREES = {f"q{n}": 90 * n for n in range(4)} | {f"p{n}": 90 * n + 5 for n in range(4)}
SQUARE = {name: (float(np.cos(np.radians(d))), float(np.sin(np.radians(d)))) for name, d in _DEGREES.items()}


def facts_of(rules: Rules) -> dict[str, object]:
    """Return the facts of mining the four rows."""
    rows = rows_of(*({"query": f"q{n}", "positive": f"p{n}"} for n in range(4)))
    return mined_pairs(rows, SQUARE, rules=rules)[1].facts


@pytest.mark.parametrize(
    ("choices", "expected", "loosened"),
    [
        (
            {"negatives": 3, "max_score": 0.0},
            "4 queries short (4 negatives missing); above_max_score struck out 4 candidates: raise --max-score 0.0, "
            "or ask for fewer --negatives than 3",
            {"max_score": 0.1},
        ),
        (
            {"negatives": 3, "min_score": 0.0},
            "4 queries short (8 negatives missing); below_min_score struck out 8 candidates: lower --min-score 0.0, "
            "or ask for fewer --negatives than 3",
            {"min_score": -0.1},
        ),
        (
            {"negatives": 2, "absolute_margin": 1.0, "window": 2},
            "4 queries short (4 negatives missing); absolute_margin struck out 4 candidates: lower --absolute-margin "
            "1.0, or raise --window 2",
            {"window": 3},
        ),
        (
            {"negatives": 3, "relative_margin": 0.95},
            "4 queries short (4 negatives missing); relative_margin struck out 4 candidates: lower --relative-margin "
            "0.95, or ask for fewer --negatives than 3",
            {"relative_margin": 0.9},
        ),
        (
            {"negatives": 2, "skip_top": 2},
            "4 queries short (4 negatives missing); skip_top struck out 8 candidates: lower --skip-top 2, "
            "or ask for fewer --negatives than 2",
            {"skip_top": 1},
        ),
        (
            {"negatives": 15},
            "4 queries short (48 negatives missing); it has no other texts left: ask for fewer --negatives than 15",
            {"negatives": 3},
        ),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_a_shortage_names_its_rule_and_what_it_says_to_change_helps(
    choices: dict[str, object], expected: str, loosened: dict[str, object]
) -> None:
    rules = replace(PAPER, **choices)  # type: ignore[arg-type]
    facts = facts_of(rules)
    assert shortage_line("toy", facts, rules) == f"toy: {expected}"
    after = facts_of(replace(rules, **loosened))  # type: ignore[arg-type]
    assert int(str(after["negatives_missing"])) < int(str(facts["negatives_missing"]))


def test_who_has_what_was_wanted_is_not_short() -> None:
    assert shortage_line("toy", facts_of(PAPER), PAPER) == ""


def test_a_row_that_is_alone_is_short_and_no_option_helps() -> None:
    """C35: "1 query short (15 negatives missing)"."""
    rows = rows_of({"query": "a", "positive": "b"})
    for negatives, expected in (
        (15, "1 query short (15 negatives missing); it has no other texts left: ask for fewer --negatives than 15"),
        (1, "1 query short (1 negative missing); it has no other texts left: only more rows of it would help"),
    ):
        rules = replace(PAPER, negatives=negatives)
        _, counts = mined_pairs(rows, random_vectors(["a", "b"]), rules=rules)
        assert shortage_line("toy", counts.facts, rules) == f"toy: {expected}"


def short(dropped: dict[str, int], missing: int = 10, **facts: object) -> dict[str, object]:
    """Return facts of a task with 2 queries short."""
    candidates = {"listed": 1000 + sum(dropped.values()), "chosen": 1000, "dropped": dropped}
    return {"candidates": candidates, "queries_short": 2, "negatives_missing": missing, **facts}


@pytest.mark.parametrize(
    ("facts", "choices", "expected"),
    [
        # Of two rules the one that struck out more; passed-over candidates are struck out of every row, short or not.
        (
            short({"relative_margin": 40, "below_min_score": 30, "skip_top": 500, "not_needed": 900}),
            {"relative_margin": 0.05, "min_score": 0.2, "skip_top": 1},
            "relative_margin struck out 40 candidates: lower --relative-margin 0.05, or try --fill other_rows",
        ),
        # Neither limit struck out enough to be the whole reason, the window did.
        (
            short({"relative_margin": 6, "below_min_score": 6, "beyond_window": 60}),
            {"relative_margin": 0.05, "min_score": 0.2, "window": 16},
            "beyond_window struck out 60 candidates: raise --window 16, or try --fill other_rows",
        ),
        (
            short({"relative_margin": 40}),
            {"relative_margin": 0.0},
            "relative_margin struck out 40 candidates: leave out --relative-margin 0.0, or try --fill other_rows",
        ),
        (
            short({"near_duplicate": 11, "known_positive": 70, "relative_margin": 9}),
            {"relative_margin": 0.05},
            "near_duplicate struck out 11 candidates: try --fill other_rows, or ask for fewer --negatives than 4",
        ),
        (
            short({"equal_output": 1}, missing=1),
            {"negatives": 1, "fill": "other_rows"},
            "equal_output struck out 1 candidate: only more rows of it would help",
        ),
        # Known positives are never a reason: the search looks past them.
        (
            short({"known_positive": 70, "relative_margin": 9}, given={"listed": 8, "chosen": 8, "dropped": {}}),
            {"relative_margin": 0.05},
            "it has no other texts left: try --fill random, which takes given negatives of other rows, "
            "or ask for fewer --negatives than 4",
        ),
        # Filling up looked beyond the window, and the limit stood in its way too.
        (
            short(
                {"beyond_window": 600, "above_max_score": 20},
                draws={"listed": 64, "chosen": 4, "dropped": {"above_max_score": 30, "repeated": 30}},
            ),
            {"fill": "other_rows", "max_score": 0.5, "window": 8},
            "above_max_score struck out 50 candidates: raise --max-score 0.5, or raise --window 8",
        ),
    ],
    ids=["most", "window", "zero", "near_duplicate", "equal_output", "known_positive", "filled"],
)
def test_the_reason_of_a_shortage(facts: dict[str, object], choices: dict[str, object], expected: str) -> None:
    rules = replace(PAPER, **({"negatives": 4} | choices))  # type: ignore[arg-type]
    missing = facts["negatives_missing"]
    said = "1 negative" if missing == 1 else f"{missing} negatives"
    assert shortage_line("toy", facts, rules) == f"toy: 2 queries short ({said} missing); {expected}"


def test_accounts_of_units_add_up_and_the_shortest_comes_first() -> None:
    one = mining_of("one", short({"skip_top": 5}, missing=3, negatives={"mined": 7}, positive_scores=[0.5] * 7))
    other = mining_of("other", short({"skip_top": 1, "repeated": 9}, negatives={"given": 2, "mined": 1}))
    assert total_of([one, other]) == Mining(
        units=("one", "other"),
        candidates=Tally(2015, 2000, {"repeated": 9, "skip_top": 6}),
        given=Tally(0, 0, {}),
        draws=Tally(0, 0, {}),
        negatives={"given": 2, "mined": 8},
        queries_short=4,
        negatives_missing=13,
        positive_scores=(),
        negative_scores=(),
    )
    assert total_of([one]).positive_scores == (0.5,) * 7
    assert [line.split(":")[0] for line in shortages([one, other], PAPER)] == ["other", "one"]


def test_the_clusters_of_a_source_are_one_unit_and_what_gave_nothing_is_none() -> None:
    facts = {"mine": {"candidates": {"listed": 5, "chosen": 2, "dropped": {"not_needed": 3}}}}
    cluster = {"cluster_of": {"task": "msmarco", **facts}}
    entries = [
        task_entry("msmarco", "msmarco/00", "pair", 1) | {"evidence": cluster},
        task_entry("msmarco", "msmarco/01", "pair", 1) | {"evidence": cluster},
        task_entry("asks", "asks", "pair", 2) | {"evidence": facts},
        task_entry("super_ni", "task1_none", "label", 0) | {"evidence": {"ingest": {"skipped": "single_class"}}},
    ]
    found = mining_by_unit(entries)  # type: ignore[arg-type]
    assert found is not None and [part.units for part in found] == [("msmarco",), ("asks",)]
    assert total_of(found).candidates == Tally(10, 4, {"not_needed": 6})
    assert mining_by_unit(entries[3:]) == []  # type: ignore[arg-type]


def test_facts_of_an_earlier_version_are_no_account_and_odd_ones_count_as_nothing() -> None:
    earlier = {"mine": {"mined_negatives": 3, "negatives_missing": 0, "queries_short": 0}}
    assert mining_by_unit([task_entry("asks", "asks", "pair", 3) | {"evidence": earlier}]) is None  # type: ignore[list-item]
    odd = mining_of("x", {"candidates": {"listed": "9", "dropped": [1]}, "given": 4, "positive_scores": [0.5, "a"]})
    assert odd == mining_of("x", {}) and odd.candidates == Tally(0, 0, {})
    assert mining_by_unit([task_entry("asks", "asks", "pair", 3) | {"evidence": [1]}]) == []  # type: ignore[list-item]


def test_rules_are_read_back_and_what_differs_from_paper_is_named() -> None:
    clean = PROFILES["clean"]
    assert rules_of({"mining": json.loads(json.dumps(clean.to_json()))}) == clean
    assert changed_rules(clean) == {
        "negatives": 4,
        "relative_margin": 0.05,
        "collapse_near_duplicates": True,
        "bar_equal_outputs": True,
        "max_positive_score": 0.98,
        "balanced": True,
    }
    assert changed_rules(replace(PAPER, rescore={"name": "toy", "sha256": "00"})) == {"rescore": "toy"}
    assert changed_rules(PAPER) == {}
    # A later version may know more; what is not a rule's value is no rule.
    assert rules_of({"mining": {"window": 8, "a_later_rule": 1}}) == replace(PAPER, window=8)
    for odd in ({"negatives": "4"}, {"balanced": 1}, {"max_score": "high"}, {"fill": None}):
        assert rules_of({"mining": odd}) is None  # type: ignore[dict-item]
    assert rules_of({}) is None


def test_the_sums_of_the_whole_sample_add_up(sample_workspace: Path, sample_release: Path) -> None:
    release = open_release(sample_release)
    parts = mining_by_unit(release.manifest["tasks"])
    assert parts is not None and len(parts) == 48
    for part in parts:
        for tally in (part.candidates, part.given, part.draws):
            assert tally.listed == tally.chosen + sum(tally.dropped.values()), part.units
        assert part.negatives.get("mined", 0) == part.candidates.chosen
        assert part.negatives.get("given", 0) == part.given.chosen
    store, in_pool = Store(sample_workspace / "store"), Counter[str]()
    for entry in release.manifest["records"]:
        if entry["stage"] == "mine":
            pairs = store.open(Record(**entry))  # type: ignore[arg-type]
            own = Counter(pc.list_flatten(pairs["negative_origins"]).to_pylist())
            in_pool += own
            assert [dict(own)] == [part.negatives for part in parts if part.units == (entry["unit"],)]
    assert total_of(parts).negatives == in_pool
    # The sample is smaller than its quotas, so its release holds the pools whole.
    in_shards = Counter[str]()
    for task in summarise(release).tasks:
        in_shards.update(task.origins)
    assert in_shards == in_pool


def finished(name: str, facts: dict[str, object], rules: Rules) -> Finished:
    """Return a unit of one row with these facts of mining."""

    def record(stage: str, **more: object) -> Record:
        counts = {"rows_in": 1, "dropped": {}, "mended": {}, "facts": more}
        return Record(stage, 1, name, {"rules": rules.to_json()}, {}, "", "", 1, counts)

    mined = Mined(record("candidates"), None, None, record("mine", **facts), record("audit"))
    chain = Chain(record("ingest"), record("tokens"), mined, record("sample"), record("instruct"))
    return Finished(Unit("super_ni", name, "tasks", 600), record("ingest"), chain)


def result(units: list[Finished]) -> list[str]:
    """Return the lines of a build's end, as a log of 80 columns holds them."""
    text = io.StringIO()
    show_result(Reporter(Console(file=text, width=80)), Path("out"), "d" * 64, units, {})
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_a_build_ends_with_its_largest_shortages() -> None:
    rules = replace(PAPER, negatives=4, max_score=0.5)
    names = ["task1_a", "task2_\x1b[31m[red]b", "task3_c", "task4_d", "task5_e"]
    units = [finished(n, short({"above_max_score": 9000}, m), rules) for n, m in zip(names, range(1, 6), strict=True)]
    lines = result([*units, finished("task6_f", facts_of(PAPER), rules)])
    start = lines.index("before the quotas, 10 queries short (15 negatives missing), in 5 of 6 tasks:")
    assert lines[start + 1 : start + 9] == [
        "  task5_e: 2 queries short (5 negatives missing); above_max_score struck out",
        "  9,000 candidates: raise --max-score 0.5, or try --fill other_rows",
        "  task4_d: 2 queries short (4 negatives missing); above_max_score struck out",
        "  9,000 candidates: raise --max-score 0.5, or try --fill other_rows",
        "  task3_c: 2 queries short (3 negatives missing); above_max_score struck out",
        "  9,000 candidates: raise --max-score 0.5, or try --fill other_rows",
        "  2 more; `medi inspect DIR --task NAME` tells why",
        f"content digest {'d' * 64}",
    ]
    hostile = result(units[1:2])
    assert "  task2_\\x1b[31m[red]b: 2 queries short (2 negatives missing); above_max_score" in hostile
    assert "\x1b" not in "".join(hostile)


def test_a_build_without_a_shortage_says_nothing_of_one() -> None:
    assert not [line for line in result([finished("task6_f", facts_of(PAPER), PAPER)]) if "short" in line]
