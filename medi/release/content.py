"""Rows become the content digest: one SHA-256, equal where two releases hold the same rows in the same order.

How rows are cut into shards, row groups, tables or chunks does not matter, nor does `origin` (where a row was read).
"""

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from medi.schema import EXAMPLES, digest_of

_COLUMNS = [name for name in EXAMPLES.names if name != "origin"]


class ContentDigest:
    """The digest of rows that come in any portions.

    Every column of the shards but `origin` is fed, row after row, to a few streams, each with its own SHA-256:
    `NAME/present` one byte a row (1, or 0 for null); of a string `NAME/length` (UTF-8 bytes, as int64) and
    `NAME/bytes`; of a float32 `NAME/number` (its 4 bytes); of a list `NAME/count` (items, as int64), and its items as a
    column named `NAME/item`. Integers and floats are little-endian; null counts as an empty string, zero, or an empty
    list. The content digest is the SHA-256 of the canonical JSON object {stream: its 64 hex digits}.
    """

    def __init__(self) -> None:
        """Start with no rows."""
        self._streams: dict[str, hashlib._Hash] = {}

    def update(self, rows: pa.Table) -> None:
        """Add the next rows, a table with the columns of EXAMPLES."""
        for name in _COLUMNS:
            for chunk in rows.column(name).chunks:
                self._column(name, chunk)

    def hexdigest(self) -> str:
        """Return the digest of all rows so far, 64 hex digits."""
        return digest_of({name: stream.hexdigest() for name, stream in self._streams.items()})

    def _column(self, name: str, values: pa.Array) -> None:
        self._feed(f"{name}/present", values.is_valid().to_numpy(zero_copy_only=False).astype("u1").tobytes())
        if pa.types.is_list(values.type):
            counts = pc.fill_null(pc.list_value_length(values), 0)
            self._feed(f"{name}/count", counts.to_numpy(zero_copy_only=False).astype("<i8").tobytes())
            self._column(f"{name}/item", values.flatten())
        elif pa.types.is_string(values.type):
            filled = pc.fill_null(values, "").cast(pa.large_binary())
            offsets = np.frombuffer(filled.buffers()[1], dtype="<i8")[filled.offset :][: len(filled) + 1]
            self._feed(f"{name}/length", np.diff(offsets).astype("<i8").tobytes())
            text = filled.buffers()[2]
            self._feed(f"{name}/bytes", memoryview(text or b"")[offsets[0] : offsets[-1]] if len(filled) else b"")
        else:
            self._feed(f"{name}/number", pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype("<f4").tobytes())

    def _feed(self, stream: str, data: memoryview | bytes) -> None:
        self._streams.setdefault(stream, hashlib.sha256()).update(data)
