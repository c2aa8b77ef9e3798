"""Manifest and rows -> what a person should read first: each warning says what was found, where, and what it means.

Tasks of one source stand together in one line, which opens; the most important line is first.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from medi.release.accounting import mining_by_unit, shortages, unit_of
from medi.release.known import SUPER_NI
from medi.release.manifest import Json, TaskEntry
from medi.report.entries import Report, has_quota
from medi.report.rows import TaskRows
from medi.report.words import percent
from medi.screen import many, shown

# From which share on something is worth a warning.
SHORT_SHARE = 0.5
FALSE_FRIENDS_SHARE = 0.2
TRUNCATED_SHARE = 0.2
DROPPED_SHARE = 0.1
SAME_TEXT_COSINE = 0.95
_NON_COMMERCIAL = re.compile(r"\bnc\b|non-?commercial|\bresearch\b", re.IGNORECASE)
_UNSTATED = re.compile(r"unknown|unstated|\?|^$", re.IGNORECASE)

# Good rows that the quota had no room for.
_NOT_LOST = ("over_quota", "mutual_pair")


class Note(NamedTuple):
    """What was found of a task or source: in words, and the number of what its warning counts."""

    source: str
    name: str
    words: str
    number: int = 0


def forbids_commerce(licence: str) -> bool:
    """Return whether the words of a licence forbid commercial use: NC of Creative Commons, or research only."""
    return _NON_COMMERCIAL.search(licence) is not None


def warnings_of(report: Report) -> list[dict[str, Json]]:
    """Return {title, advice, found, notes} of each warning, in the order they should be read.

    `found` counts tasks and sources; a note is [name, words], or of several tasks [source, words, [[task, words]]].
    """
    found = [(title, advice, counted, rule(report)) for title, advice, counted, rule in _WARNINGS]
    return [
        {
            "title": title,
            "advice": advice,
            "found": len({note.name for note in notes}),
            "notes": _grouped(notes, counted),
        }
        for title, advice, counted, notes in found
        if notes
    ]


def _grouped(notes: list[Note], counted: str) -> list[Json]:
    """Return the notes as JSON; several tasks of a source stand where the first of them stood, with their sum."""
    tasks: dict[str, list[Note]] = {}
    for note in notes:
        if note.name != note.source:
            tasks.setdefault(note.source, []).append(note)
    lines: list[Json] = []
    for note in notes:
        members = tasks.get(note.source, []) if note.name != note.source else []
        if len(members) < 2:
            lines.append([shown(note.name), shown(note.words)])
        elif note is members[0]:
            total = sum(member.number for member in members)
            words = many(len({member.name for member in members}), "task") + (f", {total:,} {counted}" if total else "")
            lines.append([shown(note.source), words, [[shown(one.name), shown(one.words)] for one in members]])
    return lines


def _short(report: Report) -> list[Note]:
    """Tasks with less than half of what was planned for them, those that lack the most rows first.

    Of a source of clusters the source stands for them; of Super-NI each task has its own plan.
    """
    tasks = [entry for entry in report.manifest["tasks"] if has_quota(entry)]
    own = {entry["source"] for entry in tasks}
    counts = [(entry["source"], entry["task"], entry["got"], entry["planned"]) for entry in tasks]
    counts += [
        (entry["name"], entry["name"], entry["got"], entry["planned"])
        for entry in report.manifest["sources"]
        if entry["name"] not in own
    ]
    short = [
        Note(source, name, f"{got:,} of {many(planned, 'row')} ({percent(got, planned)})", planned - got)
        for source, name, got, planned in counts
        if 0 < got < SHORT_SHARE * planned
    ]
    return sorted(short, key=lambda note: (-note.number, note.name))


def _empty(report: Report) -> list[Note]:
    """What had no file, and tasks without a row and why; of these, those that most was planned for are first."""
    absent = report.manifest["params"].get("absent")
    listed = absent if isinstance(absent, dict) else {}
    notes = []
    for kind, names in listed.items():
        for name in names if isinstance(names, list) else ():
            source = SUPER_NI if kind == "super_ni_tasks" else str(name)
            notes.append(Note(source, str(name), "no file of it was there"))
    for entry in sorted(report.manifest["tasks"], key=lambda entry: -entry["planned"]):
        if not entry["got"]:
            facts = unit_of(entry)[1].get("ingest")
            skipped = facts.get("skipped") if isinstance(facts, dict) else None
            dropped = ", ".join(f"{reason} {count:,}" for reason, count in sorted(entry["dropped"].items()))
            notes.append(Note(entry["source"], entry["task"], str(skipped or dropped or "its file has no rows")))
    return notes


def _false_friends(report: Report) -> list[Note]:
    """Pair tasks with many negatives that are nearer to the query than its positive."""
    found = [(rows.false_friends / rows.rows, *key, rows) for key, rows in report.rows.items() if rows.rows]
    high = sorted((-share, task, source, rows) for share, source, task, rows in found if share >= FALSE_FRIENDS_SHARE)
    return [
        Note(source, task, _part(rows.false_friends, rows.rows, "row"), rows.false_friends)
        for _, task, source, rows in high
    ]


def _part(part: int, whole: int, noun: str) -> str:
    return f"{part:,} of {many(whole, noun)} ({percent(part, whole)})"


def _same_texts(report: Report) -> list[Note]:
    """Label tasks in which positives and negatives are all but the query itself: a pattern with little in it."""
    notes = []
    for (source, task), rows in report.rows.items():
        if rows.labels and _median(rows, "negatives") >= SAME_TEXT_COSINE:
            words = f"half of its negatives score {_median(rows, 'negatives'):.2f} or more"
            notes.append(Note(source, task, words, rows.rows))
    return notes


def _median(rows: TaskRows, side: str) -> float:
    scores = getattr(rows, side).get("cosine", ())
    return float(np.median(scores)) if len(scores) else 0.0


def _truncated(report: Report) -> list[Note]:
    """Units many of whose texts fill the encoder's length, the fullest first."""
    found = set()
    for entry in report.manifest["tasks"]:
        unit, evidence = unit_of(entry)
        facts = evidence.get("tokens")
        full, texts = (facts.get("full_texts"), facts.get("texts")) if isinstance(facts, dict) else (None, None)
        if isinstance(full, int) and isinstance(texts, int) and texts and full / texts >= TRUNCATED_SHARE:
            found.add((-full / texts, unit, entry["source"], full, texts))
    return [Note(source, unit, _part(full, texts, "text"), full) for _, unit, source, full, texts in sorted(found)]


def _non_commercial(report: Report) -> list[Note]:
    return _licensed(report, forbids_commerce)


def _unstated(report: Report) -> list[Note]:
    return _licensed(report, lambda licence: _UNSTATED.search(licence) is not None and not forbids_commerce(licence))


def _licensed(report: Report, is_meant: Callable[[str], bool]) -> list[Note]:
    """Tasks with rows under some licence, most rows first; clusters share one, so their source stands for them."""
    rows: dict[tuple[str, str, str], int] = {}
    for (source, task), found in report.rows.items():
        for licence, count in found.licences.items():
            if is_meant(licence):
                key = (source, task if source == SUPER_NI else source, licence)
                rows[key] = rows.get(key, 0) + count
    notes = [
        Note(source, name, f"{licence or 'none given'}; {many(count, 'row')}", count)
        for (source, name, licence), count in rows.items()
    ]
    return sorted(notes, key=lambda note: (-note.number, note.name))


def _missing_negatives(report: Report) -> list[Note]:
    """Units some of whose queries have fewer negatives than were asked for, and what to change."""
    sources = {unit_of(entry)[0]: entry["source"] for entry in report.manifest["tasks"]}
    accounts = mining_by_unit(report.manifest["tasks"]) or []
    missing = {account.units[0]: account.negatives_missing for account in accounts}
    lines = (line.partition(": ") for line in shortages(accounts, report.rules))
    return [Note(sources[unit], unit, words, missing[unit]) for unit, _, words in lines]


def _lossy(report: Report) -> list[Note]:
    """Units that lost many of the rows that were drawn, the largest share first."""
    return [note for _, note in sorted(_losses(report.manifest["tasks"]))]


def _losses(tasks: list[TaskEntry]) -> Iterator[tuple[float, Note]]:
    for entry in tasks:
        dropped = {reason: count for reason, count in entry["dropped"].items() if reason not in _NOT_LOST}
        drawn, lost = entry.get("drawn", 0), sum(dropped.values())
        if entry["got"] and drawn and lost / drawn >= DROPPED_SHARE:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items()))
            words = f"{lost:,} of {many(drawn, 'row')}: {reasons}"
            yield -lost / drawn, Note(entry["source"], entry["task"], words, lost)


# Title, advice, what a group's sum counts, and who is meant.
_WARNINGS: tuple[tuple[str, str, str, Callable[[Report], list[Note]]], ...] = (
    ("Without rows", "Nothing of these is in the release.", "", _empty),
    (
        "Licences that forbid commercial use",
        "A model trained on these rows may fall under the same terms; leave the sources out, or ask.",
        "rows",
        _non_commercial,
    ),
    (
        "Negatives that score as high as the positive",
        "In a fifth of the rows or more. Some may be right answers: look at examples, try --relative-margin 0.05.",
        "rows",
        _false_friends,
    ),
    ("Short of negatives", "Counted in the whole pool, before the quota.", "negatives missing", _missing_negatives),
    ("Far below their quota", "Less than half of what was planned.", "rows missing", _short),
    (
        "Texts longer than the encoder reads",
        "A fifth or more fill its whole length; mining saw their beginnings only.",
        "texts",
        _truncated,
    ),
    (
        "Negatives that are nearly the query",
        "Label tasks whose inputs differ in few words: the label alone tells them apart.",
        "rows",
        _same_texts,
    ),
    ("Many rows dropped", "A tenth or more of what was drawn.", "rows dropped", _lossy),
    ("Licences that are not stated", "Nobody says what may be done with these rows.", "rows", _unstated),
)
