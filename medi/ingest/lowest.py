"""Lines of batches -> the distinct ones of the lowest ranks, and how often each was there.

Those of a batch lie end to end in one piece of memory until all are read. As objects of their own the few that outlive
their batch would be scattered over the memory that the next lines need, and splitting these would take much longer.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from medi.schema import natural
from medi.source import RawBatch

_SLACK_ROWS = 4_096
_TEXT_BYTES = 96 << 20
_TOP = np.iinfo(np.uint64).max


class Line(NamedTuple):
    """One drawn line: its rank, where it stands (`FILE:LINE` or `FILE#KEY`, and the byte), and its bytes."""

    rank: int
    origin: str
    offset: int | None
    raw: bytes


def line_of(batch: RawBatch, index: int, rank: int) -> Line:
    """Return a line of a batch."""
    offset = int(batch.offsets[index]) if len(batch.offsets) else None
    return Line(rank, _origin((batch.file, batch.by_line), batch.keys[index]), offset, batch.lines[index])


def _keys_at(keys: Sequence[int | str], places: np.ndarray) -> np.ndarray:
    """Return some of a batch's keys, an array of numbers where they are line numbers, else of objects."""
    if isinstance(keys, range):
        return keys.start + places * keys.step
    return np.array([keys[place] for place in places.tolist()], object)


def _origin(file: tuple[str, bool], key: int | str) -> str:
    return f"{file[0]}{':' if file[1] else '#'}{key}"


class _Part(NamedTuple):
    """Some lines, a column each, arrays [n]; `file` and `piece` number files and texts, `keys` are ints or objects."""

    ranks: np.ndarray
    times: np.ndarray
    file: np.ndarray
    offsets: np.ndarray
    piece: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    keys: np.ndarray


class Lowest:
    """The lines of the lowest ranks from `start` on, at most `keep_rows`; `complete` says that none was left out.

    They gather as they come; where twice as many as wanted stand there, half of them are forgotten. Their bytes are
    moved together only where those of forgotten lines would take much memory.
    """

    def __init__(self, keep_rows: int, start: int) -> None:
        """Begin with no line."""
        self.complete = True
        self._keep_rows, self._start, self._ceiling = keep_rows, np.uint64(start), np.uint64(_TOP)
        self._files: list[tuple[str, bool]] = []
        self._texts: list[bytes] = []
        self._text_bytes, self._most_bytes = 0, _TEXT_BYTES
        self._parts: list[_Part] = []
        self._rows = 0

    def add(self, batch: RawBatch, ranks: np.ndarray) -> None:
        """Take the lines that may be among the lowest; `ranks` uint64 [n] are those of the batch's lines."""
        wanted = np.flatnonzero((ranks <= self._ceiling) & (ranks >= self._start))
        if not len(wanted):
            return
        file = batch.file, batch.by_line
        if not self._files or self._files[-1] != file:
            self._files.append(file)
        indices = wanted.tolist()
        lines = [batch.lines[index] for index in indices]
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        ends = np.cumsum(lengths)
        every = np.ones(len(lines), np.int64)
        offsets = np.asarray(batch.offsets, np.int64)[wanted] if len(batch.offsets) else -every
        keys = _keys_at(batch.keys, wanted)
        columns = (every * (len(self._files) - 1), offsets, every * len(self._texts))
        self._parts.append(_Part(ranks[wanted], every, *columns, ends - lengths, ends, keys))
        self._texts.append(b"".join(lines))
        self._rows += len(lines)
        self._text_bytes += int(ends[-1])
        if self._rows > 2 * self._keep_rows + _SLACK_ROWS or self._text_bytes > self._most_bytes:
            self._settle()

    def lines(self) -> tuple[list[Line], dict[int, int]]:
        """Return the lines by rising rank, and how often each rank was there."""
        if not self._parts:
            return [], {}
        self._settle()
        (part,) = self._parts
        ranks, offsets = part.ranks.tolist(), part.offsets.tolist()
        places = zip(part.file.tolist(), part.keys.tolist(), strict=True)
        origins = [_origin(self._files[file], key) for file, key in places]
        columns = zip(ranks, origins, offsets, self._raw(part), strict=True)
        lines = [Line(rank, origin, None if offset < 0 else offset, raw) for rank, origin, offset, raw in columns]
        return sorted(lines), dict(zip(ranks, part.times.tolist(), strict=True))

    def _raw(self, part: _Part) -> Iterator[bytes]:
        spans = zip(part.piece.tolist(), part.starts.tolist(), part.ends.tolist(), strict=True)
        return (self._texts[piece][start:end] for piece, start, end in spans)

    def _settle(self) -> None:
        """Lay equal lines together (the one of the smallest origin stands for all), and forget all but the lowest."""
        ranks, times, *rest = map(np.concatenate, zip(*self._parts, strict=True))
        file, *_, keys = rest
        distinct, first, place = np.unique(ranks, return_index=True, return_inverse=True)
        for index in np.setdiff1d(np.arange(len(ranks)), first).tolist() if len(distinct) < len(ranks) else ():
            both = index, int(first[place[index]])
            again, known = (natural(_origin(self._files[file[at]], keys.item(at))) for at in both)
            if again < known:
                first[place[index]] = index
        # As they came, for so their bytes are read fastest.
        kept = np.sort(first[: self._keep_rows])
        sums = np.bincount(place, times, len(distinct)).astype(np.int64)[place[kept]]
        part = _Part(ranks[kept], sums, *(column[kept] for column in rest))
        if len(distinct) > self._keep_rows:
            self.complete, self._ceiling = False, distinct[self._keep_rows - 1]
        self._rows = len(kept)
        self._parts = [part if self._text_bytes <= self._most_bytes else self._together(part)]

    def _together(self, part: _Part) -> _Part:
        """Move the bytes of the lines into one piece, and return the lines there."""
        self._texts = [b"".join(self._raw(part))]
        self._text_bytes = len(self._texts[0])
        self._most_bytes = max(_TEXT_BYTES, 2 * self._text_bytes)
        ends = np.cumsum(part.ends - part.starts)
        return part._replace(piece=np.zeros_like(ends), starts=ends - (part.ends - part.starts), ends=ends)
