"""The named tables of a build, and what a text and a row are: fold, text_id, row_id, counts and content digests.

Everything a stage takes or gives is an Arrow table with one of the schemas below. Nothing here reads or writes a file.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from medi.errors import MediError

# Ranks of Super-NI pairs from here on: second rows of mutual pairs, which return only where a task misses its quota.
SECOND_OF_MUTUAL = 1 << 32

_TEXTS = pa.list_(pa.string())
_SCORES = pa.list_(pa.float32())

ROWS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("positive", pa.string()),
        pa.field("output", pa.string()),
        pa.field("label", pa.string()),
        pa.field("references", _TEXTS, nullable=False),
        pa.field("other_positives", _TEXTS, nullable=False),
        pa.field("negatives", _TEXTS, nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        # Not for readers: the seeded hash of the raw line, in whose rising order quotas are filled.
        pa.field("rank", pa.uint64(), nullable=False),
    ]
)

TOKENS = pa.schema(
    [
        pa.field("text_id", pa.string(), nullable=False),
        # Equal keys mean equal token ids after truncation: to the encoder, one text.
        pa.field("token_key", pa.uint64(), nullable=False),
        pa.field("length_tokens", pa.int32(), nullable=False),
    ]
)

# Of each row, in the order of ROWS: the rows it may be paired with, by number, nearest first; `known` says how many
# known positives stood among the nearest and were left out.
CANDIDATES = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("positives", pa.list_(pa.int32()), nullable=False),
        pa.field("positive_scores", _SCORES, nullable=False),
        pa.field("negatives", pa.list_(pa.int32()), nullable=False),
        pa.field("negative_scores", _SCORES, nullable=False),
        pa.field("known", pa.int32(), nullable=False),
    ]
)

# Of each row, in the order of ROWS: a cross-encoder's scores of the first candidates, and the least of those of the
# positives of its query.
RESCORED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("scores", _SCORES, nullable=False),
        pa.field("lowest", pa.float32(), nullable=False),
    ]
)

# Of each text the text_id that stands for all its near-duplicates.
NEAR = pa.schema(
    [
        pa.field("text_id", pa.string(), nullable=False),
        pa.field("near", pa.string(), nullable=False),
    ]
)

PAIRS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("positive", pa.string(), nullable=False),
        pa.field("label", pa.string()),
        pa.field("negatives", _TEXTS, nullable=False),
        pa.field("negative_labels", _TEXTS, nullable=False),
        pa.field("positive_score", pa.float32()),
        pa.field("negative_scores", _SCORES, nullable=False),
        pa.field("negative_origins", _TEXTS, nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        # Not for readers: rows are taken in rising rank until the quota stands.
        pa.field("rank", pa.uint64(), nullable=False),
    ]
)

EXAMPLES = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("query_instruction", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("document_instruction", pa.string(), nullable=False),
        pa.field("positive", pa.string(), nullable=False),
        pa.field("label", pa.string()),
        pa.field("negatives", _TEXTS, nullable=False),
        pa.field("negative_labels", _TEXTS, nullable=False),
        pa.field("positive_score", pa.float32()),
        pa.field("negative_scores", _SCORES, nullable=False),
        pa.field("negative_origins", _TEXTS, nullable=False),
        pa.field("licence", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
    ]
)

POSITIVES = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("positive", pa.string(), nullable=False),
    ]
)


@dataclass
class Counts:
    """What a stage did with its rows. Invariant: rows_in == rows_out + sum(dropped.values()).

    `mended` counts rows that were repaired and kept; `facts` holds what is known of the unit as a whole (JSON scalars
    and flat dicts: lines_read, kind, definition, negatives_missing, skipped, ...).
    """

    rows_in: int = 0
    rows_out: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    facts: dict[str, object] = field(default_factory=dict)

    def check(self, stage: str) -> "Counts":
        """Return self. Raises MediError where a row went missing without a reason."""
        if self.rows_in != self.rows_out + sum(self.dropped.values()):
            raise MediError(
                f"{stage}: {self.rows_in} rows in, {self.rows_out} out, {sum(self.dropped.values())} dropped by "
                "reason: the sums do not meet; this is a fault of medi, please report it"
            )
        return self

    def to_json(self) -> dict[str, object]:
        """Return a dict with a JSON form, keys in a fixed order."""
        return {
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "dropped": dict(sorted(self.dropped.items())),
            "mended": dict(sorted(self.mended.items())),
            "facts": dict(sorted(self.facts.items())),
        }


def fold(text: str) -> str:
    """Return the text with every run of white space as one blank, none at the ends; equal folds are one text."""
    # All white space but the blank is unprintable: most texts are as they should be, and that is soon seen.
    if text.isprintable() and "  " not in text and text == text.strip(" "):
        return text
    return " ".join(text.split())


# What nobody sees, written out so that it does not depend on the Unicode version of a Python: blanks, controls,
# fillers and other ignorable code points, surrogates, private use. Code points yet to be assigned count as visible.
_VISIBLE = re.compile(
    r"[^\x00-\x20\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680"
    r"\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\uf8ff"
    r"\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    + "".join(rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(1, 14))
    + r"\U000e0000-\U0010ffff]"
)


def is_visible(text: str) -> bool:
    """Return whether the text has a character a person can see (not only blanks, controls, format marks, fillers)."""
    return _VISIBLE.search(text) is not None


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key in which runs of digits, however long, count as numbers: `part-2` before `part-10`."""
    parts = [part.lstrip("0") if part.isdecimal() else part for part in re.split(r"(\d+)", text) if part]
    return tuple((0, len(part), part) if not part or part.isdecimal() else (1, 0, part) for part in parts)


def text_id(text: str) -> str:
    """Return 16 hex digits of the SHA-256 of the text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def row_id(source: str, task: str, query: str, positive: str | None, output: str | None = None) -> str:
    """Return `<source>/` and 16 hex digits of the SHA-256 over the JSON array [task, query, positive, output]."""
    # The bytes that json.dumps gives without blanks and ASCII escapes, in a tenth of its time.
    canonical = orjson.dumps([task, query, positive, output])
    return f"{source}/{hashlib.sha256(canonical).hexdigest()[:16]}"


def table_of(rows: Iterable[dict[str, object]], schema: pa.Schema) -> pa.Table:
    """Return the rows as one Arrow table with exactly this schema; an absent key is null."""
    return pa.Table.from_pylist(list(rows), schema=schema)


def canonical_json(value: object) -> bytes:
    """Return the one JSON form of a value (sorted keys, no blanks, UTF-8). Raises TypeError where it has none."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest_of(value: object) -> str:
    """Return the SHA-256 (64 hex digits) of a value's canonical JSON. Raises TypeError where it has no JSON form."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def digest_table(table: pa.Table) -> str:
    """Return the SHA-256 of a table's names, types and values; chunks, offsets and buffers do not matter."""
    hasher = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        hasher.update(f"{name}:{column.type}:{len(column)};".encode())
        _hash_values(hasher, column.chunks, column.type)
    return hasher.hexdigest()


def _hash_values(hasher: "hashlib._Hash", chunks: list[pa.Array], kind: pa.DataType) -> None:
    """Feed the values of one column: which are null, then lengths and items of lists and strings, or plain numbers."""
    for chunk in chunks:
        hasher.update(chunk.is_null().to_numpy(zero_copy_only=False).tobytes())
    if pa.types.is_list(kind):
        for chunk in chunks:
            hasher.update(_numbers(pc.list_value_length(chunk), "<i8"))
        _hash_values(hasher, [chunk.flatten() for chunk in chunks], kind.value_type)
    elif pa.types.is_string(kind):
        filled = [pc.fill_null(chunk, "").cast(pa.large_binary()) for chunk in chunks]
        for chunk in filled:
            hasher.update(_numbers(pc.binary_length(chunk), "<i8"))
        for chunk in filled:
            offsets = np.frombuffer(chunk.buffers()[1], dtype="<i8")[chunk.offset : chunk.offset + len(chunk) + 1]
            if len(chunk) and chunk.buffers()[2] is not None:
                hasher.update(memoryview(chunk.buffers()[2])[int(offsets[0]) : int(offsets[-1])])
    else:
        for chunk in chunks:
            hasher.update(_numbers(chunk, chunk.type.to_pandas_dtype()))


def _numbers(array: pa.Array, dtype: str) -> bytes:
    """Return the bytes of an array of numbers, null as 0."""
    return pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(dtype).tobytes()
