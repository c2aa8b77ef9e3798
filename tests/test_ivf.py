"""The inverted file: exact within the lists of a query, a recall that is measured, the same bytes however it runs."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import faiss
import numpy as np
import pytest

from medi import mine
from medi.errors import MediError, UsageError
from medi.mine.documents import Documents
from medi.mine.ivf import Inverted, Outcome, top_k_of_many
from medi.mine.search import Found, Lists, Search, top_k
from medi.mine.vectors import Rows
from medi.profiles import PROFILES, Rules, check_rules
from medi.release.accounting import changed_rules, rules_of, searched_in_lists
from medi.release.manifest import Json
from medi.schema import digest_table
from pipelines.build.context import Context, prepare
from pipelines.build.mining import Desk, Mined, mine_unit
from pipelines.build.steps import ingest_step, lengths_to_encode, tokens_step
from pipelines.build.units import plan_groups
from pipelines.presets import resolve
from tests.builds import manifest_of, medi_build, options, undone
from tests.mining import RULES, rows_of, texts_of
from tests.stage_memory import generate, give_vectors

K = 64
ANYWHERE = Search()


def clustered(seed: int, count: int, clusters: int = 40, step: float = 0.0) -> np.ndarray:
    """Return vectors float32 [count, 24] around so many centres, each about as often; with a step, multiples of it, so
    that scores are exact and many are equal.
    """
    centres = np.random.default_rng(0).normal(size=(clusters, 24))
    vectors = centres[np.arange(count) % clusters] + 0.4 * np.random.default_rng(seed).normal(size=(count, 24))
    vectors = np.round(vectors / step) * step if step else vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def some_excluded(queries: int, documents: int) -> Lists:
    """Return for each query three documents that it must not get, of every tenth one twice, and for some none."""
    rng = np.random.default_rng(7)
    lists = [rng.integers(0, documents, 3) for _ in range(queries)]
    return Lists.of([row.repeat(2) if n % 10 == 0 else row[: n % 4] for n, row in enumerate(lists)])


def recall(outcome: Outcome, exact: Found) -> float:
    pairs = zip(outcome.found.numbers, exact.numbers, strict=True)
    return float(np.mean([len(np.intersect1d(one, other)) / K for one, other in pairs]))


def assert_same(found: Found, expected: Found) -> None:
    for name, one, other in zip(Found._fields, found, expected, strict=True):
        assert np.array_equal(one, other), name


def test_within_its_lists_a_query_gets_what_brute_force_finds_there_ties_in_order() -> None:
    """Whatever is in no list it looks into counts as not there; scores are eighths, of which many are equal."""
    queries, documents = clustered(1, 300, step=0.5), clustered(2, 3_000, step=0.5)
    excluded = some_excluded(300, 3_000)
    outcome = top_k_of_many(queries, documents, K, excluded, ANYWHERE)
    probes, lists = outcome.facts["probes"], outcome.facts["lists"]
    assert isinstance(probes, int) and (lists, probes < 8, outcome.facts["searched_exactly"]) == (32, True, 0)
    inverted = Inverted.of(Documents.of(documents), ANYWHERE)
    nearest = inverted.nearest(Rows.of(queries), probes)
    scores = (queries.astype(np.float64) @ documents.T.astype(np.float64)).astype(np.float32)
    assert len(np.unique(scores[0])) < 2_000
    for row, own in enumerate(scores.tolist()):
        barred = set(excluded.part(slice(row, row + 1)).items.tolist())
        within = np.flatnonzero(np.isin(inverted.list_of, nearest[row])).tolist()
        order = sorted(within, key=lambda document: (-own[document], document))
        best = [document for document in order if document not in barred][:K]
        assert outcome.found.numbers[row].tolist() == best
        assert outcome.found.scores[row].tolist() == [own[document] for document in best]
        assert outcome.found.barred[row] == len(barred & set(order[: order.index(best[-1])]))


def test_threads_and_memory_do_not_change_a_bit(threads: int) -> None:
    queries, documents = clustered(3, 600), clustered(4, 4_000)
    excluded = some_excluded(600, 4_000)
    usual, tight = (top_k_of_many(queries, documents, K, excluded, Search(b)) for b in (64 << 20, 300_000))
    faiss.omp_set_num_threads(3 - threads)
    other = top_k_of_many(queries, documents, K, excluded, ANYWHERE)
    assert usual.facts == tight.facts == other.facts
    assert_same(usual.found, tight.found)
    assert_same(usual.found, other.found)


@pytest.mark.parametrize("clusters", [20, 60])
def test_the_recall_of_all_queries_is_what_was_promised(clusters: int) -> None:
    queries, documents = clustered(5, 2_000, clusters), clustered(6, 6_000, clusters)
    excluded = some_excluded(2_000, 6_000)
    outcome = top_k_of_many(queries, documents, K, excluded, ANYWHERE)
    assert outcome.facts["probes"] < 16  # type: ignore[operator]
    found = recall(outcome, top_k(queries, documents, K, excluded))
    assert 0.99 <= found and abs(found - float(str(outcome.facts["recall"]))) < 0.005


def test_where_the_lists_would_hold_most_documents_all_is_searched_exactly() -> None:
    """Vectors without any clusters."""
    rng = np.random.default_rng(8)
    queries, documents = (rng.normal(size=(count, 24)).astype(np.float32) for count in (400, 3_000))
    outcome = top_k_of_many(queries, documents, K, some_excluded(400, 3_000), ANYWHERE)
    assert_same(outcome.found, top_k(queries, documents, K, some_excluded(400, 3_000)))
    assert outcome.facts == {
        "documents": 3_000, "queries": 400, "lists": 32, "probes": 32, "recall": 1.0, "sampled": 400,
        "searched_exactly": 400,
    }  # fmt: skip


def test_what_is_excluded_never_comes_back() -> None:
    queries, documents = clustered(9, 600), clustered(10, 4_000)
    exact = top_k(queries, documents, K, Lists.of([np.empty(0, dtype=np.int64)] * 600))
    excluded = Lists.of(list(exact.numbers[:, ::2]))
    outcome = top_k_of_many(queries, documents, K, excluded, ANYWHERE)
    assert outcome.facts["probes"] < 16  # type: ignore[operator]
    assert not excluded.mask(outcome.found.numbers, 4_000).any()
    # Those of a list that nobody looked into are not counted.
    assert 31.5 < outcome.found.barred.mean() <= outcome.found.barred.max() == 32


def test_a_query_that_finds_fewer_than_k_in_its_lists_is_searched_exactly() -> None:
    """Two queries must get none of their thousand nearest, among which are all of the lists they look into."""
    queries, documents = clustered(11, 2_000), clustered(12, 4_000)
    nothing = np.empty(0, dtype=np.int64)
    exact = top_k(queries[:3], documents, 1_000, Lists.of([nothing] * 3))
    excluded = Lists.of([nothing, *exact.numbers[1:3], *[nothing] * 1_997])
    outcome = top_k_of_many(queries, documents, K, excluded, ANYWHERE)
    assert outcome.facts["probes"] < 8 and outcome.facts["searched_exactly"] == 2  # type: ignore[operator]
    expected = top_k(queries[1:3], documents, K, excluded.part(slice(1, 3)))
    assert_same(Found(*(part[1:3] for part in outcome.found)), expected)
    assert expected.barred.tolist() == [1_000] * 2 and (outcome.found.numbers >= 0).all()


def test_fewer_than_k_where_no_more_are_left() -> None:
    queries, documents = clustered(13, 50), clustered(14, 1_000)
    left = np.array([3, 400, 999])
    excluded = Lists.of([np.setdiff1d(np.arange(1_000), left)] * 50)
    outcome = top_k_of_many(queries, documents, K, excluded, ANYWHERE)
    assert (np.sort(outcome.found.numbers[:, :3]) == left).all() and (outcome.found.numbers[:, 3:] == -1).all()
    assert_same(outcome.found, top_k(queries, documents, K, excluded))


def test_vectors_that_are_none_are_an_error_of_one_line() -> None:
    queries, documents = clustered(15, 20), clustered(16, 1_000)
    documents[500] = np.nan
    with pytest.raises(MediError, match="document"):
        top_k_of_many(queries, documents, K, some_excluded(20, 1_000), ANYWHERE)


@pytest.mark.parametrize("strategy", ["passage", "s_neg"])
def test_candidates_of_a_source_are_exact_below_the_size_and_in_lists_from_it_on(strategy: str) -> None:
    count = 1_600
    queries, documents = clustered(17, count, 16), clustered(18, count, 16)
    vectors = {f"q{n}": tuple(v) for n, v in enumerate(queries.tolist())}
    vectors |= {f"d{n}": tuple(v) for n, v in enumerate(documents.tolist())}
    given: list[dict[str, object]] = [{"query": f"q{n}", "positive": f"d{n}"} for n in range(count)]
    rows = rows_of(*given)
    texts = texts_of(rows, vectors)
    exact, plain = mine.pair_candidates(rows, texts, RULES, strategy, ANYWHERE)
    below, counts = mine.pair_candidates(rows, texts, RULES, strategy, ANYWHERE, count + 1)
    assert below == exact and counts.facts == plain.facts and "ivf" not in plain.facts
    found, counts = mine.pair_candidates(rows, texts, RULES, strategy, ANYWHERE, count)
    told = counts.facts["ivf"]
    assert isinstance(told, dict) and (told["documents"], told["queries"]) == (count, count)
    pairs = list(zip(exact["negatives"].to_pylist(), found["negatives"].to_pylist(), strict=True))
    assert np.mean([len(set(one) & set(other)) / K for one, other in pairs]) >= 0.99
    assert all(len(other) == K and row not in other for row, (_, other) in enumerate(pairs))
    assert told["searched_exactly"] < count if strategy == "passage" else told["recall"] >= 0.99


@pytest.mark.parametrize("number", [0, -1, 9_999, 10**30])
def test_a_number_of_documents_that_no_build_can_have_is_refused(number: int) -> None:
    with pytest.raises(UsageError) as refused:
        resolve("sample", ivf_from=number)
    assert str(refused.value) == f"--ivf-from {number}: give a number of documents, from 10,000 to 1,000,000,000"
    assert resolve("sample", ivf_from=10_000).rules.ivf_from == 10_000


def test_the_rule_is_told_where_it_is_given_and_nowhere_else() -> None:
    given = check_rules(replace(PROFILES["clean"], ivf_from=20_000))
    assert "ivf_from" not in PROFILES["clean"].to_json() and given.to_json()["ivf_from"] == 20_000
    assert rules_of({"mining": json.loads(json.dumps(given.to_json()))}) == given  # type: ignore[dict-item]
    assert changed_rules(replace(Rules(), ivf_from=20_000)) == {"ivf_from": 20_000} and changed_rules(Rules()) == {}


def test_only_candidates_of_so_many_rows_get_another_key(tiny_encoder: Path, tmp_path: Path) -> None:
    generate(tmp_path / "raw" / "embedding_training_data" / "gooaq_pairs.jsonl", 700)
    settings = resolve(
        "full", raw=tmp_path / "raw", sources=("gooaq_pairs",), encoder=str(tiny_encoder), workspace=tmp_path / "w",
        out=tmp_path / "out", runner="none",
    )  # fmt: skip
    context = prepare(settings)
    (unit,) = plan_groups(context).groups[0].units
    rows = ingest_step(context, unit)
    tokens = tokens_step(context, unit, rows)
    give_vectors(context, lengths_to_encode(context, unit))

    def mined(ivf_from: int | None) -> tuple[Mined, Context]:
        own = replace(context, settings=replace(settings, ivf_from=ivf_from))
        return mine_unit(Desk(own, unit, rows, tokens), frozenset()), own

    plain, above, below = (mined(number)[0] for number in (None, 701, 700))
    assert plain.candidates == above.candidates and "ivf_from" not in plain.candidates.params
    assert plain.candidates.key != below.candidates.key and below.candidates.params["ivf_from"] == 700
    # Without clusters all is searched exactly, so the same is found.
    assert below.candidates.counts["facts"]["ivf"]["searched_exactly"] == 700
    tables = [context.store.open(record.candidates) for record in (plain, below)]
    assert digest_table(tables[0]) == digest_table(tables[1])


@pytest.mark.slow
def test_another_profile_leaves_the_search_as_it_was(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    """The manifest and the release that is chosen again name it."""
    undone(built, tmp_path / "w")
    done = medi_build(*options(cut, tmp_path / "w", tiny_encoder), "--ivf-from", "20000")
    assert done.returncode == 0, done.stderr
    call = [sys.executable, "-m", "pipelines.cli.app", "reselect", tmp_path / "w" / "out", "--profile", "clean"]
    assert subprocess.run(call, check=False).returncode == 0
    params = manifest_of(tmp_path / "w" / "out")["params"]
    assert params["mining"]["ivf_from"] == 20_000 and params["mining"]["negatives"] == 4  # type: ignore[call-overload]


def test_people_are_told_how_documents_were_searched() -> None:
    def record(unit: str, facts: dict[str, Json]) -> dict[str, Json]:
        return {"unit": unit, "stage": "candidates", "counts": {"facts": facts}}

    used: dict[str, Json] = {"documents": 12_800, "lists": 32, "probes": 6, "recall": 0.9962, "sampled": 512}
    records = [
        record("a", {"ivf": used}),
        record("b", {"ivf": used | {"probes": 32, "recall": 1.0}}),
        record("c", {}),
        {"unit": "imported"},
        record("d", {"ivf": {"documents": 0, "queries": 0}}),
    ]
    told = "12,800 documents in an inverted file, 6 of its 32 lists a query; recall 0.9962, the mean of 512 queries"
    exact = "12,800 documents searched exactly; an inverted file would have had to look at most of them"
    assert searched_in_lists(records) == [("a", told), ("b", exact)]
