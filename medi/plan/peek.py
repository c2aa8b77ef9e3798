"""Raw files in place -> how many records they hold and how long their texts are, from a look at their beginnings.

A file is never read whole unless it is short: what stands behind the beginning is reckoned from bytes.
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from medi import read
from medi.fetch import LocalFile
from medi.plan.figures import EXACT, GUESSED, Figure
from medi.plan.lengths import Count, tokens_of
from medi.source import Bad, Drop, Fields, Variant

# Of each source: the records whose length is asked, and those that are parsed; of a file: the bytes.
_LOOKED_AT, _PARSED = 2_000, 250
_LOOKED_AT_BYTES = 1 << 20
_PACKED_BYTES = 1 << 18
# Of a Super-NI task: read whole up to the first size, and beyond it only so much of the beginning.
_WHOLE_TASK_BYTES, _TASK_BYTES = 1 << 20, 1 << 18
_TASK_TEXTS = 60
# Given negatives of a row that are encoded.
_GIVEN = 4
# What stands for a passage that is still to be looked up: 100 words.
_PASSAGE = "of words " * 67
# More answers than this, and a task is one of texts, whose outputs are encoded too.
_MOST_LABELS = 10

_STRING = rb'"((?:[^"\\]|\\.)*)"'
_INPUT = re.compile(rb'"input"\s*:\s*' + _STRING)
_OUTPUT = re.compile(rb'"output"\s*:\s*\[?\s*' + _STRING)


@dataclass(frozen=True)
class Peek:
    """Records of some files, the distinct texts to encode of each, and a sample of their `lengths` in tokens, [n]."""

    lines: Figure
    texts_of_line: float
    lengths: np.ndarray
    unpacked_bytes: float


def peek(files: Sequence[LocalFile], variant: Variant, count: Count = tokens_of) -> Peek:
    """Return what the beginnings of a source's files say; a damaged file ends the look, its build will say why."""
    keyed = any(file.keyed for file in variant.files)
    sizes = [_unpacked_bytes(file) for file in files]
    lines, whole = _beginning([(file.path, file.name) for file in files], keyed)
    texts, rows = _texts_of(variant, lines[:_PARSED])
    length_bytes = sum(len(line) + 1 for line in lines) / max(len(lines), 1)
    rows_in_files = _rows_in_parquet(files)
    figure = Figure(len(lines), EXACT) if whole else Figure(sum(sizes) / max(length_bytes, 1.0), GUESSED)
    distinct = list(dict.fromkeys(texts))
    return Peek(
        Figure(rows_in_files, EXACT) if rows_in_files is not None else figure,
        len(distinct) / rows if rows else 0.0,
        count(distinct),
        length_bytes * rows_in_files if rows_in_files is not None else sum(sizes),
    )


def _beginning(files: list[tuple[Path, str]], keyed: bool) -> tuple[list[bytes], bool]:
    """Return the first records of some files, and whether that is all of them."""
    lines: list[bytes] = []
    seen_bytes = 0
    # As a beginning, a file that is cut is no damage.
    for batch in read.raw_batches(files, keyed):
        lines += batch.lines
        seen_bytes += sum(map(len, batch.lines))
        if len(lines) >= _LOOKED_AT or seen_bytes >= _LOOKED_AT_BYTES:
            return lines, False
    return lines, True


def _texts_of(variant: Variant, lines: Sequence[bytes]) -> tuple[list[str], int]:
    """Return the texts of some records that are encoded, and how many records had any."""
    texts: list[str] = []
    rows = 0
    for line in lines:
        fields = _fields_of(variant, line)
        if fields:
            rows += 1
            positive = f"{rows} {_PASSAGE}" if fields.places else fields.positive
            texts += [fields.query, positive, *fields.negatives[:_GIVEN]]
    return texts, rows


def _fields_of(variant: Variant, line: bytes) -> Fields | None:
    """Return what a record says, None where it is bad or says nothing."""
    try:
        return variant.read(orjson.loads(line))
    except (Bad, Drop, ValueError):
        return None


def _rows_in_parquet(files: Sequence[LocalFile]) -> int | None:
    """Return the rows that Parquet files say they have, None where a file is none."""
    try:
        return sum(pq.read_metadata(file.path).num_rows for file in files if file.path.suffix == ".parquet") or None
    except (OSError, pa.ArrowInvalid):
        return None


def _unpacked_bytes(file: LocalFile) -> float:
    """Return about how many bytes a file has when it is unpacked, by how its beginning unpacks."""
    if not file.path.is_file():
        return file.size_bytes
    with file.path.open("rb") as packed:
        beginning = packed.read(_PACKED_BYTES)
    # What a file is, its bytes say, never its name.
    if not beginning.startswith(b"\x1f\x8b"):
        return file.size_bytes
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(beginning)
    except zlib.error:
        return file.size_bytes
    used_bytes = len(beginning) - len(unpacker.unused_data)
    return file.size_bytes * len(unpacked) / max(used_bytes, 1)


def peek_task(file: LocalFile, count: Count = tokens_of) -> Peek:
    """Return what a Super-NI task's file says: instances, texts and lengths. No JSON is parsed; the build will."""
    if not file.path.is_file():
        return Peek(Figure(0.0, GUESSED), 0.0, np.empty(0, np.int64), 0.0)
    is_whole = file.size_bytes <= _WHOLE_TASK_BYTES
    with file.path.open("rb") as opened:
        text = opened.read(-1 if is_whole else _TASK_BYTES)
    # The examples before the instances have inputs too.
    start = max(text.find(b'"Instances"'), 0)
    seen = text.count(b'"input"', start)
    share = (len(text) - start) / max(file.size_bytes - start, 1)
    inputs = list(_strings(_INPUT, text, start))
    outputs = list(_strings(_OUTPUT, text, start))
    texts, outputs_of_line = set(inputs), len(set(outputs)) / max(len(outputs), 1)
    if len(set(outputs)) > _MOST_LABELS:
        texts |= set(outputs)
    else:
        outputs_of_line = 0.0
    # Exact of the file, not of the build: it leaves out what it merges, and tasks in other languages.
    lines = Figure(seen / share if seen else 0.0, EXACT if is_whole else GUESSED)
    per_line = len(set(inputs)) / max(len(inputs), 1) + outputs_of_line
    return Peek(lines, per_line, count(sorted(texts)), file.size_bytes)


def _strings(pattern: re.Pattern[bytes], text: bytes, start: int) -> Iterator[str]:
    """Yield the first strings of a key, escapes left as they are."""
    for number, found in enumerate(pattern.finditer(text, start)):
        if number == _TASK_TEXTS:
            return
        yield found.group(1).decode(errors="replace")
