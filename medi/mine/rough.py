"""Vectors to shortlists: a bfloat16 product says which documents can be among the k best, with a bound that is proven.

Processors with matrix units multiply bfloat16 five times as fast as float32. Its errors are too large to decide, but
small enough to leave only a few documents more than k, if the mean of the documents, which all of them share, is taken
out first. A shortlist holds every document that can be among the k; the exact scores decide among them.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import torch

# Below this many multiplications a search is over before torch would be imported.
_LEAST_PRODUCTS = 10**10
# With fewer dimensions looking through the scores takes what the product saves (benchmarks/NOTES.md).
_LEAST_DIMENSIONS = 1_024
# The copy of the documents takes no more; longer ones are left to FAISS.
_MOST_DOCUMENT_BYTES = 1 << 29
# Bounds are proven for lengths that cannot overflow; [x; y] has the length 1.42.
_LONGEST = 4.0
# What the mean adds to a score takes three columns more; products are fastest where the rows are of whole tiles.
_OWN_COLUMNS, _WHOLE_COLUMNS = 3, 64
# Half a unit in the last place of bfloat16, relative, and its own rounding.
_ROUNDED = 2.0**-8 * 1.01
# Below this a float32 may lose digits.
_LEAST_CUT = 1e-30
# Documents whose scores are still in the cache when they are looked through, and queries that do not need it smaller.
_TILE, _MOST_ROWS = 2_048, 1_024
# What a document takes while a block of queries is looked through: its score, and a part of a group's best.
_DOCUMENT_BYTES = 3


class Rough(NamedTuple):
    """Documents [m, D] less their mean: `matrix` bfloat16 [m, D + 3 or more]; `mean` float32 [D].

    `least` is taken from what the mean adds to a score, so that the scores that matter are positive. `longest` bounds
    the lengths of the rows, `off` those of what their bfloat16 lacks, `added` what the mean adds, `unsaid` its error.
    """

    matrix: "torch.Tensor"
    mean: np.ndarray
    least: float
    longest: float
    off: float
    added: float
    unsaid: float


class Shortlists(NamedTuple):
    """For query i of a block the documents `numbers[starts[i]:starts[i + 1]]`, int64, with a score float64 each that
    is off by `slack` at most; `certain` bool [b] says whether these hold all that can be among the k best.
    """

    starts: np.ndarray
    numbers: np.ndarray
    scores: np.ndarray
    slack: np.ndarray
    certain: np.ndarray


def can(documents: np.ndarray, longest: float) -> bool:
    """Return whether shortlists can be made among the documents; `longest` is the length of the longest vector."""
    return documents.size * 2 <= _MOST_DOCUMENT_BYTES and longest <= _LONGEST


def pays(queries: np.ndarray, documents: np.ndarray) -> bool:
    """Return whether this processor finds shortlists faster than FAISS finds neighbours."""
    if documents.shape[1] < _LEAST_DIMENSIONS or len(queries) * documents.size < _LEAST_PRODUCTS:
        return False
    import torch

    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


def rough_of(documents: np.ndarray) -> Rough:
    """Return the documents float32 [m, D] as their bfloat16 without the mean, made in blocks."""
    import torch

    count, dimension = documents.shape
    columns = -(-(dimension + _OWN_COLUMNS) // _WHOLE_COLUMNS) * _WHOLE_COLUMNS
    matrix = torch.zeros(count, columns, dtype=torch.bfloat16)
    mean = documents.mean(axis=0, dtype=np.float32)
    added, longest, off = np.empty(count), 0.0, 0.0
    for rows in _blocks(count):
        own, lengths, lacking = _halved(documents[rows] - mean)
        matrix[rows, :dimension] = own
        longest, off = max(longest, lengths.max()), max(off, lacking.max())
        added[rows] = documents[rows].astype(np.float64) @ mean.astype(np.float64)
    least = added.min()
    added -= least
    unsaid = added.copy()
    for column in range(dimension, dimension + _OWN_COLUMNS):
        matrix[:, column] = torch.from_numpy(unsaid).to(torch.bfloat16)
        unsaid -= matrix[:, column].double().numpy()
    return Rough(
        matrix, mean, float(least), float(longest), float(off), float(added.max()), float(np.abs(unsaid).max())
    )


def _halved(vectors: np.ndarray) -> tuple["torch.Tensor", np.ndarray, np.ndarray]:
    """Return float32 vectors [n, D] as bfloat16, their lengths, and the lengths of what the bfloat16 lacks.

    The lengths are float64 [n] and a little too great: for the roundings of the vectors, and their own.
    """
    import torch

    exact = torch.from_numpy(vectors)
    own = exact.to(torch.bfloat16)
    lengths, lacking = (x.norm(dim=1).double().numpy() * 1.0001 for x in (exact, exact - own))
    return own, lengths, lacking + lengths * 2.0**-23


def _blocks(count: int) -> list[slice]:
    """Return the rows in slices that are small beside a block of scores."""
    return [slice(start, min(start + 512, count)) for start in range(0, count, 512)]


def room_of(rough: Rough, queries: int, scan_bytes: int) -> "torch.Tensor":
    """Return room for the scores of a block of queries: bfloat16 [m, b], b no more than there are queries."""
    import torch

    rows = min(queries, _MOST_ROWS, scan_bytes // (len(rough.matrix) * _DOCUMENT_BYTES))
    return torch.empty(len(rough.matrix), max(1, rows), dtype=torch.bfloat16)


def shortlists(
    rough: Rough, queries: np.ndarray, k: int, excluded: tuple[np.ndarray, np.ndarray], room: "torch.Tensor"
) -> Shortlists:
    """Return the shortlists of queries float32 [b, D].

    `excluded` are rows and documents, int64 [e] both: these are not among the k, but are listed where they would be.

    A score is off by `error`, and by what it is rounded. Where the k-th best says `tau`, k documents have `tau - error`
    or more, and whatever has so much says `tau - 2 error` or more: this is listed.
    """
    mean = rough.mean.astype(np.float64)
    own, lengths, lacking = _halved(queries - rough.mean)
    tiles = _tiles(rough, own, room)
    error = _error(rough, lengths, lacking)
    tau = _as_floats(_kth(tiles, k, excluded)).astype(np.float64)
    cut = (tau * (1 - _ROUNDED) - 2 * error) * (1 - _ROUNDED)
    certain = np.isfinite(tau) & (cut > _LEAST_CUT)
    # Bits that are cut off round down.
    limits = np.nextafter(np.where(certain, cut, np.inf).astype(np.float32), np.float32(0)).view(np.int32) >> 16
    rows, numbers, bits = _listed(tiles, limits.astype(np.int16))
    values = _as_floats(bits).astype(np.float64)
    base = queries.astype(np.float64) @ mean - mean @ mean + rough.least
    slack = error[rows] + np.abs(values) * _ROUNDED
    starts = np.searchsorted(rows, np.arange(len(queries) + 1))
    return Shortlists(starts, numbers, values + base[rows], slack, certain)


def side_by_side(lists: Shortlists, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the numbers, the scores and their slack of these lists, best first, [n, longest]; -1, 0 and 0 behind."""
    lengths = np.diff(lists.starts)[rows]
    there = np.arange(lengths.max(initial=1)) < lengths[:, None]
    places = np.where(there, lists.starts[rows, None] + np.arange(there.shape[1]), 0)
    scores = np.where(there, lists.scores[places], -np.inf)
    order = np.argsort(-scores, axis=1)
    columns = np.where(there, lists.numbers[places], -1), scores, np.where(there, lists.slack[places], 0.0)
    numbers, scores, slack = (np.take_along_axis(column, order, axis=1) for column in columns)
    return numbers, np.where(numbers < 0, 0, scores), slack


def _tiles(rough: Rough, queries: "torch.Tensor", room: "torch.Tensor") -> list[np.ndarray]:
    """Return the scores bfloat16 [m, b] of queries [b, D] as integers of the same bits, in tiles of some documents.

    Documents stand in rows, for what stands on the right of a product is copied first. Such integers rise with the
    scores that are not negative, and the others stand below them.
    """
    import torch

    count, dimension = rough.matrix.shape[0], queries.shape[1]
    asked = torch.zeros(rough.matrix.shape[1], len(queries), dtype=torch.bfloat16)
    asked[:dimension], asked[dimension : dimension + _OWN_COLUMNS] = queries.T, 1
    flat, tiles = room.flatten(), []
    for start in range(0, count, _TILE):
        documents = rough.matrix[start : start + _TILE]
        tile = flat[start * len(queries) :][: len(documents) * len(queries)].view(len(documents), len(queries))
        tiles.append(torch.mm(documents, asked, out=tile).view(torch.int16).numpy())
    return tiles


def _error(rough: Rough, lengths: np.ndarray, lacking: np.ndarray) -> np.ndarray:
    """Return what a score may be off by before it is rounded to bfloat16, float64 [b], from the queries' lengths.

    What both bfloat16 lack; the float32 sum, in any order; and as much as makes two exact scores one when rounded.
    """
    lacked = lacking * rough.longest + (lengths + lacking) * rough.off + rough.unsaid
    summed = (lengths + lacking) * (rough.longest + rough.off) + rough.added
    return lacked + (rough.matrix.shape[1] + 4) * 2.0**-24 * 1.01 * summed + 2.0**-22 * _LONGEST**2


def _kth(tiles: list[np.ndarray], k: int, excluded: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return a score, as bits [b], that at least k documents reach which are not excluded; 0 where it is unknown.

    Documents are taken in groups: the k-th best of the groups' best is little less than the k-th best of all.
    """
    rows, numbers = excluded
    size = int(np.clip(sum(map(len, tiles)) // (16 * k), 1, 64))
    best = []
    for at, tile in enumerate(tiles):
        own = numbers // _TILE == at
        places = numbers[own] % _TILE, rows[own]
        kept = tile[places]
        tile[places] = -1
        groups = len(tile) // size
        best.append(tile[: groups * size].reshape(size, groups, -1).max(axis=0, initial=-1))
        tile[places] = kept
    bests = np.ascontiguousarray(np.concatenate(best).T)
    if bests.shape[1] < k:
        return np.zeros(len(bests), dtype=np.int16)
    bests.partition(bests.shape[1] - k, axis=1)
    return bests[:, -k]


def _listed(tiles: list[np.ndarray], limits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the row, the number and the bits of each score that reaches its row's limit [b], row by row."""
    found = []
    for at, tile in enumerate(tiles):
        numbers, rows = np.divmod(np.flatnonzero(tile >= limits), tile.shape[1])
        found.append((rows, numbers + at * _TILE, tile[numbers, rows]))
    rows, numbers, bits = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(rows, kind="stable")
    return rows[order], numbers[order], bits[order]


def _as_floats(bits: np.ndarray) -> np.ndarray:
    """Return the bits of bfloat16 as float32."""
    return (bits.astype(np.int32) << 16).view(np.float32)
