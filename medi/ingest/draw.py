"""Batches of raw lines -> the few lines that a quota needs: those of the lowest seeded hash, or the first ones.

Only the lines that are kept stay in memory, and none is parsed here: hashing keeps up with unpacking.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

import numpy as np
import xxhash

from medi.source import RawBatch, natural

_SLACK_ROWS = 4_096
_TOP = np.iinfo(np.uint64).max


class Line(NamedTuple):
    """One drawn line: its rank, where it stands (`FILE:LINE` or `FILE#KEY`, and the byte), and its bytes."""

    rank: int
    origin: str
    offset: int | None
    raw: bytes


class BadRow(NamedTuple):
    """A line that cannot be read: where it stands (`FILE:LINE` or `FILE#KEY`), at which byte, and why."""

    origin: str
    offset: int | None
    reason: str


@dataclass
class Drawn:
    """What one pass over the files gave. `times` says how often a line of that rank stood there.

    `complete` means that every line is among them; `checked` holds what a line's check found, by rank; `faults` are
    those of whole files.
    """

    lines: list[Line] = field(default_factory=list)
    times: Counter[int] = field(default_factory=Counter)
    lines_read: int = 0
    complete: bool = True
    checked: list[tuple[int, BadRow]] = field(default_factory=list)
    faults: list[BadRow] = field(default_factory=list)
    mended: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Draw:
    """How lines are drawn: `take` is "hash" or "first"; `check` says what is wrong with a line, "" where nothing is.

    The first line of each file is always checked, so that a file of another layout is found whatever is drawn.
    """

    keep_rows: int
    take: str
    seed: int
    check: Callable[[bytes], str]
    check_all_lines: bool = False


def rank_of(line: bytes, seed: int) -> int:
    """Return a line's seeded 64-bit hash."""
    return xxhash.xxh3_64_intdigest(line, seed)


def draw(batches: Iterator[RawBatch], how: Draw) -> Drawn:
    """Return the lines to parse, in the order in which they are taken: by rank, or as they stand in the files."""
    drawn = Drawn()
    held: dict[int, Line] = {}
    ceiling = _TOP
    files: set[str] = set()
    for batch in batches:
        drawn.mended.update(batch.mended)
        if batch.fault:
            drawn.faults.append(BadRow(batch.file, None, batch.fault))
        hashes = map(xxhash.xxh3_64_intdigest, batch.lines, repeat(how.seed))
        ranks = np.fromiter(hashes, np.uint64, len(batch.lines))
        _check_lines(batch, ranks, how, drawn, batch.file not in files)
        files.add(batch.file)
        if how.take == "first":
            if not _take_first(batch, ranks, how.keep_rows, drawn):
                break
            continue
        for index in np.flatnonzero(ranks <= ceiling).tolist():
            rank = int(ranks[index])
            drawn.times[rank] += 1
            if rank not in held:
                held[rank] = _line(batch, index, rank)
            elif natural((again := _line(batch, index, rank)).origin) < natural(held[rank].origin):
                held[rank] = again
        drawn.lines_read += len(batch.lines)
        if len(held) > how.keep_rows + how.keep_rows // 4 + _SLACK_ROWS:
            ceiling = _lower_ceiling(held, how.keep_rows, drawn)
    if how.take == "hash":
        if len(held) > how.keep_rows:
            _lower_ceiling(held, how.keep_rows, drawn)
        drawn.lines = [held[rank] for rank in sorted(held)]
    return drawn


def _lower_ceiling(held: dict[int, Line], keep_rows: int, drawn: Drawn) -> np.uint64:
    """Forget all but the lowest ranks; return the highest that is kept."""
    ceiling = np.partition(np.fromiter(held, np.uint64, len(held)), keep_rows - 1)[keep_rows - 1]
    for rank in [rank for rank in held if rank > ceiling]:
        del held[rank], drawn.times[rank]
    drawn.complete = False
    return ceiling


def _take_first(batch: RawBatch, ranks: np.ndarray, keep_rows: int, drawn: Drawn) -> bool:
    """Take lines as they come; return whether there is room for more."""
    room = keep_rows - len(drawn.lines)
    for index in range(min(room, len(batch.lines))):
        drawn.lines.append(_line(batch, index, int(ranks[index])))
    drawn.lines_read = len(drawn.lines)
    drawn.complete = room >= len(batch.lines)
    return drawn.complete


def _check_lines(batch: RawBatch, ranks: np.ndarray, how: Draw, drawn: Drawn, is_first_batch: bool) -> None:
    count = len(batch.lines) if how.check_all_lines else min(1, len(batch.lines)) if is_first_batch else 0
    for index in range(count):
        if reason := how.check(batch.lines[index]):
            line = _line(batch, index, int(ranks[index]))
            drawn.checked.append((line.rank, BadRow(line.origin, line.offset, reason)))


def _line(batch: RawBatch, index: int, rank: int) -> Line:
    origin = f"{batch.file}{':' if batch.by_line else '#'}{batch.keys[index]}"
    return Line(rank, origin, batch.offsets[index] if batch.offsets else None, batch.lines[index])
