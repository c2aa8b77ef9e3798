"""The choices of mining on whole units: what each does to a row, and that the account of a unit adds up."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi import mine
from medi.schema import Counts
from tests.mining import PAPER, RULES, mined_pairs, mined_task, random_vectors, rows_of, texts_of

CLEAN = mine.PROFILES["clean"]


def circle(degrees: float) -> tuple[float, float]:
    """Return the vector at this angle; the cosine of two is that of their difference."""
    return float(np.cos(np.radians(degrees))), float(np.sin(np.radians(degrees)))


# One query at 0, its positive at 20 (cosine 0.94), and documents of others at 5, 25, 40, 60 degrees.
PAIRS = [("q", "p"), ("far1", "d5"), ("far2", "d25"), ("far3", "d40"), ("far4", "d60")]
ANGLES = {"q": 0, "p": 20, "d5": 5, "d25": 25, "d40": 40, "d60": 60, "far1": 180, "far2": 181, "far3": 182, "far4": 183}
VECTORS = {text: circle(angle) for text, angle in ANGLES.items()}


def of_q(rules: mine.Rules, hints: mine.Hints | None = None, **row: object) -> tuple[list[str], list[str], Counts]:
    """Return the negatives of `q`, their origins, and the unit's counts."""
    rows = rows_of(*({"query": q, "positive": p, **(row if q == "q" else {})} for q, p in PAIRS))
    extra = {str(text): circle(90 + place) for place, text in enumerate(row.get("negatives", []))}  # type: ignore[arg-type]
    pairs, counts = mined_pairs(rows, VECTORS | extra, rules=rules, hints=hints)
    found = next(r for r in pairs.to_pylist() if r["query"] == "q")
    return found["negatives"], found["negative_origins"], counts


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({}, ["d5", "d25"]),
        ({"skip_top": 1}, ["d25", "d40"]),
        ({"max_score": 0.95}, ["d25", "d40"]),
        ({"min_score": 0.95}, ["d5"]),
        ({"absolute_margin": 0.1}, ["d40", "d60"]),
        ({"relative_margin": 0.05}, ["d40", "d60"]),
        ({"relative_margin": 0.0}, ["d25", "d40"]),
    ],
    ids=str,
)
def test_thresholds_compare_cosines_of_query_and_document(choice: dict[str, object], expected: list[str]) -> None:
    """The positive scores 0.940; 0.05 of it below is 0.893 (d25 has 0.906), 0.1 below is 0.840 (d40 has 0.766)."""
    negatives, origins, _ = of_q(replace(PAPER, negatives=2, **choice))  # type: ignore[arg-type]
    assert negatives == expected and set(origins) == {"mined"}


def test_a_margin_is_measured_from_the_lowest_positive_of_the_query() -> None:
    pairs = [*PAIRS, ("q", "d60"), ("far5", "d70")]
    rows = rows_of(*({"query": q, "positive": p} for q, p in pairs if (q, p) != ("far4", "d60")))
    vectors = VECTORS | {"far5": circle(200), "d70": circle(70)}
    found, _ = mined_pairs(rows, vectors, rules=replace(PAPER, negatives=4, relative_margin=0.05))
    # cos(60) = 0.5 is the lowest positive of q, so d40 may stand in neither of its rows; d70 (0.342) may.
    assert [r["negatives"] for r in found.to_pylist() if r["query"] == "q"] == [["d70"], ["d70"]]


def test_given_negatives_come_first_and_mined_ones_fill_up() -> None:
    rules = replace(PAPER, negatives=4)
    negatives, origins, counts = of_q(rules, negatives=["n1", "n2"])
    assert negatives == ["n1", "n2", "d5", "d25"] and origins == ["given", "given", "mined", "mined"]
    assert counts.facts["given"] == {"listed": 2, "chosen": 2, "dropped": {}}
    # In `paper` a row with a given negative gets no other.
    assert of_q(PAPER, negatives=["n1", "n2"])[0] == ["n1", "n2"]


def test_a_document_that_is_given_is_not_mined_again() -> None:
    negatives, origins, _ = of_q(replace(PAPER, negatives=3), negatives=["D5"])
    assert negatives == ["D5", "d25", "d40"] and origins == ["given", "mined", "mined"]


def test_fifteen_wanted_and_none_found_says_how_many_are_missing() -> None:
    """C35: "1 query short (15 negatives missing)"."""
    rows = rows_of({"query": "a", "positive": "b"})
    _, counts = mined_pairs(rows, random_vectors(["a", "b"]), rules=replace(PAPER, negatives=15))
    assert (counts.facts["queries_short"], counts.facts["negatives_missing"]) == (1, 15)


@pytest.mark.parametrize("fill", ["other_rows", "random"])
def test_filling_up_takes_other_documents_but_no_positive_and_none_above_a_limit(fill: str) -> None:
    rules = replace(PAPER, negatives=4, max_score=0.8, skip_top=0, window=4, fill=fill)
    negatives, origins, counts = of_q(rules)
    assert negatives == ["d40", "d60"] and origins == ["mined", "mined"]  # d5 and d25 are too near, whoever asks
    wide = replace(PAPER, negatives=2, window=2, min_score=0.95, fill=fill)
    negatives, origins, counts = of_q(wide)
    assert negatives[0] == "d5" and negatives[1] in {"d25", "d40", "d60"} and origins == ["mined", "random"]
    drawn = counts.facts["draws"]
    assert isinstance(drawn, dict) and drawn["listed"] == drawn["chosen"] + sum(drawn["dropped"].values())


def test_random_filling_may_take_a_given_negative_of_another_row_and_other_rows_may_not() -> None:
    rows = rows_of({"query": "q", "positive": "p"}, {"query": "r", "positive": "p", "negatives": ["n"]})
    vectors = {"q": (1, 0), "r": (0, 1), "p": (1, 1), "n": (0, 1)}
    for fill, expected in (("other_rows", []), ("random", ["n"])):
        found, _ = mined_pairs(rows, vectors, rules=replace(PAPER, fill=fill))
        assert next(r for r in found.to_pylist() if r["query"] == "q")["negatives"] == expected


def test_a_near_duplicate_of_a_positive_or_of_a_chosen_negative_is_no_negative() -> None:
    rows = rows_of(*({"query": q, "positive": p} for q, p in PAIRS))
    texts = texts_of(rows, VECTORS)
    near = np.arange(len(texts.class_of))
    near[texts.number_of["d5"]] = near[texts.number_of["p"]]
    near[texts.number_of["d40"]] = near[texts.number_of["d25"]]
    rules = replace(PAPER, negatives=3, collapse_near_duplicates=True)
    negatives, _, counts = of_q(rules, mine.Hints(near=near))
    assert negatives == ["d25", "d60"]
    account = counts.facts["candidates"]
    assert isinstance(account, dict) and account["dropped"]["near_duplicate"] >= 1


def test_s_neg_takes_the_document_whose_query_is_like_and_whose_text_is_unlike() -> None:
    """Row 2 has the nearer document, row 3 the nearer query and a document far away: cos(q, q') - cos(d, d')."""
    rows = rows_of({"query": "q", "positive": "p"}, {"query": "r", "positive": "s"}, {"query": "t", "positive": "u"})
    vectors = {"q": (1, 0, 0), "p": (0, 1, 0), "r": (0.5, 0, 1), "s": (0.9, 0.9, 0), "t": (1, 0.1, 0), "u": (0, 0, 1)}
    for strategy, expected in (("passage", "s"), ("s_neg", "u")):
        pairs, _ = mined_pairs(rows, vectors, rules=replace(PAPER, strategy=strategy))
        found = next(r for r in pairs.to_pylist() if r["query"] == "q")
        assert found["negatives"] == [expected]
        left, right = (np.array(vectors[text]) for text in ("q", expected))
        cosine = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
        assert found["negative_scores"] == pytest.approx([cosine], abs=1e-6)


def test_rescored_candidates_stand_in_the_cross_encoder_s_order_and_margins_are_its_scores() -> None:
    from medi.mine.rescoring import rescore

    rows = rows_of(*({"query": q, "positive": p} for q, p in PAIRS))
    texts, rules = texts_of(rows, VECTORS), replace(PAPER, negatives=2, window=3, rescore={"name": "toy"})
    scores = {"p": 0.5, "d5": 0.6, "d25": 0.1, "d40": 0.3, "d60": 0.4}
    candidates, _ = mine.pair_candidates(rows, texts, RULES, "passage", mine.Search())
    asked: list[tuple[str, str]] = []

    def score(pairs: object) -> np.ndarray:
        asked.extend(pairs)  # type: ignore[arg-type]
        return np.array([scores[document] for _, document in pairs], dtype=np.float32)  # type: ignore[attr-defined]

    rescored, counts = rescore("pair", rows, texts, candidates, (rules, RULES), score)
    assert len(asked) == counts.facts["pairs_scored"] == 5 * 4 and ("q", "d60") not in asked
    hints = mine.Hints(rescored=rescored)
    assert of_q(rules, hints)[0] == ["d5", "d40"]
    assert of_q(replace(rules, absolute_margin=0.1), hints)[0] == ["d40", "d25"]


def test_clean_text_task_passes_over_copies_and_equal_outputs_and_keeps_the_margin() -> None:
    """`copy` has cosine 0.996 with the anchor `a`; `same` has its output."""
    examples = [
        ("a", "y0", 0, 0), ("copy", "y1", 5, 2), ("pos", "y2", 15, 5), ("same", "y0", 30, 0), ("near", "y4", 29, 1),
        ("neg", "y5", 60, 90),
    ]  # fmt: skip
    rows = rows_of(*({"query": q, "output": y} for q, y, _, _ in examples))
    vectors = {q: circle(x) for q, _, x, _ in examples} | {y: circle(at) for _, y, _, at in examples}
    found = {r["query"]: r for r in mined_task("text", rows, vectors, rules=CLEAN)[0].to_pylist()}
    paper = {r["query"]: r for r in mined_task("text", rows, vectors)[0].to_pylist()}
    assert paper["a"]["positive"] == "copy" and found["a"]["positive"] == "pos"
    # Half of s_pos: the positive has 0.981, `near` 0.937, above 0.95 of that, and `neg` 0.25.
    assert found["a"]["negatives"] == ["neg"] and found["a"]["negative_origins"] == ["mined"]


def test_label_tasks_have_no_margin_and_up_to_four_negatives_in_clean() -> None:
    inputs = [("a", "l", 0), ("b", "l", 40), *((f"m{i}", "m", 1 + i) for i in range(6))]
    rows = rows_of(*({"query": q, "label": label} for q, label, _ in inputs))
    pairs, counts = mined_task("label", rows, {q: circle(x) for q, _, x in inputs}, rules=CLEAN)
    found = {r["query"]: r for r in pairs.to_pylist()}
    assert (found["a"]["positive"], found["a"]["negatives"]) == ("b", ["m0", "m1", "m2", "m3"])
    assert found["a"]["negative_labels"] == ["m"] * 4
    assert "relative_margin" not in counts.facts["candidates"]["dropped"]  # type: ignore[index]


def test_filling_up_in_a_label_task_takes_other_labels_only() -> None:
    inputs = [(f"x{i}", "l" if i < 30 else "m", i * 2.0) for i in range(60)]
    rows = rows_of(*({"query": q, "label": label} for q, label, _ in inputs))
    rules = replace(PAPER, negatives=8, window=8, max_score=0.5, fill="random")
    pairs, _ = mined_task("label", rows, {q: circle(x) for q, _, x in inputs}, rules=rules)
    for row in pairs.to_pylist():
        assert set(row["negative_labels"]) <= {"l", "m"} - {row["label"]}
        assert max(row["negative_scores"], default=0) <= 0.5 + 1e-6
    assert Counter(o for r in pairs.to_pylist() for o in r["negative_origins"])["random"] > 100


def _many_rows(rng: np.random.Generator, kind: str) -> pa.Table:
    """Return rows with repeated queries, repeated documents, other positives and given negatives, or examples."""
    if kind != "pair":
        # The first twenty are ten texts to the encoder.
        texts = [f"x{i // 2 if i < 20 else i} {'A' if i % 2 else 'a'}" for i in range(40)]
        return rows_of(*({"query": t, "label": f"l{rng.integers(3)}", "output": f"y{rng.integers(25)}"} for t in texts))
    names = [f"d{i}" for i in range(25)] + [f"D{i}" for i in range(5)]
    rows = {(f"q{rng.integers(20)}", str(rng.choice(names))): None for _ in range(50)}
    return rows_of(
        *(
            {
                "query": q, "positive": p, "other_positives": rng.choice(names, 2).tolist(),
                "negatives": rng.choice([*names, q], rng.integers(0, 6)).tolist(),
            }
            for q, p in rows
        )
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["pair", "label", "text"]))
def test_the_invariant_and_the_account_hold_whatever_is_chosen(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    rows = _many_rows(rng, kind)
    rules = replace(
        PAPER, negatives=int(rng.integers(1, 9)), given_negatives=int(rng.integers(1, 5)),
        strategy=str(rng.choice(["passage", "s_neg"])), skip_top=int(rng.integers(0, 3)),
        window=int(rng.integers(12, 64)), sampling=str(rng.choice(["top", "random"])),
        fill=str(rng.choice(["none", "other_rows", "random"])), bar_equal_outputs=bool(rng.integers(2)),
        max_score=float(rng.choice([0.4, 1])), relative_margin=float(rng.choice([0, 0.5])), seed=seed % 97,
        balanced=bool(rng.integers(2)), max_positive_score=float(rng.choice([0.5, 2])),
    )  # fmt: skip
    columns = ("query", "positive", "output")
    texts = {t for c in columns for t in rows[c].to_pylist() if t} | {
        t for c in ("negatives", "other_positives") for listed in rows[c].to_pylist() for t in listed
    }
    vectors = random_vectors(sorted({t.lower() for t in texts}), 6)
    vectors = {t: vectors[t.lower()] for t in texts}
    relation = mine.PairRules(bool(rng.integers(2)), bool(rng.integers(2)), rules.given_negatives)
    if kind == "pair":
        pairs, counts = mined_pairs(rows, vectors, relation, rules)
    else:
        pairs, counts = mined_task(kind, rows, vectors, rules)
    _check_invariant(rows, pairs, kind, relation)
    _check_account(pairs, counts, rules)


def _check_invariant(rows: pa.Table, pairs: pa.Table, kind: str, relation: mine.PairRules) -> None:
    """Say it again in plain Python, with the encoder's eye: here it does not see case."""
    positives: dict[str, set[str]] = {}
    for row in (rows if kind == "pair" else pairs).to_pylist():
        for other in (row["positive"], *row.get("other_positives", ())):
            positives.setdefault(row["query"].lower(), set()).add(other.lower())
            if kind != "pair" or relation.symmetric or relation.clusters:
                positives.setdefault(other.lower(), set()).add(row["query"].lower())
    if kind == "pair" and relation.clusters:
        for text in positives:
            seen, todo = {text}, [text]
            while todo:
                new = positives.get(todo.pop(), set()) - seen
                seen |= new
                todo += new
            positives[text] = seen
    for row in pairs.to_pylist():
        query, negatives = row["query"].lower(), [n.lower() for n in row["negatives"]]
        assert row["positive"].lower() != query
        assert not {query, row["positive"].lower(), *positives.get(query, ())} & set(negatives), row
        assert len(set(negatives)) == len(negatives)
        assert kind != "label" or row["label"] not in row["negative_labels"]
        mined = [s for s, o in zip(row["negative_scores"], row["negative_origins"], strict=True) if o == "mined"]
        assert kind == "pair" or all(a >= b for a, b in pairwise(mined))


def _check_account(pairs: pa.Table, counts: Counts, rules: mine.Rules) -> None:
    """Every sum of the account is met, and agrees with the rows."""
    origins = Counter(o for r in pairs["negative_origins"].to_pylist() for o in r)
    assert counts.facts["negatives"] == dict(origins)
    for name, origin in (("given", "given"), ("candidates", "mined"), ("draws", "random")):
        part = counts.facts.get(name, {"listed": 0, "chosen": 0, "dropped": {}})
        assert isinstance(part, dict)
        assert part["listed"] == part["chosen"] + sum(part["dropped"].values())
        assert part["chosen"] == origins[origin]
    missing = [rules.negatives - len(n) for n in pairs["negatives"].to_pylist()]
    assert counts.facts["queries_short"] == sum(m > 0 for m in missing)
    assert counts.facts["negatives_missing"] == sum(m for m in missing if m > 0)
