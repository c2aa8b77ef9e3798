"""What a build will fetch and keep: rows, download and disk of each source, before anything is fetched.

Guesses are by declared lines and sizes; an unknown size is shown as unknown and counted as a guess, never as nothing.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medi.errors import MediError
from medi.fetch import prefix_bytes
from medi.ingest import pool_rows
from medi.source import Variant

# What is read beyond the quota: 1.2 x quota good rows are wanted, and some rows are dropped.
_DRAWN_SHARE = 1.5
# A line of a file whose size or number of lines nobody knows.
_LINE_BYTES = 1_000
# What one text of the pool leaves in the workspace: a vector of 768 numbers, and itself in the tables of the stages.
_KEPT_BYTES_OF_TEXT = 4_700
# What one text of the quota leaves in the release, where tables are packed.
_RELEASED_BYTES_OF_TEXT = 400
# Of a row: query and positive, and up to four given negatives.
_TEXTS, _TEXTS_WITH_GIVEN = 2, 6


@dataclass(frozen=True)
class Estimate:
    """One source's part of a build, or the encoder's: `rows` in the release, `texts` in the pool of each row.

    `download_bytes` is None where nobody knows the size; `guessed_bytes` then counts.
    """

    source: str
    variant: str
    rows: int
    download_bytes: int | None
    texts: int = _TEXTS
    guessed_bytes: int = 0

    @property
    def workspace_bytes(self) -> int:
        """Return what the workspace will take: the download, the tables of the stages, the vectors."""
        fetched_bytes = self.guessed_bytes if self.download_bytes is None else self.download_bytes
        return fetched_bytes + pool_rows(self.rows) * self.texts * _KEPT_BYTES_OF_TEXT if self.rows else fetched_bytes

    @property
    def release_bytes(self) -> int:
        """Return what the release will take."""
        return self.rows * self.texts * _RELEASED_BYTES_OF_TEXT

    @property
    def disk_bytes(self) -> int:
        """Return what workspace and release will take."""
        return self.workspace_bytes + self.release_bytes


def estimate(source: str, variant: Variant, quota_rows: int, sizes: Mapping[str, int | None], take: str) -> Estimate:
    """Return what a source will take; `sizes` are the bytes of its remote files by name, in their order."""
    lines = variant.lines or quota_rows
    drawn_lines = min(lines, int(quota_rows * _DRAWN_SHARE) + 1)
    known = [size for size in sizes.values() if size is not None]
    total_bytes = sum(known) if known and len(known) == len(sizes) else None
    guessed_bytes = lines * _LINE_BYTES
    if take == "first":
        wanted_bytes = drawn_lines * (total_bytes // lines if total_bytes and variant.lines else _LINE_BYTES)
        guessed_bytes = prefix_bytes(wanted_bytes)
        if total_bytes is not None:
            total_bytes = _begun_bytes(sizes, guessed_bytes)
    texts = _TEXTS_WITH_GIVEN if variant.given_negatives else _TEXTS
    return Estimate(source, variant.name, min(quota_rows, lines), total_bytes, texts, guessed_bytes)


def _begun_bytes(sizes: Mapping[str, int | None], wanted_bytes: int) -> int:
    """Return what is fetched for the first bytes of the files laid end to end; begun Parquet is fetched whole."""
    fetched_bytes = 0
    for name, size_bytes in sizes.items():
        if fetched_bytes < wanted_bytes:
            whole = size_bytes or 0
            begun = whole if name.endswith(".parquet") else prefix_bytes(wanted_bytes - fetched_bytes)
            fetched_bytes += min(whole, begun)
    return fetched_bytes


def needed_bytes(estimates: Sequence[Estimate], workspace: Path, out: Path) -> dict[Path, int]:
    """Return place -> bytes that it will take: workspace and release, or the workspace for both on one disk."""
    needed = {workspace: sum(e.workspace_bytes for e in estimates)}
    release_bytes = sum(e.release_bytes for e in estimates)
    if _there(out).stat().st_dev == _there(workspace).stat().st_dev:
        return {workspace: needed[workspace] + release_bytes}
    return needed | {out: release_bytes}


def check_disk(estimates: Iterable[Estimate], workspace: Path, out: Path) -> None:
    """Pass where the disks of workspace and release have room. Raises MediError where one has not."""
    for place, wanted_bytes in needed_bytes(list(estimates), workspace, out).items():
        there_bytes = free_bytes(place)
        if wanted_bytes > there_bytes:
            option = "--workspace" if place == workspace else "--out"
            raise MediError(
                f"{place}: {in_words(there_bytes)} free, about {in_words(wanted_bytes)} needed; "
                f"name another {option}, fewer --sources or a smaller --scale"
            )


def free_bytes(place: Path) -> int:
    """Return what is free on the disk of a folder that may not be there yet."""
    return shutil.disk_usage(_there(place)).free


def _there(path: Path) -> Path:
    """Return the path or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def in_words(size_bytes: float | None) -> str:
    """Return a size as a person says it: `12.4 GB`, `87 MB`, `?` where it is not known."""
    if size_bytes is None:
        return "?"
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size_bytes >= scale:
            value = size_bytes / scale
            return f"{value:.1f} {unit}" if value < 100 and unit != "MB" else f"{value:,.0f} {unit}"
    return f"{size_bytes / 1000:,.0f} kB"
