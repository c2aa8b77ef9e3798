"""Puts folders and files in their place at once: written under a temporary name beside it, made durable, renamed.

A temporary name tells host, process and the process's start, so that what a killed process left is known and removed.
"""

import errno
import itertools
import json
import os
import re
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import xxhash

_COUNTER = itertools.count()
_TEMPORARY = ".tmp-"
_PIECE_BYTES = 1 << 20
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM}
# As medi.release.swap names a folder that is to take the place of OUT.
_NEW = re.compile(r"\.new-[0-9a-f]{12}(?=/|$)")


def temporary_name() -> str:
    """Return a name that nothing has yet, made of host, process and its start, so that orphans are known."""
    return f"{_TEMPORARY}{socket.gethostname()}-{os.getpid()}-{_start_of(os.getpid())}-{next(_COUNTER)}"


def new_temporary(final: Path) -> Path:
    """Return a new empty folder beside `final`. Raises OSError, which names `final`, where none can be made."""
    temporary = final.parent / temporary_name()
    with naming(final):
        temporary.mkdir(parents=True)
    return temporary


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError of the block name this path, which a person knows, in place of a temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Let an error of the disk name the place that is written: not a temporary name in it, which says nothing to a
    person, and not nothing (a write knows only its handle).

    Raises OSError with the place's name.
    """
    try:
        yield
    except OSError as error:
        # numpy has no number for a write that fell short, only words.
        number = errno.ENOSPC if str(error).endswith(" written") else error.errno
        named = Path(final_path(str(error.filename))) if error.filename else place
        if number in _DISK and named.is_relative_to(place):
            raise OSError(number, os.strerror(number), str(place)) from error
        raise


def final_path(path: str) -> str:
    """Return what a person knows of a path: of a temporary one the folder that it stands in, of OUT.new-<id> OUT."""
    parts = Path(path).parts
    first = next((place for place, part in enumerate(parts) if part.startswith(_TEMPORARY)), None)
    return _NEW.sub("", path if first is None else str(Path(*parts[:first])))


@contextmanager
def publishing(final: Path) -> Iterator[Path]:
    """Yield a new empty folder that becomes `final` when the block ends well; else it is removed, as a full disk needs
    its bytes.
    """
    temporary = new_temporary(final)
    try:
        yield temporary
        publish(temporary, final)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def publish(temporary: Path, final: Path) -> None:
    """Rename a finished folder into place, durable; where another worker was first, drop ours."""
    fsync(temporary)
    try:
        temporary.rename(final)
    except OSError:
        if not (final / "record.json").exists():
            raise
        shutil.rmtree(temporary)
    fsync(final.parent)


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a JSON file, keys sorted, and make it durable. Raises TypeError for a value without a JSON form."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False) + "\n"
    path.write_bytes(text.encode())
    fsync(path)


def write_whole(path: Path, text: str) -> None:
    """Put a text in its place at once: where that fails, what stood there stays. A pipe or a device is written to.

    Raises OSError, which names the path.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    final = Path(os.path.realpath(path))
    temporary = final.with_name(temporary_name())
    try:
        with naming(path):
            temporary.write_text(text, encoding="utf-8", newline="\n")
            temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)


def digest_of_files(*paths: Path) -> str:
    """Return 32 hex digits (XXH3) over the files' bytes, read in pieces: mapped, they would count as memory."""
    hasher = xxhash.xxh3_128()
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                hasher.update(piece)
    return hasher.hexdigest()


def fsync(path: Path) -> None:
    """Flush a file or a folder's entries to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_orphans(root: Path, deep: bool = True) -> int:
    """Delete temporary files and folders below `root`, or right in it, whose process is gone. Returns how many went."""
    gone = 0
    # Other builds rename and remove folders meanwhile: os.walk passes over what is no longer there.
    for parent, names, files in os.walk(root):
        temporaries = [name for name in names if name.startswith(_TEMPORARY)]
        names[:] = sorted(set(names) - set(temporaries)) if deep else []
        for name in filter(_is_orphan, temporaries):
            shutil.rmtree(Path(parent, name), ignore_errors=True)
            gone += 1
        for name in files:
            if name.startswith(_TEMPORARY) and _is_orphan(name):
                Path(parent, name).unlink(missing_ok=True)
                gone += 1
    return gone


def _is_orphan(name: str) -> bool:
    """Return whether a temporary folder of this name was made here by a process that is gone."""
    host, *numbers = name.removeprefix(_TEMPORARY).rsplit("-", 3)
    if host != socket.gethostname() or len(numbers) != 3 or not numbers[0].isdigit():
        return False
    return _start_of(int(numbers[0])) != numbers[1]


def _start_of(pid: int) -> str:
    """Return when a process started (kernel ticks), so that a reused process id is not taken for the old one."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return _alive_without_proc(pid)


def _alive_without_proc(pid: int) -> str:
    """Return "0" for a living process and "" for a dead one, where there is no /proc to ask."""
    if Path("/proc/self/stat").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "0"
    return "0"
