"""Two releases -> what differs between them, and what explains it: params, versions, raw files, encoder, arithmetic.

Values only; the command line draws them. Every file is hashed; where all shards have equal bytes, no row is read.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from medi.errors import MediError
from medi.release import Place, Release, as_written
from medi.release.diff_causes import Change, beginnings, causes, changes, explanations, stage_versions
from medi.release.diff_rows import TaskRows, compare_rows, places_by_task
from medi.release.digests import digests_of
from medi.release.inspect import check_name
from medi.release.manifest import RUN, Json


@dataclass(frozen=True)
class TaskDiff:
    """How a task's rows differ. `changed` are rows of both, by aspect; `cause` is the first stage that gave another
    table, and why, "" where the records do not tell; `examples` are changed rows as in A and in B.
    """

    source: str
    task: str
    rows_a: int
    rows_b: int
    removed: int
    added: int
    changed_rows: int
    changed: dict[str, int]
    score_move: float
    cause: str
    removed_ids: list[str]
    added_ids: list[str]
    examples: list[tuple[dict[str, object], dict[str, object]]]


@dataclass(frozen=True)
class Side:
    """One of the two releases in numbers, and its folder as it was named."""

    folder: str
    content_digest: str
    rows: int
    tasks: int
    sources: int


@dataclass(frozen=True)
class Diff:
    """What differs between A and B. `equal` says that they hold the same rows, whatever else differs.

    `run` is what run.json says of versions and machine; `moved` counts, by source, rows that are in both, but in
    another task; `files` are those that differ in bytes or are in one folder alone, run.json left aside; `origin_rows`
    is how many rows differ in nothing but origin, or None where nobody looked. `explanations` are sentences for a
    person, most weighty first.
    """

    equal: bool
    a: Side
    b: Side
    params: list[Change]
    stages: list[Change]
    run: list[Change]
    sources_removed: list[str]
    sources_added: list[str]
    sources: dict[str, list[Change]]
    tasks_removed: list[str]
    tasks_added: list[str]
    tasks: list[TaskDiff] = field(default_factory=list)
    moved: dict[str, int] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    origin_rows: int = 0
    explanations: list[str] = field(default_factory=list)


def diff(a: Release, b: Release, name: str | None = None) -> Diff:
    """Return what differs between two releases, in all rows or in those of one task or source.

    A few thousand rows are held at a time. Raises UsageError where neither release has such a name, MediError where one
    is not whole, is damaged, or is not as medi writes a release.
    """
    if name is not None and name not in _names(a) | _names(b):
        check_name(a, name)
    files = _other_files(digests_of(a), digests_of(b))
    with as_written(a), as_written(b):
        return _diff(a, b, name, files)


def _names(release: Release) -> set[str]:
    """Return the names of a release's tasks and sources."""
    return {entry["task"] for entry in release.manifest["tasks"]} | {e["name"] for e in release.manifest["sources"]}


def _diff(a: Release, b: Release, name: str | None, files: list[str]) -> Diff:
    """Return what differs between two whole releases, of which these `files` do."""
    one, other = a.manifest, b.manifest
    equal = one["content_digest"] == other["content_digest"]
    rows: dict[tuple[str, str], tuple[TaskRows, int, int]] = {}
    if not equal or any(name.startswith("data/") for name in files):
        rows = _rows(a, b, name)
    sources = {entry["name"]: entry for entry in one["sources"]}, {entry["name"]: entry for entry in other["sources"]}
    tasks = [entry["task"] for entry in one["tasks"]], [entry["task"] for entry in other["tasks"]]
    removed, added = _only(*map(list, sources))
    differing = _task_diffs(a, b, rows)
    found = Diff(
        equal=equal or (name is not None and not differing),
        a=_side(a),
        b=_side(b),
        params=changes(one["params"], other["params"]),
        stages=changes(stage_versions(one["records"]), stage_versions(other["records"])),
        run=changes(_run(a), _run(b)),
        sources_removed=removed,
        sources_added=added,
        sources={n: c for n in sources[0] if n in sources[1] and (c := changes(sources[0][n], sources[1][n]))},  # type: ignore[arg-type]
        tasks_removed=_only(*tasks)[0],
        tasks_added=_only(*tasks)[1],
        tasks=differing,
        moved=_moved(rows),
        files=files,
        origin_rows=sum(part.changed["origin"] for part, _, _ in rows.values()),
    )
    if equal and found.tasks:
        raise MediError(
            f"{a.root} and {b.root} have one content digest, but not the same rows: in one of them the manifest is not "
            "that of its shards; `medi verify` tells in which"
        )
    others = (found.stages, removed, added, found.sources, found.tasks_removed, found.tasks_added)
    found.explanations.extend(explanations(found.params, others, bool(found.tasks)))
    found.explanations.extend(beginnings(part.cause for part in found.tasks))
    return found


def _side(release: Release) -> Side:
    manifest = release.manifest
    tasks = sum(entry["got"] > 0 for entry in manifest["tasks"])
    return Side(str(release.root), manifest["content_digest"], release.rows(), tasks, len(manifest["sources"]))


def _only(a: Iterable[str], b: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names that are in A alone, and those in B alone, each in its order."""
    left, right = dict.fromkeys(a), dict.fromkeys(b)
    return [name for name in left if name not in right], [name for name in right if name not in left]


def _other_files(a: dict[str, str], b: dict[str, str]) -> list[str]:
    """Return the paths of files that are in one release alone, or have another SHA-256."""
    return sorted(path for path in a | b if a.get(path) != b.get(path))


def _run(release: Release) -> dict[str, Json]:
    """Return the versions and the machine that run.json names; nothing where it is absent or says something else."""
    try:
        found = json.loads((release.root / RUN).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    named = found if isinstance(found, dict) else {}
    return {name: named[name] for name in ("versions", "machine") if isinstance(named.get(name), dict)}


def _rows(a: Release, b: Release, name: str | None) -> dict[tuple[str, str], tuple[TaskRows, int, int]]:
    """Return (source, task) -> how its rows differ, and how many there are in A and in B."""
    places = places_by_task(a), places_by_task(b)
    found = {}
    for key in dict.fromkeys([*places[0], *places[1]]):
        if name is not None and name not in key:
            continue
        here: tuple[list[Place], list[Place]] = places[0].get(key, []), places[1].get(key, [])
        counts = [sum(place.rows for place in part) for part in here]
        found[key] = compare_rows(a, here[0], b, here[1]), counts[0], counts[1]
    return found


def _task_diffs(a: Release, b: Release, rows: dict[tuple[str, str], tuple[TaskRows, int, int]]) -> list[TaskDiff]:
    """Return the tasks whose rows differ in more than their origin, most differing rows first."""
    cause_of = causes(a.manifest, b.manifest)
    found = []
    for (source, task), (part, rows_a, rows_b) in rows.items():
        if not part.differing:
            continue
        removed, added = (_ids(source, numbers) for numbers in (part.removed_ids, part.added_ids))
        found.append(
            TaskDiff(
                source, task, rows_a, rows_b, part.removed, part.added, part.changed_rows, part.changed,
                part.score_move, cause_of.get((source, task), ""), removed, added, part.examples,
            )
        )  # fmt: skip
    return sorted(found, key=lambda t: (-(t.removed + t.added + t.changed_rows), t.source, t.task))


def _ids(source: str, numbers: list[np.ndarray], most: int = 3) -> list[str]:
    """Return the first of some row ids, whose hex digits are given as numbers."""
    return [f"{source}/{number:016x}" for part in numbers for number in part[:most].tolist()][:most]


def _moved(rows: dict[tuple[str, str], tuple[TaskRows, int, int]]) -> dict[str, int]:
    """Return source -> rows that are in both releases, but in another task, as those of msmarco may be."""
    by_source: defaultdict[str, tuple[list[np.ndarray], list[np.ndarray]]] = defaultdict(lambda: ([], []))
    for (source, _), (part, _, _) in rows.items():
        by_source[source][0].extend(part.removed_ids)
        by_source[source][1].extend(part.added_ids)
    counts = {
        source: len(np.intersect1d(np.concatenate(removed), np.concatenate(added)))
        for source, (removed, added) in by_source.items()
        if removed and added
    }
    return {source: count for source, count in counts.items() if count}
