"""Vectors of inputs and outputs to the nearest examples in both spaces: by s_pos and by s_neg (paper 2.3)."""

import numpy as np

from medi.mine.search import Found, Lists, Search, top_k


def nearest_in_both(
    inputs: np.ndarray, outputs: np.ndarray, k: int, excluded: Lists, search: Search
) -> tuple[Found, Found]:
    """Return the k best examples of each by s_pos, and the k best by s_neg; inputs and outputs are float32 [n, D].

    One inner-product search answers both: among [x; y], for [x; y] and for [x; -y].
    """
    both = np.hstack([inputs, outputs])
    positives = top_k(both, both, k, excluded, search)
    return positives, top_k(np.hstack([inputs, -outputs]), both, k, excluded, search)
