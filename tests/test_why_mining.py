"""What became of each candidate of one row, worked out by hand on a circle, and equal to what mining chose."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from medi import mine
from medi.mine.rescoring import rescore
from medi.mine.why import Choice, Judged, why_pair, why_task
from tests.mining import PAPER, RULES, Vectors, mined_pairs, mined_task, random_vectors, rows_of, texts_of


def circle(degrees: float) -> tuple[float, float]:
    """Return the vector at this angle; the cosine of two is that of their difference."""
    return float(np.cos(np.radians(degrees))), float(np.sin(np.radians(degrees)))


# One query at 0, its positive at 20 (cosine 0.940); documents of others at 5, 25, 40 and 60 (0.996, 0.906, 0.766, 0.5).
PAIRS = [("q", "p"), ("far1", "d5"), ("far2", "d25"), ("far3", "d40"), ("far4", "d60")]
ANGLES = {"q": 0, "p": 20, "d5": 5, "d25": 25, "d40": 40, "d60": 60, "far1": 180, "far2": 181, "far3": 182, "far4": 183}
VECTORS = {text: circle(angle) for text, angle in ANGLES.items()}


def pair_choice(
    rows: pa.Table, vectors: Vectors, number: int, rules: mine.Rules, given: mine.PairRules = RULES
) -> Choice:
    """Return what became of the candidates of one row of an embedding set."""
    texts = texts_of(rows, vectors, rules=given)
    candidates, _ = mine.pair_candidates(rows, texts, given, rules.strategy, mine.Search())
    return why_pair(number, rows, texts, candidates, given, (rules, mine.Hints()))


def of_q(rules: mine.Rules, **row: object) -> Choice:
    """Return what became of the candidates of `q`."""
    rows = rows_of(*({"query": q, "positive": p, **(row if q == "q" else {})} for q, p in PAIRS))
    extra = {str(t): circle(90 + n) for n, t in enumerate(row.get("negatives", []))}  # type: ignore[arg-type]
    return pair_choice(rows, VECTORS | extra, rows["query"].to_pylist().index("q"), rules)


def fates(judged: list[Judged]) -> dict[str, str]:
    """Return text -> what became of it, in the order of the list."""
    return {one.text: one.fate for one in judged}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, ["chosen", "not_needed", "not_needed", "not_needed"]),
        ({"skip_top": 1, "window": 3}, ["skip_top", "chosen", "not_needed", "beyond_window"]),
        ({"max_score": 0.95, "min_score": 0.6}, ["above_max_score", "chosen", "not_needed", "below_min_score"]),
        ({"absolute_margin": 0.1}, ["absolute_margin", "absolute_margin", "chosen", "not_needed"]),
        ({"relative_margin": 0.0, "negatives": 2}, ["relative_margin", "chosen", "chosen", "not_needed"]),
    ],
)
def test_the_first_rule_that_struck_a_candidate_out_is_named(rules: dict[str, object], expected: list[str]) -> None:
    choice = of_q(replace(PAPER, **rules))  # type: ignore[arg-type]
    assert fates(choice.candidates) == dict(zip(("d5", "d25", "d40", "d60"), expected, strict=True))
    assert [round(one.score or 0, 3) for one in choice.candidates] == [0.996, 0.906, 0.766, 0.5]
    # Only where a threshold asks for it is a score compared, and by `passage` it is the list's own.
    assert [one.compared for one in choice.candidates] == [
        one.score if set(rules) - {"skip_top", "window", "negatives"} else None for one in choice.candidates
    ]
    assert choice.lowest == pytest.approx(0.9397, abs=1e-4) and choice.known == 1


def test_of_given_negatives_each_is_told_why_it_may_not_stand() -> None:
    choice = of_q(PAPER, negatives=["n1", "p", " n1", "q", "n2", "N2", "n3", "n4", "n5"])
    assert [one.fate for one in choice.given] == [
        "chosen", "known_positive", "repeated", "known_positive", "chosen", "repeated", "chosen", "chosen",
        "not_needed",
    ]  # fmt: skip
    # With enough of them, no candidate is looked at.
    assert set(fates(choice.candidates).values()) == {"not_needed"}


def test_filling_up_is_counted() -> None:
    """Two of the four candidates pass the limit; of the five documents that are drawn, four are out."""
    choice = of_q(replace(PAPER, negatives=4, window=4, max_score=0.8, fill="other_rows"))
    assert fates(choice.candidates) == {
        "d5": "above_max_score", "d25": "above_max_score", "d40": "chosen", "d60": "chosen",
    }  # fmt: skip
    assert choice.draws == {"chosen": 0, "known_positive": 1, "repeated": 4}


def test_a_super_ni_row_has_its_positives_too() -> None:
    labels: dict[str, object] = {"a": "y", "b": "y", "c": "y", "d": "n"}
    rows = rows_of(*({"query": text, "output": label, "label": label} for text, label in labels.items()))
    vectors = {"a": circle(0), "b": circle(5), "c": circle(30), "d": circle(50)}
    rules = replace(PAPER, max_positive_score=0.98)
    texts = texts_of(rows, vectors, "label")
    candidates, _ = mine.label_candidates(rows, texts, mine.Search())
    number = rows["query"].to_pylist().index("a")
    choice = why_task("label", number, rows, texts, candidates, (rules, mine.Hints()))
    assert fates(choice.positives) == {"b": "max_positive_score", "c": "chosen"}
    assert [(one.fate, one.text, one.label, one.row) for one in choice.candidates] == [
        ("chosen", "d", "n", rows["id"][rows["query"].to_pylist().index("d")].as_py())
    ]
    assert choice.lowest is None and choice.given == [] and choice.draws == {}


CHOICES = [
    PAPER,
    mine.PROFILES["clean"],
    replace(PAPER, negatives=3, sampling="random", window=10, skip_top=1),
    replace(PAPER, negatives=3, strategy="s_neg", absolute_margin=0.2),
    replace(PAPER, negatives=6, window=6, max_score=0.3, fill="random"),
]


@pytest.mark.parametrize("rules", CHOICES, ids=range(len(CHOICES)))
def test_what_is_told_is_what_mining_chose(rules: mine.Rules) -> None:
    """Twenty pairs with random vectors, some with given negatives: of every row the chosen are its negatives."""
    rows = rows_of(
        *(
            {"query": f"q{n % 15}", "positive": f"p{n}", "negatives": [f"n{n}", f"p{n}", f"p{n + 1}"] * (n % 3 == 0)}
            for n in range(20)
        )
    )
    vectors = random_vectors([f"{kind}{n}" for kind in "qpn" for n in range(21)])
    rules = replace(rules, collapse_near_duplicates=False)
    given = replace(RULES, given=rules.given_negatives)
    pairs, _ = mined_pairs(rows, vectors, given, rules)
    for number, pair in enumerate(pairs.to_pylist()):
        choice = pair_choice(rows, vectors, number, rules, given)
        kept = [one.text for one in (*choice.given, *choice.candidates) if one.fate == "chosen"]
        assert kept == [t for t, o in zip(pair["negatives"], pair["negative_origins"], strict=True) if o != "random"]
        assert choice.draws.get("chosen", 0) == pair["negative_origins"].count("random")


@pytest.mark.parametrize("rules", [PAPER, mine.PROFILES["clean"]], ids=("paper", "clean"))
@pytest.mark.parametrize("kind", ["label", "text"])
def test_what_is_told_of_a_task_is_what_mining_chose(kind: str, rules: mine.Rules) -> None:
    rows = rows_of(
        *(
            {"query": f"q{n}", "output": f"o{n % 3}", "label": f"o{n % 3}" if kind == "label" else None}
            for n in range(20)
        )
    )
    vectors = random_vectors([f"{k}{n}" for k in "qo" for n in range(20)])
    pairs, _ = mined_task(kind, rows, vectors, rules)
    texts = texts_of(rows, vectors, kind)
    candidates = (mine.label_candidates if kind == "label" else mine.text_candidates)(rows, texts, mine.Search())[0]
    numbers = {name: number for number, name in enumerate(rows["id"].to_pylist())}
    assert len(pairs) == 20
    for pair in pairs.to_pylist():
        choice = why_task(kind, numbers[pair["id"]], rows, texts, candidates, (rules, mine.Hints()))
        assert [one.text for one in choice.positives if one.fate == "chosen"] == [pair["positive"]]
        assert [one.text for one in choice.candidates if one.fate == "chosen"] == pair["negatives"]
        scores = [one.score for one in choice.candidates if one.fate == "chosen"]
        assert scores == pytest.approx(pair["negative_scores"], abs=1e-6)


def test_near_duplicates_and_a_cross_encoder_are_told_too() -> None:
    """d5 nearly repeats the positive; the cross-encoder turns the others' order round, and d60 scores too high."""
    rows = rows_of(*({"query": q, "positive": p} for q, p in PAIRS))
    toy: dict[str, object] = {"name": "toy"}
    rules = replace(PAPER, negatives=1, max_score=2.5, rescore=toy, collapse_near_duplicates=True)
    texts = texts_of(rows, VECTORS)
    candidates, _ = mine.pair_candidates(rows, texts, RULES, "passage", mine.Search())
    of_text = {"p": 9.0, "d5": 0.0, "d25": 1.0, "d40": 2.0, "d60": 3.0}

    def score(asked: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return the scores of the toy."""
        return np.array([of_text.get(text, -1.0) for _, text in asked], dtype=np.float32)

    rescored, _ = rescore("pair", rows, texts, candidates, (rules, RULES), score)
    number = rows["query"].to_pylist().index("q")
    near = texts.class_of.copy()
    near[texts.number_of["d5"]] = near[texts.number_of["p"]]
    choice = why_pair(number, rows, texts, candidates, RULES, (rules, mine.Hints(near, rescored)))
    assert [(one.text, one.fate, one.compared) for one in choice.candidates] == [
        ("d5", "near_duplicate", 0.0), ("d25", "not_needed", 1.0), ("d40", "chosen", 2.0),
        ("d60", "above_max_score", 3.0),
    ]  # fmt: skip
    assert choice.lowest == 9.0
