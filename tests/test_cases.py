"""Small inputs that break pipelines of this kind, one test a case, by its number: from raw bytes to pairs.

`tests/test_cases_build.py` has those that take a whole build; where another file holds a case, its docstring says so.
"""

import gzip
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from medi import mine
from medi.embed import embed
from medi.encoder import EncoderSpec, describe
from medi.errors import MediError, UsageError
from medi.fixed_shapes import Seen, unit_length, unseen
from medi.ingest import IngestParams, ingest
from medi.ingest.parse import parse
from medi.mine.scores import cosines_of, scores_of
from medi.mine.search import Lists, top_k
from medi.read import raw_batches
from medi.release import open_release
from medi.release.accounting import shortage_line
from medi.schema import ROWS, Counts, digest_of, table_of, text_id
from medi.sources import by_name
from medi.vectors import VectorStore, id_numbers
from tests.mining import PAPER, mined_pairs, mined_task, random_vectors, rows_of, tokens_of
from tests.raw_lines import pool, rows_of_bytes, rows_of_task, task
from tests.release_builder import Builder, pair_row, source_entry, task_entry

STRICT = IngestParams(100, strict=True)


def in_task(*instances: tuple[str, object]) -> list[object]:
    return [{"input": text, "output": output} for text, output in instances]


def test_c1_several_references() -> None:
    """C1: one instance, two references in order; the first is what is scored."""
    raw = (
        b'{"Definition":["Write a sentence with the words."],"Input_language":["English"],'
        b'"Output_language":["English"],"Instruction_language":["English"],"Positive Examples":[],'
        b'"Negative Examples":[],"Instances":[{"id":"t-1","input":"lamp#desk#night",'
        b'"output":["A lamp lit the desk at night.","At night the lamp on the desk was on."]}]}'
    )
    (row,), counts = rows_of_bytes(raw)
    first = "A lamp lit the desk at night."
    assert row["references"] == [first, "At night the lamp on the desk was on."]
    assert (row["output"], counts.rows_in, counts.facts["definition"]) == (
        first, 1, "Write a sentence with the words.",
    )  # fmt: skip
    rows = table_of([row], ROWS)
    scored = mine.texts_to_encode(rows, "text", None, tokens_of(mine.texts_to_tokenize(rows, "text")))
    assert scored == [first, "lamp#desk#night"]


def test_c2_repeated_input_different_outputs() -> None:
    """C2: one instance with both references, and neither original is the other's negative."""
    rows, counts = rows_of_task(in_task(("lamp#desk#night", ["A"]), ("lamp#desk#night", ["B"]), ("tree#rain", ["C"])))
    assert {row["query"]: row["references"] for row in rows} == {"lamp#desk#night": ["A", "B"], "tree#rain": ["C"]}
    assert counts.facts["merged_inputs"] == 1
    texts = ["lamp#desk#night", "tree#rain", "A", "B", "C"]
    pairs, _ = mined_task("text", table_of(rows, ROWS), random_vectors(texts))
    assert all(text != row["query"] for row in pairs.to_pylist() for text in (row["positive"], *row["negatives"]))


def test_c5_definition_and_language_in_both_shapes() -> None:
    """C5: a text and a list of it are one; an absent one is an error with file and key; lower case is counted."""
    instances = in_task(("a", ["b"]))
    for fields in ({"Definition": "Do X."}, {"Definition": ["Do X."]}, {"Input_language": "English"}):
        rows, counts = rows_of_task(instances, **fields)
        assert (len(rows), counts.facts["definition"]) == (1, "Do X.")
    for key in ("Definition", "Input_language"):
        without = {name: value for name, value in task(instances).items() if name != key}
        for record in (task(instances, **{key: []}), without):
            with pytest.raises(MediError, match=f"task9001_odd.name-x.json: the key '{key}' is missing or empty"):
                rows_of_bytes(json.dumps(record).encode())
    lower = json.dumps(task(instances)).replace("Input_language", "input_language")
    assert rows_of_bytes(lower.encode())[1].mended == {"coerced_keys": 1}


def test_c6_string_where_a_list_belongs() -> None:
    """C6: one reference and one positive, never letters; with --strict an error that names file, line and field."""
    instance, line = (
        {"input": "Is tea hot?", "output": "yes"},
        {"query": "Is tea hot?", "pos": "Tea is hot.", "neg": []},
    )
    rows, _ = rows_of_task([instance])
    assert [row["references"] for row in rows] == [["yes"]]
    rows, _ = pool([line], origin="msmarco")
    assert [(row["positive"], row["other_positives"]) for row in rows] == [("Tea is hot.", [])]
    with pytest.raises(MediError, match=r"task9001_odd.name-x.json#0: .*text_for_list in output"):
        rows_of_task([instance], STRICT)
    with pytest.raises(MediError, match=r"raw.jsonl:1 .*text_for_list in pos\b"):
        pool([line], STRICT, "msmarco")


def test_c8_not_a_string() -> None:
    """C8: numbers and booleans in JSON spelling, null dropped, a list in a list an error; each an error if strict."""
    good = ("a", ["b"])
    for output, text in (([5], "5"), ([5.0], "5.0"), ([True], "true")):
        rows, _ = rows_of_task(in_task(("q", output)))
        assert [row["output"] for row in rows] == [text]
    rows, counts = rows_of_task(in_task(good, ("q", [None])))
    assert [row["query"] for row in rows] == ["a"] and counts.dropped == {"null": 1}
    with pytest.raises(MediError, match=r"#0: output\[0\] is an array of 1 where a text belongs"):
        rows_of_task(in_task(("q", [["a"]])))
    for output in ([5], [5.0], [True], [None], [["a"]]):
        with pytest.raises(MediError, match=r"#1: .*output.*; 1 bad of 2 records"):
            rows_of_task(in_task(good, ("q", output)), STRICT)


def test_c12_the_four_shapes_of_triplet_files() -> None:
    """C12: a later line of another shape is an error with its number; a set of 3 is one pair, a set of 1 dropped."""
    shapes = {
        "gooaq_pairs": ["q", "p"],
        "AllNLI": ["q", "p", "n"],
        "WikiAnswers": {"set": ["a", "b", "c"]},
        "msmarco": {"query": "q", "pos": ["p1", "p2"], "neg": ["n1"]},
    }
    for source, line in shapes.items():
        rows, _ = pool([line], origin=source)
        (row,) = rows
        expected = ("a", "b", ["c"], []) if source == "WikiAnswers" else (
            "q", "p1" if source == "msmarco" else "p", ["p2"] if source == "msmarco" else [],
            {"AllNLI": ["n"], "msmarco": ["n1"]}.get(source, []),
        )  # fmt: skip
        assert (row["query"], row["positive"], row["other_positives"], row["negatives"]) == expected
        for other in (shape for name, shape in shapes.items() if name != source):
            with pytest.raises(MediError, match=r"raw.jsonl:2 \(byte \d+\): .*; 1 bad of 2 records"):
                pool([line, other], origin=source)
    rows, counts = pool([{"set": ["a"]}, {"set": ["a", "b", "c"]}], origin="WikiAnswers")
    assert len(rows) == 1 and counts.dropped == {"set_of_one": 1}


def test_c13_positive_among_negatives() -> None:
    """C13: equal or equal when folded, the positive leaves the negatives; a row without any is mined for."""
    query, positive = "Which city is the capital of Arvania?", "Lume is the capital of Arvania."
    neg = [positive, "Lume  is the capital\nof Arvania. ", "Port Sel has a harbour."]
    rows, counts = pool([{"query": query, "pos": [positive], "neg": neg}], origin="msmarco")
    assert [row["negatives"] for row in rows] == [[neg[2]]] and counts.facts["pos_in_neg"] == 2
    other = {"query": "Where is a harbour?", "pos": [neg[2]], "neg": []}
    rows, _ = pool([{"query": query, "pos": [positive], "neg": neg[:2]}, other], origin="msmarco")
    assert {row["query"]: row["negatives"] for row in rows}[query] == []
    pairs, _ = mined_pairs(table_of(rows, ROWS), random_vectors([query, other["query"], positive, neg[2]]))
    (row,) = (row for row in pairs.to_pylist() if row["query"] == query)
    assert (row["negatives"], row["negative_origins"]) == ([neg[2]], ["mined"])


def test_c16_k_larger_than_the_corpus() -> None:
    """C16: three results, and nothing is read at FAISS's -1, which would be the last text."""
    documents = np.eye(4, dtype=np.float32)[:3]
    found = top_k(documents[:1], documents, 5, Lists.of([np.empty(0, dtype=np.int64)]))
    assert found.numbers.tolist() == [[0, 1, 2, -1, -1]]
    assert found.scores.tolist() == [[1.0, 0.0, 0.0, -np.inf, -np.inf]]
    rows = rows_of(*({"query": f"q{i}", "positive": f"d{i}"} for i in range(3)))
    vectors = {f"{kind}{i}": tuple(documents[i].tolist()) for kind in "qd" for i in range(3)}
    pairs, _ = mined_pairs(rows, vectors, rules=replace(PAPER, negatives=5))
    assert {row["query"]: row["negatives"] for row in pairs.to_pylist()}["q0"] in (["d1", "d2"], ["d2", "d1"])


class Sinking:
    """An encoder that overflows from the second text on."""

    def encode(self, token_ids: Sequence[Sequence[int]], seen: Seen = unseen) -> np.ndarray:
        """Return a unit vector, and none for the others."""
        vectors = np.full((len(token_ids), 4), np.inf, dtype=np.float32)
        vectors[0] = 2
        return unit_length(vectors)


def test_c17_non_finite_embedding(tmp_path: Path) -> None:
    """C17: the row is named, nothing is stored for it, and float16 is refused before anything overflows."""
    good = np.eye(4, dtype=np.float32)[:2]
    lists = Lists.of([np.empty(0, dtype=np.int64)])
    query = np.array([[np.nan, 0, 0, 0]], dtype=np.float32)
    with pytest.raises(MediError, match=r"^query row 0 has a vector that is not finite \(1 of 1 rows\)"):
        top_k(query, good, 1, lists)
    for value in (np.nan, np.inf):
        corpus = np.vstack([good, [[value, 0, 0, 0]]]).astype(np.float32)
        with pytest.raises(MediError, match=r"^document row 2 has a vector that is not finite \(1 of 3 rows\)"):
            top_k(good[:1], corpus, 1, lists)
        store, ids = VectorStore(tmp_path, "e"), np.arange(3, dtype=np.uint64)
        with pytest.raises(MediError, match="text 0000000000000002 has a vector that is not finite"):
            store.put(ids, corpus)
        assert store.missing(ids).tolist() == [0, 1, 2] and list(tmp_path.rglob("*.npy")) == []
    for dtype, advice in (("bfloat16", "use --dtype float32"), ("float32", "name another --encoder")):
        with pytest.raises(MediError, match=r"for 1 of 2 texts, the first is \w{16} \('sunk'\); " + advice):
            embed(["well", "sunk"], lambda texts: [[len(text)] for text in texts], Sinking(), dtype)
    with pytest.raises(UsageError, match="--dtype float16: give float32 or bfloat16"):
        describe("t5", tmp_path, "r", "float16")


def test_c19_a_hair_over_one() -> None:
    """C19: such a score is stored as 1, is identical by 1 - 1e-5, and has an angle of 0."""
    over, one = np.array([[1.0000001192092896]], dtype=np.float32), np.ones((1, 1), dtype=np.float32)
    assert scores_of(over, one).item() == 1.0000001192092896
    stored = cosines_of(over, one).item()
    assert stored == 1.0 >= 1 - 1e-5 and math.acos(stored) == 0.0
    assert cosines_of(over, -one).item() == -1.0


def test_c22_damaged_gz(tmp_path: Path) -> None:
    """C22: damage fails its source by name and byte count, and allowed, keeps complete lines and is on record."""
    lines = b"".join(b'["q%d","p%d"]\n' % (i, i) for i in range(2_000))
    gz = gzip.compress(lines, mtime=0)
    bad_sum = gz[:-8] + bytes([gz[-8] ^ 255]) + gz[-7:]
    source, path = by_name("gooaq_pairs"), tmp_path / "x.jsonl.gz"

    def of(content: bytes, allowed_rows: int = 0) -> tuple[int, Counts]:
        path.write_bytes(content)
        params = IngestParams(5_000, max_bad_rows=allowed_rows)
        table, counts = ingest(params, source, source.variants[0], lambda: raw_batches([(path, path.name)]))
        return len(table), counts

    for content, fault, rows in (
        (gz[: len(gz) // 2], rf"the gz is cut: it ends after {len(gz) // 2:,} bytes", None),
        (gz[:-8], rf"the gz is cut: it ends after {len(gz) - 8:,} bytes", 2_000),
        (gz[:-4], rf"the gz is cut: it ends after {len(gz) - 4:,} bytes", 2_000),
        (bad_sum, rf"the gz's checksum is wrong \({len(lines):,} unpacked bytes\)", 2_000),
        (gz + b"junk", f"bytes that are no gz follow after {len(lines):,} unpacked bytes", 2_000),
        (b"", r"the file is empty \(0 bytes\)", 0),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", r"a Git-LFS pointer .*\(63 bytes\)", 0),
        (b"<!DOCTYPE html><html></html>", r"an HTML page in place of data \(28 bytes\)", 0),
    ):
        with pytest.raises(MediError, match=f"^gooaq_pairs: x.jsonl.gz: {fault}"):
            of(content)
        kept, counts = of(content, allowed_rows=1)
        assert 900 < kept < 1_100 if rows is None else kept == rows
        assert counts.dropped == {"bad": 1} and fault[:9] in str(counts.facts["quarantine"])
    assert of(gz + b"\0" * 512)[0] == 2_000
    rows, counts = of(gz + gz)
    assert (rows, counts.rows_in, counts.dropped) == (2_000, 4_000, {"duplicate": 2_000})


def test_c23_unicode_line_marks(tmp_path: Path) -> None:
    """C23: two records whose texts are unchanged, where `splitlines` would give eight pieces."""
    text = "a\u2028b\u0085c\u2029d"
    path = tmp_path / "x.jsonl"
    path.write_bytes(f'{{"q":"{text}"}}\n'.encode() * 2)
    (batch,) = raw_batches([(path, path.name)])
    assert [parse(line) for line in batch.lines] == [({"q": text}, set())] * 2


def test_c26_null_first_number_later(tmp_path: Path) -> None:
    """C26: two shards of one type, read together by `datasets`, whole and as a stream: null, then 0.5."""
    import datasets

    names = ("first", "second")
    rows = {(name, name): [pair_row(name, 0)] for name in names}
    for (row,), score in zip(rows.values(), (None, 0.5), strict=True):
        row |= {"negatives": ["n"], "negative_scores": [score], "positive_score": score, "negative_origins": ["given"]}
    sources, tasks = [source_entry(name, 1) for name in names], [task_entry(name, name, "pair", 1) for name in names]
    Builder(rows, sources, tasks).write(tmp_path / "x", shard_bytes=1)  # type: ignore[arg-type]
    assert len(open_release(tmp_path / "x").shards()) == 2
    whole = datasets.load_dataset(str(tmp_path / "x"), split="train", cache_dir=str(tmp_path / "cache"))
    assert whole.features["negative_scores"] == datasets.List(datasets.Value("float32"))
    stream = datasets.load_dataset(str(tmp_path / "x"), split="train", streaming=True)
    for read in (whole, stream):
        assert [(row["positive_score"], row["negative_scores"]) for row in read] == [(None, [None]), (0.5, [0.5])]


def test_c33_cache_key(tmp_path: Path) -> None:
    """C33: texts cut elsewhere, another prompt, revision or dtype find nothing; the same call finds all."""
    spec = EncoderSpec("e", "r1", "float32", 512, ((512, 4),), "cpu-avx2")

    def found(spec: EncoderSpec, texts: list[str]) -> int:
        ids = id_numbers([text_id(text) for text in texts])
        return len(ids) - len(VectorStore(tmp_path, digest_of(spec.to_json())).missing(ids))

    VectorStore(tmp_path, digest_of(spec.to_json())).put(id_numbers([text_id("ab"), text_id("c")]), np.eye(2))
    assert (found(spec, ["ab", "c"]), found(spec, ["a", "bc"])) == (2, 0)
    for other in ({"prompt": "query: "}, {"revision": "r2"}, {"dtype": "bfloat16"}):
        assert found(replace(spec, **other), ["ab", "c"]) == 0  # type: ignore[arg-type]


def test_c35_counters() -> None:
    """C35: of two queries that want 15, the one that finds none is the one that is short."""
    given = [f"n{i}" for i in range(15)]
    rows = rows_of(
        {"query": "q1", "positive": "p1", "negatives": given},
        {"query": "q2", "positive": "p2", "other_positives": ["p1"]},
    )
    rules = replace(PAPER, negatives=15, given_negatives=15)
    relation = mine.PairRules(symmetric=False, clusters=False, given=15, looked_at=30)
    pairs, counts = mined_pairs(rows, random_vectors(["q1", "q2", "p1", "p2", *given]), relation, rules)
    assert {row["query"]: len(row["negatives"]) for row in pairs.to_pylist()} == {"q1": 15, "q2": 0}
    assert "1 query short (15 negatives missing)" in shortage_line("toy", counts.facts, rules)


def test_c41_identity_and_self() -> None:
    """C41: a row whose query is its positive is dropped, a negative that is the query is left out; both are counted."""
    same = "The film was great"
    lines = [{"query": same, "pos": [same], "neg": ["n"]}, {"query": "q", "pos": ["p"], "neg": ["q", "n"]}]
    rows, counts = pool(lines, origin="msmarco")  # type: ignore[arg-type]
    assert [(row["query"], row["negatives"]) for row in rows] == [("q", ["n"])]
    assert (counts.dropped, counts.facts["neg_is_query"]) == ({"identity_pair": 1}, 1)
