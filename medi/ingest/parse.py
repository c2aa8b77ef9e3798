"""One raw record's bytes -> a JSON value, exactly: what JSON forbids is Bad, lone surrogates and NULs are mended.

orjson is the fast path only, for it hides a key that stands twice and refuses lone surrogates.
"""

import json
import re
from collections.abc import Callable
from typing import NoReturn

import orjson

from medi.ingest.draw import needs_mending, reason_of
from medi.source import BAD_RECORD, NESTED_LEVELS, Bad, Drop, Fields, Json

_KEY_MARK = re.compile(rb'"[ \t\r\n]*:')
# orjson makes a float of an integer beyond 64 bits.
_LONG_NUMBER = re.compile(rb"\d{19}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUL, _NUL_ESCAPED = "\0", rb"\u0000"


def parse(line: bytes) -> tuple[Json, set[str]]:
    """Return the value of a line and the repairs it needed (`lone_surrogate`, `nul`).

    Raises Bad where it is not UTF-8, not JSON (NaN is not), nested too deep, has a key twice, or its reader said so.
    """
    value, is_suspect = load(line)
    mends: set[str] = set()
    return (as_text(value, mends) if is_suspect else value), mends


def load(line: bytes) -> tuple[Json, bool]:
    """Return the value of a line as it is, and whether `as_text` may have work with it. Raises Bad as `parse` does."""
    try:
        value = orjson.loads(line)
        _refuse_deep(value, line)
        # Each key puts one such mark into the line: where the numbers are equal, no key can have been lost.
        is_whole = b"{" not in line or len(_KEY_MARK.findall(line)) == _count_keys(value)
        if is_whole and not (_has_float(value) and _LONG_NUMBER.search(line)):
            return value, _NUL_ESCAPED in line
    except orjson.JSONDecodeError:
        pass
    value = _load_slowly(line)
    _refuse_deep(value, line)
    return value, True


def as_text(value: Json, mends: set[str]) -> Json:
    """Return the value without what is no text though JSON can say it: U+FFFD for each lone surrogate, which no UTF-8
    holds (`lone_surrogate`); without each U+0000, which nobody sees and at which many programs end a text (`nul`).

    Raises Bad where two keys of one object become equal.
    """
    if isinstance(value, str):
        if _SURROGATE.search(value):
            mends.add("lone_surrogate")
            value = _SURROGATE.sub("\ufffd", value)
        if _NUL in value:
            mends.add("nul")
            value = value.replace(_NUL, "")
        return value
    if isinstance(value, list):
        return [as_text(item, mends) for item in value]
    if isinstance(value, dict):
        return _without_repeats([(str(as_text(key, mends)), as_text(item, mends)) for key, item in value.items()])
    return value


def _refuse_deep(value: Json, line: bytes) -> None:
    """Raise Bad where a value is nested too deep, which few lines have the brackets for."""
    if line.count(b"[") + line.count(b"{") <= NESTED_LEVELS:
        return
    level = [value]
    for _ in range(NESTED_LEVELS):
        inside = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [item for part in inside for item in part]
    if any(isinstance(part, dict | list) for part in level):
        raise Bad("nested too deep")


def fields_of(value: Json, read: Callable[[Json], Fields], strict: bool) -> Fields:
    """Return what `read` makes of a value. Raises Bad and Drop; null in place of a text is bad where `strict`."""
    try:
        return read(value)
    except Drop as drop:
        if strict and reason_of(str(drop)) == "null":
            raise Bad(needs_mending([str(drop)])) from drop
        raise


def _count_keys(value: Json) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_count_keys, value.values()))
    return sum(map(_count_keys, value)) if isinstance(value, list) else 0


def _has_float(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_has_float, value.values()))
    return any(map(_has_float, value)) if isinstance(value, list) else isinstance(value, float)


def _load_slowly(line: bytes) -> Json:
    if line.startswith(BAD_RECORD):
        raise Bad(line.removeprefix(BAD_RECORD).decode(errors="replace"))
    try:
        text = line.decode("utf-8", "surrogatepass")
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise Bad(f"not UTF-8 (byte {error.start} of the line)") from error
    except json.JSONDecodeError as error:
        raise Bad(f"not JSON ({error.msg.removesuffix(' at')} at character {error.pos})") from error
    except ValueError as error:
        raise Bad(f"not JSON ({error})") from error
    except RecursionError as error:
        raise Bad("nested too deep") from error


def _without_repeats(members: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in members:
        if key in found:
            raise Bad(f"the key {key!r} stands twice in one object")
        found[key] = value
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise Bad(f"not JSON ({word} is no number)")
