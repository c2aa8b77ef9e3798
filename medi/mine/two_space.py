"""Vectors of inputs and outputs to the nearest examples in both spaces: by s_pos and by s_neg (paper 2.3).

s_pos is cos(x, x') + cos(y, y') and s_neg cos(x, x') - cos(y, y'): the inner products of [x; y] and of [x; -y] with
[x'; y']. Both need the same two products, which are taken once.
"""

import numpy as np

from medi.mine.search import Found, Lists, Search, top_k

# Scores of a block of examples, four arrays of them, that stay in the cache between product and choice.
_BLOCK_BYTES = 32 << 20


def nearest_in_both(
    inputs: np.ndarray, outputs: np.ndarray, k: int, excluded: Lists, search: Search
) -> tuple[Found, Found]:
    """Return the k best examples of each by s_pos, and the k best by s_neg; inputs and outputs are float32 [n, D]."""
    documents = np.hstack([inputs, outputs])
    # Each example asks twice, one question behind the other.
    asked = np.repeat(documents, 2, axis=0)
    np.negative(asked[1::2, inputs.shape[1] :], out=asked[1::2, inputs.shape[1] :])
    found = top_k(asked, documents, k, excluded.twice(), search, None if search.gpu else _by_shared_products)
    positives, negatives = (Found(*(np.ascontiguousarray(part[side::2]) for part in found)) for side in (0, 1))
    return positives, negatives


def _by_shared_products(queries: np.ndarray, documents: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Propose documents to questions that stand in pairs, [x; y] before [x; -y]: scores and numbers [b, width]."""
    import torch

    half = documents.shape[1] // 2
    xs, ys = (torch.from_numpy(documents)[:, side] for side in (slice(half), slice(half, None)))
    scores = np.empty((len(queries), width), dtype=np.float32)
    numbers = np.empty((len(queries), width), dtype=np.int64)
    rows = max(1, _BLOCK_BYTES // (16 * len(documents)))
    for start in range(0, len(queries), 2 * rows):
        block = slice(start, min(start + 2 * rows, len(queries)))
        asked = torch.from_numpy(queries[block])
        by_x, by_y = asked[::2, :half] @ xs.T, asked[::2, half:] @ ys.T
        for side, both in enumerate((by_x + by_y, by_x - by_y)):
            best, places = both[: len(asked[side::2])].topk(width, dim=1)
            scores[block][side::2], numbers[block][side::2] = best.numpy(), places.numpy()
    return scores, numbers
