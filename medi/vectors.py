"""Keeps text vectors: text_id -> unit vector, in chunks of at most 4,096, one folder an encoder.

A vector depends on its text and the encoder alone, so chunks of any build history hold the same vectors. Part of the
store: a chunk is written like an artifact, complete or not there.
"""

import hashlib
import tempfile
from pathlib import Path

import numpy as np

from medi.errors import MediError
from medi.store import fsync, new_temporary, publish, write_json

CHUNK_ROWS = 4_096
_IN_MEMORY_BYTES = 256 << 20


class VectorStore:
    """The vectors of one encoder below `root`; ids are text_ids as uint64."""

    def __init__(self, root: Path, encoder_key: str) -> None:
        self.root = root / encoder_key
        self._chunks: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._index: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def missing(self, ids: np.ndarray) -> np.ndarray:
        """Return those of the uint64 ids [n] that have no vector yet, in their order, shape [m]."""
        known, _, _ = self._refresh()
        return ids[~np.isin(ids, known)]

    def put(self, ids: np.ndarray, vectors: np.ndarray) -> None:
        """Store one chunk: ids uint64 [n], vectors [n, D] of float32 or float16. Raises MediError if not finite."""
        if not np.isfinite(vectors).all():
            row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise MediError(f"text {ids[row]:016x} has a vector that is not finite; nothing of its chunk was stored")
        final = self.root / hashlib.sha256(ids.tobytes()).hexdigest()[:32]
        temporary = new_temporary(final)
        np.save(temporary / "ids.npy", ids)
        np.save(temporary / "vectors.npy", vectors)
        fsync(temporary / "ids.npy")
        fsync(temporary / "vectors.npy")
        write_json(temporary / "record.json", {"rows": len(ids), "dimension": int(vectors.shape[1])})
        publish(temporary, final)

    def gather(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors of the ids [n], float32 [n, D]; above 256 MB in a mapped file that is already unlinked.

        Vectors kept as float16 are brought back to unit length.

        Raises:
            MediError: an id has no vector.
        """
        known, chunk_of, row_of = self._refresh()
        place = np.searchsorted(known, ids)
        if len(ids) and (len(known) == 0 or not np.array_equal(known[np.minimum(place, len(known) - 1)], ids)):
            raise MediError("a vector is missing from the workspace; run the same command again to encode it")
        chunks = list(self._chunks.values())
        dimension = chunks[0][1].shape[1] if chunks else 0
        out = self._room(len(ids), dimension)
        for number in np.unique(chunk_of[place]):
            wanted = np.flatnonzero(chunk_of[place] == number)
            out[wanted] = chunks[number][1][row_of[place[wanted]]]
            if chunks[number][1].dtype == np.float16:
                out[wanted] /= np.linalg.norm(out[wanted], axis=1, keepdims=True)
        return out

    def _room(self, rows: int, dimension: int) -> np.ndarray:
        """Return an empty float32 array, in memory where small, else in an unlinked file of the workspace."""
        if rows * dimension * 4 <= _IN_MEMORY_BYTES:
            return np.empty((rows, dimension), dtype=np.float32)
        with tempfile.TemporaryFile(dir=self.root) as handle:
            return np.memmap(handle, dtype=np.float32, mode="w+", shape=(rows, dimension))

    def _refresh(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (known ids sorted, chunk number, row in chunk), reading only chunks that are new since last time."""
        names = sorted(p.parent.name for p in self.root.glob("*/record.json") if not p.parent.name.startswith("."))
        if self._index is None or len(names) != len(self._chunks):
            self._chunks = {name: self._chunks.get(name) or self._read(name) for name in names}
            ids = [chunk[0] for chunk in self._chunks.values()]
            every = np.concatenate(ids) if ids else np.empty(0, dtype=np.uint64)
            chunk_of = np.repeat(np.arange(len(ids)), [len(i) for i in ids])
            row_of = np.concatenate([np.arange(len(i)) for i in ids]) if ids else np.empty(0, dtype=np.int64)
            known, first = np.unique(every, return_index=True)
            self._index = known, chunk_of[first].astype(np.int64), row_of[first]
        return self._index

    def _read(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return a chunk's ids and its vectors, the latter memory-mapped."""
        folder = self.root / name
        return np.load(folder / "ids.npy"), np.load(folder / "vectors.npy", mmap_mode="r")


def id_numbers(text_ids: list[str]) -> np.ndarray:
    """Return text_ids (16 hex digits each) as uint64 [n]."""
    return np.array([int(i, 16) for i in text_ids], dtype=np.uint64)
