"""Stage `sample`: cuts the PAIRS of a unit to its quota, in rising rank.

The ranks were set upstream: for embedding sets the seeded hash of the raw line, for Super-NI best positive score first
(paper 2.3), the second rows of mutual pairs last. A row's place never depends on another unit.
"""

import numpy as np
import pyarrow as pa

from medi.schema import SECOND_OF_MUTUAL, Counts


def quota_of(rows: int, scale: float) -> int:
    """Return the scaled quota: max(1, floor(rows x scale + 0.5))."""
    return max(1, int(np.floor(rows * scale + 0.5)))


def sample(pairs: pa.Table, quota_rows: int) -> tuple[pa.Table, Counts]:
    """Return at most `quota_rows` PAIRS, the lowest ranks, sorted by id.

    Counts: dropped `mutual_pair` (the other row of the pair is in) and `over_quota`.
    """
    order = pairs.sort_by([("rank", "ascending"), ("id", "ascending")])
    kept, left = order.slice(0, quota_rows), order.slice(quota_rows)
    second = np.zeros(len(left), dtype=bool)
    if len(left):
        scored = np.array(left["kind"].to_pylist()) != "pair"
        second = scored & (left["rank"].to_numpy() >= SECOND_OF_MUTUAL)
    counts = Counts(rows_in=len(pairs), rows_out=len(kept), facts={"planned": quota_rows})
    counts.dropped["mutual_pair"] = int(second.sum())
    counts.dropped["over_quota"] = int((~second).sum())
    return kept.sort_by("id"), counts
