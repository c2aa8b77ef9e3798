"""Vectors of inputs and outputs to the nearest examples in both spaces: by s_pos and by s_neg (paper 2.3).

s_pos is cos(x, x') + cos(y, y') and s_neg cos(x, x') - cos(y, y'): the inner products of [x; y] and of [x; -y] with
[x'; y'].
"""

import numpy as np

from medi.mine.search import Found, Lists, Search, top_k


def nearest_in_both(
    inputs: np.ndarray, outputs: np.ndarray, k: int, excluded: Lists, search: Search
) -> tuple[Found, Found]:
    """Return the k best examples of each by s_pos, and the k best by s_neg; inputs and outputs are float32 [n, D]."""
    documents = np.hstack([inputs, outputs])
    positives = top_k(documents, documents, k, excluded, search)
    return positives, top_k(np.hstack([inputs, -outputs]), documents, k, excluded, search)
