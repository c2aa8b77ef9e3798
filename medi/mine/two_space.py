"""Vectors of inputs and outputs to the nearest examples in both spaces: by s_pos and by s_neg (paper 2.3)."""

import numpy as np

from medi.mine.search import Found, Lists, Search, top_k


def nearest_in_both(
    inputs: np.ndarray, outputs: np.ndarray, k: int, excluded: Lists, search: Search
) -> tuple[Found, Found]:
    """Return the k best examples of each by s_pos, and the k best by s_neg; inputs and outputs are float32 [n, D].

    One inner-product search answers both: among [x; y], for [x; y] and for [x; -y].
    """
    count, dimension = inputs.shape
    asked = np.empty((2 * count, 2 * dimension), dtype=np.float32)
    asked[:count, :dimension] = asked[count:, :dimension] = inputs
    asked[:count, dimension:] = outputs
    np.negative(outputs, out=asked[count:, dimension:])
    twice = Lists(
        np.concatenate([excluded.starts, excluded.starts[1:] + excluded.starts[-1]]), np.tile(excluded.items, 2)
    )
    found = top_k(asked, asked[:count], k, twice, search)
    return Found(*(part[:count] for part in found)), Found(*(part[count:] for part in found))
