"""The pool: which rows a quota gets, in which order, and that it depends on the lines alone."""

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.errors import MediError, UsageError
from medi.fetch.raw import find_raw
from medi.ingest import IngestParams, ingest, pool_rows
from medi.ingest.draw import Draw, draw, rank_of
from medi.read import raw_batches, wanted_pages
from medi.schema import ROWS, fold, is_visible, row_id
from medi.sources import ALL, by_name
from tests.raw_lines import batches, json_lines, pool

PAIRS = [[f"question {i}", f"answer {i % 40}"] for i in range(200)]


def without_origin(rows: list[dict]) -> list[dict]:
    return [{key: value for key, value in row.items() if key != "origin"} for row in rows]


def test_a_fold_is_that_of_all_white_space() -> None:
    every = "".join(map(chr, range(0x110000)))
    assert sum(map(str.isspace, every)) == 29
    for blank in filter(str.isspace, every):
        assert [fold(text) for text in (f"a{blank}b", f"{blank}a b", f"a b{blank}")] == ["a b"] * 3
    assert [fold(text) for text in ("a  b", "", "a\u200bb", "a b")] == ["a b", "", "a\u200bb", "a b"]
    assert all(fold(f"{sign}b") == f"{sign}b" for sign in every if not sign.isspace())


def test_a_pool_is_1_2_times_the_quota_of_the_lowest_ranks() -> None:
    rows, counts = pool(PAIRS, IngestParams(20, seed=3))
    by_rank = sorted(json_lines(PAIRS), key=lambda line: rank_of(line, 3))
    expected = {line.decode().split('"')[1] for line in by_rank[:24]}
    assert {row["query"] for row in rows} == expected
    assert [row["id"] for row in rows] == sorted(
        row_id("gooaq_pairs", "gooaq_pairs", r["query"], r["positive"]) for r in rows
    )
    assert (counts.rows_in, counts.rows_out, counts.facts) == (24, 24, {"lines_read": 200, "lines_drawn": 24})


def test_a_row_is_what_its_line_says() -> None:
    source = by_name("gooaq_pairs")
    line = '["Wer  baut é?","Ada\\nKreis"]'.encode()
    table, _ = ingest(IngestParams(1), source, source.variants[0], lambda: batches({"a/b.jsonl.gz": [line]}))
    assert table.schema == ROWS
    assert table.to_pylist() == [
        {
            "id": row_id("gooaq_pairs", "gooaq_pairs", "Wer  baut é?", "Ada\nKreis"),
            "task": "gooaq_pairs",
            "query": "Wer  baut é?",
            "positive": "Ada\nKreis",
            "output": None,
            "label": None,
            "references": [],
            "other_positives": [],
            "negatives": [],
            "origin": "a/b.jsonl.gz:1",
            "rank": xxhash.xxh3_64_intdigest(line, 0),
        }
    ]


REAL = {
    "gooaq_pairs": (3, 3),
    "yahoo_answers_title_answer": (4, 4),
    "eli5_question_answer": (10, 10),
    "squad_pairs": (1_454, 1_454),
    "NQ": (5, 5),
    "amazon-qa": (4_000, 4_000),
    "WikiAnswers": (1_788, 1_788),
    "agnews": (4_000, 4_000),
    "AllNLI": (1_777, 1_776),
    "triviaqa": (3, 3),
    "zero_shot_re": (5, 0),
    "flickr30k_captions": (3_014, 3_014),
    "xsum": (800, 800),
    "code_search": (1_285, 1_285),
    "msmarco": (17, 17),
    "hotpotqa": (100, 100),
    "fever": (5, 0),
    "amazon_review_2018": (4_000, 3_992),
    "S2ORC_title_abstract": (691, 691),
    "wow": (5, 0),
    "trex": (5, 0),
    "pubmed": (1_000, 1_000),
    "wikihow": (1, 1),
    "simple_wiki": (2_359, 2_359),
}


def test_the_real_files_give_what_they_hold(shared_raw: Path) -> None:
    rows = {}
    for source in ALL[:-1]:
        found = find_raw(shared_raw, source)
        if found is None:
            continue
        files = [(file.path, file.name) for file in found.files]
        keyed = any(file.keyed for file in found.variant.files)
        pages = [(file.path, file.name) for file in found.pages]
        table, counts = ingest(
            IngestParams(source.quota_rows),
            source,
            found.variant,
            lambda files=files, keyed=keyed: raw_batches(files, keyed),  # type: ignore[misc]
            lambda wanted, pages=pages: wanted_pages(pages, wanted),  # type: ignore[misc]
        )
        assert len(table) == counts.rows_out
        assert all(map(is_visible, [*table["query"].to_pylist(), *table["positive"].to_pylist()]))
        rows[source.name] = counts.rows_in, counts.rows_out
    assert rows == REAL


@pytest.mark.parametrize(("quota", "rows"), [(1, 2), (2, 3), (5, 6), (10, 12), (25_000, 30_000)])
def test_pool_rows_rounds_up(quota: int, rows: int) -> None:
    assert pool_rows(quota) == rows


def test_a_quota_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="a quota of 0 rows gives nothing"):
        pool(PAIRS, IngestParams(0))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.sampled_from([" ", "  ", "\t"])), max_size=80),
    st.data(),
)
@settings(max_examples=40, deadline=None)
def test_order_and_cuts_of_files_do_not_matter(parts: list[tuple[int, int, str]], data: st.DataObject) -> None:
    lines = json_lines([[f"q{space}{q}", f"p {p}"] for q, p, space in parts])
    quota = data.draw(st.integers(1, 12))
    expected, counts = pool({"a": lines}, IngestParams(quota))
    shuffled = data.draw(st.permutations(lines))
    cut = data.draw(st.integers(0, len(lines)))
    rows, again = pool({"b": shuffled[:cut], "c": shuffled[cut:]}, IngestParams(quota))
    assert without_origin(rows) == without_origin(expected)
    assert again.to_json() == counts.to_json()


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 2**63))
@settings(max_examples=40, deadline=None)
def test_a_smaller_quotas_pool_is_a_subset(first: int, second: int, seed: int) -> None:
    small, large = sorted((first, second))
    rows = [[f"q {i % 70}", f"p  {i % 13}" if i % 2 else f"p {i % 13}"] for i in range(150)]
    few, many = (pool(rows, IngestParams(quota, seed=seed))[0] for quota in (small, large))
    assert {row["id"] for row in few} <= {row["id"] for row in many}


def test_another_seed_draws_other_lines() -> None:
    first, second = (pool(PAIRS, IngestParams(20, seed=seed))[0] for seed in (0, 1))
    assert 0 < len({r["id"] for r in first} & {r["id"] for r in second}) < 24


def test_take_first_takes_lines_as_they_stand() -> None:
    rows, counts = pool([["same", "same"], *PAIRS], IngestParams(20, take="first"))
    assert {row["query"] for row in rows} == {f"question {i}" for i in range(24)}
    assert counts.dropped == {"identity_pair": 1}
    assert counts.facts == {"lines_read": 25, "lines_drawn": 25}
    assert pool([["same", "same"], *PAIRS[:30]], IngestParams(20, take="first"))[1].to_json() == counts.to_json()


@pytest.mark.parametrize("take", ["hash", "first"])
def test_files_are_read_again_where_too_few_good_lines_were_drawn(take: str) -> None:
    """Each pass draws on from where the last one ended: together they are one draw of the lines in their order."""
    passes = []

    def read_again() -> object:
        passes.append(1)
        return batches({"a": lines})

    lines = json_lines([*[[f"x{i}", f"x{i}"] for i in range(3_000)], *PAIRS, *PAIRS[:50], *[["", 1]] * 3])
    source, params = by_name("gooaq_pairs"), IngestParams(150, take=take)
    table, counts = ingest(params, source, source.variants[0], read_again)  # type: ignore[arg-type]
    order = sorted(lines, key=rank_of_line) if take == "hash" else lines
    good, seen = {line: None for line in lines if b"question" in line}, set()
    for taken, line in enumerate(order, 1):  # noqa: B007 (how many were looked at is the answer)
        seen |= {line} & good.keys()
        if len(seen) == 180:
            break
    assert len(passes) > 1 and len(table) == 180
    assert {row["query"] for row in table.to_pylist()} == {json.loads(line)[0] for line in seen}
    looked_at = order[:taken] + ([order[taken]] if take == "hash" and order[taken] == order[taken - 1] else [])
    identical, empty = (sum(word in line for line in looked_at) for word in (b"x", b"1]"))
    repeated = len(looked_at) - identical - empty - 180
    expected = {"identity_pair": identical, "empty_text": empty, "duplicate": repeated}
    assert (counts.rows_in, counts.dropped) == (len(looked_at), {k: v for k, v in expected.items() if v})


def rank_of_line(line: bytes) -> int:
    return rank_of(line, 0)


@pytest.mark.parametrize("take", ["hash", "first"])
def test_draws_that_go_on_are_one_draw(take: str) -> None:
    lines = [b"%d" % (i % 700) for i in range(1_000)]
    (whole,) = [draw(batches({"a": lines}), Draw(2_000, take, 3, lambda raw: ""))]
    parts, start = [], 0
    while not parts or not parts[-1].complete:
        parts.append(draw(batches({"a": lines}), Draw(90, take, 3, lambda raw: "", start=start)))
        start = parts[-1].lines[-1].rank + 1 if take == "hash" else start + 90
    assert [line for part in parts for line in part.lines] == whole.lines and len(parts) > 5
    assert sum((part.times for part in parts), Counter()) == whole.times


def test_a_line_that_stands_a_million_times_is_held_once() -> None:
    line = json_lines([["q", "p"]])
    found = draw(batches({"a": line * 5_000}, 1_000), Draw(10, "hash", 0, lambda raw: ""))
    assert [(drawn.origin, found.times[drawn.rank]) for drawn in found.lines] == [("a:1", 5_000)]
    rows, counts = pool({"a": line * 50})
    assert len(rows) == 1 and counts.dropped == {"duplicate": 49} and counts.rows_in == 50


def test_only_the_lowest_ranks_are_held() -> None:
    lines = [b"%d" % i for i in range(20_000)]
    found = draw(batches({"a": lines}, 500), Draw(100, "hash", 7, lambda raw: ""))
    assert [line.raw for line in found.lines] == sorted(lines, key=lambda raw: rank_of(raw, 7))[:100]
    assert (found.lines_read, found.complete) == (20_000, False)
    assert all(line.origin == f"a:{int(line.raw) + 1}" for line in found.lines)


def test_equal_rows_are_one_with_the_smallest_origin_and_all_their_lists() -> None:
    def line(space: str, negatives: list[str], others: list[str]) -> dict:
        return {"query": f"a{space}b", "pos": [f"p{space}p", *others], "neg": negatives}

    lines = json_lines([line(" ", ["n1", "n 2"], []), line("  ", ["n  2", "n3"], ["o"]), line("\t", ["o", "n4"], [])])
    order = sorted(range(3), key=lambda i: rank_of(lines[i], 0))
    rows, counts = pool({"part-10": lines[:2], "part-9": lines[2:]}, origin="msmarco")
    assert len(rows) == 1 and counts.dropped == {"duplicate": 2}
    assert rows[0]["origin"] == "part-9:1"
    assert rows[0]["rank"] == rank_of(lines[order[0]], 0)
    assert rows[0]["query"] == ["a b", "a  b", "a\tb"][order[0]]
    assert rows[0]["other_positives"] == ["o"]
    assert {fold(text) for text in rows[0]["negatives"]} == {"n1", "n 2", "n3", "n4"}


def test_negatives_that_are_the_query_or_a_positive_are_taken_out() -> None:
    lume, port = "Lume is the capital of Arvania.", "Port Sel has a harbour."
    again = "Lume  is the capital\nof Arvania. "
    record = {
        "query": "Which city?",
        "pos": [lume, "It is Lume."],
        "neg": [lume, again, "Which city?", "It  is Lume.", port],
    }
    rows, counts = pool([record, {"query": "b", "pos": ["c"], "neg": ["c", "\u200b", "d", "d "]}], origin="msmarco")
    negatives = {row["query"]: row["negatives"] for row in rows}
    assert negatives == {"Which city?": [port], "b": ["d"]}
    assert {k: v for k, v in counts.facts.items() if k.startswith(("pos", "neg"))} == {
        "pos_in_neg": 4,
        "neg_is_query": 1,
        "neg_empty": 1,
        "neg_repeated": 1,
    }


def test_further_positives_that_are_taken_out_are_counted() -> None:
    record = {"query": "a", "pos": ["b", "", "c", "c ", "a", " b", "\u200b"]}
    rows, counts = pool([record], origin="amazon-qa")
    assert rows[0]["other_positives"] == ["c"]
    assert counts.facts == {
        "lines_read": 1, "lines_drawn": 1, "pos_empty": 2, "pos_repeated": 2, "pos_is_query": 1,
    }  # fmt: skip


def test_a_negative_that_is_a_positive_of_an_equal_row_is_counted() -> None:
    records = [{"query": "a", "pos": ["b", "o"], "neg": ["n"]}, {"query": "a ", "pos": ["b"], "neg": ["o", "n"]}]
    rows, counts = pool(records, origin="msmarco")
    assert (rows[0]["negatives"], counts.facts.get("pos_in_neg"), "neg_repeated" in counts.facts) == (["n"], 1, False)


def test_negatives_keep_their_order_up_to_the_limit() -> None:
    record = {"query": "a", "pos": ["b"], "neg": ["b", *(f"n{i}" for i in range(30))]}
    rows, counts = pool([record], IngestParams(5, max_negatives=3), "msmarco")
    assert rows[0]["negatives"] == ["n0", "n1", "n2"] and counts.facts["neg_over_limit"] == 27
    assert len(pool([record], IngestParams(5), "msmarco")[0][0]["negatives"]) == 30


@pytest.mark.parametrize(
    ("record", "query", "positive", "others"),
    [
        ({"set": ["a", "b", "c", "b ", "a"]}, "a", "b", ["c"]),
        ({"set": ["a", "b"]}, "a", "b", []),
    ],
)
def test_a_set_gives_one_row(record: object, query: str, positive: str, others: list[str]) -> None:
    rows, _ = pool([record], origin="WikiAnswers")
    assert [(r["query"], r["positive"], r["other_positives"]) for r in rows] == [(query, positive, others)]


def test_counts_say_where_every_line_went() -> None:
    rng = random.Random(1)
    kinds = {"empty_text": ["", "x"], "identity_pair": ["y", " y"], "null": ["z", None], "duplicate": ["q", "p"]}
    lines = [kinds[rng.choice(list(kinds))] for _ in range(300)]
    planted = Counter(next(k for k, v in kinds.items() if v == line) for line in lines)
    rows, counts = pool(lines)
    assert len(rows) == 1
    assert counts.dropped == {**planted, "duplicate": planted["duplicate"] - 1}
    assert counts.rows_in == 300 == counts.rows_out + sum(counts.dropped.values())


def test_the_limit_of_bad_rows_is_a_number_or_a_share() -> None:
    lines = [*json_lines(PAIRS[:97]), b"{", b"[1", b'["a"]']
    message = (
        re.escape("gooaq_pairs: raw:98 (byte ")
        + r"[\d,]+\): not JSON .*; 3 bad of 100 records drawn: .* --max-bad-rows 3"
    )
    for params in (IngestParams(500), IngestParams(500, max_bad_rows=2), IngestParams(500, max_bad_percent=2.9)):
        with pytest.raises(MediError, match=message):
            pool({"raw": lines}, params)
    for params in (IngestParams(500, max_bad_rows=3), IngestParams(500, max_bad_percent=3.0)):
        rows, counts = pool({"raw": lines}, params)
        assert len(rows) == 97 and counts.dropped == {"bad": 3}
        assert [row["origin"] for row in counts.facts["quarantine"]] == ["raw:98", "raw:99", "raw:100"]  # type: ignore[union-attr]
