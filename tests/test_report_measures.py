"""What a build measures for its report: bins, places of mined negatives, lengths, and where tasks lie on the map."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from medi.report.measures import (
    COSINES,
    LENGTHS,
    RANKS,
    SUMS,
    Measured,
    Pool,
    binned,
    flat_map,
    measure,
    measures_of,
    sparse,
    untrimmed,
)  # fmt: skip
from medi.schema import CANDIDATES, EXAMPLES, ROWS, TOKENS, table_of, text_id
from tests.release_builder import pair_row, task_row

VECTORS = {"q0": [1.0, 0.0], "q1": [0.0, 1.0], "p0": [0.6, 0.8], "p1": [0.8, 0.6], "p2": [-1.0, 0.0]}


def vectors(texts: list[str]) -> np.ndarray:
    return np.array([VECTORS[text] for text in texts], dtype=np.float32)


def pool(kind: str = "pair") -> Pool:
    """Return three rows; of each the other two are candidates, the later one first."""
    texts = [(f"q{n}", f"p{n}") for n in range(2)] + [("q1", "p2")]
    if kind != "pair":
        texts = [(positive, "") for _, positive in texts]
    rows = [
        {"id": f"r{n}", "task": "t", "query": query, "positive": positive or None, "origin": "", "rank": n}
        | {name: [] for name in ("references", "other_positives", "negatives")}
        for n, (query, positive) in enumerate(texts)
    ]
    others = [
        {"id": f"r{n}", "negatives": order, "negative_scores": [0.5, 0.4], "known": 0}
        | {"positives": [], "positive_scores": []}
        for n, order in enumerate(([2, 1], [2, 0], [1, 0]))
    ]
    lengths = [
        {"text_id": text_id(text), "token_key": n, "length_tokens": length}
        for n, (text, length) in enumerate((("q0", 3), ("q1", 5), ("p0", 17), ("p1", 40), ("p2", 256)))
    ]
    return Pool(kind, table_of(rows, ROWS), table_of(others, CANDIDATES), table_of(lengths, TOKENS), vectors)


def examples(kind: str, *rows: tuple[str, str, str, list[str], list[str]]) -> pa.Table:
    """Return EXAMPLES of (id, query, positive, negatives, their origins)."""
    base = pair_row("asks", 0) if kind == "pair" else task_row("t", kind, 0)
    names = ("id", "query", "positive", "negatives", "negative_origins")
    changed = [dict(zip(names, row, strict=True)) | {"negative_scores": [0.0] * len(row[3])} for row in rows]
    return table_of([base | row for row in changed], EXAMPLES)


def test_a_value_on_an_edge_is_above_it_and_what_lies_outside_is_in_the_last_bins() -> None:
    # float32 of 0.3 is a hair above it, of 0.7 a hair below.
    values = np.array([-1.0, 0.3, 0.325, 0.7, 1.0], dtype=np.float32)
    counts = binned(values, COSINES)
    assert {int(place): int(counts[place]) for place in np.flatnonzero(counts)} == {0: 1, 52: 1, 53: 1, 68: 1, 79: 1}
    assert [COSINES[place] for place in (52, 53, 68)] == [0.3, 0.325, 0.7]
    assert sparse(np.array([9000, 16, 17]), LENGTHS) == [15, 2, *[0] * 70, 1]
    assert (SUMS[0], SUMS[-1], RANKS[0], RANKS[-1], len(LENGTHS)) == (-2, 2, 1, 65, 88)


@pytest.mark.parametrize("values", [[], [1], [3, 3, 64], [64]])
def test_bins_come_back_as_they_went(values: list[int]) -> None:
    np.testing.assert_array_equal(untrimmed(sparse(np.array(values, dtype=int), RANKS), RANKS), binned(
        np.array(values, dtype=int), RANKS))  # fmt: skip


def test_places_of_mined_negatives_among_the_candidates() -> None:
    rows = [
        ("r0", "q0", "p0", ["p1", "p2"], ["given", "mined"]),
        ("r1", "q1", "p1", ["p0"], ["mined"]),
        ("r2", "q1", "p2", ["p1"], ["random"]),
    ]
    found = measure(examples("pair", *rows), pool())
    # p2 is the first candidate of r0, p0 the second of r1; given and random ones have no place.
    assert found.values["negative_ranks"] == [0, 1, 1]
    assert (found.source, found.task) == ("asks", "asks")


def test_lengths_are_those_of_the_encoder_and_documents_hold_the_negatives() -> None:
    rows = [("r0", "q0", "p0", ["p1"], ["mined"]), ("r1", "q1", "p1", ["p2"], ["mined"])]
    values = measure(examples("pair", *rows), pool()).values
    assert (values["query_tokens_median"], values["document_tokens_median"]) == (4, 40)
    assert values["query_tokens"] == [2, 1, 0, 1]
    counts = untrimmed(values["document_tokens"], LENGTHS)
    assert {LENGTHS[place]: int(counts[place]) for place in np.flatnonzero(counts)} == {16: 1, 40: 2, 256: 1}
    assert "positive_cosines" not in values


def test_text_tasks_tell_the_cosines_of_their_inputs() -> None:
    found = measure(examples("text", ("r0", "p0", "p1", ["p2"], ["mined"])), pool("text"))
    counts = {side: untrimmed(found.values[f"{side}_cosines"], COSINES) for side in ("positive", "negative")}
    # 0.6 x 0.8 twice is 0.96; with p2 it is -0.6.
    assert {side: COSINES[int(np.flatnonzero(c)[0])] for side, c in counts.items()} == {
        "positive": 0.95, "negative": -0.6,
    }  # fmt: skip
    np.testing.assert_allclose(found.mean, [0.6, 0.8], atol=1e-7)
    assert found.values["negative_ranks"] == [0, 1]


def test_the_map_is_the_plane_in_which_the_means_differ_most() -> None:
    # Along the third axis they differ most, along the first next; the second is the same for all.
    means = np.array([[0.1, 7, 1], [-0.1, 7, 1], [0.1, 7, -1], [-0.1, 7, -1]], dtype=np.float64)
    assert flat_map(means) == [(1.0, 0.1), (1.0, -0.1), (-1.0, 0.1), (-1.0, -0.1)]
    assert flat_map(means[:1]) == [(0.0, 0.0)]
    moved = np.random.default_rng(3).normal(size=(50, 16))
    places = np.array(flat_map(moved))
    np.testing.assert_allclose(np.array(flat_map(moved[::-1]))[::-1], places, atol=1e-9)
    assert (places == np.round(places, 3)).all() and places[:, 0].std() > places[:, 1].std()


def test_tasks_name_their_nearest() -> None:
    means = {"a": [1.0, 0.0], "b": [0.9, 0.1], "c": [0.0, 1.0]}
    tasks = [Measured("s", name, np.array(mean), {"negative_ranks": [0, 1]}) for name, mean in means.items()]
    found = measures_of(tasks, 256)
    entries = {entry["task"]: entry for entry in found["tasks"]}  # type: ignore[index,union-attr,call-overload]
    assert {name: entry["nearest"] for name, entry in entries.items()} == {
        "a": ["b", "c"], "b": ["a", "c"], "c": ["b", "a"],
    }  # fmt: skip
    assert found["max_length_tokens"] == 256 and entries["a"]["negative_ranks"] == [0, 1]
    assert measures_of(tasks[:1], 256)["tasks"][0]["nearest"] == []  # type: ignore[index,call-overload]


def test_a_build_measures_every_task_with_rows(built: Path) -> None:
    manifest = json.loads((built / "out" / "manifest.json").read_bytes())
    found = json.loads((built / "out" / "audit" / "measures.json").read_bytes())
    tasks = {(task["source"], task["task"]): task for task in found["tasks"]}
    assert list(tasks) == [(e["source"], e["task"]) for e in manifest["tasks"] if e["got"]]
    assert found["max_length_tokens"] == manifest["params"]["encoder"]["max_length_tokens"]
    for entry in manifest["tasks"]:
        if entry["got"]:
            measured = tasks[entry["source"], entry["task"]]
            assert sum(measured["query_tokens"][1:]) == entry["got"]
            if entry["task"] == "gooaq_pairs":
                assert sum(measured["negative_ranks"][1:]) == entry["evidence"]["mine"]["negatives"]["mined"]
    assert {"report.html", "audit/measures.json"} <= {entry["path"] for entry in manifest["files"]}
