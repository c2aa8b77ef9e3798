"""Dirty lines, from bytes on disk to counts: what is mended, dropped or bad, and that bad stops a source."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medi.errors import MediError
from medi.ingest import IngestParams, ingest
from medi.ingest.parse import parse
from medi.read import raw_batches
from medi.schema import Counts, is_visible
from medi.source import Bad
from medi.sources import by_name
from tests.raw_lines import pool

GOOD = b'["a","b"]\n'


def from_file(path: Path, content: bytes, params: IngestParams | None = None) -> tuple[list[dict], Counts]:
    path.write_bytes(content)
    source = by_name("gooaq_pairs")
    table, counts = ingest(
        params or IngestParams(100), source, source.variants[0], lambda: raw_batches([(path, path.name)])
    )
    return table.to_pylist(), counts


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", r"not JSON \(Expecting property name enclosed in double quotes at character 1\)"),
        (b"", r"not JSON \(Expecting value at character 0\)"),
        (b'["a","b"] x', r"not JSON \(Extra data at character 10\)"),
        (b'["a", NaN]', r"not JSON \(NaN is no number\)"),
        (b'["a", -Infinity]', r"not JSON \(-Infinity is no number\)"),
        (b'["\xff"]', r"not UTF-8 \(byte 2 of the line\)"),
        (b'{"a":1,"b":{"c":1,"c":1}}', "the key 'c' stands twice in one object"),
        (b'{"a":1,"\\u0061":2}', "the key 'a' stands twice in one object"),
        (b"[" * 100_000, "nested too deep"),
        (b"[" * 2_000 + b"]" * 2_000, "nested too deep"),
        (b"[" + b"9" * 5_000 + b"]", r"not JSON \(Exceeds the limit"),
        (b'{"a":\x001}', "not JSON"),
    ],
)
def test_what_json_forbids_is_bad(line: bytes, reason: str) -> None:
    with pytest.raises(Bad, match=reason):
        parse(line)


@pytest.mark.parametrize(
    ("line", "value", "mends"),
    [
        (b'["\\ud800x", "\\ud83d\\ude00"]', ["\ufffdx", "\U0001f600"], {"lone_surrogate"}),
        (b'{"k\\udc00": {"a": ["\\udfff"]}}', {"k\ufffd": {"a": ["\ufffd"]}}, {"lone_surrogate"}),
        (b'["\xed\xa0\x80"]', ["\ufffd"], {"lone_surrogate"}),
        (b'["h\\u0000i", {"k\\u0000": "\\u0000"}, "\\\\u0000"]', ["hi", {"k": ""}, "\\u0000"], {"nul"}),
        (b'["\\u0000\\udfff"]', ["\ufffd"], {"lone_surrogate", "nul"}),
        (b'{"a" : "\\":", "b" :\t{"a": 1}}', {"a": '":', "b": {"a": 1}}, set()),
        (b"[12345678901234567890123]", [12345678901234567890123], set()),
        (b'{"a": ["x", {"b": -98765432109876543210}]}', {"a": ["x", {"b": -98765432109876543210}]}, set()),
        (b'["0.1234567890123456789", 0.1234567890123456789]', ["0.1234567890123456789", 0.12345678901234568], set()),
    ],
)
def test_what_can_be_mended_is(line: bytes, value: object, mends: set[str]) -> None:
    assert parse(line) == (value, mends)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.booleans())
def test_every_json_value_is_read_as_it_is(value: object, ascii_only: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=ascii_only).encode()) == (value, set())


@pytest.mark.parametrize(
    ("origin", "record", "texts", "mends"),
    [
        ("gooaq_pairs", [5, "b"], ("5", "b"), "number_as_text in [0]"),
        ("gooaq_pairs", ["a", 5.0], ("a", "5.0"), "number_as_text in [1]"),
        ("gooaq_pairs", ["a", True], ("a", "true"), "number_as_text in [1]"),
        ("amazon-qa", {"query": "Is tea hot?", "pos": "yes"}, ("Is tea hot?", "yes"), "text_for_list in pos"),
        ("amazon-qa", {"query": "a", "pos": [1]}, ("a", "1"), "number_as_text in pos[0]"),
        ("amazon-qa", {"query": "a", "pos": ["b", None]}, ("a", "b"), "null_in_list in pos"),
        ("AllNLI", ["a", "b", None], ("a", "b"), "null_in_list in [2]"),
        ("msmarco", {"query": "a", "pos": ["b"], "neg": [None]}, ("a", "b"), "null_in_list in neg"),
        ("pubmed:files", {"QUESTION": "a", "CONTEXTS": ["b", None]}, ("a", "b"), "null_in_list in CONTEXTS"),
        ("medmcqa", {"question": "a", "Exp": "b"}, ("a", "b"), "coerced_keys in exp"),
        ("wow:multi_train", {"query": "a", "Pos": "b"}, ("a", "b"), "coerced_keys in pos"),
        (
            "NQ",
            {"question": "a", "positive_ctxs": [{"Title": "t", "text": "b"}]},
            ("a", "t b"),
            "coerced_keys in title",
        ),
        ("amazon-qa", {"Query": "a", "POS": ["b"]}, ("a", "b"), "coerced_keys in pos, coerced_keys in query"),
        (
            "pubmed:files",
            {"question": "a", "contexts": ["b", "c"]},
            ("a", "b c"),
            "coerced_keys in CONTEXTS, coerced_keys in QUESTION",
        ),
    ],
)
def test_mended_rows_are_kept_and_counted_once_a_reason_and_bad_when_strict(
    origin: str, record: object, texts: tuple[str, str], mends: str
) -> None:
    rows, counts = pool([record], origin=origin)
    assert [(row["query"], row["positive"]) for row in rows] == [texts]
    assert counts.mended == dict.fromkeys((mend.split()[0] for mend in mends.split(", ")), 1)
    told = re.escape(f"needs mending ({mends}), which --strict forbids")
    with pytest.raises(MediError, match=rf"raw.jsonl:1 .*{told}"):
        pool([record], IngestParams(10, strict=True), origin)


@pytest.mark.parametrize(
    ("origin", "record", "field"),
    [
        ("gooaq_pairs", [None, "b"], "[0]"),
        ("amazon-qa", {"query": "a", "pos": None}, "pos"),
        ("amazon-qa", {"query": "a", "pos": [None]}, "pos"),
        ("NQ", {"question": "a", "positive_ctxs": [{"text": None}]}, "text"),
    ],
)
def test_null_in_place_of_a_text_is_dropped_and_bad_when_strict(origin: str, record: object, field: str) -> None:
    rows, counts = pool([record], origin=origin)
    assert (rows, counts.dropped) == ([], {"null": 1})
    told = re.escape(f"needs mending (null in {field}), which --strict forbids; 1 bad of 1 records")
    with pytest.raises(MediError, match=rf"raw.jsonl:1 .*{told}"):
        pool([record], IngestParams(10, strict=True), origin)


INVISIBLE = """
0 1f 20 7f 85 a0 ad 34f 61c 115f 1160 1680 17b4 180e 200b 200f 2028 202e 2060 206f 2800 3000 3164 d800 e000 fdd0 fe0f
feff ffa0 fff9 ffff 1343f 1d173 1fffe e0001 e0100 f0000 10ffff
""".split()


@pytest.mark.parametrize("code", INVISIBLE)
def test_a_text_of_what_nobody_sees_is_invisible(code: str) -> None:
    assert not is_visible(f" {chr(int(code, 16))}\n")


# The last three: a letter of Unicode 16 and code points not yet assigned, which no Python may judge otherwise.
@pytest.mark.parametrize("code", "21 7e a1 e9 301 600a 110b 11a8 1f600 fffd ffe6 105c0 378 3fff0".split())
def test_a_text_of_what_somebody_sees_is_visible(code: str) -> None:
    assert is_visible(f" {chr(int(code, 16))}\n")


@pytest.mark.parametrize(
    ("origin", "record", "reason"),
    [
        ("gooaq_pairs", ["a", "\u3164\u2800"], "empty_text"),
        ("gooaq_pairs", ["a", " \t\u200b\u00ad "], "empty_text"),
        ("gooaq_pairs", ["", "b"], "empty_text"),
        ("gooaq_pairs", [None, "b"], "null"),
        ("gooaq_pairs", ["The film was great", "The  film was\ngreat "], "identity_pair"),
        ("WikiAnswers", {"set": ["a"]}, "set_of_one"),
        ("WikiAnswers", {"set": []}, "set_of_one"),
        ("amazon-qa", {"query": "a", "pos": [None]}, "null"),
        ("amazon-qa", {"query": "a", "pos": []}, "empty_text"),
        ("NQ", {"question": "a", "positive_ctxs": [], "hard_negative_ctxs": []}, "no_positive"),
        ("medmcqa", {"question": "a", "exp": None}, "no_explanation"),
        ("hotpotqa:kilt", {"input": "a", "output": [{"answer": "x"}]}, "no_provenance"),
        ("triviaqa:kilt", {"id": "a", "output": []}, "no_input"),
    ],
)
def test_dropped_rows_are_counted_by_reason(origin: str, record: object, reason: str) -> None:
    rows, counts = pool([record], origin=origin)
    assert (rows, counts.dropped, counts.rows_in) == ([], {reason: 1}, 1)


def test_a_line_of_another_shape_than_declared_fails_with_file_line_and_byte(tmp_path: Path) -> None:
    content = GOOD + b'["c","d","e"]\n' + GOOD
    with pytest.raises(
        MediError, match=r"x.jsonl:2 \(byte 10\): expected an array of 2, found an array of 3; 1 bad of 3"
    ):
        from_file(tmp_path / "x.jsonl", content)
    rows, counts = from_file(tmp_path / "x.jsonl", content, IngestParams(100, max_bad_rows=1))
    assert len(rows) == 1 and counts.dropped == {"bad": 1, "duplicate": 1}
    assert counts.facts["quarantine"] == [
        {"origin": "x.jsonl:2", "offset": 10, "reason": "expected an array of 2, found an array of 3"}
    ]


def many(first: bytes = GOOD) -> bytes:
    return first + b"".join(b'["q%d","p%d"]\n' % (i, i) for i in range(500))


def test_the_first_line_of_a_file_is_always_parsed(tmp_path: Path) -> None:
    with pytest.raises(MediError, match=r"x:1 \(byte 0\): expected an array of 2"):
        from_file(tmp_path / "x", many(b'{"query":"a","pos":["b"]}\n'), IngestParams(5))


def test_other_lines_are_parsed_when_drawn_or_when_all_are_checked(tmp_path: Path) -> None:
    content = many() + b"not json\n"
    rows, counts = from_file(tmp_path / "x", content, IngestParams(5))
    assert len(rows) == 6 and "bad" not in counts.dropped
    with pytest.raises(MediError, match=r"x:502 .*not JSON.*; 1 bad of 7 records"):
        from_file(tmp_path / "x", content, IngestParams(5, check_all_lines=True))
    again, checked = from_file(tmp_path / "x", content, IngestParams(5, check_all_lines=True, max_bad_rows=1))
    assert again == rows and checked.dropped["bad"] == 1 and checked.rows_in == counts.rows_in + 1


def test_a_drawn_bad_line_is_counted_once_when_all_are_checked(tmp_path: Path) -> None:
    params = IngestParams(1_000, check_all_lines=True, max_bad_rows=2)
    _, counts = from_file(tmp_path / "x", b"bad\nbad\n" + GOOD, params)
    assert (counts.rows_in, counts.dropped) == (3, {"bad": 2})


def test_a_cut_gz_fails_unless_bad_rows_are_allowed_and_then_keeps_its_lines(tmp_path: Path) -> None:
    content = gzip.compress(many(), mtime=0)[:-8]
    with pytest.raises(MediError, match=r"x.gz: the gz is cut: it ends after [\d,]+ bytes .*; fetch or make it again$"):
        from_file(tmp_path / "x.gz", content, IngestParams(1_000))
    rows, counts = from_file(tmp_path / "x.gz", content, IngestParams(1_000, max_bad_rows=1))
    assert len(rows) == 501 and counts.dropped == {"bad": 1}
    assert (counts.rows_in, counts.facts["lines_drawn"]) == (502, 501)
    assert "the gz is cut" in counts.facts["quarantine"][0]["reason"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("content", "helps"),
    [
        (gzip.compress(GOOD, mtime=0)[:-4], "fetch or make it again"),
        (b"<html>", "fetch the file itself"),
        (GOOD + b"not json\n", "mend the file, or go on without them by --max-bad-rows 1"),
        (b"not json\nnor this\n", "put the file that belongs here in its place, or mend it"),
        (GOOD.replace(b"\n", b"\r\n"), "leave --strict out"),
        (b'["a","b"]\r\n[5]\n', "leave --strict out (1 would still be bad)"),
        (b'["a","b"]\r\n[5]\r\n', "leave --strict out (1 would still be bad)"),
    ],
)
def test_a_bad_file_says_the_one_thing_that_helps(tmp_path: Path, content: bytes, helps: str) -> None:
    params = IngestParams(1_000, strict=b"\r" in content)
    with pytest.raises(MediError) as refused:
        from_file(tmp_path / "x.gz", content, params)
    advice = ("fetch", "mend the file", "put the file", "leave --strict")
    assert str(refused.value).endswith(helps) and sum(str(refused.value).count(word) for word in advice) == 1


def test_a_last_line_that_is_cut_is_told_so_and_not_only_that_it_has_no_end(tmp_path: Path) -> None:
    told = (
        "gooaq_pairs: x:2 (byte 10): needs mending (no_final_newline), which --strict forbids, and beside that not "
        "JSON (Unterminated string starting at character 5); 1 bad of 2 records drawn: mend the file, or go on "
        "without them by --max-bad-rows 1"
    )
    with pytest.raises(MediError) as refused:
        from_file(tmp_path / "x", GOOD + b'["c","d', IngestParams(9, strict=True))
    assert str(refused.value) == told
    rows, counts = from_file(tmp_path / "x", GOOD + b'["c","d', IngestParams(9, strict=True, max_bad_rows=1))
    assert (len(rows), counts.dropped) == (1, {"bad": 1})


def test_a_line_without_end_says_that_what_stands_before_it_may_do(tmp_path: Path) -> None:
    """The file is read no further, so that what comes behind the line is lost."""
    endless = b'["x","' + b"y" * 68_000_000 + b'"]\n'
    told = r"x: line 2 is longer than 67,108,864 bytes; see what is in it"
    with pytest.raises(MediError, match=rf"{told}, or go on with what stands before it alone by --max-bad-rows 1$"):
        from_file(tmp_path / "x", GOOD + endless + b'["c","d"]\n')
    rows, _ = from_file(tmp_path / "x", GOOD + endless + b'["c","d"]\n', IngestParams(9, max_bad_rows=1))
    assert [row["query"] for row in rows] == ["a"]
    with pytest.raises(MediError, match="x: line 1 is longer than 67,108,864 bytes; see what is in it$"):
        from_file(tmp_path / "x", endless)


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"<html>", b"\n\n"])
def test_a_file_without_data_fails_its_source(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(MediError, match="^gooaq_pairs: x.gz: (the file|a Git-LFS pointer|an HTML page)"):
        from_file(tmp_path / "x.gz", content)


def test_mends_of_the_file_are_counted_and_bad_when_strict(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf["a","b"]\r\n\r\n["c","d"]'
    rows, counts = from_file(tmp_path / "x", content)
    assert {(row["query"], row["positive"], row["origin"]) for row in rows} == {("a", "b", "x:1"), ("c", "d", "x:3")}
    assert counts.mended == {"bom": 1, "crlf": 2, "blank_line": 1, "no_final_newline": 1}
    with pytest.raises(
        MediError, match=r"x:1 \(byte 0\): needs mending \(bom, crlf\), which --strict forbids; 3 bad of 3"
    ):
        from_file(tmp_path / "x", content, IngestParams(10, strict=True))


def test_lines_that_were_mended_are_quarantined_one_by_one_when_strict(tmp_path: Path) -> None:
    content = b'["a","b"]\r\n["c","d"]\n\n["e","f"]\r\n'
    rows, counts = from_file(tmp_path / "x", content, IngestParams(10, strict=True, max_bad_rows=3))
    assert [(row["query"], row["origin"]) for row in rows] == [("c", "x:2")]
    assert (counts.rows_in, counts.rows_out, counts.dropped, counts.mended) == (4, 1, {"bad": 3}, {})
    assert counts.facts["quarantine"] == [
        {"origin": origin, "offset": offset, "reason": f"needs mending ({mend}), which --strict forbids"}
        for origin, offset, mend in (("x:1", 0, "crlf"), ("x:3", 21, "blank_line"), ("x:4", 22, "crlf"))
    ]
    assert counts.facts["lines_drawn"] == 1


def test_strict_takes_a_clean_file_whose_lines_hold_a_carriage_return(tmp_path: Path) -> None:
    rows, counts = from_file(tmp_path / "x", b'["a",\r"b"]\n', IngestParams(10, strict=True))
    assert [row["positive"] for row in rows] == ["b"] and counts.to_json()["mended"] == {}


def test_strict_counts_mended_lines_without_end_but_lists_a_thousand(tmp_path: Path) -> None:
    content = many().replace(b"\n", b"\r\n") * 3
    with pytest.raises(MediError, match="1,503 bad of 1,503 records"):
        from_file(tmp_path / "x", content, IngestParams(10, strict=True))
    _, counts = from_file(tmp_path / "x", content, IngestParams(10, strict=True, max_bad_rows=1_503))
    assert counts.dropped == {"bad": 1_503} and len(counts.facts["quarantine"]) == 1_000  # type: ignore[arg-type]


def test_lines_after_the_first_ones_are_checked_when_all_are(tmp_path: Path) -> None:
    content = many() + b"not json\n"
    params = IngestParams(5, take="first")
    rows, counts = from_file(tmp_path / "x", content, params)
    assert counts.facts == {"lines_read": 6, "lines_drawn": 6}
    with pytest.raises(MediError, match=r"x:502 .*not JSON.*; 1 bad of 7 records"):
        from_file(tmp_path / "x", content, replace(params, check_all_lines=True))
    again, checked = from_file(tmp_path / "x", content, replace(params, check_all_lines=True, max_bad_rows=1))
    assert again == rows and checked.dropped == {"bad": 1}
    assert (checked.facts["lines_read"], checked.facts["lines_drawn"]) == (502, 6)


def test_the_first_lines_have_no_mends_of_those_behind_them(tmp_path: Path) -> None:
    content = b'["q","p"]\r\n' + many() + b'["x","y"]\r\n["z","z"]'
    _, counts = from_file(tmp_path / "x", content, IngestParams(5, take="first"))
    assert counts.mended == {"crlf": 1}


@pytest.mark.parametrize(
    ("origin", "record", "key", "second"),
    [
        ("amazon-qa", {"query": "a", "Query": "b", "pos": ["c"]}, "query", "Query"),
        ("amazon-qa", {"POS": ["a"], "query": "q", "Pos": ["b"]}, "pos", "Pos"),
        ("WikiAnswers", {"set": ["a", "b"], "SET": ["c", "d"]}, "set", "SET"),
        ("NQ", {"question": "a", "QUESTION": "b", "positive_ctxs": []}, "question", "QUESTION"),
        ("trex:kilt", {"input": "a", "Input": "b", "output": []}, "input", "Input"),
    ],
)
def test_a_key_in_two_spellings_is_bad(origin: str, record: object, key: str, second: str) -> None:
    with pytest.raises(
        MediError, match=rf"raw.jsonl:1 \(byte 0\): the key '{key}' stands in two spellings: .*'{second}'"
    ):
        pool([record], origin=origin)


def test_nuls_are_taken_out_and_counted_whatever_file_they_are_in(tmp_path: Path) -> None:
    """Every reader of Parquet takes them; what is written in C ends a text there."""
    records = [["is t\0ea hot", "y\0es"], ["\0", "of nothing"], ["tea", "a leaf"]]
    rows, counts = pool(records)
    assert {(row["query"], row["positive"]) for row in rows} == {("is tea hot", "yes"), ("tea", "a leaf")}
    assert (counts.mended, counts.dropped) == ({"nul": 1}, {"empty_text": 1})
    with pytest.raises(MediError, match=r"raw.jsonl:1 .*needs mending \(nul\), which --strict forbids"):
        pool(records[:1], IngestParams(10, strict=True))
    (tmp_path / "t.csv").write_bytes(b"q,p\nis t\0ea hot,yes\n")
    (batch,) = raw_batches([(tmp_path / "t.csv", "t.csv")])
    assert parse(batch.lines[0]) == ({"q": "is tea hot", "p": "yes"}, {"nul"})


def test_keys_that_lone_surrogates_make_equal_are_bad() -> None:
    with pytest.raises(Bad, match="stands twice in one object"):
        parse(b'{"a\\ud800": 1, "a\\ud801": 2}')
    assert parse(b'{"a\\ud800": 1}') == ({"a\ufffd": 1}, {"lone_surrogate"})


def test_bom_and_line_ends_change_neither_rows_nor_ranks(tmp_path: Path) -> None:
    clean, _ = from_file(tmp_path / "x", many())
    dirty, _ = from_file(tmp_path / "x", b"\xef\xbb\xbf" + many().replace(b"\n", b"\r\n"))
    assert dirty == clean


def test_a_duplicate_key_inside_an_array_file_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "nq-train.json"
    path.write_bytes(b'[{"question": "a", "positive_ctxs": [{"title": "t", "title": "u", "text": "x"}]}]')
    source = by_name("NQ")
    with pytest.raises(MediError, match="nq-train.json#0: the key 'title' stands twice in one object"):
        ingest(IngestParams(1), source, source.variants[0], lambda: raw_batches([(path, path.name)]))


def test_a_duplicate_key_of_a_keyed_file_is_bad_and_a_lone_surrogate_in_it_is_its_rows_mend(tmp_path: Path) -> None:
    def of(content: bytes, params: IngestParams) -> tuple[list[dict], Counts]:
        path = tmp_path / "ori_pqal.json"
        path.write_bytes(content)
        table, counts = ingest(params, source, source.variants[0], lambda: raw_batches([(path, path.name)], keyed=True))
        return table.to_pylist(), counts

    source = by_name("pubmed")
    twice = b'{"1":{"QUESTION":"a","CONTEXTS":["b"]},"1":{"QUESTION":"c","CONTEXTS":["d"]}}'
    with pytest.raises(MediError, match="ori_pqal.json#1: the key '1' stands twice in one object; 1 bad of 2"):
        of(twice, IngestParams(10))
    rows, _ = of(twice, IngestParams(10, max_bad_rows=1))
    assert [row["query"] for row in rows] == ["a"]
    lone = rb'{"1":{"QUESTION":"a\ud800","CONTEXTS":["b"]},"2":{"QUESTION":"c","CONTEXTS":["d"]}}'
    rows, counts = of(lone, IngestParams(10))
    assert {row["query"] for row in rows} == {"a\ufffd", "c"} and counts.mended == {"lone_surrogate": 1}
    with pytest.raises(MediError, match=r"ori_pqal.json#1: needs mending \(lone_surrogate\), .*; 1 bad of 2"):
        of(lone, IngestParams(10, strict=True))
