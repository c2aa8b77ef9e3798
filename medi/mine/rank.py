"""The order in which the rows of a Super-NI task are taken until its quota stands.

Second rows of mutual pairs always come last, best first: they return only where the task would miss its quota.
"""

import numpy as np

from medi.mine.select import mixed
from medi.schema import SECOND_OF_MUTUAL


def best_first(scores: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the rank of each row, int64 [n], by its positive score; `second` bool [n] of mutual pairs (paper 2.3)."""
    order = np.lexsort((np.arange(len(scores)), -scores, second))
    return _ranks(order, second)


def balanced(scores: np.ndarray, second: np.ndarray, labels: np.ndarray, rows: np.ndarray, seed: int) -> np.ndarray:
    """Return the rank of each row, int64 [n]: the better half of each label by a keyed hash, labels in turn.

    The other halves follow, best first, labels in turn; `labels` object [n], one and the same in text tasks; `rows`
    uint64 [n], names that do not depend on other rows.
    """
    worse, turn = np.zeros(len(scores), dtype=bool), np.zeros(len(scores), dtype=np.int64)
    names, label = np.unique(labels.astype(str), return_inverse=True)
    hashes = mixed(rows, np.zeros(1, dtype=np.uint64), seed)
    for number in range(len(names)):
        own = np.flatnonzero((label == number) & ~second)
        own = own[np.lexsort((own, -scores[own]))]
        better = own[: (len(own) + 1) // 2]
        worse[own[len(better) :]] = True
        turn[own[len(better) :]] = np.arange(len(own) - len(better))
        turn[better[np.argsort(hashes[better], kind="stable")]] = np.arange(len(better))
    return _ranks(np.lexsort((label, np.where(second, 0, turn), np.where(second, -scores, 0), worse, second)), second)


def _ranks(order: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the places in the order, those of second rows behind SECOND_OF_MUTUAL."""
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order)) + np.where(second[order], SECOND_OF_MUTUAL, 0)
    return ranks
