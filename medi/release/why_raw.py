"""A row's origin -> its raw record, read again from the file, and what reading and cleaning did to it.

The file is looked for in the raw folder, then among the downloads, by the SHA-256 that the manifest has of it.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from medi.errors import MediError, UsageError
from medi.release import Release
from medi.release.known import SUPER_NI
from medi.release.manifest import RawFile, SourceEntry
from medi.source import Bad, Drop, Fields, RawBatch, Variant, task_instance

if TYPE_CHECKING:
    from medi.release.why import Places


@dataclass(frozen=True)
class Raw:
    """A raw record: `text` is its line, or its JSON; `mended` and `taken_out` are what was done to it, by reason.

    `places` are where its passages stand in a knowledge source, as in "page 18978754, paragraph 1".
    """

    file: str
    path: str
    size_bytes: int
    sha256: str
    key: str
    text: str
    layout: str
    mended: list[str] = field(default_factory=list)
    taken_out: dict[str, int] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)


def raw_of(release: Release, row: dict[str, object], places: "Places", absent: list[str]) -> Raw | None:
    """Return the raw record of a row, None where its file is not here; `absent` then gets a line that says why."""
    origin = str(row["origin"])
    entry = next(e for e in release.manifest["sources"] if e["name"] == row["source"])
    named = [file for file in entry["files"] if origin.startswith((f"{file['name']}:", f"{file['name']}#"))]
    if not named:
        absent.append(f"raw line: the manifest names no file {origin.rpartition('#')[0] or origin!r}; `medi verify`")
        return None
    try:
        variant = _variant(release, entry, places)
    except UsageError as error:
        absent.append(f"raw line: {error}")
        return None
    file = max(named, key=lambda f: len(f["name"]))
    path = _path_of(file, places)
    if path is None:
        looked = " and ".join(str(p) for p in (places.raw, places.workspace) if p) or "any folder that is known"
        absent.append(
            f"raw line: {file['name']}, of {file['size']:,} bytes as when it was read, is not in {looked}; name its "
            "folder with --raw"
        )
        return None
    key = origin[len(file["name"]) + 1 :]
    try:
        return _read(variant, entry["name"] == SUPER_NI, file, path, key)
    except (MediError, Bad, Drop) as error:
        absent.append(f"raw line: {path} does not hold {key} as it did when the release was built ({error})")
        return None


def _path_of(file: RawFile, places: "Places") -> Path | None:
    """Return where a raw file lies, None where it is nowhere or has another size."""
    folders = [places.raw, *(own.folder for own in places.own)]
    paths = [folder / file["name"] for folder in folders if folder]
    for memo in sorted((places.workspace / "digests").glob("*.json")) if places.workspace else ():
        try:
            noted = json.loads(memo.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(noted, dict) and noted.get("sha256") == file["sha256"]:
            paths.append(Path(str(noted["path"])))
    return next((path for path in paths if path.is_file() and path.stat().st_size == file["size"]), None)


def _variant(release: Release, entry: SourceEntry, places: "Places") -> Variant:
    """Return the variant that a source was read by. Raises UsageError where its declaration is not at hand."""
    from medi.own import own_again
    from medi.sources import by_name

    told = release.manifest["params"].get("own_sources")
    declared = told.get(entry["name"]) if isinstance(told, dict) else None
    try:
        source = own_again(entry["name"], declared, places.own).source if declared else by_name(entry["name"])
        return source.variant(entry["variant"])
    except KeyError:
        raise UsageError(f"this medi does not know {entry['name']} with the variant {entry['variant']}") from None


def _read(variant: Variant, is_task: bool, file: RawFile, path: Path, key: str) -> Raw:
    """Return a record with what reading and cleaning did to it. Raises MediError, Bad or Drop where it is another."""
    from medi.ingest.clean import clean
    from medi.ingest.parse import fields_of, parse

    line, of_line = (_instance(path, key), []) if is_task else _line(variant, path, file["name"], key)
    value, mends = parse(line)
    fields = fields_of(value, task_instance if is_task else variant.read, False)
    taken_out: Counter[str] = Counter()
    if not fields.places and not is_task:
        clean(fields, len(fields.negatives), taken_out)
    return Raw(
        file["name"], str(path), file["size"], file["sha256"], key, line.decode("utf-8", "replace"), variant.layout,
        sorted({*of_line, *mends, *fields.mended}), dict(sorted(taken_out.items())), _places(fields),
    )  # fmt: skip


def _places(fields: Fields) -> list[str]:
    """Return in words where the passages of a record stand."""
    return [f"page {place.page_id}, paragraph {place.paragraph}" for place in fields.places]


def _line(variant: Variant, path: Path, name: str, key: str) -> tuple[bytes, list[str]]:
    """Return the record of a key (a line by its number, an element by its index or its own key), and its repairs."""
    from medi.read import raw_batches

    keyed = any(declared.keyed for declared in variant.files)
    for batch in raw_batches([(path, name)], keyed, (name,)):
        place = _place(batch, key)
        if place is not None:
            return batch.lines[place], [mend.reason for mend in batch.mended if batch.by_line and str(mend.line) == key]
    raise MediError("there is no such record")


def _place(batch: RawBatch, key: str) -> int | None:
    """Return where a key stands among those of a batch, or None."""
    keys: Sequence[int | str] = batch.keys
    if isinstance(keys, range):
        return keys.index(int(key)) if key.isdecimal() and int(key) in keys else None
    return next((place for place, found in enumerate(keys) if str(found) == key), None)


def _instance(path: Path, key: str) -> bytes:
    """Return the instance of a Super-NI task as JSON, by its id, or by its index where it has none."""
    from medi.ingest.parse import load
    from medi.read import read_whole

    raw = read_whole(path)
    if isinstance(raw, Bad):
        raise raw
    value, _ = load(raw.removeprefix(b"\xef\xbb\xbf"))
    instances = value.get("Instances") if isinstance(value, dict) else None
    for place, instance in enumerate(instances if isinstance(instances, list) else ()):
        if isinstance(instance, dict) and (instance.get("id") or str(place)) == key:
            return json.dumps(instance, ensure_ascii=False).encode("utf-8", "surrogatepass")
    raise MediError("there is no such instance")
