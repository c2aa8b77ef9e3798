"""The manifests of two releases -> why their rows differ: the first stage that gave another table, and what it was
told.

Every table of a build has a record with version, params and inputs, so a difference is followed to where it began.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from medi.release.accounting import unit_of
from medi.release.manifest import Json, Manifest
from medi.screen import many
from medi.stages import VERSIONS

_NAMED = 3
_ARITHMETIC = "encoder.arithmetic"


@dataclass(frozen=True)
class Change:
    """A value that is `a` in one release and `b` in the other; None where it is absent. Names of parts are dotted."""

    what: str
    a: Json
    b: Json


def changes(a: Mapping[str, Json], b: Mapping[str, Json], prefix: str = "") -> list[Change]:
    """Return what differs between two JSON objects, in the order of A's names, then B's; lists are compared whole."""
    found = []
    for name in dict.fromkeys([*a, *b]):
        left, right = a.get(name), b.get(name)
        if isinstance(left, dict) and isinstance(right, dict):
            found += changes(left, right, f"{prefix}{name}.")
        elif left != right:
            found.append(Change(f"{prefix}{name}", left, right))
    return found


def stage_versions(records: Iterable[dict[str, Json]]) -> dict[str, Json]:
    """Return stage -> version, in the order of the data's route; several versions as a list."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for record in records:
        if isinstance(version := record.get("version"), int):
            found[str(record["stage"])].add(version)
    route = list(VERSIONS)
    ordered = sorted(found, key=lambda stage: route.index(stage) if stage in route else len(route))
    return {stage: min(found[stage]) if len(found[stage]) == 1 else sorted(found[stage]) for stage in ordered}  # type: ignore[dict-item]


def causes(a: Manifest, b: Manifest) -> dict[tuple[str, str], str]:
    """Return (source, task) -> the first stage whose table differs and why, of tasks that are in both manifests.

    As in "mine: rules.negatives, rules.window". A task whose records tell no difference is left out.
    """
    records = _by_unit(a), _by_unit(b)
    names = {(entry["source"], entry["task"]) for entry in a["tasks"]}
    units = {(e["source"], e["task"]): unit_of(e)[0] for e in b["tasks"] if (e["source"], e["task"]) in names}
    found = {unit: _cause(records[0].get(unit, {}), records[1].get(unit, {})) for unit in set(units.values())}
    return {task: found[unit] for task, unit in units.items() if found[unit]}


def _by_unit(manifest: Manifest) -> dict[str, dict[str, dict[str, Json]]]:
    """Return unit -> stage -> record."""
    found: defaultdict[str, dict[str, dict[str, Json]]] = defaultdict(dict)
    for record in manifest["records"]:
        found[str(record.get("unit"))][str(record.get("stage"))] = record
    return found


def _cause(a: dict[str, dict[str, Json]], b: dict[str, dict[str, Json]]) -> str:
    """Return the first stage of a unit whose tables differ, with what it was told otherwise; "" where there is none."""
    for stage in VERSIONS:
        one, other = a.get(stage, {}), b.get(stage, {})
        if not one or not other or one.get("content") == other.get("content"):
            continue
        told = changes(_told(one), _told(other))
        names = [change.what.removeprefix("params.").removeprefix("inputs.") for change in told]
        if len(names) > _NAMED:
            names = [*names[:_NAMED], f"and {len(names) - _NAMED} more"]
        return f"{stage}: {', '.join(names) or 'told the same, it gave another table'}"
    return ""


def _told(record: dict[str, Json]) -> dict[str, Json]:
    """Return what decided the table of a record."""
    return {name: record.get(name) for name in ("version", "params", "inputs")}


def explanations(params: list[Change], others: Iterable[object], row_differs: bool) -> list[str]:
    """Return sentences on why rows differ: the encoder, its arithmetic, or that nothing explains it.

    `others` is empty where nothing else differs either (stages, sources, tasks).
    """
    said = []
    encoder = [c for c in params if c.what.startswith("encoder.") and c.what != _ARITHMETIC]
    if encoder:
        names = ", ".join(change.what.removeprefix("encoder.") for change in encoder)
        said.append(f"the encoder is another ({names}): every score and every mined text may differ")
    arithmetic = next((change for change in params if change.what == _ARITHMETIC), None)
    if arithmetic:
        said.append(
            f"the arithmetic is another ({arithmetic.a} and {arithmetic.b}): equal bytes are promised for equal "
            "arithmetic alone; vectors may differ in their last bits, and of near ties another may win"
        )
    if row_differs and not params and not any(others):
        said.append(
            "no param, stage, source or raw file that the manifests name differs: a file was changed by hand, or "
            "medi's code without its stage's version; `medi verify` tells the former"
        )
    return said


def beginnings(causes_of_tasks: Iterable[str]) -> list[str]:
    """Return a sentence for each cause of tasks whose rows differ, that of most tasks first; "" is none."""
    counts = Counter(filter(None, causes_of_tasks))
    return [f"in {many(count, 'task')} the difference began in {cause}" for cause, count in counts.most_common()]
