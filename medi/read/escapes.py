"""Blocks of a JSON file -> the same blocks, with U+FFFD for lone surrogate escapes and without a BOM.

The parser for big arrays would silently write a question mark for them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

_BOM = b"\xef\xbb\xbf"
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
# The longest escape, a surrogate pair.
_ESCAPE_BYTES = 12


def whole_escapes(blocks: Iterable[bytes], mended: Counter[str]) -> Iterator[bytes]:
    """Yield the blocks, none empty and no escape on an edge; count `bom` and `lone_surrogate` in `mended`."""

    def mend(found: re.Match[bytes]) -> bytes:
        if not found[1]:
            return found[0]
        mended["lone_surrogate"] += 1
        return b"\\ufffd"

    held, is_first = b"", True
    for block in blocks:
        text = held + block
        if is_first and text.startswith(_BOM):
            mended["bom"] += 1
            text = text.removeprefix(_BOM)
        is_first = False
        cut = len(text)
        while (mark := text.rfind(b"\\", max(cut - _ESCAPE_BYTES, 0), cut)) >= 0:
            cut = mark
        text, held = text[:cut], text[cut:]
        if text:
            yield _ESCAPE.sub(mend, text) if b"\\ud" in text or b"\\uD" in text else text
    if held:
        yield _ESCAPE.sub(mend, held)
