"""What a build will fetch and keep: rows, download and disk of each source, before anything is fetched.

Guesses are by declared lines and sizes; an unknown size counts as unknown, never as nothing.
"""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from medi.errors import MediError
from medi.source import Variant

# A beginning of a file comes in steps from 4 MiB on; 1.2 x quota good rows are wanted, and some rows are dropped.
_FIRST_BYTES = 4 << 20
_DRAWN_SHARE = 1.5
# What one row leaves in the workspace and the release: its texts a few times over, and about three vectors of 768.
_KEPT_BYTES_OF_ROW = 14_000


@dataclass(frozen=True)
class Estimate:
    """One source's part of a build; `download_bytes` is None where nobody knows the size."""

    source: str
    variant: str
    rows: int
    download_bytes: int | None
    here_bytes: int = 0

    @property
    def disk_bytes(self) -> int:
        """Return what the workspace and the release will take for this source, the download included."""
        return (self.download_bytes or 0) + self.rows * _KEPT_BYTES_OF_ROW


def estimate(source: str, variant: Variant, quota_rows: int, sizes: Mapping[str, int | None], take: str) -> Estimate:
    """Return what a source will take; `sizes` are the bytes of its remote files by name."""
    known = [size for size in sizes.values() if size is not None]
    download = sum(known) if known and len(known) == len(sizes) else None
    lines = variant.lines
    if take == "first" and lines and download is not None and not any(n.endswith(".parquet") for n in sizes):
        share = min(1.0, quota_rows * _DRAWN_SHARE / lines)
        download = min(download, max(_FIRST_BYTES, 2 * int(download * share)))
    return Estimate(source, variant.name, min(quota_rows, lines or quota_rows), download)


def check_disk(estimates: Iterable[Estimate], workspace: Path) -> int:
    """Return the bytes that the build will take. Raises MediError where the disk has fewer."""
    needed_bytes = sum(e.disk_bytes for e in estimates)
    free_bytes = shutil.disk_usage(workspace).free
    if needed_bytes > free_bytes:
        raise MediError(
            f"{workspace}: {in_words(free_bytes)} free, about {in_words(needed_bytes)} needed; "
            "name another --workspace, fewer --sources or a smaller --scale"
        )
    return needed_bytes


def in_words(size_bytes: int | None) -> str:
    """Return a size as a person says it: `12.4 GB`, `87 MB`, `?` where it is not known."""
    if size_bytes is None:
        return "?"
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size_bytes >= scale:
            value = size_bytes / scale
            return f"{value:.1f} {unit}" if value < 100 and unit != "MB" else f"{value:,.0f} {unit}"
    return f"{size_bytes / 1000:,.0f} kB"
