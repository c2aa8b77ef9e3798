"""Manifest and rows -> what a person should read first: each warning says what was found, where, and what it means."""

import re
from collections.abc import Callable, Iterator

import numpy as np

from medi.release.accounting import mining_by_unit, shortages, unit_of
from medi.release.manifest import Json, TaskEntry
from medi.report.entries import Report
from medi.report.rows import TaskRows
from medi.screen import shown

# From which share on something is worth a warning.
SHORT_SHARE = 0.9
FALSE_FRIENDS_SHARE = 0.2
TRUNCATED_SHARE = 0.2
DROPPED_SHARE = 0.1
SAME_TEXT_COSINE = 0.95
_NON_COMMERCIAL = re.compile(r"\bnc\b|non-?commercial|\bresearch\b", re.IGNORECASE)
_UNSTATED = re.compile(r"unknown|unstated|\?|^$", re.IGNORECASE)

# Good rows that the quota had no room for.
_NOT_LOST = ("over_quota", "mutual_pair")

_Notes = list[tuple[str, str]]


def forbids_commerce(licence: str) -> bool:
    """Return whether the words of a licence forbid commercial use: NC of Creative Commons, or research only."""
    return _NON_COMMERCIAL.search(licence) is not None


def warnings_of(report: Report) -> list[dict[str, Json]]:
    """Return {title, advice, notes [[task or source, words]]} of each warning, in the order they should be read."""
    found = [(title, advice, rule(report)) for title, advice, rule in _WARNINGS]
    return [
        {"title": title, "advice": advice, "notes": [[shown(name), shown(words)] for name, words in notes]}
        for title, advice, notes in found
        if notes
    ]


def _short(report: Report) -> _Notes:
    """Tasks and sources below what was planned for them, the emptiest first."""
    short = [
        entry
        for entry in (*report.manifest["sources"], *report.manifest["tasks"])
        if entry["got"] < SHORT_SHARE * entry["planned"] and ("name" in entry or entry["task"] != entry["source"])
    ]
    short.sort(key=lambda entry: (entry["got"] / entry["planned"], _name(entry)))
    return [(_name(entry), f"{entry['got']:,} of {entry['planned']:,} rows") for entry in short if entry["got"]]


def _empty(report: Report) -> _Notes:
    """Tasks without a row and why, and what had no file."""
    notes = []
    for entry in report.manifest["tasks"]:
        if not entry["got"]:
            facts = unit_of(entry)[1].get("ingest")
            skipped = facts.get("skipped") if isinstance(facts, dict) else None
            dropped = ", ".join(f"{reason} {count:,}" for reason, count in sorted(entry["dropped"].items()))
            notes.append((entry["task"], str(skipped or dropped or "its file has no rows")))
    absent = report.manifest["params"].get("absent")
    for names in absent.values() if isinstance(absent, dict) else ():
        notes += [(str(name), "no file of it was there") for name in (names if isinstance(names, list) else ())]
    return notes


def _false_friends(report: Report) -> _Notes:
    """Pair tasks with many negatives that are nearer to the query than its positive."""
    found = [(rows.false_friends / rows.rows, task, rows) for (_, task), rows in report.rows.items() if rows.rows]
    high = sorted((-share, task, rows) for share, task, rows in found if share >= FALSE_FRIENDS_SHARE)
    return [(task, f"{rows.false_friends:,} of {rows.rows:,} rows ({-share:.0%})") for share, task, rows in high]


def _same_texts(report: Report) -> _Notes:
    """Label tasks in which positives and negatives are all but the query itself: a pattern with little in it."""
    notes = []
    for (_, task), rows in report.rows.items():
        if rows.labels and _median(rows, "negatives") >= SAME_TEXT_COSINE:
            notes.append((task, f"half of its negatives score {_median(rows, 'negatives'):.2f} or more"))
    return notes


def _median(rows: TaskRows, side: str) -> float:
    scores = getattr(rows, side).get("cosine", ())
    return float(np.median(scores)) if len(scores) else 0.0


def _truncated(report: Report) -> _Notes:
    """Units many of whose texts fill the encoder's length, the fullest first."""
    found = set()
    for entry in report.manifest["tasks"]:
        unit, evidence = unit_of(entry)
        facts = evidence.get("tokens")
        full, texts = (facts.get("full_texts"), facts.get("texts")) if isinstance(facts, dict) else (None, None)
        if isinstance(full, int) and isinstance(texts, int) and texts and full / texts >= TRUNCATED_SHARE:
            found.add((-full / texts, unit, full, texts))
    return [(unit, f"{full:,} of {texts:,} texts ({-share:.0%})") for share, unit, full, texts in sorted(found)]


def _non_commercial(report: Report) -> _Notes:
    return _licensed(report, forbids_commerce)


def _unstated(report: Report) -> _Notes:
    return _licensed(report, lambda licence: _UNSTATED.search(licence) is not None and not forbids_commerce(licence))


def _licensed(report: Report, is_meant: Callable[[str], bool]) -> _Notes:
    """Tasks with rows under some licence; the clusters of a source share one, so the source stands for them."""
    rows: dict[tuple[str, str], int] = {}
    for (source, task), found in report.rows.items():
        for licence, count in found.licences.items():
            if is_meant(licence):
                key = (task if task.startswith("task") else source, licence)
                rows[key] = rows.get(key, 0) + count
    return [(name, f"{licence or 'none given'}; {count:,} rows") for (name, licence), count in rows.items()]


def _missing_negatives(report: Report) -> _Notes:
    """Units some of whose queries have fewer negatives than were asked for, and what to change."""
    lines = shortages(mining_by_unit(report.manifest["tasks"]) or [], report.rules)
    return [(name, words) for name, _, words in (line.partition(": ") for line in lines)]


def _lossy(report: Report) -> _Notes:
    """Units that lost many of the rows that were drawn, the most first."""
    found = sorted(_losses(report.manifest["tasks"]))
    return [(task, f"{lost:,} of {drawn:,} rows: {words}") for _, task, lost, drawn, words in found]


def _losses(tasks: list[TaskEntry]) -> Iterator[tuple[float, str, int, int, str]]:
    for entry in tasks:
        dropped = {reason: count for reason, count in entry["dropped"].items() if reason not in _NOT_LOST}
        drawn, lost = entry.get("drawn", 0), sum(dropped.values())
        if entry["got"] and drawn and lost / drawn >= DROPPED_SHARE:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items()))
            yield -lost / drawn, entry["task"], lost, drawn, reasons


def _name(entry: object) -> str:
    return str(entry.get("name", entry.get("task"))) if isinstance(entry, dict) else ""


_WARNINGS: tuple[tuple[str, str, Callable[[Report], _Notes]], ...] = (
    ("Without rows", "Nothing of these is in the release.", _empty),
    ("Far below their quota", "Less than nine tenths of what was planned.", _short),
    (
        "Licences that forbid commercial use",
        "A model trained on these rows may fall under the same terms; leave the sources out, or ask.",
        _non_commercial,
    ),
    ("Licences that are not stated", "Nobody says what may be done with these rows.", _unstated),
    (
        "Negatives that score as high as the positive",
        "In a fifth of the rows or more. Some may be right answers: look at examples, try --relative-margin 0.05.",
        _false_friends,
    ),
    (
        "Negatives that are nearly the query",
        "Label tasks whose inputs differ in few words: the label alone tells them apart.",
        _same_texts,
    ),
    (
        "Texts longer than the encoder reads",
        "A fifth or more fill its whole length; mining saw their beginnings only.",
        _truncated,
    ),
    ("Short of negatives", "Counted in the whole pool, before the quota.", _missing_negatives),
    ("Many rows dropped", "A tenth or more of what was drawn.", _lossy),
)
