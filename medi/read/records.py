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

from medi.read.blocks import Damage, blocks
from medi.read.escapes import STAND_IN, whole_escapes
from medi.source import Bad, Mend, RawBatch

_BOM = b"\xef\xbb\xbf"
_LONGEST_LINE_BYTES = 1 << 26
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
    try:
        return b"".join(blocks(path))
    except Damage as damage:
        return Bad(str(damage))


def _batches_of(path: Path, name: str, keyed: bool, prefix: bool) -> Iterator[RawBatch]:
    unpacked = blocks(path, prefix)
    first = next(unpacked, b"")
    if first.startswith(b"PAR1"):
        unpacked.close()  # type: ignore[attr-defined]
        return _parquet_batches(path, name)
    text = first.removeprefix(_BOM)
    head = text.lstrip()
    keyed = keyed and head.startswith(b"{")
    if keyed or (head.startswith(b"[") and head[1:].lstrip().startswith((b"{", b"["))):
        mended = [Mend("bom", 1, 0)] if text != first else []
        return chain(
            [RawBatch(name, False, [], [], [], mended)], _element_batches(name, chain([text], unpacked), keyed, prefix)
        )
    return _line_batches(name, chain([first], unpacked), prefix)


def _line_batches(name: str, unpacked: Iterable[bytes], prefix: bool) -> Iterator[RawBatch]:
    tail, number, offset_bytes = b"", 1, 0
    for block in unpacked:
        text = tail + block
        *lines, tail = text.split(b"\n")
        if len(tail) > _LONGEST_LINE_BYTES:
            raise Damage(f"line {number + len(lines):,} is longer than {_LONGEST_LINE_BYTES:,} bytes")
        if lines:
            yield _lines_batch(name, number, offset_bytes, lines, b"\r" in text)
            number += len(lines)
            offset_bytes += len(text) - len(tail)
    if tail and not prefix:
        batch = _lines_batch(name, number, offset_bytes, [tail], b"\r" in tail)
        mend = Mend("no_final_newline", number, offset_bytes)
        yield batch._replace(mended=[*batch.mended, mend]) if batch.lines else batch


def _lines_batch(name: str, number: int, offset_bytes: int, lines: list[bytes], has_cr: bool) -> RawBatch:
    """Make a batch of lines that start at a line number and an offset; take off BOM and CR, leave out blank lines."""
    mended: list[Mend] = []
    lengths_bytes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + 1
    offsets = (offset_bytes + np.cumsum(lengths_bytes) - lengths_bytes).tolist()
    keys = range(number, number + len(lines))
    if number == 1 and lines[0].startswith(_BOM):
        lines[0] = lines[0].removeprefix(_BOM)
        mended.append(Mend("bom", 1, 0))
    if has_cr:
        mended += [Mend("crlf", keys[i], offsets[i]) for i, line in enumerate(lines) if line.endswith(b"\r")]
        lines = [line.removesuffix(b"\r") for line in lines]
    if not all(map(bytes.strip, lines)):
        kept = [i for i, line in enumerate(lines) if line.strip()]
        mended += [Mend("blank_line", keys[i], offsets[i]) for i, line in enumerate(lines) if not line.strip()]
        return RawBatch(
            name, True, [keys[i] for i in kept], [offsets[i] for i in kept], [lines[i] for i in kept], mended
        )
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
    index = 0
    seen: set[str] = set()
    try:
        for block in whole_escapes(unpacked):
            parse.send(block)
            yield _keyed_batch(name, list(found), seen) if keyed else _elements_batch(name, index, list(found))
            index += len(found)
            del found[:]
        if not prefix:
            parse.close()
    except (ijson.JSONError, UnicodeDecodeError) as error:
        # What the parser gave before it stumbled is whole.
        yield _keyed_batch(name, list(found), seen) if keyed else _elements_batch(name, index, list(found))
        reason = " ".join(str(error).split("\n", 1)[0].split())
        raise Damage(f"not JSON after {index + len(found):,} records ({reason})") from error


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
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise Damage(f"a column stands twice among {', '.join(names)}")
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                lines = [_record_bytes(row) for row in batch.to_pylist()]
                yield RawBatch(name, False, range(index, index + len(lines)), [], lines)
                index += len(lines)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split("\n", 1)[0].split())
        raise Damage(f"damaged Parquet after {index:,} rows ({reason})") from error


def _record_bytes(value: object, repeated: str | None = None) -> bytes:
    """Return a record's canonical JSON. What JSON cannot say stays visibly wrong, for ingest to find: NaN, a lone
    surrogate, a key that stands twice, in the record or (`repeated`) as its own.
    """
    twice = [] if repeated is None else [repeated]

    def plain(part: object) -> object:
        if isinstance(part, _Object):
            if part.twice:
                twice.append(part.twice)
            return part.members
        return float(part) if isinstance(part, Decimal) else str(part)

    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=plain)
    if twice:
        key = json.dumps(twice[0], ensure_ascii=False)
        text = f'{{{key}:null,{key}:null,"record":{text}}}'
    return text.replace(STAND_IN, "\ud800").encode("utf-8", "surrogatepass")
