"""Raw files -> RawBatches: lines split on 0x0A only, elements of one big JSON array or object, rows of Parquet.

Elements and rows come as canonical JSON, so that their bytes, and with them their rank, do not depend on spacing or on
the order of keys. Which kind a file is, its first bytes say; only an object keyed by id has to be declared (`keyed`).
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import chain
from pathlib import Path

import ijson
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from medi.errors import MediError
from medi.read.blocks import Damage, blocks
from medi.read.escapes import whole_escapes
from medi.source import RawBatch

_BOM = b"\xef\xbb\xbf"
_LONGEST_LINE_BYTES = 1 << 26
_PARQUET_ROWS = 1_000


def raw_batches(files: Iterable[tuple[Path, str]], keyed: bool = False, prefix: bool = False) -> Iterator[RawBatch]:
    """Yield the records of some files, each with its name in the raw folder, in order.

    A file that is damaged ends with a batch that has a `fault`. With `keyed`, a file that begins as an object is one
    from key to record. With `prefix` the files are beginnings of longer ones: a cut last record is left out.
    """
    for path, name in files:
        records = 0
        try:
            for batch in _batches_of(path, name, keyed, prefix):
                records += len(batch.lines)
                yield batch
            if not records and not prefix:
                raise Damage("the file holds no record")
        except Damage as damage:
            yield RawBatch(name, True, [], [], [], fault=str(damage))


def read_whole(path: Path) -> bytes:
    """Return all bytes of a small file. Raises MediError, with the name and the size, where it is damaged."""
    try:
        return b"".join(blocks(path))
    except Damage as damage:
        raise MediError(f"{path.name}: {damage}") from damage


def _batches_of(path: Path, name: str, keyed: bool, prefix: bool) -> Iterator[RawBatch]:
    unpacked = blocks(path, prefix)
    first = next(unpacked, b"")
    if first.startswith(b"PAR1"):
        unpacked.close()  # type: ignore[attr-defined]
        return _parquet_batches(path, name)
    head = first.removeprefix(_BOM).lstrip()
    unpacked = chain([first], unpacked)
    if head.startswith(b"{") and keyed:
        return _element_batches(name, unpacked, True, prefix)
    if head.startswith(b"[") and head[1:].lstrip().startswith((b"{", b"[")):
        return _element_batches(name, unpacked, False, prefix)
    return _line_batches(name, unpacked, prefix)


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
        yield batch._replace(mended={**batch.mended, "no_final_newline": 1}) if batch.lines else batch


def _lines_batch(name: str, number: int, offset_bytes: int, lines: list[bytes], has_cr: bool) -> RawBatch:
    """Make a batch of lines that start at a line number and an offset; take off BOM and CR, leave out blank lines."""
    mended: dict[str, int] = {}
    lengths_bytes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + 1
    offsets = (offset_bytes + np.cumsum(lengths_bytes) - lengths_bytes).tolist()
    keys = range(number, number + len(lines))
    if number == 1 and lines[0].startswith(_BOM):
        lines[0] = lines[0].removeprefix(_BOM)
        mended["bom"] = 1
    if has_cr:
        mended["crlf"] = sum(line.endswith(b"\r") for line in lines)
        lines = [line.removesuffix(b"\r") for line in lines]
    if not all(map(bytes.strip, lines)):
        kept = [i for i, line in enumerate(lines) if line.strip()]
        mended["blank_line"] = len(lines) - len(kept)
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
    mended: Counter[str] = Counter()
    parse = (
        ijson.kvitems_coro(found, "", map_type=_Object) if keyed else ijson.items_coro(found, "item", map_type=_Object)
    )
    index = 0
    try:
        for block in whole_escapes(unpacked, mended):
            parse.send(block)
            yield _elements_batch(name, index, list(found), keyed)._replace(mended=dict(mended))
            index += len(found)
            mended.clear()
            del found[:]
        if not prefix:
            parse.close()
    except (ijson.JSONError, UnicodeDecodeError) as error:
        # What the parser gave before it stumbled is whole.
        yield _elements_batch(name, index, list(found), keyed)
        reason = " ".join(str(error).split("\n", 1)[0].split())
        raise Damage(f"not JSON after {index + len(found):,} records ({reason})") from error


def _elements_batch(name: str, index: int, found: list[object], keyed: bool) -> RawBatch:
    keys = [str(key) for key, _ in found] if keyed else range(index, index + len(found))  # type: ignore[misc]
    values = [value for _, value in found] if keyed else found  # type: ignore[misc]
    return RawBatch(name, False, keys, [], [_record_bytes(value) for value in values])


def _parquet_batches(path: Path, name: str) -> Iterator[RawBatch]:
    index = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                lines = [_record_bytes(row) for row in batch.to_pylist()]
                yield RawBatch(name, False, range(index, index + len(lines)), [], lines)
                index += len(lines)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split("\n", 1)[0].split())
        raise Damage(f"damaged Parquet after {index:,} rows ({reason})") from error


def _record_bytes(value: object) -> bytes:
    """Return a record's canonical JSON. What JSON cannot say stays visibly wrong, for ingest to find: NaN, or a key
    that stands twice.
    """
    twice: list[str] = []

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
    return text.encode("utf-8", "surrogatepass")
