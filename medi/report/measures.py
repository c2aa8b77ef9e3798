"""The rows of a task and what the build knows of their texts -> the numbers of the report that shards cannot tell.

They are counts in fixed bins and short lists, kept in audit/measures.json of a release: lengths in tokens, places of
mined negatives among the candidates, cosines of text tasks, and where the task's queries lie among those of others.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from medi.profiles import CANDIDATES_KEPT
from medi.release.manifest import Json
from medi.schema import text_id

# Of each task the mean is over its first rows; rows stand by a hash, so these are as good as any.
MEAN_ROWS = 1_000
NEAREST_TASKS = 5
# So many rows are in memory at a time.
PART_ROWS = 1_000
# Edges between bins; what lies outside counts in the first or the last one.
LENGTHS = (*range(1, 16), *(step << octave for octave in range(1, 10) for step in range(8, 16)), 8192)
COSINES = tuple(round(-1 + step / 40, 3) for step in range(81))
SUMS = tuple(round(-2 + step / 20, 2) for step in range(81))
RANKS = tuple(range(1, CANDIDATES_KEPT + 2))
EDGES: dict[str, tuple[float, ...]] = {
    "query_tokens": LENGTHS,
    "document_tokens": LENGTHS,
    "negative_ranks": RANKS,
    "positive_cosines": COSINES,
    "negative_cosines": COSINES,
}

Vectors = Callable[[list[str]], np.ndarray]


@dataclass(frozen=True)
class Pool:
    """A unit's kind, ROWS, CANDIDATES and TOKENS, and how to get the vectors [n, D] of some of its texts."""

    kind: str
    rows: pa.Table
    candidates: pa.Table
    tokens: pa.Table
    vectors: Vectors

    @cached_property
    def documents(self) -> np.ndarray:
        """A hash of what each row lends to others as a negative, uint64 [rows]."""
        column = self.rows["positive" if self.kind == "pair" else "query"]
        parts = (column.slice(start, PART_ROWS) for start in range(0, len(column), PART_ROWS))
        return np.array([_hash(text) for part in parts for text in part.to_pylist()], dtype=np.uint64)

    def lengths(self, texts: list[str]) -> np.ndarray:
        """Return the lengths in tokens of the texts that have any, int32 [at most n]."""
        ids = pa.array([text_id(text) for text in texts], pa.string())
        places = pc.index_in(ids, value_set=self.tokens["text_id"]).drop_null()
        return self.tokens["length_tokens"].take(places).to_numpy()


@dataclass(frozen=True)
class Measured:
    """What was measured of one task: values with a JSON form, and the mean of its queries' vectors, float64 [D]."""

    source: str
    task: str
    mean: np.ndarray
    values: dict[str, Json] = field(default_factory=dict)


def measure(examples: pa.Table, pool: Pool) -> Measured:
    """Return what is measured of one task's EXAMPLES, whose unit is `pool`; some rows are in memory at a time."""
    found: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    for start in range(0, len(examples), PART_ROWS):
        for name, numbers in _measures(examples.slice(start, PART_ROWS), pool):
            found[name].append(numbers)
    joined = {name: np.concatenate(parts) for name, parts in found.items()}
    values: dict[str, Json] = {name: sparse(numbers, EDGES[name]) for name, numbers in joined.items()}
    for side in ("query", "document"):
        lengths = joined[f"{side}_tokens"]
        values[f"{side}_tokens_median"] = int(np.median(lengths)) if len(lengths) else None
    mean = pool.vectors(examples["query"].slice(0, MEAN_ROWS).to_pylist()).mean(axis=0, dtype=np.float64)
    return Measured(examples["source"][0].as_py(), examples["task"][0].as_py(), mean, values)


def _measures(examples: pa.Table, pool: Pool) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of each measure with its values in some rows."""
    queries, positives = examples["query"].to_pylist(), examples["positive"].to_pylist()
    negatives = [text for listed in examples["negatives"].to_pylist() for text in listed]
    yield "query_tokens", pool.lengths(queries)
    yield "document_tokens", pool.lengths([*positives, *negatives])
    yield "negative_ranks", _ranks(examples, pool)
    if pool.kind == "text":
        anchors = pool.vectors(queries)
        of_row = np.repeat(np.arange(len(queries)), pc.list_value_length(examples["negatives"]).to_numpy())
        yield "positive_cosines", _dots(anchors, pool.vectors(positives))
        yield "negative_cosines", _dots(anchors[of_row], pool.vectors(negatives)) if negatives else np.empty(0)


def measures_of(tasks: list[Measured], max_length_tokens: int) -> dict[str, Json]:
    """Return the content of audit/measures.json: tasks in order, each with its place on the map and its neighbours."""
    means = np.array([task.mean for task in tasks])
    places, nearest = flat_map(means), _nearest(means)
    entries: list[Json] = [
        {
            "source": task.source, "task": task.task, **task.values, "place": list(place),
            "nearest": [tasks[number].task for number in near],
        }
        for task, place, near in zip(tasks, places, nearest, strict=True)
    ]  # fmt: skip
    return {"max_length_tokens": max_length_tokens, "tasks": entries}


def flat_map(means: np.ndarray) -> list[tuple[float, float]]:
    """Return a place in the plane for each mean vector [t, D]: the two directions in which they differ most.

    Equal means give equal places: nothing is drawn, each direction points where its largest part is positive, and
    places are rounded to 3 digits.
    """
    spread = np.zeros((len(means), 2))
    centred = means - means.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    for axis, direction in enumerate(directions[:2]):
        spread[:, axis] = centred @ direction * np.sign(direction[np.abs(direction).argmax()])
    # Adding zero makes -0.0 a plain zero.
    return [(float(x), float(y)) for x, y in np.round(spread, 3) + 0.0]


def _nearest(means: np.ndarray) -> list[list[int]]:
    """Return for each mean the numbers of the others with the highest cosines, nearest first."""
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    cosines = np.round(unit @ unit.T, 6)
    np.fill_diagonal(cosines, -np.inf)
    order = np.argsort(-cosines, axis=1, kind="stable")
    return order[:, : min(NEAREST_TASKS, len(means) - 1)].tolist()


def binned(values: np.ndarray, edges: tuple[float, ...]) -> np.ndarray:
    """Return how many values fall between two edges each, int64 [edges - 1]; a value on an edge is above it."""
    # Scores are float32: a hair is added so that 0.3 falls where it reads.
    places = np.searchsorted(np.asarray(edges), values + 1e-6, side="right") - 1
    return np.bincount(np.clip(places, 0, len(edges) - 2), minlength=len(edges) - 1)


def sparse(values: np.ndarray, edges: tuple[float, ...]) -> list[Json]:
    """Return the bins of the values without the empty ones at both ends: number of the first bin, then the counts."""
    return trimmed(binned(values, edges))


def trimmed(counts: np.ndarray) -> list[Json]:
    """Return counts as `sparse` does."""
    filled = np.flatnonzero(counts)
    return [int(filled[0]), *counts[filled[0] : filled[-1] + 1].tolist()] if len(filled) else []


def untrimmed(counts: Json, edges: tuple[float, ...]) -> np.ndarray:
    """Return what `sparse` gave as counts of all bins, int64 [edges - 1]."""
    whole = np.zeros(len(edges) - 1, dtype=np.int64)
    if isinstance(counts, list) and counts:
        first, *rest = [int(count) for count in counts if isinstance(count, int)]
        whole[first : first + len(rest)] = rest
    return whole


def _ranks(examples: pa.Table, pool: Pool) -> np.ndarray:
    """Return the place of each mined negative among the candidates of its row, 1 for the nearest."""
    numbers = pc.index_in(examples["id"], value_set=pool.rows["id"])
    listed = pool.candidates["negatives"].take(numbers).to_pylist()
    columns = examples["negatives"].to_pylist(), examples["negative_origins"].to_pylist()
    found = []
    for candidates, negatives, origins in zip(listed, *columns, strict=True):
        documents = pool.documents[candidates]
        for text, origin in zip(negatives, origins, strict=True):
            places = np.flatnonzero(documents == _hash(text)) if origin == "mined" else ()
            found += [int(place) + 1 for place in places[:1]]
    return np.array(found, dtype=np.int64)


def _hash(text: str) -> np.uint64:
    return np.uint64(xxhash.xxh3_64_intdigest(text.encode()))


def _dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.einsum("nd,nd->n", left.astype(np.float64), right.astype(np.float64))
