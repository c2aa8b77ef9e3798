"""Blocks of a JSON file -> the same blocks, in which lone surrogate escapes are recognisable after parsing.

The parser for big arrays would silently write a question mark for them; ingest mends and counts them row by row.
"""

import re
from collections.abc import Iterable, Iterator

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
# The longest escape, a surrogate pair.
_ESCAPE_BYTES = 12
# Two code points that are no characters and so stand side by side in no text.
STAND_IN = "\ufdd0\ufdd1"
_STAND_IN_ESCAPED = rb"\ufdd0\ufdd1"


def whole_escapes(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks, none empty and no escape on an edge, with `STAND_IN` for each lone surrogate."""
    held = b""
    for block in blocks:
        text = held + block
        cut = len(text)
        while (mark := text.rfind(b"\\", max(cut - _ESCAPE_BYTES, 0), cut)) >= 0:
            cut = mark
        text, held = text[:cut], text[cut:]
        if text:
            yield _ESCAPE.sub(_stand_in, text) if b"\\ud" in text or b"\\uD" in text else text
    if held:
        yield _ESCAPE.sub(_stand_in, held)


def _stand_in(found: re.Match[bytes]) -> bytes:
    return _STAND_IN_ESCAPED if found[1] else found[0]
