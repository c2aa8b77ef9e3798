"""Invented English-like text from a seed: raw files of any number of lines, which pack as real ones do (2.6 to 1)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import orjson
from isal import isal_zlib

_WORDS, _CLAUSES, _CLAUSES_OF_TEXT = 30_000, 100_000, (4, 12)
_LINES_AT_ONCE = 20_000
_SYLLABLES = [c + v + e for c in "bcdfghlmnprst" for v in "aeiou" for e in ("", "n", "r", "s")]
_GZIP = 31  # zlib's number for deflate in a gz

Layout = Callable[[str, str], object]


def array(query: str, positive: str) -> object:
    """Return a line of two texts in an array."""
    return [query, positive]


def query_and_positives(query: str, positive: str) -> object:
    """Return a line of two texts in an object."""
    return {"query": query, "pos": [positive]}


def clauses(random: np.random.Generator) -> list[str]:
    """Return some 6 invented words each, common ones as often as in a language."""
    words = ["".join(random.choice(_SYLLABLES, n)) for n in random.integers(1, 5, _WORDS)]
    often = 1 / np.arange(10, _WORDS + 10)
    places = random.choice(_WORDS, _CLAUSES * 12, p=often / often.sum())
    lengths = random.integers(3, 11, _CLAUSES)
    starts = np.arange(_CLAUSES) * 12
    return [" ".join([words[place] for place in places[s : s + n]]) for s, n in zip(starts, lengths, strict=True)]


def pairs(lines: int, seed: int = 0) -> Iterator[list[tuple[str, str]]]:
    """Yield so many queries of a clause and positives of four to eleven, in portions."""
    random = np.random.default_rng(seed)
    known = clauses(random)
    for start in range(0, lines, _LINES_AT_ONCE):
        count = min(_LINES_AT_ONCE, lines - start)
        drawn = random.integers(0, len(known), (count, 1 + _CLAUSES_OF_TEXT[1])).tolist()
        counts = random.integers(*_CLAUSES_OF_TEXT, count).tolist()
        yield [
            (known[first], ", ".join([known[place] for place in rest[:n]]))
            for (first, *rest), n in zip(drawn, counts, strict=True)
        ]


def write_lines(path: Path, lines: int, layout: Layout, seed: int = 0) -> int:
    """Write a gz of JSON lines; return how many bytes it unpacks to."""
    packer = isal_zlib.compressobj(isal_zlib.ISAL_BEST_COMPRESSION, wbits=_GZIP)
    unpacked_bytes = 0
    with path.open("wb") as file:
        for portion in pairs(lines, seed):
            text = b"\n".join([orjson.dumps(layout(*pair)) for pair in portion]) + b"\n"
            unpacked_bytes += len(text)
            file.write(packer.compress(text))
        file.write(packer.flush())
    return unpacked_bytes
