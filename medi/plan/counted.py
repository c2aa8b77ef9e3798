"""What earlier builds left in a workspace -> how fast the encoder was: when chunks of vectors came, and their work."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from medi.encoder import EncoderSpec
from medi.plan.lengths import batches, whole_batches
from medi.plan.model import Model

# The newest chunks say how it is now; so many tables of tokens are looked through for their texts at most.
_CHUNKS, _TABLES = 24, 400


def numbers_of(text_ids: pa.ChunkedArray) -> np.ndarray:
    """Return text_ids (16 hex digits each) as uint64 [n], without a loop."""
    return np.frombuffer(bytes.fromhex("".join(text_ids.to_pylist())), dtype=">u8").astype(np.uint64)


def integers_of(column: pa.ChunkedArray) -> np.ndarray:
    """Return a column of integers without nulls as int64 [n]; pyarrow's own way imports pandas, which takes longer than
    all of a plan.
    """
    held = column.combine_chunks()
    chunks = held.chunks if isinstance(held, pa.ChunkedArray) else [held]
    width = column.type.bit_width // 8
    parts = [
        np.frombuffer(chunk.buffers()[1], dtype=f"<i{width}", count=len(chunk), offset=chunk.offset * width)
        for chunk in chunks
        if len(chunk)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def chunk_work(store: Path, vectors: Path, model: Model, spec: EncoderSpec) -> list[tuple[float, int, float]]:
    """Return (seconds since 1970 when it was there, rows, operations) of the newest chunks of vectors.

    Empty where there are none, or the lengths of their texts are no longer known.
    """
    records = sorted(vectors.glob("[!.]*/record.json"), key=lambda path: path.stat().st_mtime)[-_CHUNKS:]
    if not records:
        return []
    known, lengths = _lengths(store, spec)
    work = []
    for record in records:
        ids = np.load(record.with_name("ids.npy"), allow_pickle=False)
        place = np.searchsorted(known, ids)
        found = lengths[np.minimum(place, len(known) - 1)] if len(known) else np.zeros(0)
        complete = len(known) and bool((known[np.minimum(place, len(known) - 1)] == ids).all())
        flops = _flops(found, model, spec) if complete else 0.0
        work.append((record.stat().st_mtime, len(ids), flops))
    return work


def _flops(lengths: np.ndarray, model: Model, spec: EncoderSpec) -> float:
    """Return the operations of encoding texts of these lengths in one go."""
    return model.flops(whole_batches(batches(lengths, len(lengths), spec.shapes)), spec.shapes)


def _lengths(store: Path, spec: EncoderSpec) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of the texts that this encoder tokenized, sorted uint64 [n], and their lengths, int64 [n]."""
    tables = [table for table in _tables(store, spec) if len(table)]
    if not tables:
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    every = pa.concat_tables(tables)
    known, first = np.unique(numbers_of(every["text_id"]), return_index=True)
    return known, integers_of(every["length_tokens"])[first]


def _tables(store: Path, spec: EncoderSpec) -> Iterator[pa.Table]:
    """Yield the newest tables of tokens of an encoder; what is damaged is passed over, the build will say so."""
    records = sorted((store / "tokens").glob("[!.]*/record.json"), key=lambda path: path.stat().st_mtime)
    for path in records[-_TABLES:]:
        try:
            params = json.loads(path.read_bytes())["params"]
            if (params["name"], params["revision"]) == (spec.name, spec.revision):
                with pa.memory_map(str(path.with_name("table.arrow"))) as source:
                    yield pa.ipc.open_file(source).read_all().select(["text_id", "length_tokens"])
        except (OSError, ValueError, KeyError, pa.ArrowInvalid):
            continue
