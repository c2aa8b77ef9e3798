"""Vectors to exact scores, and scores to one order.

A score is a dot product in float64 rounded to float32, and its bits depend on the two vectors alone: each is summed
on its own, in one order, whatever block, memory or thread it falls into. Therefore no matrix product decides anything.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from medi.errors import MediError

# What a block of vectors takes in float64: it stays in the cache between its copy and its sum.
_CACHED_BYTES = 1 << 19
# Fewer rows are scored before another thread has begun.
_ROWS_A_THREAD = 64
# numpy cuts longer sums where its buffer of 8,192 numbers ends, which is another place in another block.
_SUMMED_WHOLE = 4_096
# The key behind every other: no document.
NOTHING = np.iinfo(np.int64).max


def scores_of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the scores along the last axis, float32; the other axes [n, ...] are broadcast as numpy does."""
    left, right = np.broadcast_arrays(left, right)
    scores = np.empty(left.shape[:-1], dtype=np.float32)
    for rows in _blocks(slice(0, len(left)), left[:1].size * 16):
        # In C order: what is broadcast would keep another, and be summed in another.
        scores[rows] = _dots(left[rows].astype(np.float64, order="C"), right[rows].astype(np.float64, order="C"))
    return scores


def cosines_of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosines of unit vectors along the last axis, float32, clipped to [-1, 1] (a hair over 1 is 1)."""
    return np.clip(scores_of(left, right), -1.0, 1.0)


def scores_at(queries: np.ndarray, documents: np.ndarray, numbers: np.ndarray, threads: int = 1) -> np.ndarray:
    """Return the scores of each query [n, D] with its own documents, float32 [n, c].

    `numbers` int64 [n, c] are rows of `documents` [m, D]; what stands at a number below 0 means nothing.
    """
    scores = np.empty(numbers.shape, dtype=np.float32)
    row_bytes = queries.shape[1] * 8
    width = max(1, min(numbers.shape[1], _CACHED_BYTES // row_bytes))
    size = max(1, min(len(queries), _CACHED_BYTES // (width * row_bytes)))

    def score(part: slice) -> None:
        """Fill the scores of some of the queries."""
        own = np.empty((size, 1, queries.shape[1]))
        # Filled again and again: new arrays take as long as the sums.
        taken = np.empty((size * width, queries.shape[1]), dtype=np.float32)
        exact = np.empty(taken.shape)
        for rows in _slices(part, size):
            asked = own[: rows.stop - rows.start]
            asked[:, 0] = queries[rows]
            for columns in _slices(slice(0, numbers.shape[1]), width):
                wanted = numbers[rows, columns]
                documents.take(wanted.ravel(), axis=0, mode="clip", out=taken[: wanted.size])
                exact[: wanted.size] = taken[: wanted.size]
                scores[rows, columns] = _dots(asked, exact[: wanted.size].reshape(*wanted.shape, -1))

    if threads == 1:
        score(slice(0, len(queries)))
        return scores
    share = max(_ROWS_A_THREAD, -(-len(queries) // (4 * threads)))
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(score, _slices(slice(0, len(queries)), share)))
    return scores


def lengths_of(vectors: np.ndarray, side: str) -> np.ndarray:
    """Return the lengths of the vectors, float64 [n].

    Raises:
        MediError: a vector has a value that is not finite, or no length; named by `side` and row.
    """
    squares = np.empty(len(vectors))
    for block in _blocks(slice(0, len(vectors)), vectors.shape[1] * 8):
        exact = vectors[block].astype(np.float64)
        squares[block] = _dots(exact, exact)
    bad = np.flatnonzero(~(np.isfinite(squares) & (squares > 0)))
    if len(bad):
        fault = "has no length" if squares[bad[0]] == 0 else "is not finite"
        raise MediError(
            f"{side} row {bad[0]} has a vector that {fault} ({len(bad)} of {len(vectors)} rows): nothing is near it; "
            "choose another --encoder, or --dtype float32"
        )
    return np.sqrt(squares)


def keys_of(scores: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return int64 keys whose ascending order is (score descending, number ascending).

    The upper half is the score's bits, made to fall where the score rises; the lower half is the number.
    """
    bits = (scores + np.float32(0)).view(np.int32)  # -0.0 + 0.0 is 0.0: they tie
    return (~_ascending(bits)).astype(np.int64) << 32 | numbers


def read_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers int64 and the scores float32 of keys; -1 and -inf of NOTHING."""
    scores = _ascending(~(keys >> 32).astype(np.int32)).view(np.float32)
    return np.where(keys == NOTHING, -1, keys & 0xFFFFFFFF), np.where(keys == NOTHING, np.float32(-np.inf), scores)


def _ascending(bits: np.ndarray) -> np.ndarray:
    """Return the bits of float32 as int32 that rise with the numbers; done twice, it gives the bits back."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def _dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the dot products along the last axis, float64, each summed in one order."""
    first, *others = (np.s_[..., at : at + _SUMMED_WHOLE] for at in range(0, left.shape[-1], _SUMMED_WHOLE))
    sums = np.einsum("...d,...d->...", left[first], right[first])
    for part in others:
        sums += np.einsum("...d,...d->...", left[part], right[part])
    return sums


def _blocks(rows: slice, row_bytes: int) -> list[slice]:
    """Return the rows in slices that take about the bytes of the cache, but never less than one row."""
    return _slices(rows, max(1, _CACHED_BYTES // max(1, row_bytes)))


def _slices(rows: slice, size: int) -> list[slice]:
    """Return the rows in slices of `size`, the last one shorter."""
    return [slice(start, min(start + size, rows.stop)) for start in range(rows.start, rows.stop, size)]
