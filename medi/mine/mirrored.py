"""Examples among themselves to shortlists by s_pos and by s_neg: each product is taken once, for both spaces and sides.

x by x' and y by y' give both scores, and those of x' and x as well. So the examples are cut into blocks, and of any two
blocks the products are taken when they meet: their own way for the one, turned for the other.
"""

from collections.abc import Iterator
from concurrent.futures import Executor

import numpy as np

from medi.mine.engine import Proposal
from medi.mine.kept import FLOAT32
from medi.mine.shortlist import Shortlists, group_of
from medi.mine.vectors import Rows

# Examples of a block: two products, their sum and their difference stay in the cache.
_MOST_ROWS = 1_024
# What a document takes in a list, and how many times as many as the wanted there must be room for.
_LISTED_BYTES, _LISTS_GROW = 10, 4


class Block:
    """Some of the examples, and the lists of their queries [x; y] and [x; -y], which come in turn."""

    def __init__(self, rows: slice, wanted: np.ndarray, error: np.ndarray, group: int, longest: int) -> None:
        """Begin with no document; `wanted` int64 and `error` float64 [2b] are those of the queries."""
        self.rows, self.queries = rows, slice(2 * rows.start, 2 * rows.stop)
        self._error = error
        self._spaces = [Shortlists(wanted[way::2], error[way::2], FLOAT32, group, longest) for way in range(2)]

    def meet(self, other: "Block", examples: Rows, middle: int) -> None:
        """List of each block what can be among the best of the other, or of itself; y begins at column `middle`."""
        import torch

        own, others = (examples.tensor(block.rows) for block in (self, other))
        products = FLOAT32.empty(2, len(others), len(own))
        for product, columns in zip(products, (np.s_[:, :middle], np.s_[:, middle:]), strict=True):
            torch.mm(others[columns], own[columns].T, out=product)
        sums = products[0] + products[1]
        differences = products[0].sub_(products[1])
        for shortlists, scores in zip(self._spaces, (sums, differences), strict=True):
            shortlists.add(other.rows.start, scores)
        for shortlists, scores in zip(other._spaces, (sums, differences), strict=True) if other is not self else ():
            shortlists.add(self.rows.start, scores.T.contiguous())

    def proposal(self) -> Proposal:
        """Return the lists of the queries, once the block has met all."""
        lists = [space.listed() for space in self._spaces]
        size, widest = len(self._error), max(found.numbers.shape[1] for found in lists)
        numbers, products = np.full((size, widest), -1), np.zeros((size, widest), dtype=np.float32)
        floor = np.empty(size)
        for way, found in enumerate(lists):
            width = found.numbers.shape[1]
            numbers[way::2, :width], products[way::2, :width] = found.numbers, found.products
            floor[way::2] = found.floor
        return Proposal(numbers, products, self._error, floor)


def blocks_of(wanted: np.ndarray, error: np.ndarray, lanes: int, scan_bytes: int) -> list[Block]:
    """Return the blocks that examples meet in, whose queries want `wanted` int64 [2n]; none where that does not suit.

    That is where their lists could take more than `scan_bytes`, or a block would not tell the wanted from the others.
    """
    count, most = len(wanted) // 2, int(wanted.max())
    longest = scan_bytes // (2 * count * _LISTED_BYTES)
    # An odd number, with which each block has one to meet in each round, and as many pairs as there are lanes.
    parts = max(2 * lanes - 1, -(-count // _MOST_ROWS)) | 1
    size = -(-count // parts)
    group = group_of(size, most)
    if not group or longest < _LISTS_GROW * most:
        return []
    cuts = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    both = [slice(2 * rows.start, 2 * rows.stop) for rows in cuts]
    return [Block(rows, wanted[own], error[own], group, longest) for rows, own in zip(cuts, both, strict=True)]


def meet_all(blocks: list[Block], examples: Rows, middle: int, lanes: Executor) -> None:
    """Let each block meet each, itself too: in rounds, in which none is in two lanes at once."""
    for pairs in rounds(len(blocks)):
        list(lanes.map(lambda pair: blocks[pair[0]].meet(blocks[pair[1]], examples, middle), pairs))


def rounds(count: int) -> Iterator[list[tuple[int, int]]]:
    """Yield all pairs of so many numbers, each once, in rounds of which none has a number in two pairs.

    Those of a round give the same number when added, modulo `count`.
    """
    for sum_ in range(count):
        others = ((one, (sum_ - one) % count) for one in range(count))
        yield [(one, other) for one, other in others if one <= other]
