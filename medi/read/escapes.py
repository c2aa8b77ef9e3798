"""Blocks of a JSON file -> the same blocks, in which lone surrogate escapes are recognisable after parsing.

The parser for big arrays would silently write a question mark for them; ingest mends and counts them row by row.
"""

import re
from collections.abc import Iterable, Iterator

_HIGH_HALF, _LOW_HALF = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HIGH = re.compile(_HIGH_HALF)
_ESCAPE = re.compile(rb"%b%b|(%b|%b)|\\." % (_HIGH_HALF, _LOW_HALF, _HIGH_HALF, _LOW_HALF), re.DOTALL)
# The longest escape is a pair of two such.
_HALF_BYTES = 6
# Two code points that are no characters and so stand side by side in no text.
STAND_IN = "\ufdd0\ufdd1"
_STAND_IN_ESCAPED = rb"\ufdd0\ufdd1"


def whole_escapes(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks, none empty and no escape on an edge, with `STAND_IN` for each lone surrogate."""
    held = b""
    for block in blocks:
        text = held + block
        cut = _whole_bytes(text)
        text, held = text[:cut], text[cut:]
        if text:
            yield _ESCAPE.sub(_stand_in, text) if b"\\ud" in text or b"\\uD" in text else text
    if held:
        yield _ESCAPE.sub(_stand_in, held)


def _whole_bytes(text: bytes) -> int:
    """Return how much of the text certainly ends outside an escape: all but the last pair of escapes at its end."""
    mark = text.rfind(b"\\", max(len(text) - 2 * _HALF_BYTES, 0))
    if mark < 0 or not _opens_escape(text, mark):
        return len(text)
    before = mark - _HALF_BYTES
    is_pair = before >= 0 and _HIGH.fullmatch(text, before, mark) and _opens_escape(text, before)
    return before if is_pair else mark


def _opens_escape(text: bytes, mark: int) -> bool:
    """Return whether the backslash at `mark` begins an escape: those before it are pairs, each of which is one."""
    return (mark - len(text[:mark].rstrip(b"\\"))) % 2 == 0


def _stand_in(found: re.Match[bytes]) -> bytes:
    return _STAND_IN_ESCAPED if found[1] else found[0]
