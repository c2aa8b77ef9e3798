"""Quotas: lowest ranks first, shortfalls stay, mutual pairs return only where the task would miss its quota."""

import pyarrow as pa
import pytest

from medi.sample import quota_of, sample
from medi.schema import PAIRS, SECOND_OF_MUTUAL, table_of


def pairs(ranks: list[int], kind: str = "pair") -> pa.Table:
    """Return PAIRS with these ranks; the id is the place."""
    empty = {"negatives": [], "negative_labels": [], "negative_scores": [], "negative_origins": []}
    texts = {"task": "t", "kind": kind, "query": "q", "positive": "p", "origin": "f:1"}
    return table_of(({"id": f"s/{n:03d}", "rank": rank, **texts, **empty} for n, rank in enumerate(ranks)), PAIRS)


@pytest.mark.parametrize(("usable", "got"), [(3, 3), (50, 20), (1000, 20)])
def test_quota_and_shortfall(usable: int, got: int) -> None:
    """C40."""
    table, counts = sample(pairs([(7 * n) % 1009 for n in range(usable)]), 20)
    assert len(table) == got and counts.facts["planned"] == 20
    assert counts.check("sample").dropped["over_quota"] == usable - got
    assert len(set(table["id"].to_pylist())) == got


def test_lowest_ranks_are_taken_and_ids_sort_the_result() -> None:
    table, _ = sample(pairs([5, 1, 9, 0, 3]), 3)
    assert table["id"].to_pylist() == ["s/001", "s/003", "s/004"]


def test_a_smaller_quota_is_a_subset_and_equal_ranks_fall_to_the_smaller_id() -> None:
    ranks = [n % 7 for n in range(40)]
    small, large = (set(sample(pairs(ranks), quota)[0]["id"].to_pylist()) for quota in (9, 25))
    assert small < large
    assert sample(pairs([4, 4, 4]), 2)[0]["id"].to_pylist() == ["s/000", "s/001"]


@pytest.mark.parametrize(("quota", "ids", "dropped"), [(2, ["s/000", "s/002"], 2), (3, ["s/000", "s/002", "s/003"], 1)])
def test_second_rows_of_mutual_pairs_fill_up_last(quota: int, ids: list[str], dropped: int) -> None:
    table, counts = sample(pairs([0, SECOND_OF_MUTUAL + 3, 1, SECOND_OF_MUTUAL + 2], kind="text"), quota)
    assert table["id"].to_pylist() == ids and counts.dropped == {"mutual_pair": dropped, "over_quota": 0}


def test_a_rank_of_an_embedding_set_is_never_taken_for_a_mutual_pair() -> None:
    _, counts = sample(pairs([2**63, 2**64 - 1]), 1)
    assert counts.dropped == {"mutual_pair": 0, "over_quota": 1}


@pytest.mark.parametrize(
    ("rows", "scale", "quota"),
    [(25_000, 0.02, 500), (600, 0.02, 12), (5_000, 0.0001, 1), (25, 0.1, 3), (600, 1.0, 600)],
)
def test_scaled_quotas(rows: int, scale: float, quota: int) -> None:
    assert quota_of(rows, scale) == quota
