"""A CSV or TSV -> RawBatches: each row becomes the JSON object of its cells by the names of the first row.

Cells may hold line breaks, so a row's key is the line where it begins, as a person finds it in an editor.
"""

import codecs
import csv
import json
from collections.abc import Iterable, Iterator

from medi.read.blocks import Damage
from medi.source import BAD_RECORD, Mend, RawBatch

# Of TSV the standard says that a cell holds neither tab nor line break, so nothing is quoted there.
_DIALECTS = {".csv": (",", csv.QUOTE_MINIMAL), ".tsv": ("\t", csv.QUOTE_NONE)}
_ROWS = 1_000
_LONGEST_CELL_CHARACTERS = 1 << 26


def is_table(name: str) -> bool:
    """Return whether a file is a CSV or a TSV; no first bytes say it, so its name does."""
    return _ending(name) in _DIALECTS


def delimiter_of(name: str) -> str:
    """Return what stands between the cells of a table of that name."""
    return _DIALECTS[_ending(name)][0]


def table_batches(name: str, unpacked: Iterable[bytes], prefix: bool = False) -> Iterator[RawBatch]:
    """Yield the rows of a table below its first row, which names the columns; of a `prefix` the last row is left out.

    A row with more or fewer cells than columns comes as a BAD_RECORD, for ingest to count.
    Raises Damage: not UTF-8, a quote without its end, a column without a name or with that of another.
    """
    csv.field_size_limit(_LONGEST_CELL_CHARACTERS)
    mended: list[Mend] = []
    delimiter, quoting = _DIALECTS[_ending(name)]
    rows = csv.reader(_lines(unpacked, mended), delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
    keys, lines, begin = list[int](), list[bytes](), 1
    try:
        columns = [column.strip() for column in next(rows, [])]
        _check_columns(columns)
        begin = rows.line_num + 1
        for cells in rows:
            key, begin = begin, rows.line_num + 1
            if not cells:
                mended.append(Mend("blank_line", key, None))
                continue
            if len(lines) >= _ROWS:
                yield RawBatch(name, True, keys, [], lines, mended[:])
                keys, lines, mended[:] = [], [], []
            keys.append(key)
            lines.append(_record(columns, cells))
        # Of a beginning, the last row may be cut where nothing shows it.
        end = len(lines) - 1 if prefix else len(lines)
    except (csv.Error, UnicodeDecodeError) as error:
        end = len(lines)
        if not prefix:
            yield RawBatch(name, True, keys, [], lines, mended)
            why = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise Damage(f"no table after line {begin:,} ({why})", "save it as UTF-8 CSV, quotes doubled") from error
    if lines[:end]:
        yield RawBatch(name, True, keys[:end], [], lines[:end], mended)


def _record(columns: list[str], cells: list[str]) -> bytes:
    """Return a row as the JSON object of its cells, or that there are too many or too few of them."""
    if len(cells) != len(columns):
        told = f"{len(cells):,} of" if len(cells) < len(columns) else f"{len(cells):,} cells for"
        return BAD_RECORD + f"{told} {len(columns):,} columns".encode()
    return json.dumps(dict(zip(columns, cells, strict=True)), ensure_ascii=False, separators=(",", ":")).encode()


def _ending(name: str) -> str:
    """Return how a file's name ends, without a .gz, in lower case."""
    return name.lower().removesuffix(".gz")[-4:]


def _lines(unpacked: Iterable[bytes], mended: list[Mend]) -> Iterator[str]:
    """Yield the lines of a text with their ends. Raises UnicodeDecodeError."""
    decoder, tail, first = codecs.getincrementaldecoder("utf-8")(), "", True
    for block in unpacked:
        text = tail + decoder.decode(block)
        if first and text.startswith("\ufeff"):
            mended.append(Mend("bom", 1, 0))
            text = text[1:]
        first = False
        *lines, tail = text.split("\n")
        yield from (f"{line}\n" for line in lines)
    tail += decoder.decode(b"", final=True)
    if tail:
        yield tail


def _check_columns(columns: list[str]) -> None:
    if not all(columns) or len(set(columns)) < len(columns):
        told = ", ".join(repr(column) for column in columns[:8]) or "nothing"
        raise Damage(f"its first row does not name the columns, each once (it says {told})", "write their names there")
