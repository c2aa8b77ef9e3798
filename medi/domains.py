"""MSMARCO's queries into at most 30 clusters, and each cluster's centre into the domain word that lies nearest.

The same vectors and seed give the same clusters for any number of threads.
"""

from collections.abc import Mapping, Sequence

import numpy as np

_MAX_CLUSTERS = 30
_ROWS_OF_CLUSTER = 40
_ITERATIONS = 25
_BLOCK_ROWS = 4_096


def cluster_queries(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Return the cluster number of each row, int64 [n], of unit vectors float32 [n, D].

    k-means with k = min(30, max(1, n // 40)); number 0 is the largest cluster, of equals the one with the first row.
    """
    if len(vectors) == 0:
        return np.zeros(0, dtype=np.int64)
    clusters_wanted = min(_MAX_CLUSTERS, max(1, len(vectors) // _ROWS_OF_CLUSTER))
    nearest = _nearest(vectors, _trained_centres(vectors, clusters_wanted, seed))
    found, first_row, of_row, size_rows = np.unique(nearest, return_index=True, return_inverse=True, return_counts=True)
    number = np.empty(len(found), dtype=np.int64)
    number[np.lexsort((first_row, -size_rows))] = np.arange(len(found))
    return number[of_row]


def centres(vectors: np.ndarray, of_row: np.ndarray) -> np.ndarray:
    """Return the unit mean of each cluster's vectors, float64 [clusters, D], in the order of their numbers."""
    means = [vectors[of_row == number].mean(axis=0, dtype=np.float64) for number in range(int(of_row.max()) + 1)]
    return np.stack([mean / max(float(np.linalg.norm(mean)), 1e-12) for mean in means])


def nearest_words(
    centroids: np.ndarray, word_vectors: np.ndarray, words: Sequence[str], fixed: Mapping[str, str] | None = None
) -> list[str]:
    """Return one domain word a cluster: the fixed one of its number ("00"), else the word of highest cosine.

    `centroids` is [clusters, D], `word_vectors` [words, D]; both of unit length. Of equal cosines the first word by
    name is taken.
    """
    by_name = sorted(range(len(words)), key=lambda word: words[word])
    best = _nearest(centroids, np.asarray(word_vectors)[by_name])
    nearest = [words[by_name[int(word)]] for word in best]
    return [(fixed or {}).get(f"{number:02d}", word) for number, word in enumerate(nearest)]


def _trained_centres(vectors: np.ndarray, clusters: int, seed: int) -> np.ndarray:
    """Return FAISS's centres, float32 [clusters, D]."""
    import faiss

    kmeans = faiss.Kmeans(
        vectors.shape[1], clusters, niter=_ITERATIONS, seed=seed % 2**31, spherical=True, min_points_per_centroid=1
    )
    threads = faiss.omp_get_max_threads()
    # The last bits of a product of matrices depend on the number of threads, and a row between two centres on them.
    # FAISS trains on at most 256 rows a centre, so that one thread is enough.
    faiss.omp_set_num_threads(1)
    try:
        kmeans.train(np.ascontiguousarray(vectors, dtype=np.float32))
    finally:
        faiss.omp_set_num_threads(threads)
    return np.asarray(kmeans.centroids)


def _nearest(vectors: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the point of highest cosine for each unit vector, int64 [n]; of equals the first."""
    turned = np.asarray(points, dtype=np.float64).T
    blocks = [
        (np.asarray(vectors[start : start + _BLOCK_ROWS], dtype=np.float64) @ turned).astype(np.float32).argmax(axis=1)
        for start in range(0, len(vectors), _BLOCK_ROWS)
    ]
    return np.concatenate(blocks)
