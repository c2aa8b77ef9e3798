"""The lock file: what each download was (commit, size, SHA-256), so that a later build reads the same bytes.

It may be handed on: a build elsewhere asks for the commits it names and refuses bytes that differ from it.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from medi.errors import MediError
from medi.fetch.local import alone, write_atomically

FORMAT = "medi.lock/1"


@dataclass(frozen=True)
class Entry:
    """One file: its commit (Hub, git) or its tag (ETag of a plain address), size, SHA-256, and those of beginnings.

    `sha256` is "" while only beginnings are here; `prefixes` maps their size in bytes to their SHA-256.
    """

    commit: str = ""
    tag: str = ""
    size_bytes: int | None = None
    sha256: str = ""
    prefixes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """One place at one revision: its commit, what each glob stood for there, and its files by path."""

    commit: str = ""
    listed: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, Entry] = field(default_factory=dict)


def read_lock(path: Path) -> dict[str, Place]:
    """Return the places of a lock file by name; none where there is no file. Raises MediError where it is damaged."""
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != FORMAT:
            raise MediError(f"{path} has format {data['format']}, not {FORMAT}; update medi, or move it away")
        return {name: _place(value) for name, value in data["places"].items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise MediError(f"{path} cannot be read: {error.strerror}; choose another --workspace") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MediError(f"{path} is not a lock file of medi ({error}); restore it, or delete it to pin anew") from error


def _place(value: dict[str, object]) -> Place:
    """Return a Place from its JSON form. Raises TypeError, KeyError or AttributeError where it has another."""
    files, listed = value["files"], value["listed"]
    if not isinstance(files, dict) or not isinstance(listed, dict):
        raise TypeError("files and listed must be objects")
    if not all(isinstance(paths, list) and all(isinstance(path, str) for path in paths) for paths in listed.values()):
        raise TypeError("listed must hold arrays of paths")
    return Place(str(value["commit"]), listed, {path: _entry(entry) for path, entry in files.items()})


def _entry(value: dict[str, object]) -> Entry:
    """Return an Entry from its JSON form. Raises TypeError or AttributeError where it has another."""
    entry = Entry(**value)  # type: ignore[arg-type]
    texts = (entry.commit, entry.tag, entry.sha256, *entry.prefixes, *entry.prefixes.values())
    if not all(isinstance(text, str) for text in texts) or not isinstance(entry.size_bytes, int | None):
        raise TypeError("a file's size must be a number, all else about it texts")
    return entry


def note(path: Path, name: str, found: Place) -> None:
    """Add what was found at a place to the lock file; other writers' entries stay, each file's beginnings are united.

    A file lock keeps two writers apart, a rename keeps readers from half a file.
    """
    with alone(path):
        places = read_lock(path)
        old = places.get(name, Place())
        files = old.files | {file: _united(old.files.get(file), entry) for file, entry in found.files.items()}
        new = Place(found.commit or old.commit, old.listed | found.listed, files)
        if new == old:
            return
        data = {"format": FORMAT, "places": {key: asdict(place) for key, place in (places | {name: new}).items()}}
        write_atomically(path, json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n")


def _united(old: Entry | None, new: Entry) -> Entry:
    """Return the new entry with what the old one knew of the same version of the file."""
    if old is None or (old.commit, old.tag) != (new.commit, new.tag):
        return new
    return replace(new, sha256=new.sha256 or old.sha256, prefixes=old.prefixes | new.prefixes)


def check(lock: Path, what: str, old: Entry, new: Entry, at: Path) -> None:
    """Raise MediError where a file is not the one that the lock names, saying what changed and how to accept it.

    Commit and tag alone may differ: equal bytes are the same file.
    """
    changed = [
        f"{name} {was} -> {now}"
        for name, was, now in [
            ("commit", old.commit, new.commit),
            ("size_bytes", old.size_bytes, new.size_bytes),
            ("sha256", old.sha256, new.sha256),
            *((f"sha256 of the first {n} bytes", old.prefixes.get(n), new.prefixes[n]) for n in sorted(new.prefixes)),
        ]
        if was and now and was != now
    ]
    if any(not line.startswith("commit") for line in changed):
        raise MediError(
            f"{what} changed: {', '.join(changed)}; delete {at} to fetch it again, "
            f"or delete its entry in {lock} to accept the new file"
        )
