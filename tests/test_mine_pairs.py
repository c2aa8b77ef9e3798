"""Mining of the embedding sets: known positives never become negatives, given ones come first, gaps are counted."""

import numpy as np
import pyarrow as pa
import pytest

from medi import mine
from medi.mine.texts import known_positives
from tests.mining import RULES, mined_pairs, random_vectors, rows_of, texts_of, tokens_of


def negatives_of(
    rows: pa.Table, vectors: dict[str, tuple[float, ...]], rules: mine.PairRules = RULES
) -> dict[str, list[str]]:
    """Return the negatives by (query>positive)."""
    pairs, _ = mined_pairs(rows, vectors, rules)
    return {f"{row['query']}>{row['positive']}": row["negatives"] for row in pairs.to_pylist()}


def test_a_repeated_query_never_gets_its_other_positive() -> None:
    """C14, its vectors and its answer."""
    rows = rows_of(
        {"query": "q1", "positive": "p1"}, {"query": "q1", "positive": "p1b"}, {"query": "q2", "positive": "p2"}
    )
    vectors = {"q1": (1, 0.1, 0), "q2": (0, 1, 0), "p1": (1, 0, 0), "p1b": (0.9, 0.1, 0), "p2": (0, 1, 0.2)}
    assert negatives_of(rows, vectors) == {"q1>p1": ["p2"], "q1>p1b": ["p2"], "q2>p2": ["p1b"]}


def test_other_positives_of_the_pool_are_known_positives() -> None:
    rows = rows_of(
        {"query": "q1", "positive": "p1", "other_positives": ["p2"]},
        {"query": "q2", "positive": "p2"},
        {"query": "q3", "positive": "p3"},
    )
    vectors = {"q1": (1, 0), "p1": (1, 0), "q2": (0, 1), "p2": (1, 0.1), "q3": (0, 1), "p3": (0, 1)}
    assert negatives_of(rows, vectors)["q1>p1"] == ["p3"]


def test_given_negatives_pass_by_fold_and_by_the_encoder() -> None:
    """C13 and C41: a given negative that is the positive, folded or cased otherwise, or the query, is left out."""
    positive = "Lume is the capital of Arvania."
    given = [
        positive,
        "Lume  is the capital\nof Arvania. ",
        "LUME is the capital of Arvania.",
        "which city?",
        "Port Sel.",
        "Port  Sel.",
    ]
    rows = rows_of({"query": "Which city?", "positive": positive, "negatives": given})
    vectors = random_vectors(["Which city?", *given])
    pairs, counts = mined_pairs(rows, vectors)
    assert pairs["negatives"].to_pylist() == [["Port Sel."]]
    assert pairs["negative_origins"].to_pylist() == [["given"]]
    assert counts.facts["given"] == {"listed": 6, "chosen": 1, "dropped": {"known_positive": 4, "repeated": 1}}


def test_at_most_four_given_in_file_order_and_none_mined_beside_them() -> None:
    given = [f"n{i}" for i in (5, 3, 4, 1, 2)]
    rows = rows_of({"query": "q", "positive": "p", "negatives": given}, {"query": "r", "positive": "s"})
    found = negatives_of(rows, random_vectors(["q", "p", "r", "s", *given]))
    assert found == {"q>p": ["n5", "n3", "n4", "n1"], "r>s": ["p"]}


@pytest.mark.parametrize(
    ("symmetric", "clusters", "expected"),
    [(False, False, "b"), (True, False, "a"), (True, True, "e")],
    ids=["asymmetric", "symmetric", "clusters"],
)
def test_known_positives_are_symmetric_and_transitive_only_where_declared(
    symmetric: bool, clusters: bool, expected: str
) -> None:
    """Rows b>d and a>b: b is a known positive of d only where the relation is symmetric, a only where transitive."""
    chain = (("b", "d"), ("a", "b"), ("x", "a"), ("d", "c"), ("y", "e"))
    rows = rows_of(*({"query": q, "positive": p} for q, p in chain))
    near = {"d": (1, 0.2, 0), "b": (1, 0.18, 0), "a": (1, 0.1, 0), "c": (1, 0.3, 0)}
    far = {"e": (0, 1, 0), "x": (0, 0, 1), "y": (0, 0, 1)}
    found = negatives_of(rows, near | far, mine.PairRules(symmetric, clusters))
    assert found["d>c"] == [expected]


def test_no_query_mines_itself_from_symmetric_pairs() -> None:
    """sentence-transformers' own miner took the anchor's own text in 120 of 120 such rows."""
    sentences = [f"sentence {i}" for i in range(120)]
    rows = rows_of(*({"query": s, "positive": sentences[(i + 1) % 120]} for i, s in enumerate(sentences)))
    found = negatives_of(rows, random_vectors(sentences), mine.PairRules(True, False))
    for pair, negatives in found.items():
        number = int(pair.split(">")[0].split()[1])
        near = {sentences[number], sentences[(number + 1) % 120], sentences[(number - 1) % 120]}
        assert len(negatives) == 1 and not near & set(negatives)


def test_a_positive_that_is_the_query_to_the_encoder_is_dropped_and_counted() -> None:
    rows = rows_of({"query": "The film was great", "positive": "the film  was GREAT"}, {"query": "a", "positive": "b"})
    vectors = random_vectors(["The film was great", "the film  was GREAT", "a", "b"])
    pairs, counts = mined_pairs(rows, vectors)
    assert pairs["query"].to_pylist() == ["a"] and dict(counts.dropped) == {"identity_to_encoder": 1}


def test_a_query_without_a_candidate_is_kept_and_counted_as_short() -> None:
    """C35."""
    rows = rows_of({"query": "only", "positive": "one"})
    pairs, counts = mined_pairs(rows, random_vectors(["only", "one"]))
    assert pairs["negatives"].to_pylist() == [[]] and pairs["negative_scores"].to_pylist() == [[]]
    assert (counts.facts["queries_short"], counts.facts["negatives_missing"]) == (1, 1)


def test_one_query_with_a_thousand_positives() -> None:
    positives = [f"p{i}" for i in range(1_000)]
    rows = rows_of(*({"query": "q", "positive": p} for p in positives), {"query": "r", "positive": "s"})
    found = negatives_of(rows, random_vectors(["q", "r", "s", *positives]))
    assert {tuple(n) for pair, n in found.items() if pair.startswith("q>")} == {("s",)}


def test_audit_lists_every_known_positive_by_folded_text_id() -> None:
    from medi.schema import text_id

    rows = rows_of({"query": "q  one", "positive": "p", "other_positives": ["o", "p "]})
    pairs, _ = mined_pairs(rows, random_vectors(["q  one", "p", "o", "p "]))
    table = mine.audit("toy", rows, pairs, texts_of(rows, random_vectors(["q  one", "p", "o", "p "])))
    expected = {(text_id("q one"), text_id("p")), (text_id("q one"), text_id("o"))}
    assert {(r["query"], r["positive"]) for r in table.to_pylist()} == expected and len(table) == 2


def test_a_good_given_negative_behind_any_number_of_known_positives_is_kept() -> None:
    """Nine rows of one query, each with the others' positives in front of the one that may stand."""
    positives = [f"p{i}" for i in range(9)]
    given = [*positives, "good"]
    rows = rows_of(*({"query": "q", "positive": p, "negatives": given} for p in positives))
    pairs, counts = mined_pairs(rows, random_vectors(["q", *given]))
    assert pairs["negatives"].to_pylist() == [["good"]] * 9
    assert set(map(tuple, pairs["negative_origins"].to_pylist())) == {("given",)}
    assert counts.facts["given"] == {"listed": 90, "chosen": 9, "dropped": {"known_positive": 81}}


def test_only_the_chosen_given_negatives_are_encoded() -> None:
    given = ["P", "n1", "n2", "n3", "n4", "n5", "n6"]
    rows = rows_of({"query": "q", "positive": "p", "negatives": given})
    known = mine.texts_to_tokenize(rows, "pair", RULES)
    assert mine.texts_to_encode(rows, "pair", RULES, tokens_of(known)) == ["n1", "n2", "n3", "n4", "p", "q"]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_what_a_query_must_never_get_is_what_the_rows_say(seed: int, symmetric: bool) -> None:
    """Against sets of texts; a letter in either case is one text to this encoder."""
    random = np.random.default_rng(seed)
    letters = [*"abcdefgh", *"ABCDEFGH"]
    drawn = [[letters[place] for place in random.integers(0, 16, 2 + random.integers(3))] for _ in range(12)]
    rows = rows_of(*({"query": q, "positive": p, "other_positives": others} for q, p, *others in drawn))
    never = {letter: {letter} for letter in "abcdefgh"}
    for query, *positives in drawn:
        for positive in positives:
            never[query.lower()].add(positive.lower())
            if symmetric:
                never[positive.lower()].add(query.lower())
    texts = mine.Texts.of(letters, tokens_of(letters))
    known = known_positives(rows, texts, mine.PairRules(symmetric, False))
    asked, documents = (list(map(str, random.choice(letters, count))) for count in (30, 50))
    expected = [[n for n, document in enumerate(documents) if document.lower() in never[q.lower()]] for q in asked]
    found = known.among(texts.classes(asked), texts.classes(documents))
    pieces = np.split(found.items, found.starts[1:-1])
    assert [sorted(piece.tolist()) for piece in pieces] == expected
    held = known.hold(np.repeat(texts.classes(asked), 50), np.tile(texts.classes(documents), 30))
    assert [np.flatnonzero(row).tolist() for row in held.reshape(30, 50)] == expected
