"""One Super-NI task file -> ROWS: input, first reference, label for label tasks; what it is and why, as facts.

A task's rows do not depend on the order of its instances: equal inputs are merged in the order of their references.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

import pyarrow as pa

from medi.errors import MediError
from medi.ingest.draw import BadRow, rank_of
from medi.ingest.parse import parse
from medi.ingest.pool import IngestParams, quarantine
from medi.ingest.verdict import RESOLVED_SHARE, find_choices, judge, normal
from medi.schema import ROWS, Counts, fold, is_visible, row_id, table_of
from medi.source import Bad, Drop, Json, first_of, member, natural, text_of, texts_of

LANGUAGE = "English"
_LANGUAGE_KEYS = ("Input_language", "Output_language", "Instruction_language")


@dataclass
class _Example:
    """One instance: its input, its references with the first in front, where it stands; a label once it has one."""

    query: str
    references: list[str]
    origin: str
    label: str | None = None


def ingest_task(params: IngestParams, file: str, raw: bytes) -> tuple[pa.Table, Counts]:
    """Return a task's ROWS sorted by id, and its counts; `file` is the file's name in the raw folder.

    Facts: kind, definition, licence, categories, evidence; `skipped` says why a task gives nothing.
    Raises MediError where the file is no task, lacks its definition or languages, or has more bad instances than
    allowed.
    """
    task = PurePosixPath(file).name.removesuffix(".json")
    counts = Counts()
    record, instances = _task_object(file, raw, counts)
    counts.rows_in = len(instances)
    counts.facts = _facts(file, record, counts.mended)
    examples: list[_Example] = []
    if skipped := _foreign({key: _required(file, record, key, counts.mended) for key in _LANGUAGE_KEYS}):
        _skip(counts, len(instances), "other_language", skipped)
    else:
        examples = _merged(_judged(_examples(params, file, instances, counts), counts), counts)
    rows = [_row_of(task, example, params.seed) for example in examples]
    counts.rows_out = len(rows)
    return table_of(rows, ROWS).sort_by("id"), counts.check(f"ingest of {task}")


def _task_object(file: str, raw: bytes, counts: Counts) -> tuple[Json, list[Json]]:
    """Return the task and its instances. Raises MediError where the file is not of that kind."""
    try:
        if raw.startswith(b"\xef\xbb\xbf"):
            counts.mended["bom"] += 1
        value, mends = parse(raw.removeprefix(b"\xef\xbb\xbf"))
        counts.mended.update(mends)
        keys: set[str] = set()
        instances = member(value, "Instances", keys)
        if not isinstance(instances, list):
            raise Bad("'Instances' is no array")
        counts.mended.update(keys)
        return value, instances
    except Bad as reason:
        raise MediError(f"{file} is no Super-NI task: {reason}; fetch the file again or leave the task out") from reason


def _facts(file: str, record: Json, mended: Counter[str]) -> dict[str, object]:
    licence = _listed(record, "Instance License") or ["Unknown"]
    return {
        "kind": "text",
        "definition": _required(file, record, "Definition", mended)[0],
        "licence": ", ".join(licence),
        "categories": _listed(record, "Categories"),
        "domains": _listed(record, "Domains"),
    }


def _listed(record: Json, key: str) -> list[str]:
    """Return a field as a list of visible texts, empty where it is absent; upstream and its copies use both shapes."""
    try:
        return [text for text in texts_of(member(record, key, set()), key, set()) if is_visible(text)]
    except (Bad, Drop):
        return []


def _required(file: str, record: Json, key: str, mended: Counter[str]) -> list[str]:
    keys: set[str] = set()
    try:
        texts = texts_of(member(record, key, keys), key, set())
    except (Bad, Drop):
        texts = []
    if not any(map(is_visible, texts)):
        raise MediError(f"{file}: the key {key!r} is missing or empty; fetch the file again or leave the task out")
    mended.update(keys)
    return [text for text in texts if is_visible(text)]


def _foreign(languages: dict[str, list[str]]) -> str:
    """Return why a task is of another language, "" where it is English throughout."""
    for key, named in languages.items():
        if others := [language for language in named if language != LANGUAGE]:
            return f"language {key} {', '.join(others)}"
    return ""


def _skip(counts: Counts, rows: int, reason: str, skipped: str) -> None:
    counts.dropped[reason] += rows
    counts.facts["skipped"] = skipped


def _examples(params: IngestParams, file: str, instances: list[Json], counts: Counts) -> list[_Example]:
    """Return the instances that can be used. Raises MediError where more are bad than allowed."""
    examples: list[_Example] = []
    bad: list[BadRow] = []
    for index, instance in enumerate(instances):
        identity = instance.get("id") if isinstance(instance, dict) else None
        origin = f"{file}#{identity if isinstance(identity, str) and identity else index}"
        mends: set[str] = set()
        try:
            example = _example(instance, origin, mends)
            if mends and params.strict:
                raise Bad(f"needs mending ({', '.join(sorted(mends))}), which --strict forbids")
            examples.append(example)
            counts.mended.update(mends)
        except Drop as reason:
            counts.dropped[str(reason)] += 1
        except Bad as reason:
            counts.dropped["bad"] += 1
            bad.append(BadRow(origin, None, str(reason)))
    quarantine(bad, counts, params, file)
    return examples


def _example(instance: Json, origin: str, mends: set[str]) -> _Example:
    query = text_of(member(instance, "input", mends), "input", mends)
    value = member(instance, "output", mends)
    found = texts_of(value, "output", mends)
    first_of(found, value)
    references = [text for text in found if is_visible(text)]
    if not (is_visible(query) and references):
        raise Drop("empty_text")
    return _Example(query, references, origin)


def _judged(examples: list[_Example], counts: Counts) -> list[_Example]:
    """Decide label or text and give the examples their labels; choices become their texts first."""
    facts = counts.facts
    choices = find_choices([(example.query, example.references[0]) for example in examples])
    if choices and choices.resolved_share < RESOLVED_SHARE:
        _skip(
            counts, len(examples), "choice_unresolved", f"choices resolved in {choices.resolved_share:.0%} of instances"
        )
        return []
    if choices:
        resolved = zip(examples, choices.outputs, strict=True)
        examples = [_Example(example.query, [text], example.origin) for example, text in resolved if text]
        counts.dropped["choice_unresolved"] += len(choices.outputs) - len(examples)
    kind, evidence = judge([example.references[0] for example in examples], str(facts["definition"]))
    if choices:
        evidence |= {"choices": choices.named, "choices_resolved_share": round(choices.resolved_share, 4)}
    facts |= {"kind": kind, "evidence": evidence}
    if len(examples) > 1 and evidence["distinct_outputs"] == 1:
        _skip(counts, len(examples), "single_class", "single_class")
        return []
    if kind == "label":
        for example in examples:
            example.label = normal(example.references[0])
    return examples


def _merged(examples: list[_Example], counts: Counts) -> list[_Example]:
    """Merge examples of equal folded input; leave out an input with two labels."""
    by_input: dict[str, list[_Example]] = {}
    for example in examples:
        by_input.setdefault(fold(example.query), []).append(example)
    merged = []
    for group in by_input.values():
        labels = {normal(text) for example in group if example.label is not None for text in example.references}
        if len(labels) > 1:
            counts.dropped["conflicting_labels"] += len(group)
            continue
        counts.dropped["duplicate_input"] += len(group) - 1
        merged.append(_united(group))
    counts.facts["merged_inputs"] = counts.dropped["duplicate_input"]
    if counts.facts["kind"] == "label" and merged and len({example.label for example in merged}) < 2:
        _skip(counts, len(merged), "single_class", "single_class")
        merged = []
    counts.dropped = Counter({reason: n for reason, n in counts.dropped.items() if n})
    return merged


def _united(group: list[_Example]) -> _Example:
    group.sort(key=lambda example: (example.references, example.query))
    references = {fold(text): text for text in reversed([text for e in group for text in e.references])}
    ordered = dict.fromkeys(references[fold(text)] for example in group for text in example.references)
    origin = min((example.origin for example in group), key=natural)
    return _Example(group[0].query, list(ordered), origin, group[0].label)


def _row_of(task: str, example: _Example, seed: int) -> dict[str, object]:
    output = example.references[0]
    return {
        "id": row_id("super_ni", task, example.query, None, output),
        "task": task,
        "query": example.query,
        "output": output,
        "label": example.label,
        "references": example.references,
        "other_positives": [],
        "negatives": [],
        "origin": example.origin,
        "rank": rank_of(fold(example.query).encode(), seed),
    }
