"""Vectors to exact scores, and scores to one order.

A score is a dot product in float64 rounded to float32, and its bits depend on the two vectors alone: each is summed
on its own, in one order, whatever block, memory or thread it falls into. Therefore no matrix product decides anything.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from medi.errors import MediError
from medi.mine.vectors import Rows

# What a block of vectors takes in float64: it stays in the cache between its copy and its sum.
_CACHED_BYTES = 1 << 19
# Documents that are taken at once: enough that threads do not wait for each other at every step, and in the cache.
_TAKEN_BYTES = 1 << 20
# A buffer of numpy has a multiple of so many numbers.
_BUFFER_STEP = 16
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
        exact = _dots(left[rows].astype(np.float64, order="C"), right[rows].astype(np.float64, order="C"))
        with np.errstate(over="ignore"):
            scores[rows] = exact
    return scores


def cosines_of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosines of unit vectors along the last axis, float32, clipped to [-1, 1] (a hair over 1 is 1)."""
    return np.clip(scores_of(left, right), -1.0, 1.0)


def scores_at(queries: np.ndarray, documents: np.ndarray, numbers: np.ndarray, threads: int = 1) -> np.ndarray:
    """Return the scores of each query [n, D] with its own documents, float32 [n, c].

    `numbers` int64 [n, c] are rows of `documents` [m, D]; what stands at a number below 0 means nothing.
    """
    scores = np.zeros(numbers.shape, dtype=np.float32)
    fitting = max(1, _TAKEN_BYTES // (queries.shape[1] * 4))

    def score(runs: list[tuple[np.ndarray, int]]) -> None:
        """Fill the scores of some of the queries."""
        # Filled again and again: a new array takes as long as the sums.
        taken = np.empty((fitting, queries.shape[1]), dtype=np.float32)
        with _whole_sums(queries.shape[1]), np.errstate(over="ignore"):
            for rows, longest in runs:
                asked = queries[rows, None].astype(np.float64)
                for columns in _slices(slice(0, longest), _even(longest, fitting)):
                    wanted = numbers[rows, columns]
                    documents.take(wanted.ravel(), axis=0, mode="clip", out=taken[: wanted.size])
                    scores[rows, columns] = _mixed_dots(asked, taken[: wanted.size].reshape(*wanted.shape, -1))

    runs = _runs(numbers, fitting)
    if threads == 1:
        score(runs)
        return scores
    with ThreadPoolExecutor(threads) as pool:
        # In turn: the last runs are those of long lists.
        list(pool.map(score, (runs[turn :: 4 * threads] for turn in range(4 * threads))))
    return scores


def _runs(numbers: np.ndarray, fitting: int) -> list[tuple[np.ndarray, int]]:
    """Return the rows of `numbers` [n, c] in runs, and the columns of a run behind which no number stands.

    A run has `fitting` of its numbers, if it has more than one row; lists of like length are together, so few are none.
    """
    there = numbers >= 0
    lengths = np.where(there.any(axis=1), numbers.shape[1] - there[:, ::-1].argmax(axis=1), 0) if there.size else []
    order, runs = np.argsort(lengths, kind="stable"), []
    start = int(np.searchsorted(lengths, 1, sorter=order))
    while start < len(order):
        most = int(lengths[order[min(start + max(1, fitting // lengths[order[start]]), len(order)) - 1]])
        rows = order[start : start + max(1, fitting // most)]
        runs.append((rows, int(lengths[rows[-1]])))
        start += len(rows)
    return runs


def lengths_of(vectors: np.ndarray | Rows, side: str) -> np.ndarray:
    """Return the lengths of the vectors, float64 [n].

    Raises:
        MediError: a vector has a value that is not finite, or no length; named by `side` and row.
    """
    vectors = Rows.of(vectors)
    if vectors.twice:
        return np.repeat(lengths_of(Rows(vectors.matrix, vectors.at), side), 2)
    squares = np.empty(len(vectors))
    for block in _blocks(slice(0, len(vectors)), vectors.dimension * 12):
        part = vectors.part(block)
        with _whole_sums(vectors.dimension):
            squares[block] = _mixed_dots(part.astype(np.float64), part)
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


@contextmanager
def _whole_sums(width: int) -> Iterator[None]:
    """Let numpy sum a vector of so many float32 as one.

    It takes float32 to float64 in a buffer, and cuts a sum where that ends: so the buffer holds one vector, no more.
    """
    before = np.setbufsize(width) if _fits_buffer(width) else np.getbufsize()
    try:
        yield
    finally:
        np.setbufsize(before)


def _fits_buffer(width: int) -> bool:
    return width % _BUFFER_STEP == 0 and width <= _SUMMED_WHOLE


def _mixed_dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the dot products along the last axis, float64, of float64 and float32; call it within `_whole_sums`."""
    if _fits_buffer(right.shape[-1]):
        return np.einsum("...d,...d->...", left, right, dtype=np.float64)
    return _dots(left, right.astype(np.float64))


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


def _even(count: int, most: int) -> int:
    """Return the size of equal parts of `count` things that are no larger than `most`."""
    return max(1, -(-count // max(1, -(-count // most))))


def _slices(rows: slice, size: int) -> list[slice]:
    """Return the rows in slices of `size`, the last one shorter."""
    return [slice(start, min(start + size, rows.stop)) for start in range(rows.start, rows.stop, size)]
