"""Vectors of inputs and outputs to the nearest examples in both spaces: by s_pos and by s_neg (paper 2.3).

s_pos is cos(x, x') + cos(y, y') and s_neg cos(x, x') - cos(y, y'): the inner products of [x; y] and of [x; -y] with
[x'; y']. So both are one search among the same documents, in which the products of x and of y need be taken but once.
"""

import numpy as np

from medi.mine.scores import lengths_of
from medi.mine.search import Found, Lists, Search, top_k
from medi.mine.vectors import Rows


def nearest_in_both(
    inputs: np.ndarray, outputs: np.ndarray, k: int, excluded: Lists, search: Search
) -> tuple[Found, Found]:
    """Return the k best examples of each by s_pos, and the k best by s_neg; inputs and outputs are float32 [n, D].

    Raises:
        MediError: a vector is not finite or has no length, of an input or of an output.
    """
    for side, vectors in (("input", inputs), ("output", outputs)):
        lengths_of(vectors, side)
    both = np.hstack([inputs, outputs])
    twice = Lists.of([own for own in excluded.each() for _ in range(2)])
    found = top_k(Rows(both, negated=inputs.shape[1], twice=True), both, k, twice, search)
    return Found(*(part[0::2] for part in found)), Found(*(part[1::2] for part in found))
