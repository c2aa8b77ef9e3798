"""A release folder -> the SHA-256 of every file that stands in it, or what keeps the folder from being what it says.

Files are read, never decoded, a few at once: what a diff says of bytes must hold for those on the disk.
"""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from medi.errors import MediError
from medi.release import Release
from medi.release.manifest import RUN

_FILES_AT_ONCE = 4
_AGAIN = "so the release is not whole; `medi verify` says more, or build it again"


def digests_of(release: Release) -> dict[str, str]:
    """Return path -> SHA-256 of every file of a release but run.json, also of those that its manifest does not name.

    Raises MediError where a file is not what the manifest says, or is a shard that it does not name.
    """
    listed = {entry["path"]: entry for entry in release.manifest["files"]}
    for name, entry in listed.items():
        path = release.root / name
        size_bytes = path.stat().st_size if path.is_file() else -1
        if size_bytes != entry["size"]:
            fault = "is absent" if size_bytes < 0 else f"has {size_bytes:,} bytes, not {entry['size']:,}"
            raise MediError(f"{path} {fault}, {_AGAIN}")
    names = sorted({*listed, *_names(release.root)})
    for name in names:
        if name not in listed and name.startswith("data/"):
            raise MediError(f"{release.root / name} is not in the manifest, {_AGAIN}")
    with ThreadPoolExecutor(_FILES_AT_ONCE) as threads:
        found = dict(zip(names, threads.map(sha256_of, (release.root / name for name in names)), strict=True))
    for name, entry in listed.items():
        if found[name] != entry["sha256"]:
            raise MediError(f"{release.root / name} has other bytes than its manifest says, {_AGAIN}")
    return found


def _names(root: Path) -> set[str]:
    """Return the paths of the files in a folder without run.json; a pipe or a broken link is none."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} - {RUN}


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
