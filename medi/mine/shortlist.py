"""Products to shortlists: of many documents those that can be among a query's best, and what bounds the others.

Products come a tile at a time, so that they stay in the cache, and each is off by a known error at most. All documents
within that error of the k-th best are listed. They are looked at by the maximum of each 16 first, so that few products
are ever compared.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medi.mine.kept import Kept

if TYPE_CHECKING:
    import torch

# Documents that are looked at together; products of so many documents and queries are listed before others are taken.
_GROUP, TILE, _MOST_QUERIES = 16, 4_096, 512
# Longer lists, even for a time, are left to a scan, which costs no more then; and what a query and its list may take.
_LONGEST, _LISTED_BYTES = 2_048, 32_768

# Writes the products of some documents with all queries of a block into a tensor [documents, b].
Multiply = Callable[[slice, "torch.Tensor"], None]


class Listed(NamedTuple):
    """Of b queries the documents that can be among their best: `numbers` int64 [b, c], -1 behind them.

    Their `products` are float32 [b, c]. What is not listed scores at most `floor` float64 [b]; it is infinite where
    there is no list, as that would be too long, or nothing could be cut off.
    """

    numbers: np.ndarray
    products: np.ndarray
    floor: np.ndarray


def tells_apart(documents: int, wanted: int) -> bool:
    """Return whether a tile of so many documents tells the wanted from the others."""
    return group_of(min(documents, TILE), wanted) == _GROUP


def group_of(documents: int, wanted: int) -> int:
    """Return how many documents are looked at together where so many come at once, to tell the wanted from the others.

    It is 0 where they are too few for that.
    """
    return min(_GROUP, documents // (2 * wanted))


def block_rows(kept: Kept, queries: int, lanes: int, scan_bytes: int) -> int:
    """Return how many queries a lane takes at once, so that all lanes have some and stay within the bytes.

    It is even, as queries may come in twos, unless there is room for one only.
    """
    query_bytes = kept.bytes * TILE + _LISTED_BYTES
    size = min(scan_bytes // (lanes * query_bytes), _MOST_QUERIES, -(-queries // lanes))
    return max(1, size - size % 2)


def shortlists(multiply: Multiply, documents: int, wanted: np.ndarray, error: np.ndarray, kept: Kept) -> Listed:
    """Return lists that hold the `wanted` int64 [b] best of so many documents, for each query.

    A product, before it is kept, is off by `error` float64 [b] at most.
    """
    # Documents lie in rows: so products are written where they stay, and maxima are taken of whole rows.
    tile, lists = kept.empty(TILE, len(wanted)), Shortlists(wanted, error, kept)
    for start in range(0, documents, TILE):
        part = slice(start, min(start + TILE, documents))
        size = part.stop - start
        multiply(part, tile[:size])
        filled = size + -size % _GROUP
        tile[size:filled] = -np.inf
        lists.add(np.arange(start, start + filled).reshape(-1, _GROUP), tile[:filled].view(-1, _GROUP, len(wanted)))
    return lists.listed()


class Shortlists:
    """Lists in the making, that hold the `wanted` int64 [b] best of all documents whose products were added.

    A product, before it is kept, is off by `error` float64 [b] at most; lists have `longest` documents at most.
    """

    def __init__(self, wanted: np.ndarray, error: np.ndarray, kept: Kept, longest: int = _LONGEST) -> None:
        """Begin with no document."""
        self._error, self._kept = error, kept
        self._highest, self._lists = _Highest(wanted, kept), _Lists(len(wanted), kept, longest)
        self._cut = np.full(len(wanted), -np.inf)

    def add(self, documents: np.ndarray, products: "torch.Tensor") -> None:
        """List what can be among the best of some documents, which are looked at by the maximum of each group first.

        `documents` [g, n] are the numbers of g groups, `products` [g, n, b] as they are kept, wherever they lie; at
        -inf there is no document.
        """
        compared = self._kept.compared(products)
        maxima = compared.amax(dim=1)
        self._highest.add(maxima.T.contiguous().numpy())
        # So the cut rises from tile to tile, and little is listed in vain.
        self._cut = self._highest.cut(self._error)
        self._lists.add(documents, compared.numpy(), maxima.numpy(), self._cut)

    def listed(self) -> Listed:
        """Return the lists."""
        numbers, rough, there = self._lists.above(self._cut)
        # Numbers too large for float32 give no bound.
        with np.errstate(invalid="ignore", over="ignore"):
            floor = np.where(there, self._cut + np.abs(self._cut) * self._kept.lost + self._error, np.inf)
        return Listed(numbers, rough, floor)


class _Highest:
    """Of each query the `wanted` int64 [b] highest maxima of groups of products so far, as they are compared."""

    def __init__(self, wanted: np.ndarray, kept: Kept) -> None:
        self._wanted, self._kept = wanted, kept
        lowest = kept.compared(kept.empty(0)).numpy().dtype.type(kept.lowest)
        self._top = np.full((len(wanted), int(wanted.max())), lowest)

    def add(self, maxima: np.ndarray) -> None:
        """Look at more maxima [b, g]."""
        most = self._top.shape[1]
        self._top = np.partition(np.hstack([self._top, maxima]), -most, axis=1)[:, -most:]

    def cut(self, error: np.ndarray) -> np.ndarray:
        """Return below which product no document is among the wanted, float64 [b]; one that cannot cut where all may.

        Each product, before it is kept, is off by `error` float64 [b] at most.
        """
        self._top.sort(axis=1)
        last = self._kept.read(self._top[np.arange(len(self._top)), -self._wanted]).astype(np.float64)
        # The last wanted one scores exactly at least this: what cannot reach it is not listed.
        with np.errstate(invalid="ignore", over="ignore"):
            least = last - np.abs(last) * self._kept.lost - error
            cut = least - error - np.abs(least - error) * self._kept.lost
        return np.where(self._kept.can_cut(last), cut, -np.inf)


class _Lists:
    """The products of each query that reached the cut of their time, as they are compared."""

    def __init__(self, count: int, kept: Kept, longest: int) -> None:
        self._kept, self._longest, self._lengths = kept, longest, np.zeros(count, dtype=np.int64)
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, documents: np.ndarray, products: np.ndarray, maxima: np.ndarray, cut: np.ndarray) -> None:
        """List what reaches `cut` [b] of the products [g, n, b] of `documents` [g, n]; no list grows too long.

        `maxima` [g, b] are the greatest of each group.
        """
        least = self._kept.least(cut)
        picked = (maxima >= least) & (self._lengths <= self._longest)
        # In the order of the groups, which is that of the memory.
        groups, rows = np.divmod(np.flatnonzero(picked), len(cut))
        taken = products[groups, :, rows]
        pairs, steps = np.divmod(np.flatnonzero(taken >= least[rows, None]), products.shape[1])
        listed = documents[groups[pairs], steps].astype(np.int32)
        self._parts.append((rows[pairs].astype(np.uint16), listed, taken[pairs, steps]))
        self._lengths += np.bincount(rows[pairs], minlength=len(cut))

    def above(self, cut: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what of the lists reaches `cut` [b]: documents int64 [b, c], -1 behind them, and products [b, c].

        The third value is which lists are there, bool [b]: what was listed is all, and not too long.
        """
        rows, documents, compared = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        there = (self._lengths <= self._longest) & self._kept.can_cut(cut)
        reached = (compared >= self._kept.least(cut)[rows]) & there[rows]
        rows, documents, compared = rows[reached], documents[reached], compared[reached]
        order = np.argsort(rows, kind="stable")
        rows, lengths = rows[order], np.bincount(rows, minlength=len(cut))
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        numbers = np.full((len(cut), int(lengths.max(initial=0))), -1, dtype=np.int64)
        products = np.zeros(numbers.shape, dtype=np.float32)
        numbers[rows, columns], products[rows, columns] = documents[order], self._kept.read(compared[order])
        return numbers, products, there
