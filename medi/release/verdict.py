"""A task's evidence in the manifest -> one line for a person: label task, text task or choice task, and why.

Only Super-NI tasks have a verdict; embedding sets bring their pairs.
"""

from medi.release.manifest import Json

_LABELS_SHOWN = 6
_WHY = {
    "small_label_set": "a small label set",
    "labels_in_definition": "the definition names the labels",
    "none": "the answers are no label set",
}


def verdict_line(evidence: Json) -> str:
    """Return the verdict of a manifest's task entry and what it rests on, "" where the task was not judged.

    As in "label task (a small label set): 2 distinct of 381 answers: no 286, yes 95". `evidence` is the entry's own.
    """
    facts = evidence.get("ingest") if isinstance(evidence, dict) else None
    found = facts.get("evidence") if isinstance(facts, dict) else None
    if not isinstance(facts, dict) or not isinstance(found, dict):
        return ""
    parts = [f"left out ({facts['skipped']})"] if "skipped" in facts else []
    if "rule" in found:
        rule = _WHY.get(str(found["rule"]), str(found["rule"]))
        answers = f"{found['distinct_outputs']:,} distinct of {found['instances']:,} answers"
        parts.append(f"{facts.get('kind')} task ({rule}): {answers}{_labels(found.get('labels'))}")
    if "choices" in found:
        share = found["choices_resolved_share"]
        parts.append(f"{found['choices']:,} answers name a choice of the input, {share:.1%} are put as its text")
    return "; ".join(parts)


def _labels(labels: Json) -> str:
    """Return the commonest labels with their counts."""
    if not isinstance(labels, dict):
        return ""
    commonest = sorted(labels.items(), key=lambda item: (-int(str(item[1])), item[0]))
    more = ", ..." if len(commonest) > _LABELS_SHOWN else ""
    return ": " + ", ".join(f"{label} {count:,}" for label, count in commonest[:_LABELS_SHOWN]) + more
