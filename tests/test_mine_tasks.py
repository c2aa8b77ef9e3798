"""Super-NI mining: the paper's two rules by hand, by brute force, and their edges."""

import numpy as np
import pyarrow as pa

from medi.mine.search import scores_of
from medi.schema import SECOND_OF_MUTUAL
from tests.mining import mined_task, random_vectors, rows_of, texts_of


def by_query(pairs: pa.Table) -> dict[str, dict[str, object]]:
    """Return the rows by their query."""
    return {row["query"]: row for row in pairs.to_pylist()}


def test_label_rule_by_hand() -> None:
    """Most similar with the same label, most similar with another one: cosines 0.96, 0.6, 0.8 by construction."""
    rows = rows_of(
        {"query": "a", "label": "yes"},
        {"query": "b", "label": "yes"},
        {"query": "c", "label": "no"},
        {"query": "d", "label": "no"},
    )
    vectors = {"a": (1.0, 0.0), "b": (0.96, 0.28), "c": (0.8, 0.6), "d": (0.0, 1.0)}
    pairs, counts = mined_task("label", rows, vectors)
    found = by_query(pairs)
    assert [(q, found[q]["positive"], found[q]["negatives"]) for q in "abcd"] == [
        ("a", "b", ["c"]), ("b", "a", ["c"]), ("c", "d", ["b"]), ("d", "c", ["b"]),
    ]  # fmt: skip
    np.testing.assert_allclose(found["a"]["positive_score"], 0.96, atol=1e-6)
    np.testing.assert_allclose(found["c"]["negative_scores"], [0.8 * 0.96 + 0.6 * 0.28], atol=1e-6)
    assert (found["a"]["label"], found["a"]["negative_labels"], found["a"]["kind"]) == ("yes", ["no"], "label")
    assert counts.rows_out == 4 and counts.facts["mutual_pairs"] == 2


def test_text_rule_by_hand() -> None:
    """s_pos = cos x + cos y picks the like answer, s_neg = cos x - cos y the like input with the unlike answer."""
    rows = rows_of(*({"query": q, "output": y} for q, y in (("x1", "y1"), ("x2", "y2"), ("x3", "y3"), ("x4", "y4"))))
    vectors = {
        "x1": (1.0, 0.0), "x2": (0.8, 0.6), "x3": (0.96, 0.28), "x4": (0.0, 1.0),
        "y1": (1.0, 0.0), "y2": (1.0, 0.0), "y3": (0.0, 1.0), "y4": (0.6, 0.8),
    }  # fmt: skip
    pairs, _ = mined_task("text", rows, vectors)
    first = by_query(pairs)["x1"]
    # s_pos: x2 0.8 + 1.0 = 1.8, x3 0.96 + 0 = 0.96, x4 0 + 0.6; s_neg: x3 0.96 - 0 = 0.96, x4 0 - 0.6.
    assert (first["positive"], first["negatives"]) == ("x2", ["x3"])
    np.testing.assert_allclose([first["positive_score"], *first["negative_scores"]], [1.8, 0.96], atol=1e-6)
    assert (first["kind"], first["label"], first["negative_labels"], first["negative_origins"]) == (
        "text",
        None,
        [],
        ["mined"],
    )


def test_the_negative_is_never_an_example_that_is_a_positive_in_either_direction() -> None:
    """x2 chose x1, so x1 is a known positive of x2 and x2 of x1, although their s_neg would be the best."""
    rows = rows_of(*({"query": f"x{i}", "output": f"y{i}"} for i in range(5)))
    vectors = {
        "x0": (1, 0, 0), "x1": (1, 0.1, 0), "x2": (1, 0.2, 0), "x3": (0, 0, 1), "x4": (0, 0, 1),
        "y0": (1, 0, 0), "y1": (1, 0, 0.1), "y2": (0, 1, 0), "y3": (0, 0, 1), "y4": (-0.1, 0, 1),
    }  # fmt: skip
    pairs, _ = mined_task("text", rows, vectors)
    found = by_query(pairs)
    assert found["x2"]["positive"] == "x1" and found["x2"]["negatives"] == ["x0"]
    assert found["x1"]["positive"] == "x0" and found["x1"]["negatives"] == ["x4"]
    assert found["x0"]["negatives"] == ["x2"]


def test_brute_force_on_500_examples_gives_the_same_ids_in_the_same_order() -> None:
    examples = [{"query": f"input {i}", "output": f"output {i % 400}"} for i in range(500)]
    rows = rows_of(*examples)
    vectors = random_vectors([str(e[key]) for e in examples for key in e], dimension=24)
    texts = texts_of(rows, vectors, "text")
    pairs, _ = mined_task("text", rows, vectors)
    inputs, outputs = (texts.vectors_of(rows[c].to_pylist()).astype(np.float64) for c in ("query", "output"))
    x, y = ((v[:, None, :] * v[None, :, :]).sum(-1) for v in (inputs, outputs))
    s_pos, s_neg = (x + y).astype(np.float32), (x - y).astype(np.float32)
    np.fill_diagonal(s_pos, -np.inf)
    positive = s_pos.argmax(axis=1)
    known = np.eye(500, dtype=bool)
    known[np.arange(500), positive] = known[positive, np.arange(500)] = True
    s_neg[known] = -np.inf
    negative = s_neg.argmax(axis=1)
    queries = rows["query"].to_pylist()
    assert pairs["id"].to_pylist() == rows["id"].to_pylist()
    assert pairs["positive"].to_pylist() == [queries[j] for j in positive]
    assert pairs["negatives"].to_pylist() == [[queries[j]] for j in negative]
    np.testing.assert_allclose(pairs["positive_score"].to_numpy(), s_pos.max(axis=1), atol=3e-7)
    np.testing.assert_allclose([s[0] for s in pairs["negative_scores"].to_pylist()], s_neg.max(axis=1), atol=3e-7)
    by_rank = pairs.sort_by("rank")
    ranks = by_rank["rank"].to_numpy()
    for part in (
        by_rank.filter(pa.array(ranks < SECOND_OF_MUTUAL)),
        by_rank.filter(pa.array(ranks >= SECOND_OF_MUTUAL)),
    ):
        scores = part["positive_score"].to_pylist()
        assert len(part) and scores == sorted(scores, reverse=True)


def test_of_a_mutual_pair_the_smaller_id_comes_first() -> None:
    rows = rows_of(
        *({"query": q, "label": "l"} for q in "ab"), {"query": "c", "label": "m"}, {"query": "d", "label": "m"}
    )
    vectors = {"a": (1.0, 0.0), "b": (1.0, 0.1), "c": (0.0, 1.0), "d": (0.1, 1.0)}
    pairs, _ = mined_task("label", rows, vectors)
    ids, ranks = pairs["id"].to_pylist(), pairs["rank"].to_pylist()
    place = {row["query"]: row["id"] for row in pairs.to_pylist()}
    for one, other in (("a", "b"), ("c", "d")):
        low, high = sorted((place[one], place[other]))
        assert ranks[ids.index(low)] < SECOND_OF_MUTUAL <= ranks[ids.index(high)]


def test_inputs_that_are_one_text_to_the_encoder_are_never_paired() -> None:
    examples = (("Tea", "l"), ("tea", "l"), ("milk", "l"), ("water", "m"))
    rows = rows_of(*({"query": query, "label": label} for query, label in examples))
    vectors = {"Tea": (1.0, 0.0), "tea": (1.0, 0.0), "milk": (0.6, 0.8), "water": (0.0, 1.0)}
    pairs, counts = mined_task("label", rows, vectors)
    found = by_query(pairs)
    assert [found[q]["positive"] for q in ("Tea", "tea")] == ["milk", "milk"]
    assert dict(+counts.dropped) == {"no_positive": 1}  # "water" is alone in its label


def test_one_text_to_the_encoder_with_two_labels_is_left_out_and_counted() -> None:
    """Otherwise "tea" would be the positive of "milk" and "TEA", the same tokens, its negative."""
    examples = (("tea", "l"), ("TEA", "m"), ("milk", "l"), ("cream", "l"), ("water", "m"), ("rain", "m"))
    rows = rows_of(*({"query": query, "label": label} for query, label in examples))
    vectors = {"tea": (1, 0), "TEA": (1, 0), "milk": (1, 0.1), "cream": (1, 0.2), "water": (0, 1), "rain": (0.1, 1)}
    pairs, counts = mined_task("label", rows, vectors)
    found = by_query(pairs)
    assert dict(+counts.dropped) == {"conflicting_labels": 2}
    assert {q: (found[q]["positive"], found[q]["negatives"]) for q in found} == {
        "milk": ("cream", ["rain"]), "cream": ("milk", ["rain"]), "water": ("rain", ["cream"]),
        "rain": ("water", ["cream"]),
    }  # fmt: skip


def test_scores_over_two_are_two() -> None:
    rows = rows_of(*({"query": f"q{i}", "output": f"y{i}"} for i in range(3)))
    same = {f"q{i}": (0.1, 0.7) for i in range(3)} | {f"y{i}": (0.3, 0.1) for i in range(3)}
    texts = texts_of(rows, same, "text")
    vectors = texts.vectors_of(["q0"])
    assert abs(float(scores_of(vectors, vectors)[0]) - 1) < 1e-6
    pairs, _ = mined_task("text", rows, same)
    assert max(pairs["positive_score"].to_pylist()) <= 2.0


def test_examples_that_are_one_text_to_the_encoder_share_their_known_positives() -> None:
    """Long inputs with one beginning: "Tea" chose "milk" by its output, so "milk" is no negative of "tea" either."""
    examples = (("Tea", "y1"), ("tea", "y2"), ("milk", "y3"), ("rain", "y4"), ("snow", "y5"))
    rows = rows_of(*({"query": query, "output": output} for query, output in examples))
    vectors = {
        "Tea": (1, 0, 0), "tea": (1, 0, 0), "milk": (1, 0.2, 0), "rain": (1, 0.5, 0), "snow": (0, 0.3, 1),
        "y1": (1, 0, 0), "y3": (1, 0, 0), "y2": (0, 1, 0), "y4": (0, 1, 0), "y5": (0, 1, 0),
    }  # fmt: skip
    found = by_query(mined_task("text", rows, vectors)[0])
    assert (found["Tea"]["positive"], found["tea"]["positive"]) == ("milk", "rain")
    # By s_neg alone "tea" would get "milk" (0.98), and "Tea" would get "rain" (0.89).
    assert (found["Tea"]["negatives"], found["tea"]["negatives"]) == (["snow"], ["snow"])
