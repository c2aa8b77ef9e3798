"""Manifest, rows and measures -> one entry a task and a source: all that the report's table and panels show of it.

An entry is JSON. Every text in it that comes from data has been made harmless to a screen; the page escapes it besides.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from medi.profiles import Rules
from medi.release.accounting import mining_of as account_of
from medi.release.accounting import shortages, unit_of
from medi.release.known import SUPER_NI
from medi.release.manifest import Json, Manifest, SourceEntry, TaskEntry, task_licence
from medi.release.verdict import verdict_line
from medi.report.measures import COSINES, EDGES, SUMS, sparse, trimmed, untrimmed
from medi.report.rows import TaskRows, cut, together
from medi.screen import many, shown

SHOWN_LABELS = 20
_SCORE_EDGES = {"cosine": COSINES, "sum": SUMS}
# Tasks without one are an embedding set each.
EMBEDDING_SETS = "Embedding sets"

Measures = Mapping[tuple[str, str], Mapping[str, Json]]


@dataclass(frozen=True)
class Report:
    """What the entries are made of: a manifest, its rules of mining, and by (source, task) its rows and measures."""

    manifest: Manifest
    rules: Rules
    rows: dict[tuple[str, str], TaskRows]
    measures: Measures = field(default_factory=dict)


def entries_of(report: Report) -> list[dict[str, Json]]:
    """Return the entries in the order of the release: a source of several tasks before these, else the task alone."""
    entries: list[dict[str, Json]] = []
    for source in report.manifest["sources"]:
        tasks = [entry for entry in report.manifest["tasks"] if entry["source"] == source["name"]]
        if [entry["task"] for entry in tasks] != [source["name"]]:
            entries.append(_of_source(report, source, tasks))
        entries += [_of_task(report, source, entry) for entry in tasks]
    return entries


def _of_task(report: Report, source: SourceEntry, entry: TaskEntry) -> dict[str, Json]:
    """Return the entry of a task; one that is its source tells that source's files too."""
    key = entry["source"], entry["task"]
    rows = report.rows.get(key, TaskRows())
    measures = report.measures.get(key, {})
    is_source = entry["task"] == source["name"]
    licence = ", ".join(rows.licences) or task_licence(entry) or source["licence"]
    return {
        **_common(entry, rows),
        "planned": entry["planned"] if has_quota(entry) else None,
        "name": shown(entry["task"]),
        "source": shown(entry["source"]),
        "is_source": is_source,
        "is_task": True,
        "kind": shown(entry["kind"]),
        "category": category_of(entry),
        "licence": shown(licence),
        "facts": _facts(entry, report.rules) + (_about(source) if is_source else []),
        "labels": [[cut(label), count] for label, count in _commonest(rows.labels)],
        "labels_in_all": len(rows.labels),
        "instructions": list(rows.instructions),
        "examples": list(rows.examples),
        "lines": _thresholds(report.rules, entry["kind"], rows),
        "plots": _plots(rows, {name: untrimmed(measures.get(name), edges) for name, edges in EDGES.items()}),
        "query_tokens": measures.get("query_tokens_median"),
        "document_tokens": measures.get("document_tokens_median"),
        "place": _place(measures.get("place")),
        "nearest": [shown(str(name)) for name in _list(measures.get("nearest"))],
    }


def _of_source(report: Report, source: SourceEntry, tasks: list[TaskEntry]) -> dict[str, Json]:
    """Return the entry of a source of several tasks: their sums."""
    keys = [(entry["source"], entry["task"]) for entry in tasks]
    rows = together(report.rows[key] for key in keys if key in report.rows)
    kinds = sorted({entry["kind"] for entry in tasks})
    summed = {
        name: sum((untrimmed(report.measures.get(key, {}).get(name), edges) for key in keys), np.zeros(1, np.int64))
        for name, edges in EDGES.items()
    }
    return {
        **_common(source, rows),
        "name": f"{shown(source['name'])}: {f'all {len(tasks):,} tasks' if len(tasks) > 1 else 'its one task'}",
        "source": shown(source["name"]),
        "is_source": True,
        "is_task": False,
        "kind": ", ".join(map(shown, kinds)),
        "category": "",
        "licence": shown(source["licence"]),
        "facts": _about(source),
        "labels": [],
        "labels_in_all": 0,
        "instructions": [],
        "examples": [],
        "lines": [],
        "plots": _plots(rows, summed),
        "query_tokens": None,
        "document_tokens": None,
        "place": None,
        "nearest": [],
    }


def has_quota(entry: TaskEntry) -> bool:
    """Return whether rows were planned for the task itself: clusters are what the plan of their source came to."""
    return entry["source"] in (entry["task"], SUPER_NI) or "cluster_of" not in _object(entry["evidence"])


def category_of(entry: TaskEntry) -> str:
    """Return the category that a Super-NI task's own file names first, else that it is an embedding set."""
    facts = _object(unit_of(entry)[1].get("ingest"))
    categories = _list(facts.get("categories"))
    return shown(str(categories[0])) if categories else EMBEDDING_SETS


def _common(entry: SourceEntry | TaskEntry, rows: TaskRows) -> dict[str, Json]:
    """Return what a source and a task have in common: counts, and medians of the scores that can be compared."""
    cosines = {side: getattr(rows, side).get("cosine") for side in ("positives", "negatives")}
    sums = {side: getattr(rows, side).get("sum") for side in ("positives", "negatives")}
    # Cosines and sums of cosines have no common median.
    scores = cosines if sums["positives"] is None else sums if cosines["positives"] is None else {}
    return {
        "planned": entry["planned"],
        "got": entry["got"],
        "drawn": entry.get("drawn"),
        "dropped": [[shown(reason), count] for reason, count in sorted(entry["dropped"].items())],
        "origins": [rows.origins.get(origin, 0) for origin in ("given", "mined", "random")],
        "positive": _median(scores.get("positives")),
        "negative": _median(scores.get("negatives")),
    }


def _median(scores: np.ndarray | None) -> float | None:
    return None if scores is None or not len(scores) else round(float(np.median(scores)), 3)


def _plots(rows: TaskRows, counts: Mapping[str, np.ndarray]) -> dict[str, Json]:
    """Return the histograms that hold anything, each as `measures.sparse` gives it."""
    plots = {f"{m}_positives": sparse(scores, _SCORE_EDGES[m]) for m, scores in rows.positives.items()}
    plots |= {f"{m}_negatives": sparse(scores, _SCORE_EDGES[m]) for m, scores in rows.negatives.items()}
    plots |= {name: trimmed(values) for name, values in counts.items()}
    return {name: counts for name, counts in plots.items() if counts}


def _commonest(labels: Counter[str]) -> list[tuple[str, int]]:
    return sorted(labels.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_LABELS]


def _thresholds(rules: Rules, kind: str, rows: TaskRows) -> list[Json]:
    """Return [place, words] of each threshold that decided a cosine shown here.

    A cross-encoder's scores took the place of cosines where one was used; in text tasks limits are of other scores.
    """
    lines: list[Json] = []
    if kind != "text" and rules.rescore is None:
        limits = {"--min-score": rules.min_score, "--max-score": rules.max_score}
        lines += [[limit, f"{name} {limit} for mined negatives"] for name, limit in limits.items() if limit is not None]
    median = _median(rows.positives.get("cosine"))
    if kind == "pair" and rules.rescore is None and median is not None:
        if rules.absolute_margin is not None:
            at = round(median - rules.absolute_margin, 3)
            lines.append([at, f"--absolute-margin {rules.absolute_margin}, from the median positive"])
        if rules.relative_margin is not None:
            at = round(median - abs(median) * rules.relative_margin, 3)
            lines.append([at, f"--relative-margin {rules.relative_margin}, from the median positive"])
    if kind != "pair" and rules.max_positive_score is not None:
        lines.append([rules.max_positive_score, "positives score less"])
    return lines


def _facts(entry: TaskEntry, rules: Rules) -> list[Json]:
    """Return [name, words] of what the stages found out about a task."""
    unit, evidence = unit_of(entry)
    ingest, mining = _object(evidence.get("ingest")), account_of(unit, _object(evidence.get("mine")))
    facts: list[tuple[str, str]] = []
    if "skipped" in ingest:
        facts.append(("left out", str(ingest["skipped"])))
    elif verdict := verdict_line(entry["evidence"]):
        facts.append(("verdict", verdict))
    facts += [("short of negatives", line) for line in shortages([mining], rules)]
    tallies = {"candidates": mining.candidates, "given negatives": mining.given, "draws for filling": mining.draws}
    for name, tally in tallies.items():
        if tally.listed:
            dropped = ", ".join(f"{rule} {count:,}" for rule, count in sorted(tally.dropped.items()) if count)
            facts.append((name, f"{tally.listed:,} listed, {tally.chosen:,} chosen; {dropped or 'none dropped'}"))
    return [[name, shown(words)] for name, words in facts]


def _about(source: SourceEntry) -> list[Json]:
    """Return [name, words] of where a source comes from."""
    files = [f"{shown(file['name'])} ({many(file['size'], 'byte')})" for file in source["files"]]
    named = ", ".join(files[:3]) + (f" and {len(files) - 3:,} more" if len(files) > 3 else "")
    mended = ", ".join(f"{shown(reason)} {count:,}" for reason, count in source["mended"].items())
    facts = {"files": named, "variant": shown(source["variant"]), "mended": mended, "cite": shown(source["citation"])}
    return [[name, words] for name, words in facts.items() if words]


def _place(value: Json) -> Json:
    """Return a place on the map, None for what is none."""
    numbers = [number for number in _list(value) if isinstance(number, int | float)]
    return [*numbers] if len(numbers) == 2 else None


def _object(value: object) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Json]:
    return value if isinstance(value, list) else []
