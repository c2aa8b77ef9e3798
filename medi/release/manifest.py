"""The form of manifest.json, as types, and the check that a value read from a file has it.

A manifest holds params and counts only, so equal builds have equal manifests; what may differ is in run.json.
"""

from collections.abc import Iterable
from itertools import starmap
from pathlib import PurePosixPath
from typing import NotRequired, TypedDict, cast, get_args, get_origin, get_type_hints, is_typeddict

FORMAT = "medi-release/1"
MANIFEST = "manifest.json"
RUN = "run.json"
CARD = "README.md"
REPORT = "report.html"
POSITIVES_FILE = "audit/positives.parquet"
# What the report shows and the rows do not tell.
MEASURES_FILE = "audit/measures.json"
GROUP_ROWS = 1000

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class RawFile(TypedDict):
    """A raw file that was read: its name below the raw folder, bytes, SHA-256, and the commit it came from."""

    name: str
    size: int
    sha256: str
    commit: NotRequired[str]


class SourceEntry(TypedDict):
    """What became of one source. Where `drawn` is given, drawn = got + sum(dropped); got never exceeds planned."""

    name: str
    licence: str
    symmetric: bool
    clusters: bool
    given_negatives: bool
    variant: str
    citation: str
    files: list[RawFile]
    planned: int
    got: int
    drawn: NotRequired[int]
    dropped: dict[str, int]
    mended: dict[str, int]


class TaskEntry(TypedDict):
    """What became of one task; its `got` rows are in the shards. `slots` are those of the instructions, by side."""

    task: str
    source: str
    kind: str
    symmetric: bool
    planned: int
    got: int
    drawn: NotRequired[int]
    dropped: dict[str, int]
    slots: Json
    evidence: Json


class FileEntry(TypedDict):
    """A file of the release; Parquet files also tell their rows."""

    path: str
    size: int
    sha256: str
    rows: NotRequired[int]


class Manifest(TypedDict):
    """The whole of manifest.json."""

    format: str
    params: dict[str, Json]
    content_digest: str
    sources: list[SourceEntry]
    tasks: list[TaskEntry]
    records: list[dict[str, Json]]
    files: list[FileEntry]


def task_licence(entry: TaskEntry | None) -> str | None:
    """Return the licence that a Super-NI task's own file states, as ingest found it, or None where it is not told."""
    evidence = entry["evidence"] if entry else None
    found = evidence.get("ingest") if isinstance(evidence, dict) else None
    licence = found.get("licence") if isinstance(found, dict) else None
    return licence if isinstance(licence, str) else None


def manifest_fault(manifest: dict[str, object]) -> str | None:
    """Return what is wrong with a manifest's form in a few words, or None; unknown keys are allowed."""
    return _fault(manifest, Manifest, "") or next(filter(None, map(_stray, cast(Manifest, manifest)["files"])), None)


def _stray(entry: FileEntry) -> str | None:
    """Return that a file's path is none of a file inside the release, or None: whoever wrote it, it is followed."""
    path = PurePosixPath(entry["path"])
    is_plain = str(path) == entry["path"] and path.name and not path.is_absolute() and ".." not in path.parts
    return None if is_plain and entry["path"].isprintable() else f"the path {entry['path']!r} leads out of the release"


def _fault(value: object, form: object, where: str) -> str | None:
    """Compare a JSON value with the types above, depth first; the first difference is the answer."""
    origin, arguments = get_origin(form), get_args(form)
    if isinstance(form, type) and is_typeddict(form):
        if not isinstance(value, dict):
            return f"{where or 'the file'} is not an object"
        hints = get_type_hints(form)
        missing = sorted(vars(form)["__required_keys__"] - set(value))
        parts = ((value[key], hints[key], f"{where}.{key}".lstrip(".")) for key in hints if key in value)
        return f"{where}.{missing[0]}".lstrip(".") + " is absent" if missing else _first_fault(parts)
    if origin is list:
        if not isinstance(value, list):
            return f"{where} is not a list"
        return _first_fault((item, arguments[0], f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            return f"{where} is not an object"
        return _first_fault((item, arguments[1], f"{where}.{key}") for key, item in value.items())
    if isinstance(form, type) and type(value) is not form:
        return f"{where} is not {_WORDS[form]}"
    return None  # any JSON value will do


def _first_fault(parts: Iterable[tuple[object, object, str]]) -> str | None:
    return next(filter(None, starmap(_fault, parts)), None)


_WORDS = {str: "a string", int: "a whole number", bool: "true or false"}
