"""Keeps text vectors: text_id -> unit vector, in chunks of at most 4,096, one folder an encoder.

A vector depends on its text and the encoder alone, so chunks of any build history hold the same vectors. Part of the
store: a chunk is written like an artifact, complete or not there, and its record says what its bytes must be.
"""

import hashlib
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np

from medi.errors import MediError
from medi.publish import digest_of_files, fsync, publishing, write_json

CHUNK_ROWS = 4_096
_IN_MEMORY_BYTES = 256 << 20
# numpy reads a file's head by Python's own parser, which in 3.11 fails now and then where two threads run it at once.
_PARSING = threading.Lock()


class _Index(NamedTuple):
    """All chunks at one moment: known ids sorted, and for each the number of its chunk and its row there."""

    names: list[str]
    ids: list[np.ndarray]
    vectors: list[np.ndarray]
    known: np.ndarray
    chunk_of: np.ndarray
    row_of: np.ndarray


class VectorStore:
    """The vectors of one encoder below `root`; ids are text_ids as uint64. Threads may share it."""

    def __init__(self, root: Path, encoder_key: str) -> None:
        self.root = root / encoder_key
        self._latest = _index_of([], [], [])

    def missing(self, ids: np.ndarray) -> np.ndarray:
        """Return those of the uint64 ids [n] that have no vector yet, in their order, shape [m]."""
        return ids[~np.isin(ids, self._index().known)]

    def put(self, ids: np.ndarray, vectors: np.ndarray) -> None:
        """Store one chunk: ids uint64 [n], vectors [n, D] of float32 or float16. Raises MediError if not finite."""
        if not np.isfinite(vectors).all():
            row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise MediError(f"text {ids[row]:016x} has a vector that is not finite; nothing of its chunk was stored")
        final = self.root / hashlib.sha256(ids.tobytes()).hexdigest()[:32]
        with publishing(final) as temporary:
            np.save(temporary / "ids.npy", ids)
            np.save(temporary / "vectors.npy", vectors)
            fsync(temporary / "ids.npy")
            fsync(temporary / "vectors.npy")
            digest = digest_of_files(*_files(temporary))
            record = {"rows": len(ids), "dimension": int(vectors.shape[1]), "digest": digest}
            write_json(temporary / "record.json", record)

    def gather(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors of the ids [n], float32 [n, D]; above 256 MB in a mapped file that is already unlinked.

        Vectors kept as float16 are brought back to unit length.

        Raises:
            MediError: an id has no vector.
        """
        index = self._index()
        place = np.searchsorted(index.known, ids)
        if len(ids) and (len(index.known) == 0 or (index.known[np.minimum(place, len(index.known) - 1)] != ids).any()):
            raise MediError("a vector is missing from the workspace; run the same command again to encode it")
        out = self._room(len(ids), index.vectors[0].shape[1] if index.vectors else 0)
        for number in np.unique(index.chunk_of[place]):
            wanted = np.flatnonzero(index.chunk_of[place] == number)
            vectors = index.vectors[number]
            out[wanted] = vectors[index.row_of[place[wanted]]]
            if vectors.dtype == np.float16:
                out[wanted] /= np.linalg.norm(out[wanted], axis=1, keepdims=True)
        return out

    def _room(self, rows: int, dimension: int) -> np.ndarray:
        """Return an empty float32 array, in memory where small, else in an unlinked file of the workspace."""
        if rows * dimension * 4 <= _IN_MEMORY_BYTES:
            return np.empty((rows, dimension), dtype=np.float32)
        with tempfile.TemporaryFile(dir=self.root) as handle:
            # Where the disk fills up under a mapped file, the process is killed without a word: take the room now.
            os.posix_fallocate(handle.fileno(), 0, rows * dimension * 4)
            return np.memmap(handle, dtype=np.float32, mode="w+", shape=(rows, dimension))

    def _index(self) -> _Index:
        """Return the index of all chunks that are here now; only new ones are read.

        It is one value, replaced as a whole: a thread must never see the chunks of one moment with the rows of another.
        """
        latest = self._latest
        names = sorted(p.parent.name for p in self.root.glob("*/record.json") if not p.parent.name.startswith("."))
        if names != latest.names:
            here = dict(zip(latest.names, zip(latest.ids, latest.vectors, strict=True), strict=True))
            chunks = [here.get(name) or self._read(name) for name in names]
            latest = self._latest = _index_of(names, [ids for ids, _ in chunks], [vectors for _, vectors in chunks])
        return latest

    def _read(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return a chunk's ids and its vectors, the latter memory-mapped. Raises MediError where damaged."""
        folder = self.root / name
        try:
            found, record = digest_of_files(*_files(folder)), json.loads((folder / "record.json").read_bytes())
            # Chunks of before the digest are believed as they were.
            if not isinstance(record, dict) or record.get("digest", found) != found:
                raise ValueError("its bytes are not those that were written")
            with _PARSING:
                ids = np.load(folder / "ids.npy", allow_pickle=False)
                return ids, np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise MediError(f"{folder} is damaged ({error}); delete it and run the command again") from None


def _index_of(names: list[str], ids: list[np.ndarray], vectors: list[np.ndarray]) -> _Index:
    """Return the index of some chunks; of an id that stands in several, the first one's row."""
    every = np.concatenate([np.empty(0, dtype=np.uint64), *ids])
    chunk_of = np.repeat(np.arange(len(ids)), [len(i) for i in ids]).astype(np.int64)
    row_of = np.concatenate([np.empty(0, dtype=np.int64), *(np.arange(len(i)) for i in ids)])
    known, first = np.unique(every, return_index=True)
    return _Index(names, ids, vectors, known, chunk_of[first], row_of[first])


def _files(folder: Path) -> tuple[Path, Path]:
    return folder / "ids.npy", folder / "vectors.npy"


def id_numbers(text_ids: list[str]) -> np.ndarray:
    """Return text_ids (16 hex digits each) as uint64 [n]."""
    return np.array([int(i, 16) for i in text_ids], dtype=np.uint64)
