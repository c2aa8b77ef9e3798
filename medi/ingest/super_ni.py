"""One Super-NI task file -> ROWS: input, first reference, label for label tasks; what it is and why, as facts.

A task's rows do not depend on the order of its instances: equal inputs are merged in the order of their references.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

import pyarrow as pa

from medi.ingest.draw import BadRow, needs_mending, rank_of, reason_of
from medi.ingest.parse import as_text, fields_of, load
from medi.ingest.pool import IngestParams, quarantine
from medi.ingest.verdict import RESOLVED_SHARE, find_choices, judge, normal
from medi.schema import ROWS, Counts, fold, is_visible, natural, row_id, table_of
from medi.source import Bad, Drop, Json, member, optional, task_instance, texts_of

LANGUAGE = "English"
_FIRST_PER_ROW, _FIRST_AT_LEAST = 10, 100
_BOM = b"\xef\xbb\xbf"
_LANGUAGE_KEYS = ("Input_language", "Output_language", "Instruction_language")


@dataclass
class _Example:
    """One instance: its input, its references with the first in front, where it stands; a label once it has one."""

    query: str
    references: list[str]
    origin: str
    label: str | None = None


@dataclass
class _Task:
    """What a task file says of itself, and its instances, in which what `as_text` mends may still stand."""

    facts: dict[str, object]
    languages: dict[str, list[str]]
    instances: list[Json]
    is_suspect: bool


def ingest_task(params: IngestParams, file: str, raw: bytes | Bad) -> tuple[pa.Table, Counts]:
    """Return a task's ROWS sorted by id, and its counts; `file` is the file's name in the raw folder.

    `raw` is what the file holds, or what is wrong with it. Facts: kind, definition, licence, categories, evidence;
    `skipped` says why a task gives nothing. A file that is no task, lacks its definition or languages or (in strict
    mode) had to be mended counts as one bad record.
    Raises MediError where more is bad than allowed.
    """
    task = PurePosixPath(file).name.removesuffix(".json")
    counts = Counts()
    examples: list[_Example] = []
    try:
        found = _opened(raw, params.strict, counts.mended)
    except Bad as reason:
        # Nothing of it is kept, so nothing of it counts as mended.
        counts = Counts(rows_in=1, facts=_facts([""], {}))
        _skip(counts, 1, "bad", "bad file")
        quarantine([BadRow(file, None, str(reason), damage=isinstance(raw, Bad))], counts, params, task)
    else:
        counts.facts = found.facts | {"lines_read": len(found.instances)}
        found.instances = found.instances[: _instances_taken(params)]
        counts.rows_in = len(found.instances)
        if skipped := _foreign(found.languages):
            _skip(counts, len(found.instances), "other_language", skipped)
        else:
            examples = _merged(_judged(_examples(params, file, found, counts), counts), counts)
    rows = [_row_of(task, example, params.seed) for example in examples]
    counts.rows_out = len(rows)
    return table_of(rows, ROWS).sort_by("id"), counts.check(f"ingest of {task}")


def _instances_taken(params: IngestParams) -> int | None:
    """Return how many instances are taken from the start of a task, None for all.

    A task is read whole, so that every anchor sees every other example. `first` is for a quick look: 300 whole tasks
    would be some two million texts to encode for 12 rows each.
    """
    return max(_FIRST_AT_LEAST, _FIRST_PER_ROW * params.quota_rows) if params.take == "first" else None


def _opened(raw: bytes | Bad, strict: bool, mended: Counter[str]) -> _Task:
    """Return what a file says; repairs outside its instances are counted in `mended`, a field's once each.

    Raises Bad where it is no task, or had to be mended in strict mode.
    """
    if isinstance(raw, Bad):
        raise raw
    text = raw.removeprefix(_BOM)
    mends = {"bom"} if text != raw else set()
    value, is_suspect = load(text)
    instances = member(value, "Instances", mends)
    if not isinstance(instances, list):
        raise Bad("'Instances' is no array")
    record: Json = {key: v for key, v in value.items() if v is not instances} if isinstance(value, dict) else None
    record = as_text(record, mends) if is_suspect else record
    definition = _required(record, "Definition", mends)
    listed = {key: _listed(record, key, mends) for key in ("Instance License", "Categories", "Domains")}
    languages = {key: _required(record, key, mends) for key in _LANGUAGE_KEYS}
    if strict and mends:
        raise Bad(needs_mending(mends))
    mended.update(reason_of(mend) for mend in {mend.partition("[")[0] for mend in mends})
    return _Task(_facts(definition, listed), languages, instances, is_suspect)


def _facts(definition: list[str], listed: dict[str, list[str]]) -> dict[str, object]:
    return {
        "kind": "text",
        "definition": definition[0],
        "licence": ", ".join(listed.get("Instance License") or ["Unknown"]),
        "categories": listed.get("Categories", []),
        "domains": listed.get("Domains", []),
    }


def _listed(record: Json, key: str, mends: set[str]) -> list[str]:
    """Return a field as a list of visible texts, empty where it is absent. Raises Bad where it holds anything else."""
    value = optional(record, key, mends)
    texts = [] if value is None else texts_of(value, key, mends)
    return [text for text in texts if is_visible(text)]


def _required(record: Json, key: str, mends: set[str]) -> list[str]:
    """Return a field as `_listed` does. Raises Bad also where it has no text."""
    if texts := _listed(record, key, mends):
        return texts
    raise Bad(f"the key {key!r} is missing or empty")


def _foreign(languages: dict[str, list[str]]) -> str:
    """Return why a task is of another language, "" where it is English throughout."""
    for key, named in languages.items():
        if others := [language for language in named if language != LANGUAGE]:
            return f"language {key} {', '.join(others)}"
    return ""


def _skip(counts: Counts, rows: int, reason: str, skipped: str) -> None:
    counts.dropped[reason] += rows
    counts.facts["skipped"] = skipped


def _examples(params: IngestParams, file: str, found: _Task, counts: Counts) -> list[_Example]:
    """Return the instances that can be used. Raises MediError where more are bad than allowed."""
    examples: list[_Example] = []
    bad: list[BadRow] = []
    empty_references = 0
    for index, instance in enumerate(found.instances):
        identity = instance.get("id") if isinstance(instance, dict) else None
        key = as_text(identity, set()) if isinstance(identity, str) and identity else index
        origin = f"{file}#{key}"
        mends: set[str] = set()
        try:
            value = as_text(instance, mends) if found.is_suspect else instance
            fields = fields_of(value, task_instance, params.strict)
            mends.update(fields.mended)
            if mends and params.strict:
                raise Bad(needs_mending(mends))
            texts = (fields.positive, *fields.other_positives)
            references = [text for text in texts if is_visible(text)]
            if not (is_visible(fields.query) and references):
                raise Drop("empty_text")
            examples.append(_Example(fields.query, references, origin))
            counts.mended.update({reason_of(mend) for mend in mends})
            empty_references += len(texts) - len(references)
        except Drop as reason:
            counts.dropped[reason_of(str(reason))] += 1
        except Bad as reason:
            counts.dropped["bad"] += 1
            bad.append(BadRow(origin, None, str(reason)))
    if empty_references:
        counts.facts["reference_empty"] = empty_references
    quarantine(bad, counts, params, PurePosixPath(file).name.removesuffix(".json"))
    return examples


def _judged(examples: list[_Example], counts: Counts) -> list[_Example]:
    """Decide label or text and give the examples their labels; choices become their texts first."""
    facts = counts.facts
    choices = find_choices([(example.query, example.references[0]) for example in examples])
    if choices and choices.resolved_share < RESOLVED_SHARE:
        reason = f"choices resolved in {choices.resolved_share:.0%} of instances"
        _skip(counts, len(examples), "choice_unresolved", reason)
        facts["evidence"] = choices.evidence
        return []
    if choices:
        resolved = zip(examples, choices.outputs, strict=True)
        examples = [_Example(example.query, [text], example.origin) for example, text in resolved if text]
        counts.dropped["choice_unresolved"] += len(choices.outputs) - len(examples)
    kind, evidence = judge([example.references[0] for example in examples], str(facts["definition"]))
    if choices:
        evidence |= choices.evidence
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
