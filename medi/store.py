"""Keeps what stages made: a table and the record of how it came to be, under a key that names both.

A key hashes the stage, its version, the unit, the params and the *contents* of the inputs; machines, paths and threads
never. An artifact is written under a temporary name, its record last, then renamed: existing means complete.
"""

import itertools
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from medi.errors import MediError

_COUNTER = itertools.count()
_TEMPORARY = ".tmp-"


@dataclass(frozen=True)
class Record:
    """What an artifact is and how it came to be; `content` is the digest of its table's values."""

    stage: str
    version: int
    unit: str
    params: dict[str, Any]
    inputs: dict[str, str]
    key: str
    content: str
    rows: int
    counts: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the record as a dict with a JSON form."""
        return asdict(self)


class Store:
    """The artifacts of a workspace, one folder each: `<root>/<stage>/<key>/{table.arrow, record.json}`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, stage: str, key: str) -> Record | None:
        """Return the record of a finished artifact, or None. Raises MediError where the record is damaged."""
        path = self.root / stage / key / "record.json"
        try:
            return Record(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise MediError(f"{path}: damaged record ({error}); delete its folder and run the command again") from None

    def open(self, record: Record) -> pa.Table:
        """Return the artifact's table, memory-mapped. Raises MediError where the file is gone or damaged."""
        path = self.root / record.stage / record.key / "table.arrow"
        try:
            with pa.memory_map(str(path)) as source:
                return pa.ipc.open_file(source).read_all()
        except (OSError, pa.ArrowInvalid) as error:
            raise MediError(f"{path}: cannot be read ({error}); delete its folder and run the command again") from None

    def write(self, record: Record, table: pa.Table) -> Record:
        """Store the table under the record's key; of two workers with one key the first one's stays. Returns it."""
        with publishing(self.root / record.stage / record.key) as temporary:
            path = temporary / "table.arrow"
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, max_chunksize=65_536)
            fsync(path)
            write_json(temporary / "record.json", record.to_json())
        return self.find(record.stage, record.key) or record


def temporary_name() -> str:
    """Return a name that nothing has yet, made of host, process and its start, so that orphans are known."""
    return f"{_TEMPORARY}{socket.gethostname()}-{os.getpid()}-{_start_of(os.getpid())}-{next(_COUNTER)}"


def new_temporary(final: Path) -> Path:
    """Return a new empty folder beside `final`."""
    temporary = final.parent / temporary_name()
    temporary.mkdir(parents=True)
    return temporary


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
