"""A release becomes what a person wants to know at first sight: rows by task, lengths, scores, and some rows at random.

Values only; the command line draws them.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from medi.errors import UsageError
from medi.profiles import Rules
from medi.release import Release, as_written
from medi.release.accounting import (
    QUANTILES,
    Mining,
    changed_rules,
    mining_by_unit,
    rules_of,
    searched_in_lists,
    shortages,
    total_of,
)
from medi.release.verdict import verdict_line


@dataclass(frozen=True)
class TaskSummary:
    """A task's rows, how many of its negatives are `given`, `mined` and `random`; of a Super-NI task its verdict."""

    task: str
    source: str
    kind: str
    planned_rows: int
    rows: int
    negatives: int
    origins: dict[str, int]
    verdict: str


@dataclass(frozen=True)
class Spread:
    """How a measure (`query_characters`, `pair_positive_score`, ...) is spread: one value for each of QUANTILES."""

    measure: str
    count: int
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class Summary:
    """A release, or the part of it that was asked for, in numbers.

    `profile` and `rules` are how negatives were chosen, of `rules` those that differ from profile `paper`; `mining` is
    what became of the candidates, None where an earlier version of medi kept no account; `shortages` is a line for each
    unit with queries that are short, most missing negatives first; `searched` is one for each that `--ivf-from` had a
    say in.
    """

    content_digest: str
    rows: int
    tasks: list[TaskSummary]
    spreads: list[Spread]
    profile: str
    rules: dict[str, object]
    mining: Mining | None
    shortages: list[str]
    searched: list[str]


def summarise(release: Release, name: str | None = None) -> Summary:
    """Return the numbers of a release, or of one task or source in it.

    Raises UsageError where the release has no such name, MediError where it is not as medi writes one.
    """
    check_name(release, name)
    with as_written(release):
        return _summary(release, name)


def _summary(release: Release, name: str | None) -> Summary:
    """Return the numbers of a release whose form nobody has checked."""
    values: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    rows = Counter[tuple[str, str]]()
    origins: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for table in release.tables(name):
        key = table.column("source")[0].as_py(), table.column("task")[0].as_py()
        rows[key] += len(table)
        for count in pc.value_counts(pc.list_flatten(table.column("negative_origins"))).to_pylist():
            origins[key][count["values"]] += count["counts"]
        for measure, found in _measures(table):
            values[measure].append(found)
    tasks = [
        TaskSummary(
            task=entry["task"],
            source=entry["source"],
            kind=entry["kind"],
            planned_rows=entry["planned"],
            rows=rows[key],
            negatives=origins[key].total(),
            origins=dict(sorted(origins[key].items())),
            verdict=verdict_line(entry["evidence"]),
        )
        for entry in release.manifest["tasks"]
        if name in (None, *(key := (entry["source"], entry["task"])))
    ]
    spreads = [_spread(measure, np.concatenate(parts)) for measure, parts in sorted(values.items())]
    digest, params = release.manifest["content_digest"], release.manifest["params"]
    parts = mining_by_unit(e for e in release.manifest["tasks"] if name in (None, e["source"], e["task"]))
    rules = rules_of(params) or Rules()
    return Summary(
        digest,
        rows.total(),
        tasks,
        spreads,
        profile=str(params.get("profile", "unknown")),
        rules=changed_rules(rules),
        mining=None if parts is None else total_of(parts),
        shortages=shortages(parts or [], rules),
        searched=[
            f"{unit}: {how}" for unit, how in searched_in_lists(release.manifest["records"]) if name in (None, unit)
        ],
    )


def random_rows(release: Release, n: int, seed: int, name: str | None = None) -> list[dict[str, object]]:
    """Return n rows (or all, where there are fewer) of a release, or of one task or source, in reading order.

    Equal seeds give equal rows. Raises UsageError where the release has no such name.
    """
    check_name(release, name)
    with as_written(release):
        places = list(release.places(name))
        ends = list(accumulate(place.rows for place in places))
        total = ends[-1] if ends else 0
        chosen = sorted(random.Random(seed).sample(range(total), min(n, total)))
        found = []
        for place, end in zip(places, ends, strict=True):
            here = [index - (end - place.rows) for index in chosen if end - place.rows <= index < end]
            if here:
                found += release.read(place).take(here).to_pylist()
        return found


def check_name(release: Release, name: str | None) -> None:
    """Raise UsageError where a name is neither a task nor a source of the release, with the names it is close to."""
    names = {entry["task"] for entry in release.manifest["tasks"]} | {e["name"] for e in release.manifest["sources"]}
    if name is not None and name not in names:
        close = ", ".join(get_close_matches(name, sorted(names)))
        hint = f"did you mean {close}?" if close else f"`medi inspect {release.root}` lists all"
        raise UsageError(f"no task or source {name!r} in {release.root}; {hint}")


def _measures(table: pa.Table) -> Iterator[tuple[str, np.ndarray]]:
    """Yield named values of the rows: text lengths, and scores by kind (their ranges differ)."""
    kind = table.column("kind")[0].as_py()
    for measure, column in (
        ("query_characters", pc.utf8_length(table.column("query"))),
        ("positive_characters", pc.utf8_length(table.column("positive"))),
        ("negative_characters", pc.utf8_length(pc.list_flatten(table.column("negatives")))),
        ("negatives_per_row", pc.list_value_length(table.column("negatives"))),
        (f"{kind}_positive_score", table.column("positive_score").drop_null()),
        (f"{kind}_negative_score", pc.list_flatten(table.column("negative_scores")).drop_null()),
    ):
        yield measure, column.to_numpy()


def _spread(measure: str, values: np.ndarray) -> Spread:
    quantiles = np.quantile(values.astype(np.float64), QUANTILES, method="inverted_cdf") if len(values) else []
    return Spread(measure, len(values), tuple(float(value) for value in quantiles))
