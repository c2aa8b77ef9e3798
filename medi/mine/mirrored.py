"""Examples among themselves to shortlists by s_pos and by s_neg: each product is taken once, for both spaces and sides.

x by x' and y by y' give both scores, and those of x' and x as well. So the examples are cut into blocks, and of any two
blocks the products are taken when they meet: their own way for the one, turned for the other.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from medi.mine.engine import Proposal
from medi.mine.kept import FLOAT32
from medi.mine.shortlist import Shortlists, group_of
from medi.mine.vectors import Rows

if TYPE_CHECKING:
    import torch

# Examples of a block: two products, their sum and their difference stay in the cache.
_MOST_ROWS = 1_024
# What two examples that meet take, and a document in a list; and for how many times as many as the wanted there must be
# room.
_MET_BYTES, _LISTED_BYTES, _LISTS_GROW = 16, 10, 4


class Block:
    """Some of the examples, and the lists of their queries [x; y] and [x; -y], which come in turn."""

    def __init__(self, rows: slice, wanted: np.ndarray, error: np.ndarray, group: int, longest: int) -> None:
        """Begin with no document; `wanted` int64 and `error` float64 [2b] are those of the queries."""
        self.rows, self.queries = rows, slice(2 * rows.start, 2 * rows.stop)
        self.size, self._error, self._group = rows.stop - rows.start, error, group
        self._spaces = [Shortlists(wanted[way::2], error[way::2], FLOAT32, longest) for way in range(2)]

    @property
    def numbers(self) -> np.ndarray:
        """Return the numbers of the examples, and so many behind them that groups are full."""
        return np.arange(self.rows.start, self.rows.stop + -self.size % self._group)

    def meet(self, other: "Block", examples: Rows, middle: int, room: "torch.Tensor") -> None:
        """List of each block what can be among the best of the other, or of itself; y begins at column `middle`.

        `room` is float32 [4, d, b], with d and b enough for the numbers of both.
        """
        import torch

        own, others = (examples.tensor(block.rows) for block in (self, other))
        of_x, of_y = room[:2, : other.size, : self.size]
        torch.mm(others[:, :middle], own[:, :middle].T, out=of_x)
        torch.mm(others[:, middle:], own[:, middle:].T, out=of_y)
        scores = room[2:, : len(other.numbers), : len(self.numbers)]
        scores[:, other.size :] = scores[:, :, self.size :] = -np.inf
        for way, combine in enumerate((torch.add, torch.sub)):
            combine(of_x, of_y, out=scores[way, : other.size, : self.size])
            self._look_down(way, other, scores[way, :, : self.size])
            if other is not self:
                other._look_across(way, self, scores[way, : other.size])

    def _look_down(self, way: int, other: "Block", scores: "torch.Tensor") -> None:
        """List what can be among the best of a space, from its scores [d, b]: neighbours are a group."""
        documents = other.numbers.reshape(-1, self._group)
        self._spaces[way].add(documents, scores.unflatten(0, documents.shape))

    def _look_across(self, way: int, other: "Block", scores: "torch.Tensor") -> None:
        """List the same from scores [b, d]: a group lies far apart, so that maxima are taken of whole rows here too."""
        documents = other.numbers.reshape(self._group, -1)
        self._spaces[way].add(documents.T, scores.unflatten(1, documents.shape).permute(2, 1, 0))

    def proposal(self) -> Proposal:
        """Return the lists of the queries, once the block has met all."""
        lists = [space.listed() for space in self._spaces]
        widest = max(found.numbers.shape[1] for found in lists)
        numbers, products = np.full((2 * self.size, widest), -1), np.zeros((2 * self.size, widest), dtype=np.float32)
        floor = np.empty(2 * self.size)
        for way, found in enumerate(lists):
            width = found.numbers.shape[1]
            numbers[way::2, :width], products[way::2, :width] = found.numbers, found.products
            floor[way::2] = found.floor
        return Proposal(numbers, products, self._error, floor)


def blocks_of(wanted: np.ndarray, error: np.ndarray, lanes: int, scan_bytes: int) -> list[Block]:
    """Return the blocks that examples meet in, whose queries want `wanted` int64 [2n]; none where that does not suit.

    That is where it could take more than `scan_bytes`, or a block would not tell the wanted from the others.
    """
    count, most = len(wanted) // 2, int(wanted.max())
    # An odd number, with which each block has one to meet in each round, and at least as many pairs as there are lanes.
    parts = max(2 * lanes - 1, -(-count // _MOST_ROWS)) | 1
    size = -(-count // parts)
    group, longest = group_of(size, most), (scan_bytes - lanes * size**2 * _MET_BYTES) // (2 * count * _LISTED_BYTES)
    if not group or longest < _LISTS_GROW * most:
        return []
    cuts = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    both = [slice(2 * rows.start, 2 * rows.stop) for rows in cuts]
    return [Block(rows, wanted[own], error[own], group, longest) for rows, own in zip(cuts, both, strict=True)]


def meet_all(blocks: list[Block], examples: Rows, middle: int, lanes: Executor, at_once: int) -> None:
    """Let each block meet each, itself too, in so many lanes: in rounds, in which no block is in two lanes at once."""
    size = max((len(block.numbers) for block in blocks), default=0)
    rooms: SimpleQueue[torch.Tensor] = SimpleQueue()
    for _ in range(at_once):
        # Filled again and again: new memory takes a twentieth of the time.
        rooms.put(FLOAT32.empty(4, size, size))

    def meet(one: int, other: int) -> None:
        """Let two blocks meet in a room that is free."""
        room = rooms.get()
        try:
            blocks[one].meet(blocks[other], examples, middle, room)
        finally:
            rooms.put(room)

    for pairs in rounds(len(blocks)):
        list(lanes.map(meet, *zip(*pairs, strict=True)))


def rounds(count: int) -> Iterator[list[tuple[int, int]]]:
    """Yield all pairs of so many numbers, each once, in rounds of which none has a number in two pairs.

    Those of a round give the same number when added, modulo `count`.
    """
    for total in range(count):
        others = ((one, (total - one) % count) for one in range(count))
        yield [(one, other) for one, other in others if one <= other]
