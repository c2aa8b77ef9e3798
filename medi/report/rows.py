"""The shards of a release, read once -> of each task what the report shows of its rows: counts, scores, some examples.

Scores stay as arrays (4 bytes each), so that those of a source can be put together from those of its tasks.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from medi.release import Release
from medi.release.manifest import Json
from medi.screen import shown

# What the report shows of a text, an instruction, and a row's negatives: with 330 tasks it stays below 5 MB.
TEXT_BYTES = 300
INSTRUCTION_BYTES = 600
SHOWN_NEGATIVES = 2
RANDOM_EXAMPLES = 2
_NO_SCORES = np.empty(0, dtype=np.float32)


@dataclass
class TaskRows:
    """What was found in the rows of a task, or of several.

    Scores are by measure: `cosine` in pairs and label tasks, `sum` in text tasks (s_pos and s_neg). `false_friends`
    counts rows of kind `pair` with a negative that scores as high as the positive.
    """

    rows: int = 0
    origins: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    licences: Counter[str] = field(default_factory=Counter)
    positives: dict[str, np.ndarray] = field(default_factory=dict)
    negatives: dict[str, np.ndarray] = field(default_factory=dict)
    false_friends: int = 0
    instructions: tuple[str, str] = ("", "")
    examples: list[dict[str, Json]] = field(default_factory=list)


def read_tasks(release: Release) -> dict[tuple[str, str], TaskRows]:
    """Return (source, task) -> what is in its rows; memory holds one row group at a time, beside the scores.

    Raises MediError where a shard is absent or damaged.
    """
    groups = ((_key(table), table) for table in release.tables())
    return {key: _of_task(table for _, table in tables) for key, tables in groupby(groups, key=itemgetter(0))}


def together(parts: Iterable[TaskRows]) -> TaskRows:
    """Return the counts and scores of several parts as one; instructions and examples belong to one task."""
    whole = TaskRows()
    listed = list(parts)
    for part in listed:
        whole.rows += part.rows
        whole.false_friends += part.false_friends
        whole.origins.update(part.origins)
        whole.labels.update(part.labels)
        whole.licences.update(part.licences)
    for side in ("positives", "negatives"):
        measures = dict.fromkeys(name for part in listed for name in getattr(part, side))
        joined = {name: [getattr(part, side).get(name, _NO_SCORES) for part in listed] for name in measures}
        setattr(whole, side, {name: np.concatenate(arrays) for name, arrays in joined.items()})
    return whole


def cut(text: str, most_bytes: int = TEXT_BYTES) -> str:
    """Return the beginning of a text, harmless on a screen, and how long the whole is where that is more."""
    beginning = shown(text[:most_bytes])
    if len(text) <= most_bytes and len(beginning.encode()) <= most_bytes:
        return beginning
    return f"{beginning.encode()[:most_bytes].decode(errors='ignore')}… ({len(text):,} characters)"


def _key(table: pa.Table) -> tuple[str, str]:
    return table["source"][0].as_py(), table["task"][0].as_py()


def _of_task(tables: Iterable[pa.Table]) -> TaskRows:
    """Return what is in the row groups of one task."""
    parts, kept = [], []
    for table in tables:
        parts.append(_of_group(table))
        kept.append(_remarkable(table, first=not kept))
    few = pa.concat_tables(kept)
    whole = together(parts)
    whole.instructions = _instruction(few, "query_instruction"), _instruction(few, "document_instruction")
    whole.examples = _examples(few)
    return whole


def _of_group(table: pa.Table) -> TaskRows:
    """Return the counts and scores of a row group."""
    kind = table["kind"][0].as_py()
    measure = "sum" if kind == "text" else "cosine"
    positives = table["positive_score"].to_numpy().astype(np.float32)
    negatives = pc.list_flatten(table["negative_scores"]).to_numpy().astype(np.float32)
    return TaskRows(
        rows=len(table),
        origins=_counted(pc.list_flatten(table["negative_origins"])),
        labels=_counted(table["label"]),
        licences=_counted(table["licence"]),
        positives={measure: positives[np.isfinite(positives)]},
        negatives={measure: negatives[np.isfinite(negatives)]},
        false_friends=_false_friends(table, positives) if kind == "pair" else 0,
    )


def _remarkable(table: pa.Table, first: bool) -> pa.Table:
    """Return the rows of a group that may become examples: the first of the task, the best and the worst scored."""
    scores = table["positive_score"].to_numpy()
    scored = np.flatnonzero(np.isfinite(scores))
    numbers = set(range(min(len(table), RANDOM_EXAMPLES + 2))) if first else set()
    if len(scored):
        numbers |= {int(scored[scores[scored].argmax()]), int(scored[scores[scored].argmin()])}
    return table.take(pa.array(sorted(numbers), pa.int64()))


def _counted(values: pa.ChunkedArray) -> Counter[str]:
    return Counter({found["values"]: found["counts"] for found in pc.value_counts(values.drop_null()).to_pylist()})


def _instruction(table: pa.Table, name: str) -> str:
    """Return the instruction of one side; of several, which only a release of another maker has, the first."""
    return cut(table[name][0].as_py() or "", INSTRUCTION_BYTES)


def _false_friends(table: pa.Table, positives: np.ndarray) -> int:
    """Return how many rows have a negative that scores as high as their positive."""
    lengths = pc.fill_null(pc.list_value_length(table["negative_scores"]), 0).to_numpy()
    of_row = np.repeat(np.arange(len(table)), lengths)
    scores = pc.list_flatten(table["negative_scores"]).to_numpy()
    return len(np.unique(of_row[scores >= positives[of_row]]))


def _examples(table: pa.Table) -> list[dict[str, Json]]:
    """Return the rows of the highest and the lowest positive score, and the first others: ids are hashes."""
    positives = table["positive_score"].to_numpy()
    scored = np.flatnonzero(np.isfinite(positives))
    chosen: dict[int, str] = {}
    if len(scored) > 1:
        chosen[int(scored[positives[scored].argmax()])] = "highest positive score"
        chosen.setdefault(int(scored[positives[scored].argmin()]), "lowest positive score")
    others = [number for number in range(min(len(table), RANDOM_EXAMPLES + 2)) if number not in chosen]
    chosen |= dict.fromkeys(others[:RANDOM_EXAMPLES], "at random")
    return [_example(table.slice(number, 1).to_pylist()[0], why) for number, why in chosen.items()]


def _example(row: dict[str, object], why: str) -> dict[str, Json]:
    """Return what is shown of a row, whole or not (`medi verify` judges it), and of its first negatives."""
    columns = [row[name] for name in ("negatives", "negative_scores", "negative_origins")]
    texts, scores, origins = (column if isinstance(column, list) else [] for column in columns)
    labels = row["negative_labels"] if isinstance(row["negative_labels"], list) else []
    negatives: list[Json] = [
        [cut(str(text)), _rounded(score), shown(str(origin)), cut(str(labels[n])) if n < len(labels) else None]
        for n, (text, score, origin) in enumerate(zip(texts, scores, origins, strict=False))
        if n < SHOWN_NEGATIVES
    ]
    return {
        "why": why,
        "id": shown(str(row["id"])),
        "origin": shown(str(row["origin"])),
        "query": cut(str(row["query"])),
        "positive": cut(str(row["positive"])),
        "score": _rounded(row["positive_score"]),
        "label": None if row["label"] is None else cut(str(row["label"])),
        "negatives": negatives,
        "more": len(texts) - len(negatives),
    }


def _rounded(score: object) -> float | None:
    return round(score, 3) if isinstance(score, float) and math.isfinite(score) else None
