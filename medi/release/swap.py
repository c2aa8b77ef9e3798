"""A finished folder takes a release's place: OUT.new-<id> is built beside OUT, OUT -> OUT.old, new -> OUT, old removed.

Whoever builds holds a lock on its new folder, so one without a lock is the leftover of a process that is gone. A folder
that replaces another is marked before the first rename and unmarked at the end: only beside a mark is OUT.old ours.
"""

import fcntl
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medi.errors import MediError
from medi.publish import fsync, naming, writing
from medi.release.manifest import MANIFEST, RUN

_MARK = ".replacing"


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Yield an empty folder beside `out`; when the block ends well, it takes the place of `out`, else it is removed.

    Raises MediError, before anything is written, where `out` (or its `.old`) exists and is not a release of ours.
    """
    out = Path(os.path.realpath(out))
    finish_swap(out)
    refuse_strangers(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(out)
    new, lock = _new_folder(out)
    try:
        with writing(out):
            yield new
            _sync_tree(new)
            with _locked(out.parent):
                _swap(out, new)
    finally:
        if not (new / _MARK).exists():
            shutil.rmtree(new, ignore_errors=True)
        os.close(lock)


def finish_swap(out: Path) -> None:
    """Bring an interrupted swap of `out` to its end; where none was interrupted, nothing is touched."""
    out = Path(os.path.realpath(out))
    if not _interrupted(out):
        return
    with _locked(out.parent):
        if not (out / _MARK).exists():
            new = next((new for new in _leftovers(out) if (new / _MARK).exists()), None)
            if new is None:  # whoever held the lock has finished it
                return
            _move_in(out, new)
        _close_swap(out)


def is_ours(folder: Path) -> bool:
    """Return whether the folder is a release of some format version of ours."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and str(manifest.get("format")).startswith("medi-release/")


def _old(out: Path) -> Path:
    return out.with_name(out.name + ".old")


def _swap(out: Path, new: Path) -> None:
    """Put `new` in the place of `out`. Nothing to replace (or an empty folder): one rename, no mark."""
    refuse_strangers(out)
    if not is_ours(out):
        new.rename(out)
        return fsync(out.parent)
    (new / _MARK).touch()
    fsync(new)
    fsync(out.parent)
    _move_in(out, new)
    _close_swap(out)


def _move_in(out: Path, new: Path) -> None:
    if out.exists():
        out.rename(_old(out))
    new.rename(out)
    fsync(out.parent)


def _close_swap(out: Path) -> None:
    """Remove what was replaced, then the mark that said so."""
    if _old(out).exists():
        shutil.rmtree(_old(out))
    (out / _MARK).unlink()
    fsync(out)


def _interrupted(out: Path) -> bool:
    """Return whether a swap of `out` began and did not end (or is under way in another process)."""
    return (out / _MARK).exists() or any((new / _MARK).exists() for new in _news(out))


def refuse_strangers(out: Path) -> None:
    """Raise MediError where `out` holds what a build must not delete: no release of ours, or a file beside one."""
    if _old(out).exists():
        raise MediError(
            f"{_old(out)} stands in the way of a new {out.name}; move it away and run the same command again"
        )
    if os.path.ismount(out):
        raise MediError(f"{out} is a mount point, which nothing can take the place of; name a folder in it: {out}/medi")
    if not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir())):
        return
    if not is_ours(out):
        raise MediError(f"{out} exists and is not a release of medi; name another --out, or move it away")
    strange = _strange_file(out)
    if strange:
        raise MediError(
            f"{strange} is not part of the release in {out} and would be deleted with it; "
            "move it away, or name another --out"
        )


def _strange_file(out: Path) -> Path | None:
    """Return the first file (or link) in a release that its manifest does not list, or None."""
    listed = json.loads((out / MANIFEST).read_bytes()).get("files")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    known = {str(entry.get("path")) for entry in entries}
    known |= {MANIFEST, RUN, _MARK}
    for parent, folders, files in os.walk(out):
        folders.sort()
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for path in (Path(parent, name) for name in sorted(files + links)):
            if path.relative_to(out).as_posix() not in known:
                return path
    return None


def _news(out: Path) -> list[Path]:
    if not out.parent.is_dir():
        return []
    # A person may well call a folder of theirs OUT.new-something.
    ours = re.compile(re.escape(f"{out.name}.new-") + "[0-9a-f]{12}")
    return sorted(path for path in out.parent.iterdir() if ours.fullmatch(path.name) and path.is_dir())


def _leftovers(out: Path) -> Iterator[Path]:
    """Yield the new folders that no living process holds, each locked while the caller looks at it."""
    for new in _news(out):
        lock = _try_lock(new)
        if lock is not None:
            try:
                yield new
            finally:
                os.close(lock)


def remove_leftovers(out: Path) -> None:
    """Delete the new folders beside `out` whose process was killed before they took its place."""
    for new in _leftovers(Path(os.path.realpath(out))):
        shutil.rmtree(new, ignore_errors=True)


def _new_folder(out: Path) -> tuple[Path, int]:
    """Return a new folder and the lock on it."""
    while True:
        new = out.with_name(f"{out.name}.new-{uuid.uuid4().hex[:12]}")
        with naming(out):
            new.mkdir()
        lock = _try_lock(new)
        if lock is None:
            continue
        if new.exists():
            return new, lock
        os.close(lock)  # another build took the folder, not yet locked, for a leftover


def _try_lock(folder: Path) -> int | None:
    """Return an open descriptor that holds the folder's lock, or None where another process holds it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        fsync(path)
    fsync(folder)
