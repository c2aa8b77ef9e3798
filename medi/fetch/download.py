"""Downloads: Remotes become LocalFiles, whole or their beginnings, checked against the lock file and noted in it.

Beginnings grow in fixed steps (4 MiB, 8, 16, ...), so that what a build reads does not depend on earlier builds.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import escape as glob_escape
from pathlib import Path
from typing import BinaryIO

from medi.errors import MediError
from medi.fetch.hosts import Unreachable
from medi.fetch.http import Body, read_body
from medi.fetch.local import LocalFile, alone, digest_file, writing
from medi.fetch.lock import Entry, Place, check, note, read_lock
from medi.fetch.patience import NotThere
from medi.fetch.places import Remote, ask, headers_of, raw_name, remote_files, remote_pages, remote_path, url_of
from medi.fetch.raw import Found, named_variants
from medi.fetch.settings import Settings
from medi.source import Source, Variant

FIRST_PREFIX_BYTES = 4 << 20


@dataclass(frozen=True)
class _Arrival:
    """A file that is here, as the place named it when it came, and its entry for the lock file."""

    remote: Remote
    local: LocalFile
    entry: Entry


def download(source: Source, variant: Variant, settings: Settings) -> Found:
    """Return the variant's files, downloaded where they are not here yet; all are whole and as the lock names them.

    Raises NotThere where the place lacks one or it is not here offline, MediError where it fails or a file changed.
    """
    remotes, pages = remote_files(source, variant, settings), remote_pages(source, variant, settings)
    return Found(variant, tuple(fetch_all(remotes, settings)), tuple(fetch_all(pages, settings)))


def choose_variant(source: Source, variant_name: str | None, settings: Settings) -> tuple[Variant, list[str]]:
    """Return the named variant, else the first one whose place has its files, and why those before it were passed over.

    Places are asked, nothing is fetched. Raises NotThere where none does and Unreachable where a place cannot be asked,
    both saying what to fetch and where to put it; MediError where a place fails.
    """
    refusals: list[str] = []
    variants = named_variants(source, variant_name)
    for variant in variants:
        try:
            with by_hand(source, variant):
                remote_files(source, variant, settings)
        except NotThere as refusal:
            refusals.append(str(refusal))
        else:
            return variant, refusals
    wanted = {f"DIR/{file.pattern}" for variant in variants for file in variant.files}
    reasons = "; ".join(refusals).removeprefix(f"{source.name}: ")
    if settings.offline and any(variant.place for variant in variants):
        # The refusals say of each place the same.
        reasons = f"offline, and its files are not in {settings.hub}; run the same command once without --offline"
    raise NotThere(f"{source.name}: {reasons}; or put a file at {' or '.join(sorted(wanted))}, --raw DIR")


@contextmanager
def by_hand(source: Source, variant: Variant) -> Iterator[None]:
    """Let an Unreachable of the block say which files of the source it is about, and where a person may put them."""
    files = (*variant.files, *((variant.pages,) if variant.pages else ()))
    try:
        yield
    except Unreachable as error:
        paths = ", ".join(map(remote_path, files))
        places = ", ".join(f"DIR/{raw_name(file, remote_path(file))}" for file in files)
        told = f"put {'it' if len(files) == 1 else 'them'} at {places} and give --raw DIR"
        raise Unreachable(f"{source.name}: {paths} of {variant.place}", error.why, told) from error


def remote_sizes(source: Source, variant: Variant, settings: Settings) -> dict[str, int | None]:
    """Return name -> size in bytes of the variant's remote files and pages, for the plan; None where nobody knows.

    Where the place does not answer, these are the declared sizes.
    """
    try:
        remotes = [*remote_files(source, variant, settings), *remote_pages(source, variant, settings)]
    except MediError:
        declared = (*variant.files, *((variant.pages,) if variant.pages else ()))
        return {file.pattern: file.size_bytes for file in declared}
    return {remote.name: remote.size_bytes for remote in remotes}


def fetch_all(remotes: Iterable[Remote], settings: Settings) -> list[LocalFile]:
    """Return the whole files, in order, each noted in the lock file as it arrives. Raises as download."""
    files: list[LocalFile] = []
    for remote in remotes:
        arrival = arrive(remote, settings)
        note_all([arrival], settings)
        files.append(arrival.local)
    return files


def note_all(arrivals: list[_Arrival], settings: Settings) -> None:
    """Note arrivals in the lock file, with one write for each place."""
    for key in sorted({arrival.remote.key for arrival in arrivals}):
        here = [arrival for arrival in arrivals if arrival.remote.key == key]
        listed = {a.remote.pattern: list(a.remote.siblings) for a in here if a.remote.pattern}
        note(settings.lock, key, Place(here[0].remote.commit, listed, {a.remote.path: a.entry for a in here}))


def arrive(remote: Remote, settings: Settings) -> _Arrival:
    """Return the whole file, fetched if it is not here, and checked against its entry in the lock file.

    Raises NotThere where the place lacks it, MediError where it fails, is damaged, changed, or missing offline.
    """
    with alone(remote.target(settings), lambda: _say_it_waits(remote, settings)):
        for _ in range(2):
            if not remote.target(settings).is_file():
                remote = _fetch_whole(remote, settings)
            local = _local(remote, remote.target(settings), False, settings)
            if remote.sha256 in ("", local.sha256):
                return _checked(remote, local, settings)
            local.path.unlink()
            settings.say(f"{remote.what}: the bytes here are not the Hub's; fetching them again")
    raise MediError(f"{remote.what}: arrived damaged twice; check the disk and the proxy, then run again")


def prefix(remote: Remote, size_bytes: int, settings: Settings) -> LocalFile:
    """Return the beginning of a file, its size the next of 4 MiB, 8, 16, ...; the whole where that is no longer.

    What is here is not fetched again. Parquet is always whole: its table of contents stands at its end.
    Raises NotThere or MediError as download.
    """
    size_bytes = prefix_bytes(size_bytes)
    known_bytes = remote.size_bytes
    if remote.path.endswith(".parquet") or (known_bytes is not None and known_bytes <= size_bytes):
        return fetch_all([remote], settings)[0]
    with alone(remote.target(settings), lambda: _say_it_waits(remote, settings)):
        remote, path = _cut(remote, size_bytes, settings)
        arrival = _checked(remote, _local(remote, path, path != remote.target(settings), settings), settings)
    note_all([arrival], settings)
    return arrival.local


def _say_it_waits(remote: Remote, settings: Settings) -> None:
    """Say that another build fetches this file."""
    settings.say(f"{remote.what}: waiting for another build that fetches it")


def prefix_bytes(wanted_bytes: int) -> int:
    """Return the least size of the fixed schedule that is not less than wanted."""
    size_bytes = FIRST_PREFIX_BYTES
    while size_bytes < wanted_bytes:
        size_bytes *= 2
    return size_bytes


def _cut(remote: Remote, size_bytes: int, settings: Settings) -> tuple[Remote, Path]:
    """Return the file of the first bytes (cut from what is here, else fetched), or the whole where it is shorter."""
    target = remote.target(settings)
    cut = target.with_name(f"{target.name}.first-{size_bytes}")
    if cut.is_file():
        return remote, cut
    if not target.is_file():
        remote = _asked(remote, settings)
        target = remote.target(settings)
        cut = target.with_name(f"{target.name}.first-{size_bytes}")
    _, part = _parts(target)
    _seed(part, target, size_bytes)
    if target.is_file() and target.stat().st_size <= size_bytes:
        return remote, target
    if part.stat().st_size < size_bytes:
        total = read_body(_body(remote), part, size_bytes, settings)
        if part.stat().st_size < size_bytes or total == size_bytes:
            cut = target
    os.replace(part, cut)
    return remote, cut


def _seed(part: Path, target: Path, size_bytes: int) -> None:
    """Let `part` begin with as much of the file as is here already, at most `size_bytes`."""
    cuts = target.parent.glob(f"{glob_escape(target.name)}.first-*")
    here = [path for path in (target, *_parts(target), *cuts) if path.is_file()]
    best = max(here, key=lambda path: min(path.stat().st_size, size_bytes), default=part)
    held_bytes = part.stat().st_size if part.exists() else 0
    if best != part and min(best.stat().st_size, size_bytes) > held_bytes:
        with writing(part), best.open("rb") as source, part.open("wb") as copy:
            _copy(source, copy, size_bytes)
    elif held_bytes > size_bytes:
        os.truncate(part, size_bytes)
    part.touch()


def _parts(target: Path) -> tuple[Path, Path]:
    """Return where a file, whole or its beginning, lies while it arrives."""
    return target.with_name(f"{target.name}.part"), target.with_name(f"{target.name}.first.part")


def _copy(source: BinaryIO, copy: BinaryIO, size_bytes: int) -> None:
    """Copy the first bytes of an open file."""
    while size_bytes and (block := source.read(min(size_bytes, 1 << 20))):
        copy.write(block)
        size_bytes -= len(block)


def _fetch_whole(remote: Remote, settings: Settings) -> Remote:
    """Fetch a file to its place in the workspace; returns the Remote as the place knows it now."""
    remote = _asked(remote, settings)
    target = remote.target(settings)
    part, _ = _parts(target)
    _seed(part, target, sys.maxsize if remote.size_bytes is None else remote.size_bytes)
    read_body(_body(remote), part, None, settings)
    os.replace(part, target)
    return remote


def _asked(remote: Remote, settings: Settings) -> Remote:
    """Return a Remote whose place was asked, with a folder for it. Raises MediError when offline."""
    if settings.offline:
        raise MediError(
            f"offline, and {remote.what} is not in {settings.hub}; run the same command once without --offline"
        )
    asked = ask(remote, settings) if remote.locked else remote
    target = asked.target(settings)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not asked.commit and not asked.tag:
        # Nothing says whether what is here is a beginning of what is there now.
        for stale in _parts(target):
            stale.unlink(missing_ok=True)
    return asked


def _body(remote: Remote) -> Body:
    """Return what the reader of bodies needs to know of a file."""
    return Body(remote.what, url_of(remote), remote.size_bytes, headers_of(remote), remote.tag)


def _local(remote: Remote, path: Path, is_prefix: bool, settings: Settings) -> LocalFile:
    """Return a remote file, or its beginning, as the file that is here."""
    digest = digest_file(path, settings.memo, settings.say)
    return LocalFile(path, remote.name, path.stat().st_size, digest, remote.commit, is_prefix)


def _checked(remote: Remote, local: LocalFile, settings: Settings) -> _Arrival:
    """Return a file that is here, with its entry. Raises MediError where it is not the one that the lock names."""
    if local.prefix:
        entry = replace(remote.entry(), prefixes={str(local.size_bytes): local.sha256})
    else:
        entry = replace(remote.entry(), size_bytes=local.size_bytes, sha256=local.sha256)
    old = read_lock(settings.lock).get(remote.key, Place()).files.get(remote.path)
    if old:
        check(settings.lock, remote.what, old, entry, local.path)
    return _Arrival(remote, local, entry)
