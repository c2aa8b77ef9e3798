"""Batches of raw lines -> the few lines that a quota needs: those of the lowest seeded hash, or the first ones.

Only the lines that are kept stay in memory, and none is parsed here: hashing keeps up with unpacking.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

import numpy as np
import xxhash

from medi.ingest.lowest import Line, Lowest, line_of
from medi.source import RawBatch

QUARANTINE_ROWS = 1_000
# How the reason of a record ends that is bad in strict mode only.
STRICT = "which --strict forbids"


class BadRow(NamedTuple):
    """A line that cannot be read: where it stands (`FILE:LINE` or `FILE#KEY`), at which byte, and why.

    With `damage` it stands for a file that is damaged, and its reason also says what helps.
    """

    origin: str
    offset: int | None
    reason: str
    damage: bool = False


@dataclass
class Drawn:
    """What one pass over the files gave. `times` says how often a line of that rank stood there.

    `complete` means that every line is among them; `checked` holds what a line's check found, by rank. `faults` are
    those of whole files and, where mended lines are bad, of these, the first ones; `faults_rows` counts them all.
    """

    lines: list[Line] = field(default_factory=list)
    times: Counter[int] = field(default_factory=Counter)
    lines_read: int = 0
    lines_passed: int = 0
    complete: bool = True
    checked: list[tuple[int, BadRow]] = field(default_factory=list)
    faults: list[BadRow] = field(default_factory=list)
    faults_rows: int = 0
    mended: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Draw:
    """How lines are drawn: `take` is "hash" or "first"; `check` says what is wrong with a line, "" where nothing is.

    Drawing begins at `start`: the least rank that is taken, or the number of lines that are passed over. The first line
    of each file is always checked, so that a file of another layout is found whatever is drawn. With `strict`, lines
    that the reader had to mend are bad and not drawn.
    """

    keep_rows: int
    take: str
    seed: int
    check: Callable[[bytes], str]
    check_all_lines: bool = False
    strict: bool = False
    start: int = 0


def rank_of(line: bytes, seed: int) -> int:
    """Return a line's seeded 64-bit hash."""
    return xxhash.xxh3_64_intdigest(line, seed)


def draw(batches: Iterator[RawBatch], how: Draw) -> Drawn:
    """Return the lines to parse, in the order in which they are taken: by rank, or as they stand in the files."""
    drawn, lowest = Drawn(), Lowest(how.keep_rows, how.start)
    files: set[str] = set()
    for whole in batches:
        batch = _readable(whole, how, drawn)
        hashes = map(xxhash.xxh3_64_intdigest, batch.lines, repeat(how.seed))
        ranks = np.fromiter(hashes, np.uint64, len(batch.lines))
        _check_lines(batch, ranks, how, drawn, batch.file not in files)
        files.add(batch.file)
        if how.take == "hash":
            lowest.add(batch, ranks)
            continue
        _take_first(batch, ranks, how, drawn)
        if not (drawn.complete or how.check_all_lines):
            break
    if how.take == "hash":
        drawn.lines, times = lowest.lines()
        drawn.times, drawn.complete = Counter(times), lowest.complete
    return drawn


def _readable(batch: RawBatch, how: Draw, drawn: Drawn) -> RawBatch:
    """Account for what the reader found; return the lines that may be drawn (and, of the first lines, no more)."""
    room = _room(how, drawn)
    if how.take == "first" and not how.check_all_lines and len(batch.lines) > room:
        drawn.complete = False
        batch = _beginning(batch, room)
    drawn.lines_read += len(batch.lines)
    if batch.fault:
        _note(drawn, BadRow(batch.file, None, batch.fault, damage=True))
    if how.strict and batch.mended:
        return _without_mended(batch, drawn)
    drawn.mended.update(mend.reason for mend in batch.mended)
    return batch


def _beginning(batch: RawBatch, rows: int) -> RawBatch:
    """Return a batch's first lines and their repairs: how much more was at hand must not show."""
    end = batch.keys[rows]
    mended = [mend for mend in batch.mended if not isinstance(end, int) or not batch.by_line or mend.line < end]
    return RawBatch(batch.file, batch.by_line, batch.keys[:rows], batch.offsets[:rows], batch.lines[:rows], mended)


def _without_mended(batch: RawBatch, drawn: Drawn) -> RawBatch:
    """Note each line that had to be mended, with all that was done to it, and return the others."""
    reasons: dict[tuple[int, int | None], list[str]] = {}
    for mend in batch.mended:
        reasons.setdefault((mend.line, mend.offset), []).append(mend.reason)
    for (line, offset), found in reasons.items():
        _note(drawn, BadRow(f"{batch.file}:{line}", offset, needs_mending(found)))
    if not batch.by_line:
        return batch
    mended = {line for line, _ in reasons}
    kept = [index for index, key in enumerate(batch.keys) if key not in mended]
    keys, lines = ([values[i] for i in kept] for values in (batch.keys, batch.lines))
    # The rows of a table have no offsets.
    offsets = [batch.offsets[i] for i in kept] if len(batch.offsets) else []
    return batch._replace(keys=keys, offsets=offsets, lines=lines)


def _note(drawn: Drawn, row: BadRow) -> None:
    drawn.faults_rows += 1
    if len(drawn.faults) < QUARANTINE_ROWS:
        drawn.faults.append(row)


def reason_of(found: str) -> str:
    """Return what a mend or a drop is counted by: its reason, without the field (`null in pos`)."""
    return found.partition(" ")[0]


def needs_mending(mends: Iterable[str]) -> str:
    """Return why a record is bad in strict mode."""
    return f"needs mending ({', '.join(sorted(mends))}), {STRICT}"


def _room(how: Draw, drawn: Drawn) -> int:
    """Return how many more lines are passed over or taken as they come."""
    return how.start + how.keep_rows - drawn.lines_passed


def _take_first(batch: RawBatch, ranks: np.ndarray, how: Draw, drawn: Drawn) -> None:
    """Take lines as they come while there is room, after the first ones that are passed over."""
    room = _room(how, drawn)
    wanted = range(max(0, how.start - drawn.lines_passed), min(room, len(batch.lines)))
    drawn.lines += [line_of(batch, index, int(ranks[index])) for index in wanted]
    drawn.lines_passed += min(room, len(batch.lines))
    drawn.complete = drawn.complete and room >= len(batch.lines)


def _check_lines(batch: RawBatch, ranks: np.ndarray, how: Draw, drawn: Drawn, is_first_batch: bool) -> None:
    count = len(batch.lines) if how.check_all_lines else min(1, len(batch.lines)) if is_first_batch else 0
    for index in range(count):
        if reason := how.check(batch.lines[index]):
            line = line_of(batch, index, int(ranks[index]))
            drawn.checked.append((line.rank, BadRow(line.origin, line.offset, reason)))
