"""The rows of one task in two releases -> what was removed, added and changed, a thousand rows in memory at a time.

Rows stand by id within a task, so two streams are read side by side, and of both always the same range of ids.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from medi.errors import MediError
from medi.release import Place, Release, open_parquet, read_group
from medi.schema import EXAMPLES

# What may differ in a row whose id is in both, in the order in which a person wants to know it: name -> columns.
ASPECTS = {
    "positive": ("query", "positive", "label", "kind"),
    "negatives": ("negatives", "negative_labels", "negative_origins"),
    "scores": ("positive_score", "negative_scores"),
    "instructions": ("query_instruction", "document_instruction"),
    "licence": ("licence",),
    "origin": ("origin",),
}
_EXAMPLES_SHOWN = 3
Places = dict[tuple[str, str], list[Place]]


@dataclass
class TaskRows:
    """How the rows of a task differ: aspect -> `changed` rows of both; scores count only where their texts are equal.

    `score_move` is the greatest move of such a score, `changed_rows` the rows that differ in more than their origin,
    `examples` the first of these, as they are in A and in B; of rows in one release alone the ids' hex digits are kept.
    """

    removed: int = 0
    added: int = 0
    same: int = 0
    changed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ASPECTS, 0))
    score_move: float = 0.0
    changed_rows: int = 0
    examples: list[tuple[dict[str, object], dict[str, object]]] = field(default_factory=list)
    removed_ids: list[np.ndarray] = field(default_factory=list)
    added_ids: list[np.ndarray] = field(default_factory=list)

    @property
    def differing(self) -> int:
        """Return the rows that are in one release alone, or are in both and not the same but for their origin."""
        return self.removed + self.added + self.changed_rows


def places_by_task(release: Release) -> Places:
    """Return (source, task) -> its row groups, in reading order. Raises MediError as `Release.tables`."""
    found: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
    for entry in release.shards():
        with open_parquet(release.root / entry["path"]) as file:
            for index in range(file.num_row_groups):
                first = read_group(file, index, ["source", "task"]).slice(0, 1).to_pylist()[0]
                rows = file.metadata.row_group(index).num_rows
                found[first["source"], first["task"]].append(Place(entry["path"], index, rows))
    return dict(found)


def compare_rows(a: Release, places_a: list[Place], b: Release, places_b: list[Place]) -> TaskRows:
    """Return how the rows of one task differ. Raises MediError where a shard cannot be read or is not in order."""
    found = TaskRows()
    for left, right in _side_by_side(_tables(a, places_a), _tables(b, places_b)):
        at = pc.index_in(left["id"], value_set=right["id"].combine_chunks())
        is_common = at.is_valid()
        found.removed_ids.append(_numbers(left["id"].filter(pc.invert(is_common))))
        found.added_ids.append(
            _numbers(right["id"].filter(pc.invert(pc.is_in(right["id"], left["id"].combine_chunks()))))
        )
        found.removed += len(found.removed_ids[-1])
        found.added += len(found.added_ids[-1])
        _compare_common(left.filter(is_common), right.take(at.drop_null()), found)
    return found


def _tables(release: Release, places: list[Place]) -> Iterator[pa.Table]:
    """Yield the rows of one task, a row group at a time. Raises MediError where ids do not rise."""
    last = ""
    for shard, here in groupby(places, key=lambda place: place.shard):
        with open_parquet(release.root / shard) as file:
            for place in here:
                table = read_group(file, place.group, EXAMPLES.names)
                ids = [last, *table["id"].to_pylist()]
                if any(one >= other for one, other in zip(ids, ids[1:], strict=False)):
                    raise MediError(f"{release.root / shard}: ids do not rise in row group {place.group}; "
                                    f"see `medi verify {release.root}`")  # fmt: skip
                last = ids[-1]
                yield table


def _side_by_side(a: Iterator[pa.Table], b: Iterator[pa.Table]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield portions of two streams that hold all rows of the same range of ids; either may be empty."""
    empty = EXAMPLES.empty_table()
    left, right = next(a, empty), next(b, empty)
    while len(left) and len(right):
        ids = left["id"].to_pylist(), right["id"].to_pylist()
        end = min(ids[0][-1], ids[1][-1])
        cuts = bisect_right(ids[0], end), bisect_right(ids[1], end)
        yield left.slice(0, cuts[0]), right.slice(0, cuts[1])
        left = left.slice(cuts[0]) if cuts[0] < len(left) else next(a, empty)
        right = right.slice(cuts[1]) if cuts[1] < len(right) else next(b, empty)
    while len(left):
        yield left, empty
        left = next(a, empty)
    while len(right):
        yield empty, right
        right = next(b, empty)


def _compare_common(left: pa.Table, right: pa.Table, found: TaskRows) -> None:
    """Count what differs between rows [n] of the same ids, in the same order."""
    if left.equals(right):
        found.same += len(left)
        return
    unlike = {name: _unlike(left[name], right[name]) for columns in ASPECTS.values() for name in columns}
    # A score moved where its texts did not; those of other negatives, or of another kind, are others anyway.
    moved = {
        "positive_score": unlike["positive_score"] & ~unlike["positive"] & ~unlike["kind"],
        "negative_scores": unlike["negative_scores"] & ~unlike["negatives"] & ~unlike["kind"],
    }
    found.score_move = max(
        found.score_move, *(_move(left[n].filter(pa.array(m)), right[n].filter(pa.array(m))) for n, m in moved.items())
    )
    unlike |= moved
    any_of = np.zeros(len(left), dtype=bool)
    for aspect, columns in ASPECTS.items():
        rows = np.logical_or.reduce([unlike[name] for name in columns])
        found.changed[aspect] += int(rows.sum())
        any_of |= rows if aspect != "origin" else False
    found.changed_rows += int(any_of.sum())
    found.same += len(left) - int(any_of.sum())
    shown = np.flatnonzero(any_of)[: _EXAMPLES_SHOWN - len(found.examples)]
    found.examples += zip(left.take(shown).to_pylist(), right.take(shown).to_pylist(), strict=True)


def _unlike(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray:
    """Return where two columns [n] differ, bool [n]; null equals null."""
    if left.equals(right):
        return np.zeros(len(left), dtype=bool)
    one, other = left.combine_chunks(), right.combine_chunks()
    if not pa.types.is_list(one.type):
        return _unlike_values(one, other)
    unlike = _unlike_values(pc.list_value_length(one), pc.list_value_length(other))
    # Lists of equal lengths are compared item by item.
    equally_long = pa.array(~unlike)
    one, other = one.filter(equally_long), other.filter(equally_long)
    items = _unlike_values(pc.list_flatten(one), pc.list_flatten(other))
    parents = pc.list_parent_indices(one).to_numpy(zero_copy_only=False)
    unlike[np.flatnonzero(~unlike)[np.unique(parents[items])]] = True
    return unlike


def _unlike_values(one: pa.Array, other: pa.Array) -> np.ndarray:
    """Return where two arrays [n] of plain values differ, bool [n]."""
    values = pc.fill_null(pc.not_equal(one, other), False).to_numpy(zero_copy_only=False)
    nulls = pc.xor(one.is_null(), other.is_null()).to_numpy(zero_copy_only=False)
    return values | nulls


def _move(left: pa.ChunkedArray, right: pa.ChunkedArray) -> float:
    """Return the greatest difference of scores, or lists of scores, that are equally many; 0 where there are none."""
    one, other = (pc.list_flatten(c) if pa.types.is_list(c.type) else c for c in (left, right))
    if not len(one) or len(one) != len(other):
        return 0.0
    return pc.max(pc.abs(pc.subtract(one.cast(pa.float64()), other.cast(pa.float64())))).as_py() or 0.0


def _numbers(ids: pa.ChunkedArray) -> np.ndarray:
    """Return the 16 hex digits of ids as numbers, uint64 [n]: eight bytes a row, however many differ."""
    return np.array([int(name.rpartition("/")[2], 16) for name in ids.to_pylist()], dtype=np.uint64)
