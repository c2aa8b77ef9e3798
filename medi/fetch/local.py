"""Files on this disk: a path becomes its SHA-256, bytes become a file that is never half there.

A digest is remembered by (path, size, mtime_ns), so that a file of 30 GB is read for it once, not once a build.
"""

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from medi.errors import MediError
from medi.fetch.settings import silent
from medi.publish import temporary_name

_BLOCK_BYTES = 1 << 20
# File systems give times in steps of up to 2 s: a younger file may change once more without a new mtime.
_SETTLED_SECONDS = 2.5
# Reading so much takes a disk some seconds: a person should know why nothing else happens.
_SLOW_BYTES = 256 << 20


@dataclass(frozen=True)
class LocalFile:
    """A raw file on this disk; `name` is its path in a raw folder, `prefix` says that it is only the beginning."""

    path: Path
    name: str
    size_bytes: int
    sha256: str
    commit: str = ""
    prefix: bool = False


def digest_file(path: Path, memo_dir: Path, say: Callable[[str], None] = silent) -> str:
    """Return the SHA-256 (64 hex digits) of a file's bytes, from the memo where path, size and mtime are as before.

    `say` gets a line before a large file is read. Raises MediError where the file cannot be read or changes meanwhile.
    """
    memo = memo_dir / f"{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]}.json"
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # A pipe would be waited for without end.
            raise MediError(f"{path} is a pipe or a device; put the file in its place")
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            seen = {"path": os.fspath(path.absolute()), "size": before.st_size, "mtime_ns": before.st_mtime_ns}
            known = _remembered(memo, seen)
            if known:
                return known
            if before.st_size >= _SLOW_BYTES:
                say(f"{path}: reading {before.st_size / 1e6:,.0f} MB once for its SHA-256")
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        after = path.stat()
    except IsADirectoryError:
        raise MediError(f"{path} is a folder; put the file in its place") from None
    except OSError as error:
        raise MediError(f"{path} cannot be read: {error.strerror}; check the path and its permissions") from error
    if (after.st_size, after.st_mtime_ns, after.st_ino) != (before.st_size, before.st_mtime_ns, before.st_ino):
        raise MediError(f"{path} changed while it was read; wait until it is written, then run the command again")
    if time.time() - after.st_mtime > _SETTLED_SECONDS:
        write_atomically(memo, json.dumps(seen | {"sha256": digest}).encode())
    return digest


def _remembered(memo: Path, seen: dict[str, object]) -> str:
    """Return the digest of a memo that speaks of exactly this file state, else ""; a damaged memo is no memo."""
    try:
        noted = json.loads(memo.read_bytes())
    except (OSError, ValueError):
        return ""
    if not isinstance(noted, dict) or any(noted.get(key) != value for key, value in seen.items()):
        return ""
    return str(noted.get("sha256", ""))


def write_atomically(path: Path, data: bytes) -> None:
    """Write a small file so that a reader sees the old bytes or the new ones, also after a power cut.

    Raises MediError where it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(temporary_name())
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Let a failure of the block to write say which file it was. Raises MediError."""
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        helps = f"{'make room, or ' if is_full else ''}choose another --workspace"
        raise MediError(f"{path} cannot be written: {error.strerror or error}; {helps}") from error


@contextmanager
def alone(path: Path, wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Keep other builds from writing the same file while the block runs; its folder is made.

    Where another build has it, `wait` is called before that is waited for.
    Raises MediError where the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            wait()
            lock.acquire()
    except OSError as error:
        raise MediError(f"{path.parent} cannot be written: {error.strerror}; choose another --workspace") from error
    try:
        yield
    finally:
        lock.release()


def is_remembered(path: Path, memo_dir: Path) -> bool:
    """Return whether the SHA-256 of a file is known without reading it."""
    memo = memo_dir / f"{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]}.json"
    try:
        state = path.stat()
    except OSError:
        return False
    return bool(
        _remembered(memo, {"path": os.fspath(path.absolute()), "size": state.st_size, "mtime_ns": state.st_mtime_ns})
    )
