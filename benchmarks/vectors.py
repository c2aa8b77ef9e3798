"""A seed to unit vectors that lie as those of texts do: a common direction, clusters, a falling spectrum.

The constants are set so that cosines are spread as those of sentence encoders on real texts: 0.6 on average, 0.8 and
more among the nearest, the tenth nearest a hundredth or two above the twentieth.
"""

import numpy as np

DIMENSIONS = 768
# A cluster holds so many vectors on average.
CLUSTER_ROWS = 50
# The shares of the common direction, of the cluster and of the vector's own part.
_SHARES = (1.2, 0.7, 0.8)


def like_texts(
    rng: np.random.Generator, count: int, dimensions: int = DIMENSIONS, cluster_rows: int = CLUSTER_ROWS
) -> np.ndarray:
    """Return unit vectors float32 [count, dimensions], so many in a cluster on average."""
    spectrum = np.arange(1, dimensions + 1, dtype=np.float32) ** -0.4
    spectrum /= np.linalg.norm(spectrum)
    common, centers = (rng.standard_normal((n, dimensions), np.float32) for n in (1, count // cluster_rows + 1))
    vectors = _SHARES[2] * spectrum * rng.standard_normal((count, dimensions), np.float32)
    vectors += _SHARES[0] * spectrum * common
    vectors += (_SHARES[1] * spectrum * centers)[rng.integers(0, len(centers), count)]
    return units(vectors)


def near_to(rng: np.random.Generator, vectors: np.ndarray, share: float) -> np.ndarray:
    """Return unit vectors float32 [n, D] near to the given ones: `share` is the length of what is added to each."""
    noise = rng.standard_normal(vectors.shape, np.float32)
    return units(vectors + share / np.sqrt(np.float32(vectors.shape[1])) * noise)


def units(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors brought to length 1, in place."""
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors
