"""Raw files that a person has put in a folder: `--raw DIR` and a source become the first variant whose files are there.

Digests are not taken here: looking for files must not read them.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath

from medi.errors import MediError, UsageError
from medi.fetch.local import LocalFile, digest_file
from medi.fetch.settings import silent
from medi.source import File, Source, Variant

_GLOB = set("*?[")
# What a glob may find beside data: a licence or a note of where the files are from is no raw file.
_DATA = (".json", ".jsonl", ".gz", ".parquet", ".ndjson", ".csv", ".tsv")


@dataclass(frozen=True)
class Found:
    """The files of one variant of a source, in the order in which they are read, and those of its knowledge source.

    `twice` are the names of plain files that are not read because their own .gz is.
    """

    variant: Variant
    files: tuple[LocalFile, ...]
    pages: tuple[LocalFile, ...] = ()
    twice: tuple[str, ...] = ()


def find_raw(raw_dir: Path, source: Source, variant_name: str | None = None) -> Found | None:
    """Return the first variant (or the named one) with a file in the raw folder, its digests not yet taken, else None.

    Raises UsageError where the folder is not there or the source has no such variant, MediError where what may hold
    its files cannot be looked at.
    """
    if not raw_dir.is_dir():
        raise UsageError(f"the raw folder {raw_dir} is not {'a folder' if raw_dir.exists() else 'there'}; check --raw")
    if not os.access(raw_dir, os.R_OK | os.X_OK):
        raise UsageError(f"the raw folder {raw_dir} cannot be read; check its permissions")
    for variant in named_variants(source, variant_name):
        files, twice = _present(raw_dir, variant.files)
        if files:
            pages, pages_twice = _present(raw_dir, (variant.pages,) if variant.pages else ())
            return Found(variant, files, pages, (*twice, *pages_twice))
    return None


def named_variants(source: Source, variant_name: str | None) -> tuple[Variant, ...]:
    """Return the variants that come into question, in order. Raises UsageError where the named one does not exist."""
    if variant_name is None:
        return source.variants
    chosen = tuple(variant for variant in source.variants if variant.name == variant_name)
    if not chosen:
        names = ", ".join(variant.name for variant in source.variants)
        raise UsageError(f"{source.name} has no variant {variant_name!r}; choose one of {names}")
    return chosen


def digested(found: Found, memo_dir: Path, say: Callable[[str], None] = silent) -> Found:
    """Return the same files with their SHA-256; `say` gets what a person should know of it.

    Raises MediError where a file cannot be read.
    """
    for name in found.twice:
        say(f"{name}: {PurePosixPath(name).name}.gz lies beside it and is read; nothing is read twice")

    def fill(files: tuple[LocalFile, ...]) -> tuple[LocalFile, ...]:
        """Return the files, each with its digest."""
        return tuple(f if f.sha256 else replace(f, sha256=digest_file(f.path, memo_dir, say)) for f in files)

    return replace(found, files=fill(found.files), pages=fill(found.pages))


def _present(raw_dir: Path, files: Iterable[File]) -> tuple[tuple[LocalFile, ...], tuple[str, ...]]:
    """Return the files that match, those of each declared file sorted by name, each once; and what is there twice."""
    found: dict[str, LocalFile] = {}
    for file in files:
        for pattern in (file.pattern, *file.otherwise):
            matched = _matched(raw_dir, pattern)
            found |= {f.name: f for f in matched if f.name not in found}
            if matched:
                break
    twice = tuple(name for name in found if f"{name}.gz" in found)
    return tuple(file for name, file in found.items() if name not in twice), twice


def _matched(raw_dir: Path, pattern: str) -> list[LocalFile]:
    """Return what fits one pattern. A link may lead to a person's other disk; one that leads nowhere is no file."""
    parts = PurePosixPath(pattern).parts
    if pattern.startswith("/") or ".." in parts:
        raise UsageError(f"the pattern {pattern} leads out of the raw folder; write it relative to {raw_dir}")
    try:
        named = sorted((path.relative_to(raw_dir).as_posix(), path) for path in _paths(raw_dir, pattern))
        files = [LocalFile(path, name, path.stat().st_size, "") for name, path in named]
    except OSError as error:
        raise MediError(f"{error.filename} cannot be read: {error.strerror}; check its permissions") from error
    for file in files:
        if not file.name.isprintable():
            # It is to stand in a release: in the manifest, in origins, as the name of a task.
            raise MediError(f"{raw_dir}: the file name {os.fsencode(file.name)!r} does not print; rename the file")
    return files


def _paths(raw_dir: Path, pattern: str) -> list[Path]:
    """Return the paths that a pattern stands for. Raises OSError where a folder of it cannot be looked into."""
    parts = PurePosixPath(pattern).parts
    if not set(pattern) & _GLOB:
        # A folder in a file's place is given on, so that the reader can say so; a glob passes it over.
        path = raw_dir.joinpath(*parts)
        return [path] if path.exists() else []
    folder = raw_dir.joinpath(*takewhile(lambda part: not set(part) & _GLOB, parts))
    if folder.is_dir():
        # A glob would pass over a folder that it may not look into.
        os.scandir(folder).close()
    return [path for path in raw_dir.glob(pattern) if _is_data(path)]


def _is_data(path: Path) -> bool:
    """Return whether a glob's match is a file that may hold rows."""
    return path.is_file() and path.suffix.lower() in _DATA and not path.name.startswith(".")
