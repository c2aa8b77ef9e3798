"""A finished export takes its place: written under a temporary name, renamed when whole, told by a receipt beside it.

`OUT.receipt.json` lists what was written with its SHA-256. An OUT that agrees with its receipt is ours and may be
replaced; whatever else stands there is refused.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medi.errors import MediError
from medi.publish import fsync, new_temporary, remove_orphans, write_json, writing
from medi.release.digests import sha256_of

RECEIPT = "medi-export/1"
Facts = dict[str, object]


@contextmanager
def placing(out: Path) -> Iterator[tuple[Path, Facts]]:
    """Yield a path for a file or folder that is to be made, and the facts that its receipt will tell.

    When the block ends well, what was made takes the place of `out`; else it is removed.
    Raises MediError, before anything is written, where `out` exists and is no export of ours.
    """
    out = Path(os.path.realpath(out))
    refuse_strangers(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_orphans(out.parent, deep=False)
    temporary = new_temporary(out)
    try:
        facts: Facts = {}
        with writing(out):
            yield temporary / "export", facts
            facts |= {"format": RECEIPT, "files": _files(temporary / "export")}
            refuse_strangers(out)
            _swap(out, temporary, facts)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def receipt_of(out: Path) -> Path:
    """Return the path of the receipt that belongs to an export."""
    return out.with_name(f"{out.name}.receipt.json")


def refuse_strangers(out: Path) -> None:
    """Raise MediError where `out` exists and is not, byte for byte, what its receipt says that an export wrote."""
    if not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        receipt = json.loads(receipt_of(out).read_bytes())
    except (OSError, ValueError, RecursionError):
        receipt = None
    if not isinstance(receipt, dict) or receipt.get("format") != RECEIPT:
        raise MediError(f"{out} exists and is not an export of medi; name another --out, or move it away")
    if receipt.get("files") != _files(out):
        raise MediError(f"{out} was changed since medi exported it; name another --out, or move it away")


def _swap(out: Path, temporary: Path, facts: Facts) -> None:
    """Put the export in its place. The receipt comes before it, so that an export without one never stands there."""
    for path in (temporary, *sorted(temporary.rglob("*"))):
        fsync(path)
    if os.path.lexists(out):
        out.rename(temporary / "replaced")
    write_json(temporary / "receipt", facts)
    (temporary / "receipt").replace(receipt_of(out))
    (temporary / "export").rename(out)
    fsync(out.parent)


def _files(root: Path) -> list[dict[str, object]]:
    """Return path, bytes and SHA-256 of each file of an export, or of the one file that it is (path "")."""
    paths = [root] if root.is_file() else sorted(path for path in root.rglob("*") if not path.is_dir())
    return [
        {"path": "" if path == root else path.relative_to(root).as_posix(), "size": path.stat().st_size,
         "sha256": sha256_of(path)}
        for path in paths
    ]  # fmt: skip
