"""Vectors of inputs and outputs to the nearest examples in both spaces: by s_pos and by s_neg (paper 2.3).

s_pos is cos(x, x') + cos(y, y') and s_neg cos(x, x') - cos(y, y'): the inner products of [x; y] and of [x; -y] with
[x'; y']. So both are searches among the same documents, and where nobody proposes faster, their two products are taken
once.
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from medi.mine.engine import threads
from medi.mine.search import Documents, Found, Lists, Search, goes_by_shortlists, top_k
from medi.mine.vectors import Rows

# Scores float32 [b, width] and numbers int64 [b, width] of documents, in any order.
Best = tuple[np.ndarray, np.ndarray]
# What the scores of some examples with all others take at once, in float32.
_SCORES_BYTES = 4 << 20


def nearest_in_both(
    inputs: np.ndarray, outputs: np.ndarray, k: int, excluded: Lists, search: Search
) -> tuple[Found, Found]:
    """Return the k best examples of each by s_pos, and the k best by s_neg; inputs and outputs are float32 [n, D]."""
    both = np.hstack([inputs, outputs])
    documents, turned = Documents.of(both), Rows(both, negated=inputs.shape[1])
    if search.gpu or goes_by_shortlists(documents, k, search):
        positives = top_k(both, documents, k, excluded, search)
        return positives, top_k(turned, documents, k, excluded, search)
    products = _Products(inputs.shape[1])
    positives = top_k(both, documents, k, excluded, search, products.positives)
    return positives, top_k(turned, documents, k, excluded, search, products.negatives)


class _Products:
    """Proposes by s_pos, and then, for the same examples in the same order, by s_neg from the same products."""

    def __init__(self, inputs: int) -> None:
        """Begin with nothing noted; the first `inputs` columns of the vectors are those of x."""
        self._inputs = inputs
        self._negatives: deque[Best] = deque()

    def positives(self, queries: np.ndarray, documents: np.ndarray, width: int) -> Best:
        """Return what is best by s_pos, as FAISS does; note what is by s_neg."""
        size = max(1, _SCORES_BYTES // (4 * len(documents)))
        blocks = [queries[start : start + size] for start in range(0, len(queries), size)]
        with ThreadPoolExecutor(threads()) as pool:
            found = list(pool.map(lambda block: self._both(block, documents, width), blocks))
        self._negatives.append(_joined([negatives for _, negatives in found]))
        return _joined([positives for positives, _ in found])

    def negatives(self, queries: np.ndarray, documents: np.ndarray, width: int) -> Best:
        """Return what was noted of these queries."""
        return self._negatives.popleft()

    def _both(self, queries: np.ndarray, documents: np.ndarray, width: int) -> tuple[Best, Best]:
        """Return what is best by s_pos, and what is by s_neg."""
        of_inputs, of_outputs = (
            queries[:, part] @ documents[:, part].T for part in (slice(self._inputs), slice(self._inputs, None))
        )
        return _best(of_inputs + of_outputs, width), _best(of_inputs - of_outputs, width)


def _joined(parts: list[Best]) -> Best:
    """Return the answers of blocks of queries as one."""
    return np.concatenate([scores for scores, _ in parts]), np.concatenate([numbers for _, numbers in parts])


def _best(scores: np.ndarray, width: int) -> Best:
    """Return the highest `width` of each row of scores, in no order, and their places."""
    places = np.argpartition(scores, scores.shape[1] - width, axis=1)[:, scores.shape[1] - width :]
    return np.take_along_axis(scores, places, axis=1), places
