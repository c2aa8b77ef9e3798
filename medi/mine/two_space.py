"""Vectors of inputs and outputs to the nearest examples in both spaces: by s_pos and by s_neg (paper 2.3).

s_pos is cos(x, x') + cos(y, y') and s_neg cos(x, x') - cos(y, y'): the inner products of [x; y] and of [x; -y] with
[x'; y']. So both are searches among the same documents.
"""

import numpy as np

from medi.mine.search import Documents, Found, Lists, Search, top_k
from medi.mine.vectors import Rows


def nearest_in_both(
    inputs: np.ndarray, outputs: np.ndarray, k: int, excluded: Lists, search: Search
) -> tuple[Found, Found]:
    """Return the k best examples of each by s_pos, and the k best by s_neg; inputs and outputs are float32 [n, D]."""
    both = np.hstack([inputs, outputs])
    documents = Documents.of(both)
    positives = top_k(both, documents, k, excluded, search)
    return positives, top_k(Rows(both, negated=inputs.shape[1]), documents, k, excluded, search)
