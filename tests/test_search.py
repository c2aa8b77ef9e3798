"""Exact search: brute force agrees on ids and order, whatever the shape, the ties, the exclusions and the proposals."""

from math import fsum
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from medi.errors import MediError
from medi.mine.engine import Propose, by_cpu, fault_of, find_gpu
from medi.mine.scores import cosines_of, keys_of, read_keys, scores_at, scores_of
from medi.mine.search import Found, Lists, Search, top_k
from medi.mine.two_space import nearest_in_both

NOTHING = np.empty(0, dtype=np.int64)
Proposals = tuple[np.ndarray, np.ndarray]


def rounded(rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    """Return vectors of eighths, none of them zero: their scores are exact in any order, and many of them are equal."""
    vectors = (rng.integers(-4, 5, size=(count, dimension)) / 8).astype(np.float32)
    vectors[:, 0] += np.where((vectors == 0).all(axis=1), np.float32(1), 0)
    return vectors


def units(seed: int, count: int, dimension: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def brute_force(queries: np.ndarray, documents: np.ndarray, k: int, excluded: list[np.ndarray]) -> Found:
    """Return the answer by (score descending, id ascending) over all documents, the plain way."""
    numbers, scores, barred = [], [], []
    for exact, out in zip((queries.astype(np.float64) @ documents.T.astype(np.float64)), excluded, strict=True):
        listed, own = set(out.tolist()), exact.astype(np.float32).tolist()
        order = sorted(range(len(documents)), key=lambda d: (-own[d], d))
        best = [d for d in order if d not in listed][:k]
        numbers.append(best + [-1] * (k - len(best)))
        scores.append([own[d] for d in best] + [-np.inf] * (k - len(best)))
        ahead = order[: order.index(best[-1])] if len(best) == k else order
        barred.append(len(listed & set(ahead)))
    return Found(np.array(numbers), np.array(scores, dtype=np.float32), np.array(barred))


def assert_same(found: Found, expected: Found) -> None:
    for name, one, other in zip(Found._fields, found, expected, strict=True):
        assert np.array_equal(one, other), name


@pytest.mark.parametrize("scan_bytes", [1, 50_000, 64 << 20])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 300), st.integers(1, 24), st.integers(1, 80))
def test_brute_force_agrees_with_ties_and_duplicates(
    threads: int, scan_bytes: int, seed: int, n: int, m: int, dimension: int, k: int
) -> None:
    rng = np.random.default_rng(seed)
    documents, queries = rounded(rng, m, dimension)[rng.integers(0, m, m)], rounded(rng, n, dimension)
    excluded = [rng.permutation(m)[: rng.integers(0, m + 1) if rng.random() < 0.5 else 1] for _ in range(n)]
    found = top_k(queries, documents, k, Lists.of(excluded), Search(scan_bytes))
    assert_same(found, brute_force(queries, documents, k, excluded))


@pytest.mark.parametrize("scan_bytes", [1, 50_000, 64 << 20])
@pytest.mark.parametrize("count", [1, 2, 151])
def test_both_spaces_are_what_brute_force_finds_in_each(threads: int, scan_bytes: int, count: int) -> None:
    """s_pos and s_neg share their products, whatever the blocks; ties and excluded examples are among them."""
    rng = np.random.default_rng(count)
    inputs, outputs = rounded(rng, count, 6), rounded(rng, count, 6)
    excluded = [np.unique(rng.choice(count, rng.integers(1, 4))) for _ in range(count)]
    excluded[0] = np.arange(count)
    found = nearest_in_both(inputs, outputs, 9, Lists.of(excluded), Search(scan_bytes))
    both = np.hstack([inputs, outputs])
    for side, asked in zip(found, (both, np.hstack([inputs, -outputs])), strict=True):
        assert_same(side, brute_force(asked, both, 9, excluded))


def test_ten_equal_vectors_come_in_id_order_for_every_k() -> None:
    """C20: FAISS itself gives [0], [2, 1, 0], [4, 3, 2, 1, 0]."""
    documents = np.tile(np.eye(4, dtype=np.float32)[0], (10, 1))
    for k in range(1, 11):
        assert top_k(documents[:1], documents, k, Lists.of([NOTHING])).numbers.tolist() == [list(range(k))]


def test_more_wanted_than_there_are_leaves_minus_one() -> None:
    """C16: FAISS answers -1 with a score of -3.4e38, which must never be read as the last document."""
    documents = np.eye(4, dtype=np.float32)[:3]
    found = top_k(documents[:1], documents, 5, Lists.of([np.array([1])]))
    assert found.numbers.tolist() == [[0, 2, -1, -1, -1]]
    assert found.scores.tolist() == [[1.0, 0.0, -np.inf, -np.inf, -np.inf]]
    assert found.barred.tolist() == [1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dimension", [16, 384])
@pytest.mark.parametrize("scale", [1e-22, 1e-20, 1e-19, 1e18, 1e19, 1e20])
def test_scores_that_float32_hardly_holds_are_in_order_too(scale: float, dimension: int) -> None:
    """Products below 1e-38 are rounded away there, those above 3e38 are infinite, and may be so on their way."""
    documents, queries = (units(seed, count, dimension) * np.float32(scale) for seed, count in ((0, 2_500), (1, 12)))
    excluded = [np.array([row, 17]) for row in range(12)]
    with np.errstate(over="ignore"):
        expected = brute_force(queries, documents, 20, excluded)
    assert_same(top_k(queries, documents, 20, Lists.of(excluded)), expected)


@pytest.mark.parametrize(("queries", "documents"), [(0, 5), (2, 0), (0, 0)])
def test_where_nothing_is_searched_nothing_is_found(queries: int, documents: int) -> None:
    found = top_k(units(0, queries, 4), units(1, documents, 4), 3, Lists.of([NOTHING] * queries), propose=refuse)
    assert (found.numbers.tolist(), found.barred.tolist()) == ([[-1] * 3] * queries, [0] * queries)


def test_vectors_are_read_where_they_lie(tmp_path: Path) -> None:
    vectors = units(0, 300, 24)
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    seen = []

    def looked_at(queries: np.ndarray, documents: np.ndarray, width: int) -> Proposals:
        seen.append(np.shares_memory(documents, mapped) and np.shares_memory(queries, mapped))
        return by_cpu(queries, documents, width)

    excluded = Lists.of([np.array([row]) for row in range(300)])
    assert_same(top_k(mapped, mapped, 5, excluded, propose=looked_at), top_k(vectors, vectors, 5, excluded))
    assert seen == [True]


@pytest.mark.parametrize(
    ("side", "value", "fault"),
    [
        ("query", np.nan, "query row 17 has a vector that is not finite (1 of 20 rows)"),
        ("document", -np.inf, "document row 3 has a vector that is not finite (1 of 20 rows)"),
        ("document", 0.0, "document row 3 has a vector that has no length (1 of 20 rows)"),
    ],
)
def test_a_vector_that_is_none_is_named_before_any_search(side: str, value: float, fault: str) -> None:
    """C17: FAISS gives -1 for such a query, and never finds such a document."""
    queries, documents = units(0, 20, 4), units(1, 20, 4)
    if side == "query":
        queries[17, 2] = value
    else:
        documents[3] = value
    with pytest.raises(MediError) as error:
        top_k(queries, documents, 2, Lists.of([NOTHING] * 20), propose=refuse)
    assert str(error.value).startswith(fault)


@pytest.mark.filterwarnings("error")
def test_scores_beyond_float32_are_searched_without_a_word() -> None:
    documents = units(11, 300, 64) * np.float32(1e20)
    itself = [np.array([row]) for row in range(200)]
    found = top_k(documents[:200], documents, 5, Lists.of(itself))
    with np.errstate(over="ignore"):
        assert_same(found, brute_force(documents[:200], documents, 5, itself))


@pytest.mark.parametrize(("side", "value"), [("input", np.inf), ("output", 0.0)])
def test_an_example_whose_one_half_is_none_is_named(side: str, value: float) -> None:
    """The other half alone would have a length."""
    inputs, outputs = units(0, 20, 4), units(1, 20, 4)
    (inputs if side == "input" else outputs)[9] = value
    with pytest.raises(MediError, match=f"^{side} row 9 has a vector that "):
        nearest_in_both(inputs, outputs, 2, Lists.of([NOTHING] * 20), Search())


def refuse(queries: np.ndarray, documents: np.ndarray, width: int) -> Proposals:
    raise AssertionError(f"{len(queries)} queries are not to be proposed for")


@pytest.mark.parametrize("length", [1_000, 3_990])
def test_one_query_with_very_many_excluded_documents_costs_the_others_nothing(length: int) -> None:
    documents, queries = units(0, 4_000, 8), units(1, 50, 8)
    widths = []

    def counted(queries: np.ndarray, documents: np.ndarray, width: int) -> Proposals:
        widths.append((len(queries), width))
        return by_cpu(queries, documents, width)

    nearest = np.argsort(-scores_of(queries[7], documents), kind="stable")[:length]
    excluded = [nearest if row == 7 else NOTHING for row in range(50)]
    search = Search()
    found = top_k(queries, documents, 20, Lists.of(excluded), search, counted)
    assert widths == [(50, 26)]
    assert (search.decided.listed, search.decided.scanned) == (49, 1)
    assert_same(found, brute_force(queries, documents, 20, excluded))
    assert found.barred[7] == length


def test_more_than_a_gpu_finds_is_scanned_on_the_cpu() -> None:
    documents = units(0, 3_000, 8)
    found = top_k(documents[:3], documents, 2_500, Lists.of([np.arange(9)] * 3), Search(gpu=True), refuse)
    assert_same(found, brute_force(documents[:3], documents, 2_500, [np.arange(9)] * 3))


def test_a_longer_answer_starts_with_the_shorter_one() -> None:
    documents = rounded(np.random.default_rng(1), 500, 6)
    answers = [top_k(documents, documents, k, Lists.of([NOTHING] * 500)) for k in (1, 4, 9, 40, 400)]
    for shorter, longer in zip(answers, answers[1:], strict=False):
        width = shorter.numbers.shape[1]
        assert np.array_equal(longer.numbers[:, :width], shorter.numbers)
        assert np.array_equal(longer.scores[:, :width], shorter.scores)


def test_a_query_gets_the_same_answer_alone_and_in_company(threads: int) -> None:
    documents = units(2, 900, 100)
    together = top_k(documents, documents, 64, Lists.of([np.array([row]) for row in range(900)]))
    for row in (0, 17, 899):
        alone = top_k(documents[row : row + 1], documents, 64, Lists.of([np.array([row])]), Search(1))
        assert_same(alone, Found(*(part[row : row + 1] for part in together)))


def other_ties(queries: np.ndarray, documents: np.ndarray, width: int) -> Proposals:
    """Propose the documents that are equally good in the order of falling ids, in any order of columns."""
    scores = queries @ documents.T
    order = np.argsort(-scores[:, ::-1], axis=1, kind="stable")[:, :width]
    numbers = len(documents) - 1 - np.random.default_rng(0).permuted(order, axis=1)
    return np.take_along_axis(scores, numbers, axis=1), numbers


def other_bits(queries: np.ndarray, documents: np.ndarray, width: int) -> Proposals:
    """Propose with scores that are off by a few roundings."""
    noise = np.random.default_rng(0).uniform(-1, 1, size=(len(queries), len(documents)))
    scores = (queries @ documents.T + noise * queries.shape[1] * 2.0**-25).astype(np.float32)
    numbers = np.argsort(-scores, axis=1)[:, :width]
    return np.take_along_axis(scores, numbers, axis=1), numbers


def gaps(queries: np.ndarray, documents: np.ndarray, width: int) -> Proposals:
    """Propose nothing in the last place, nor in the first of every other query, with no. 0's score or the lowest."""
    scores, numbers = by_cpu(queries, documents, width)
    numbers[:, -1] = numbers[::2, 0] = -1
    scores[::2] = np.where(numbers[::2] < 0, queries[::2] @ documents[:1].T, scores[::2])
    scores[1::2, -1] = np.finfo(np.float32).min
    return scores, numbers


def rough(queries: np.ndarray, documents: np.ndarray, width: int) -> Proposals:
    """Propose by scores in eighths, which hide better documents."""
    scores = np.round((queries @ documents.T) * 8) / 8
    numbers = np.argsort(-scores, axis=1)[:, :width]
    return np.take_along_axis(scores, numbers, axis=1), numbers


def blind(queries: np.ndarray, documents: np.ndarray, width: int) -> Proposals:
    """Propose from the later documents only."""
    scores, numbers = by_cpu(queries, np.ascontiguousarray(documents[9:]), width)
    return scores, numbers + 9


@pytest.mark.parametrize("propose", [other_ties, other_bits, gaps, rough])
def test_ids_and_scores_are_the_same_whoever_proposes(propose: Propose) -> None:
    for documents in (units(3, 700, 48), units(4, 90, 48)[np.arange(700) % 90]):
        excluded = Lists.of([np.array([row, (row + 90) % 700]) for row in range(700)])
        expected = top_k(documents, documents, 20, excluded)
        assert_same(top_k(documents, documents, 20, excluded, propose=propose), expected)


@pytest.mark.parametrize(
    ("propose", "fault"),
    [
        (by_cpu, ""),
        (other_ties, ""),
        (other_bits, ""),
        (gaps, "FAISS on the GPU does not find 10 of 3,000 vectors"),
        (rough, "FAISS on the GPU gives scores that are off by more than rounding"),
        (blind, "FAISS on the GPU misses nearest vectors"),
    ],
)
def test_the_probe_believes_roundings_and_nothing_more(propose: Propose, fault: str) -> None:
    assert fault_of(propose) == fault


@pytest.mark.skipif(hasattr(faiss, "StandardGpuResources"), reason="this FAISS is one for GPUs")
def test_a_faiss_for_the_cpu_is_no_gpu_and_nothing_is_said() -> None:
    lines: list[str] = []
    assert (find_gpu(lines.append), lines) == (False, [])


@pytest.mark.parametrize("dimension", [2, 14, 384, 5_000, 9_000])
def test_the_bits_of_a_score_depend_on_the_two_vectors_alone(dimension: int) -> None:
    """The second half of a product takes back the first, so the score is what the order of the sum leaves."""
    left, right = units(5, 70, dimension // 2), units(6, 9, dimension // 2)
    queries, documents = np.hstack([left, left]), np.hstack([right, -right])
    numbers = np.random.default_rng(7).integers(0, 9, size=(70, 30))
    alone = [
        [scores_of(queries[q : q + 1], documents[d]).item() for d in row] for q, row in enumerate(numbers.tolist())
    ]
    for threads in (1, 2):
        assert scores_at(queries, documents, numbers, threads).tolist() == alone
    assert scores_at(queries, documents, numbers[:, 5:6]).tolist() == [row[5:6] for row in alone]
    assert scores_of(queries[:, None], documents[numbers]).tolist() == alone


def test_a_score_is_the_exact_product_rounded_once() -> None:
    queries, documents = units(8, 40, 768), units(9, 40, 768)
    products = [fsum((q * d).tolist()) for q, d in zip(queries.astype(float), documents.astype(float), strict=True)]
    assert scores_of(queries, documents).tolist() == np.array(products, dtype=np.float32).tolist()


def test_a_list_holds_its_own_and_no_absent_number() -> None:
    lists = Lists.of([np.array([5, 2]), np.array([0])])
    assert lists.mask(np.array([[5, 2, 0, -1], [5, 0, -1, 2]]), 6).tolist() == [
        [True, True, False, False],
        [False, True, False, False],
    ]


def test_keys_rise_where_scores_fall_and_then_by_number() -> None:
    scores = np.array([[2.5, 0.0, -0.0, 1e-45, -1e-45, -3.0, np.inf, -np.inf]], dtype=np.float32)
    numbers = np.array([[7, 6, 5, 4, 3, 2, 1, 2**32 - 1]])
    read, values = read_keys(np.sort(keys_of(scores, numbers)))
    assert read.tolist() == [[1, 7, 4, 5, 6, 3, 2, 2**32 - 1]]
    assert values.tolist() == np.sort(scores)[:, ::-1].tolist()


def test_a_hair_over_one_is_one() -> None:
    """C19."""
    long = np.array([[1.0 + 6e-8]], dtype=np.float32)
    assert scores_of(long, long).tolist() == [1.0000002384185791015625]
    assert cosines_of(long, long).tolist() == [1.0]
    assert cosines_of(long, -long).tolist() == [-1.0]
