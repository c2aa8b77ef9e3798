"""Blocks of a JSON file -> the same blocks, up to where its parser would not bear them.

ijson keeps a path of each level, so that 100,000 open brackets take 25 GB of memory, and an integer of more than 4,300
digits ends the whole process.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from medi.read.blocks import Damage
from medi.source import NESTED_LEVELS

_NUMBER_BYTES = 1_000
_IN_NUMBERS = b"+-.0123456789eE"
_NUMBER = re.compile(rb"[-+.0-9eE]{%d}" % _NUMBER_BYTES)
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]|[-+.0-9eE]++', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\1\1\xff\xff")


def bearable(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks, of which none may end inside an escape, and of the last one what stands before the trouble.

    Raises Damage where more than NESTED_LEVELS stand inside the file's own, or a number has 1,000 characters.
    """
    depth, in_text, tail = 0, False, b""
    for block in blocks:
        text = b'"' + block if in_text else block
        bare, quote, _ = (tail + _TEXT.sub(b"", text)).partition(b'"')
        steps = np.frombuffer(bare.translate(_STEPS, _NO_BRACKET), np.int8)
        depths = depth + np.cumsum(steps, dtype=np.int64)
        is_deep = bool((depths > NESTED_LEVELS + 1).any())
        if is_deep or _NUMBER.search(bare):
            if start := _trouble(text, depth) - in_text:
                yield block[: max(start, 0)]
            raise Damage("nested too deep" if is_deep else f"a number of {_NUMBER_BYTES:,} characters or more")
        depth, in_text = int(depths[-1]) if len(depths) else depth, bool(quote)
        tail = b"" if quote else bare[len(bare.rstrip(_IN_NUMBERS)) :]
        yield block


def _trouble(text: bytes, depth: int) -> int:
    """Return where the first bracket too many or the number too long begins, 0 where it began in an earlier block."""
    for token in _TOKEN.finditer(text):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token[0], 0)
        if depth > NESTED_LEVELS + 1 or (len(token[0]) >= _NUMBER_BYTES and not token[0].startswith(b'"')):
            return token.start()
    return 0
