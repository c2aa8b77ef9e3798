"""MSMARCO's clusters: their number and order, their words and what speaks for them, and how `medi domains` shows it."""

import gzip
import json
import os
import random
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from medi.domains import (
    Queries,
    Vocabulary,
    centres,
    cluster_queries,
    distinctive_terms,
    find_domains,
    nearest_words,
)
from medi.ingest import IngestParams
from medi.instruct import load_instructions
from medi.release import open_release
from medi.release.domains import domains_of
from medi.release.manifest import Json
from medi.shards import write_release
from pipelines.cli.app import main
from tests.raw_lines import pool
from tests.release_builder import pair_row, source_entry, task_entry, tiny

ROOT = Path(__file__).parent.parent


def blobs(seed: int = 0) -> np.ndarray:
    """Return 240 unit vectors [240, 8] around three axes: 40, 120 and 80 of them, then six clusters are asked for."""
    around = np.repeat(np.eye(8, dtype=np.float32)[:3], [40, 120, 80], axis=0)
    noisy = around + np.random.default_rng(seed).normal(scale=0.02, size=around.shape).astype(np.float32)
    return (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)


def test_clusters_are_numbered_by_size_and_keep_to_their_blob() -> None:
    of_row = cluster_queries(blobs(), seed=0)
    sizes = np.bincount(of_row)
    assert sizes.sum() == 240 and len(sizes) == 6
    assert list(sizes) == sorted(sizes, reverse=True)
    blob = np.repeat([0, 1, 2], [40, 120, 80])
    assert all(len(set(blob[of_row == number])) == 1 for number in range(6))
    assert cluster_queries(blobs()[:79], seed=0).tolist() == [0] * 79
    assert cluster_queries(blobs()[:0], seed=0).tolist() == []


def test_of_clusters_of_one_size_the_one_with_the_first_row_comes_first() -> None:
    two = np.repeat(np.eye(4, dtype=np.float32)[[2, 0]], 40, axis=0)
    assert cluster_queries(two, seed=5).tolist() == [0] * 40 + [1] * 40


CLUSTERS_OF_NOISE = """
import hashlib, numpy as np
from medi.domains import cluster_queries
noise = np.random.default_rng(3).normal(size=(1500, 48)).astype(np.float32)
noise /= np.linalg.norm(noise, axis=1, keepdims=True)
print(hashlib.sha256(cluster_queries(noise, seed=7).tobytes()).hexdigest())
"""


def test_the_number_of_threads_does_not_matter() -> None:
    digests = set()
    for threads in ("1", "2"):
        environment = os.environ | {
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-c", CLUSTERS_OF_NOISE]
        digests.add(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)
    assert len(digests) == 1


WORDS = ["wine", "law", "art"]
AXES = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)


def test_each_cluster_gets_the_nearest_words_with_their_cosines() -> None:
    vectors = np.array([[1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)
    middle = centres(vectors, np.array([0, 1, 1]))
    assert np.allclose(middle, [[1, 0], [0.3162, 0.9487]], atol=1e-4)
    assert nearest_words(middle, Vocabulary(WORDS, AXES, {})) == [
        [("law", 1.0), ("wine", 1.0), ("art", 0.0)],
        [("art", 0.9487), ("law", 0.3162), ("wine", 0.3162)],
    ]
    many = Vocabulary([f"w{n}" for n in range(9)], np.tile([[0.0, 1.0]], (9, 1)), {})
    assert nearest_words(middle, many)[1] == [(f"w{n}", 0.9487) for n in range(5)]


def test_terms_tell_a_cluster_from_the_others() -> None:
    """By hand: 10 and 4 terms, 7 on average: wine 3 log(1+7/3), red 2 log(1+7/2), cost 3 log(1+7/5), ..."""
    wine = ["what is the cost of red wine", "red wine cost?", "Wine, white or cost x", "of beer"]
    assert distinctive_terms([wine, ["cost of a lawyer", "court cost"]]) == [
        ["wine", "red", "cost", "beer", "white"],
        ["court", "lawyer", "cost"],
    ]
    assert distinctive_terms([["what is of the"], []]) == [[], []]
    assert distinctive_terms([[f"t{n:02}" for n in range(20)]]) == [[f"t{n:02}" for n in range(8)]]


def queries(order: list[int] | None = None) -> Queries:
    """Return the 240 rows around three axes, or some order of them; the text says the axis, each text stands twice."""
    order = list(range(240)) if order is None else order
    axis = np.repeat(["wine", "court", "song"], [40, 120, 80])
    texts = [f"{axis[n]} number {n // 2}" for n in order]
    return Queries([f"msmarco/{(n * 7919) % 240:03}" for n in order], texts, blobs()[order])


def test_what_is_known_of_a_cluster() -> None:
    vocabulary = Vocabulary(WORDS, np.eye(8, dtype=np.float32)[:3], {"01": "my own words", "29": "tax"})
    of_row, domains = find_domains(queries(), vocabulary, seed=0)
    sizes = np.bincount(of_row)
    blob = [int(np.repeat([0, 1, 2], [40, 120, 80])[of_row == number][0]) for number in range(6)]
    assert len(domains) == 6 and list(sizes) == sorted(sizes, reverse=True)
    assert [d.overridden for d in domains] == [False, True, False, False, False, False]
    assert [d.word for d in domains] == [WORDS[b] if n != 1 else "my own words" for n, b in enumerate(blob)]
    assert [d.nearest[0][0] for d in domains] == [WORDS[b] for b in blob]
    assert all(d.nearest[0][1] > 0.9 and len(d.nearest) == 3 for d in domains)
    assert all(("wine", "court", "song")[b] in d.terms for b, d in zip(blob, domains, strict=True))


def test_the_rows_nearest_to_the_centre_stand_for_the_cluster() -> None:
    """One cluster of 42 rows, ever farther from the first axis; the second row has the text of the first."""
    angles = np.linspace(0.01, 1, 42)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    texts = ["query 0", " query  0 ", *(f"query {n}" for n in range(2, 42))]
    of_row, (domain,) = find_domains(
        Queries([f"{n:02}" for n in range(42)], texts, vectors), Vocabulary(WORDS, AXES, {}), seed=0
    )
    middle = angles[np.argsort(-(vectors @ centres(vectors, of_row)[0]), kind="stable")[0]]
    nearest = sorted(range(42), key=lambda n: (abs(angles[n] - middle), n))[:12]
    assert set(domain.central) <= {f"{n:02}" for n in nearest} and len(domain.central) == 10
    few = find_domains(Queries(["a", "b", "c"], texts[:3], vectors[:3]), Vocabulary(WORDS, AXES, {}), seed=0)[1][0]
    assert sorted(few.central) in (["a", "c"], ["b", "c"])


def test_the_order_of_rows_does_not_matter() -> None:
    vocabulary = Vocabulary(WORDS, np.eye(8, dtype=np.float32)[:3], {})
    given = queries()
    of_row, domains = find_domains(given, vocabulary, seed=3)
    of_id = dict(zip(given.ids, of_row.tolist(), strict=True))
    for seed in range(3):
        shuffled = queries(random.Random(seed).sample(range(240), 240))
        again, same = find_domains(shuffled, vocabulary, seed=3)
        assert dict(zip(shuffled.ids, again.tolist(), strict=True)) == of_id and same == domains


def test_the_order_of_the_raw_lines_does_not_matter() -> None:
    """The bundled lines, as they are and shuffled: each row's cluster is the same, and all that is known of it."""
    with gzip.open(ROOT / "data" / "sample" / "embedding_training_data" / "msmarco-triplets.jsonl.gz") as file:
        lines = file.read().splitlines()
    found = []
    for ordered in (lines, random.Random(1).sample(lines, len(lines)), lines[::-1]):
        rows, _ = pool({"msmarco-triplets.jsonl.gz": ordered}, IngestParams(100), "msmarco")
        texts = [row["query"] for row in rows]
        vectors = np.array([hashed_words(text) for text in texts])
        vocabulary = Vocabulary(WORDS, np.array([hashed_words(word) for word in WORDS]), {})
        of_row, domains = find_domains(Queries([row["id"] for row in rows], texts, vectors), vocabulary, seed=0)
        found.append(({row["id"]: int(number) for row, number in zip(rows, of_row, strict=True)}, domains))
    assert found[1] == found[0] and found[2] == found[0]
    assert len(found[0][0]) >= 120 and len(found[0][1]) > 1


def hashed_words(text: str) -> np.ndarray:
    """Return a unit vector, float32 [32]: the words of a text by their hashes."""
    vector = np.full(32, 0.01)
    for word in text.lower().split():
        vector[zlib.crc32(word.encode()) % 32] += 1
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def test_no_rows_have_no_domains() -> None:
    of_row, domains = find_domains(Queries([], [], np.zeros((0, 2), np.float32)), Vocabulary(WORDS, AXES, {}), seed=0)
    assert (of_row.tolist(), domains) == ([], [])


def evidence(word: str, central: list[str], overridden: bool = False) -> dict[str, Json]:
    near: list[Json] = [[f"nearest word {n} to {word}", 0.5 - n / 10] for n in range(5)]
    terms: list[Json] = [f"{word} term {n}" for n in range(8)]
    return {"word": word, "overridden": overridden, "nearest": near, "terms": terms, "central": list(central)}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release with two clusters of four rows; the middle query of the first is long and full of controls."""
    builder = tiny(4)
    domains = {"msmarco/00": ("law", True), "msmarco/01": ("wine", False)}
    for task, (word, overridden) in domains.items():
        rows = [pair_row("msmarco", 10 * int(task[-1]) + n, task) for n in range(4)]
        if word == "law":
            rows[2]["query"] = "\x1b[31mwhat is\nlaw " * 30
        builder.rows["msmarco", task] = rows
        entry = task_entry("msmarco", task, "pair", 4)
        entry["evidence"] = {"domain": evidence(word, [str(rows[n]["id"]) for n in (2, 0, 3)], overridden)}
        builder.tasks.append(entry)
    builder.sources.append(source_entry("msmarco", 8))
    record: dict[str, Json] = {"stage": "instruct", "unit": "msmarco", "key": "01"}
    record["params"] = {"domains": {"00": "law", "29": "tax"}}
    contents = builder.contents()
    write_release(tmp_path / "x", replace(contents, records=[*contents.records, record]), 1 << 20)
    return tmp_path / "x"


def test_a_release_says_what_its_domains_are(release: Path) -> None:
    found = domains_of(open_release(release), 2)
    assert [(d.number, d.task, d.rows, d.word, d.overridden) for d in found.clusters] == [
        ("00", "msmarco/00", 4, "law", True),
        ("01", "msmarco/01", 4, "wine", False),
    ]
    assert found.clusters[1].queries == ["query 12 of msmarco", "query 10 of msmarco"]
    assert found.clusters[1].nearest[4] == ("nearest word 4 to wine", 0.5 - 4 / 10)
    assert found.unused == {"29": "tax"}
    assert [d.queries for d in domains_of(open_release(release), 0).clusters] == [[], []]


def test_the_screen_is_80_columns_wide_and_shows_no_control(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["domains", str(release), "--n", "3"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80 and "\x1b" not in out
    assert lines[0] == "00  law (set in msmarco_domains.toml), 4 rows"
    assert lines[1].startswith("    near    nearest word 0 to law 0.50, ")
    first = next(n for n, line in enumerate(lines) if line.startswith("    queries \\x1b[31mwhat is\\nlaw"))
    assert lines[first + 1].endswith(" …") and lines[first + 2] == "            query 0 of msmarco"
    assert "01  wine, 4 rows" in lines
    assert err == "msmarco_domains.toml names clusters that are not here: 29 (tax)\n"


def test_a_program_reads_the_same(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["domains", str(release), "--json", "--n", "1"]) == 0
    law, wine = json.loads(capsys.readouterr().out)
    assert list(wine) == ["number", "task", "rows", "word", "overridden", "nearest", "terms", "queries"]
    assert (wine["nearest"][0], wine["queries"]) == (["nearest word 0 to wine", 0.5], ["query 12 of msmarco"])
    assert law["queries"] == ["\x1b[31mwhat is\nlaw " * 30]


def test_a_release_without_domains_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = tiny(2)
    builder.write(tmp_path / "none")
    builder.rows["msmarco", "msmarco/00"] = [pair_row("msmarco", 1, "msmarco/00")]
    builder.tasks.append(task_entry("msmarco", "msmarco/00", "pair", 1))
    builder.sources.append(source_entry("msmarco", 1))
    builder.write(tmp_path / "old")
    again = "build it again with msmarco among its sources\n"
    assert main(["domains", str(tmp_path / "none")]) == 1
    assert capsys.readouterr() == ("", f"medi: {tmp_path / 'none'} has no rows of msmarco; {again}")
    assert main(["domains", str(tmp_path / "old")]) == 1
    assert capsys.readouterr() == ("", f"medi: {tmp_path / 'old'} says nothing of its domains; {again}")


def test_the_bundled_sample_has_domains(sample_release: Path) -> None:
    found = domains_of(open_release(sample_release), 3)
    words = load_instructions().vocabulary
    assert sum(d.rows for d in found.clusters) == 160 and len(found.clusters) == 4
    for domain in found.clusters:
        assert domain.word == domain.nearest[0][0] in words and domain.nearest[0][1] > domain.nearest[4][1] > 0
        assert len(domain.terms) == 8 and len(set(domain.queries)) == 3
