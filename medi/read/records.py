"""Raw files -> RawBatches: lines split on 0x0A only, elements of one big JSON array or object, rows of Parquet.

Elements and rows come as canonical JSON, so that their bytes, and with them their rank, do not depend on spacing or on
the order of keys. Which kind a file is, its first bytes say; only an object keyed by id has to be declared (`keyed`).
"""

import json
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal
from itertools import chain
from pathlib import Path

import ijson
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from medi.ahead import ahead
from medi.read.blocks import Damage, blocks, refuse_bomb
from medi.read.escapes import STAND_IN, whole_escapes
from medi.read.limits import bearable
from medi.read.tables import is_table, table_batches
from medi.screen import many
from medi.source import Bad, Mend, RawBatch

_BOM = b"\xef\xbb\xbf"
# A record that is longer is bad: a line, an element of an array.
_LONGEST_BYTES = 1 << 26
_LONGEST_WHOLE_BYTES = 1 << 30
_PARQUET_ROWS = 1_000


def raw_batches(
    files: Iterable[tuple[Path, str]], keyed: bool = False, prefixes: Collection[str] = ()
) -> Iterator[RawBatch]:
    """Yield the records of some files, each with its name in the raw folder, in order.

    A file that is damaged ends with a batch that has a `fault`. With `keyed`, a file that begins as an object is one
    from key to record. Files named in `prefixes` are beginnings of longer ones: a cut last record is left out.
    """
    for path, name in files:
        records, prefix = 0, name in prefixes
        try:
            for batch in _batches_of(path, name, keyed, prefix):
                records += len(batch.lines)
                yield batch
            if not records and not prefix:
                raise Damage("the file holds no record")
        except Damage as damage:
            yield RawBatch(name, True, [], [], [], fault=str(damage))


def read_whole(path: Path) -> bytes | Bad:
    """Return all bytes of a small file, or what is wrong with it: ingest decides whether a damaged one may be."""
    held, held_bytes = [], 0
    try:
        for block in blocks(path):
            held.append(block)
            held_bytes += len(block)
            if held_bytes > _LONGEST_WHOLE_BYTES:
                raise Damage(f"the file is longer than {_LONGEST_WHOLE_BYTES:,} bytes", "see what is in it")
        return b"".join(held)
    except Damage as damage:
        return Bad(str(damage))


def _batches_of(path: Path, name: str, keyed: bool, prefix: bool) -> Iterator[RawBatch]:
    unpacked = ahead(blocks(path, prefix))
    first = next(unpacked, b"")
    if first.startswith(b"PAR1"):
        unpacked.close()
        return _parquet_batches(path, name)
    if name.lower().endswith(".parquet"):
        begins = first[:20].decode("utf-8", "replace")
        raise Damage(f"named .parquet and no Parquet: it begins with {begins!r}", "name it as what it is")
    text = first.removeprefix(_BOM)
    if is_table(name):
        return table_batches(name, chain([first], unpacked), prefix)
    head = text.lstrip()
    keyed = keyed and head.startswith(b"{")
    is_empty_array = head.startswith(b"[") and head[1:].strip() == b"]"
    if keyed or is_empty_array or (head.startswith(b"[") and head[1:].lstrip().startswith((b"{", b"["))):
        mended = [Mend("bom", 1, 0)] if text != first else []
        return chain(
            [RawBatch(name, False, [], [], [], mended)], _element_batches(name, chain([text], unpacked), keyed, prefix)
        )
    return _line_batches(name, chain([first], unpacked), prefix)


def _line_batches(name: str, unpacked: Iterable[bytes], prefix: bool) -> Iterator[RawBatch]:
    # What is there of the next line: in pieces, for a long one must not be copied once a block.
    pieces: list[bytes] = []
    number, offset_bytes, held_bytes = 1, 0, 0
    for block in unpacked:
        *lines, tail = block.split(b"\n")
        if lines:
            lines[0] = b"".join([*pieces, lines[0]])
            _refuse_long(number, len(lines[0]))
            yield _lines_batch(name, number, offset_bytes, lines, b"\r" in block or b"\r" in lines[0])
            number += len(lines)
            offset_bytes += held_bytes + len(block) - len(tail)
            pieces, held_bytes = [], 0
        pieces.append(tail)
        held_bytes += len(tail)
        _refuse_long(number, held_bytes)
    tail = b"".join(pieces)
    if tail and not prefix:
        batch = _lines_batch(name, number, offset_bytes, [tail], b"\r" in tail)
        mend = Mend("no_final_newline", number, offset_bytes)
        yield batch._replace(mended=[*batch.mended, mend]) if batch.lines else batch


def _refuse_long(number: int, length_bytes: int) -> None:
    """Raise Damage where a line, or what was read of it, is too long."""
    if length_bytes > _LONGEST_BYTES:
        raise Damage(f"line {number:,} is longer than {_LONGEST_BYTES:,} bytes", "see what is in it")


def _lines_batch(name: str, number: int, offset_bytes: int, lines: list[bytes], has_cr: bool) -> RawBatch:
    """Make a batch of lines that start at a line number and an offset; take off BOM and CR, leave out blank lines."""
    mended: list[Mend] = []
    lengths_bytes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + 1
    offsets = offset_bytes + np.cumsum(lengths_bytes) - lengths_bytes
    keys = range(number, number + len(lines))
    if number == 1 and lines[0].startswith(_BOM):
        lines[0] = lines[0].removeprefix(_BOM)
        mended.append(Mend("bom", 1, 0))
    if has_cr:
        mended += [Mend("crlf", keys[i], int(offsets[i])) for i, line in enumerate(lines) if line.endswith(b"\r")]
        lines = [line.removesuffix(b"\r") for line in lines]
    if not all(map(bytes.strip, lines)):
        kept = [i for i, line in enumerate(lines) if line.strip()]
        mended += [Mend("blank_line", keys[i], int(offsets[i])) for i, line in enumerate(lines) if not line.strip()]
        return RawBatch(name, True, [keys[i] for i in kept], offsets[kept], [lines[i] for i in kept], mended)
    return RawBatch(name, True, keys, offsets, lines, mended)


class _Object:
    """A JSON object that remembers a key it was given twice, which a dict would hide."""

    __slots__ = ("members", "twice")

    def __init__(self) -> None:
        self.members: dict[str, object] = {}
        self.twice = ""

    def __setitem__(self, key: str, value: object) -> None:
        if key in self.members:
            self.twice = key
        self.members[key] = value


def _element_batches(name: str, unpacked: Iterable[bytes], keyed: bool, prefix: bool) -> Iterator[RawBatch]:
    found = ijson.sendable_list()
    parse = (
        ijson.kvitems_coro(found, "", map_type=_Object) if keyed else ijson.items_coro(found, "item", map_type=_Object)
    )
    index, held_bytes = 0, 0
    seen: set[str] = set()
    try:
        for block in bearable(whole_escapes(unpacked)):
            parse.send(block)
            batch = _keyed_batch(name, list(found), seen) if keyed else _elements_batch(name, index, list(found))
            fitting = _fitting(batch.lines)
            yield batch._replace(keys=batch.keys[:fitting], lines=batch.lines[:fitting])
            held_bytes = len(block) if found else held_bytes + len(block)
            index += fitting
            if fitting < len(found) or held_bytes > _LONGEST_BYTES:
                raise Damage(f"record {index:,} is longer than {_LONGEST_BYTES:,} bytes", "see what is in it")
            del found[:]
        if not prefix:
            parse.close()
    except (ijson.JSONError, UnicodeDecodeError, ArithmeticError) as error:
        # What the parser gave before it stumbled is whole.
        yield _keyed_batch(name, list(found), seen) if keyed else _elements_batch(name, index, list(found))
        raise Damage(f"not JSON after {many(index + len(found), 'record')} ({_reason(error)})") from error


def _fitting(records: list[bytes]) -> int:
    """Return how many records come before one that is too long."""
    return next((place for place, record in enumerate(records) if len(record) > _LONGEST_BYTES), len(records))


def _reason(error: Exception) -> str:
    """Return in words why the parser of big files stumbled."""
    text = " ".join(str(error).split("\n", 1)[0].split())
    if isinstance(error, UnicodeDecodeError) or "invalid bytes in UTF8" in text:
        return "not UTF-8"
    return "a number beyond all measure" if isinstance(error, ArithmeticError) else text


def _elements_batch(name: str, index: int, found: list[object]) -> RawBatch:
    return RawBatch(name, False, range(index, index + len(found)), [], list(map(_record_bytes, found)))


def _keyed_batch(name: str, found: list[tuple[str, object]], seen: set[str]) -> RawBatch:
    """Make a batch of records with their keys; one whose key is among the `seen` says so where it is parsed."""
    keys, lines = [], []
    for key, value in found:
        keys.append(key.replace(STAND_IN, "\ufffd"))
        lines.append(_record_bytes(value, key if key in seen else None))
        seen.add(key)
    return RawBatch(name, False, keys, [], lines)


def _parquet_batches(path: Path, name: str) -> Iterator[RawBatch]:
    index = 0
    try:
        with pq.ParquetFile(path) as file:
            unpacked_bytes = sum(file.metadata.row_group(n).total_byte_size for n in range(file.num_row_groups))
            refuse_bomb(unpacked_bytes, path.stat().st_size, "the Parquet")
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise Damage(f"a column stands twice among {', '.join(names)}")
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                lines = _row_lines(batch)
                yield RawBatch(name, False, range(index, index + len(lines)), [], lines)
                index += len(lines)
    except UnicodeDecodeError as error:
        raise Damage(f"damaged Parquet after {many(index, 'row')} (the name of a column is not UTF-8)") from error
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split("\n", 1)[0].split())
        raise Damage(f"damaged Parquet after {many(index, 'row')} ({reason})") from error


def _row_lines(batch: pa.RecordBatch) -> list[bytes]:
    """Return the rows as JSON; of one that Python cannot hold (no UTF-8, a year 10000) what is bad for ingest."""
    try:
        return [_record_bytes(row) for row in batch.to_pylist()]
    except (ValueError, OverflowError) as error:
        if len(batch) == 1:
            return [error.object if isinstance(error, UnicodeDecodeError) else str(error).encode()]
        return [line for index in range(len(batch)) for line in _row_lines(batch.slice(index, 1))]


def _record_bytes(value: object, repeated: str | None = None) -> bytes:
    """Return a record's canonical JSON. What JSON cannot say stays visibly wrong, for ingest to find: NaN, a lone
    surrogate, a key that stands twice, in the record or (`repeated`) as its own.
    """
    twice = [] if repeated is None else [repeated]

    def plain(part: object) -> object:
        """Return a value as plain JSON values, and note where a key stands twice."""
        if isinstance(part, _Object):
            if part.twice:
                twice.append(part.twice)
            return part.members
        if isinstance(part, bytes):
            # Older writers of Parquet do not say that a column is text.
            return part.decode()
        return float(part) if isinstance(part, Decimal) else str(part)

    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=plain)
    if twice:
        key = json.dumps(twice[0], ensure_ascii=False)
        text = f'{{{key}:null,{key}:null,"record":{text}}}'
    return text.replace(STAND_IN, "\ud800").encode("utf-8", "surrogatepass")
