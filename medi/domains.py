"""MSMARCO's queries into at most 30 clusters, and each cluster's centre into the domain word that lies nearest.

The same rows and seed give the same clusters, in whatever order the rows come and for any number of threads.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from medi.schema import fold

NEAREST_WORDS = 5
TERMS = 8
CENTRAL_ROWS = 10
_MAX_CLUSTERS = 30
_ROWS_OF_CLUSTER = 40
_ITERATIONS = 25
_BLOCK_ROWS = 4_096


class Queries(NamedTuple):
    """The rows to cluster: their ids, the texts of their queries, and these texts' unit vectors, float32 [n, D]."""

    ids: Sequence[str]
    texts: Sequence[str]
    vectors: np.ndarray


class Vocabulary(NamedTuple):
    """The words a domain is chosen from, their unit vectors [words, D], and the words fixed by cluster number ("00").

    A fixed word need not be one of the vocabulary; a fixed number that no cluster has is left out.
    """

    words: Sequence[str]
    vectors: np.ndarray
    fixed: Mapping[str, str]


class Domain(NamedTuple):
    """A cluster's domain word and what speaks for it.

    `overridden` says that the word is a fixed one. `nearest` are the nearest words of the vocabulary with their
    cosines to the centre, `terms` the words that tell the cluster's queries from the others', `central` the ids of the
    rows nearest to the centre, no query text twice; all best first.
    """

    word: str
    overridden: bool
    nearest: list[tuple[str, float]]
    terms: list[str]
    central: list[str]


def find_domains(queries: Queries, vocabulary: Vocabulary, seed: int) -> tuple[np.ndarray, list[Domain]]:
    """Return the cluster number of each row, int64 [n], and what is known of each cluster, by number."""
    # k-means begins with the rows at certain places, so the rows need places of their own.
    order = np.argsort(np.array(queries.ids, dtype=np.str_), kind="stable")
    if (order[1:] < order[:-1]).any():
        rows: list[int] = order.tolist()
        queries = Queries([queries.ids[r] for r in rows], [queries.texts[r] for r in rows], queries.vectors[order])
    of_ordered = cluster_queries(queries.vectors, seed)
    middle = centres(queries.vectors, of_ordered)
    rows_of = [np.flatnonzero(of_ordered == number) for number in range(len(middle))]
    terms = distinctive_terms([[queries.texts[row] for row in rows.tolist()] for rows in rows_of])
    domains = []
    for number, near in enumerate(nearest_words(middle, vocabulary)):
        fixed = vocabulary.fixed.get(f"{number:02d}")
        central = _central(queries, rows_of[number], middle[number])
        domains.append(Domain(fixed or near[0][0], fixed is not None, near, terms[number], central))
    of_row = np.empty_like(of_ordered)
    of_row[order] = of_ordered
    return of_row, domains


def cluster_queries(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Return the cluster number of each row, int64 [n], of unit vectors float32 [n, D].

    k-means with k = min(30, max(1, n // 40)); number 0 is the largest cluster, of equals the one with the first row.
    Another order of rows may give other clusters: `find_domains` sorts them by id.
    """
    if len(vectors) == 0:
        return np.zeros(0, dtype=np.int64)
    clusters_wanted = min(_MAX_CLUSTERS, max(1, len(vectors) // _ROWS_OF_CLUSTER))
    nearest = _cosines(vectors, _trained_centres(vectors, clusters_wanted, seed)).argmax(axis=1)
    found, first_row, of_row, size_rows = np.unique(nearest, return_index=True, return_inverse=True, return_counts=True)
    number = np.empty(len(found), dtype=np.int64)
    number[np.lexsort((first_row, -size_rows))] = np.arange(len(found))
    return number[of_row]


def centres(vectors: np.ndarray, of_row: np.ndarray) -> np.ndarray:
    """Return the unit mean of each cluster's vectors, float64 [clusters, D], in the order of their numbers."""
    means = [vectors[of_row == n].mean(axis=0, dtype=np.float64) for n in range(int(of_row.max(initial=-1)) + 1)]
    return np.array([mean / max(float(np.linalg.norm(mean)), 1e-12) for mean in means])


def nearest_words(centroids: np.ndarray, vocabulary: Vocabulary) -> list[list[tuple[str, float]]]:
    """Return for each unit centre [clusters, D] the five words of highest cosine, with the cosines, best first.

    Of equal cosines the first word by name comes first.
    """
    if not len(centroids):
        return []
    cosines = _cosines(centroids, np.asarray(vocabulary.vectors))
    best = [sorted(zip((-row).tolist(), vocabulary.words, strict=True))[:NEAREST_WORDS] for row in cosines]
    return [[(word, round(-negative, 4)) for negative, word in words] for words in best]


def distinctive_terms(clusters: Sequence[Iterable[str]]) -> list[list[str]]:
    """Return for each cluster of texts the eight terms of highest c-TF-IDF, best first; of equals the first by name.

    A term weighs its share of the cluster's terms x log(1 + terms of an average cluster / times it stands in all of
    them) (Grootendorst 2022). English stop words and single characters are no terms.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    terms_of = CountVectorizer(stop_words="english").build_analyzer()
    counted = [Counter(term for text in texts for term in terms_of(text)) for texts in clusters]
    everywhere: Counter[str] = Counter()
    for counts in counted:
        everywhere.update(counts)
    average = everywhere.total() / max(len(counted), 1)
    weigh = {term: math.log(1 + average / count) for term, count in everywhere.items()}
    # Within a cluster the share of its terms orders as the number does.
    return [sorted(counts, key=lambda term: (-counts[term] * weigh[term], term))[:TERMS] for counts in counted]


def _central(queries: Queries, rows: np.ndarray, centre: np.ndarray) -> list[str]:
    """Return the ids of the rows nearest to their cluster's centre, of equal texts the first."""
    cosines = _cosines(queries.vectors[rows], centre[None])[:, 0]
    central: dict[str, str] = {}
    for place in np.argsort(-cosines, kind="stable").tolist():
        row = int(rows[place])
        central.setdefault(fold(queries.texts[row]), queries.ids[row])
        if len(central) == CENTRAL_ROWS:
            break
    return list(central.values())


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


def _cosines(vectors: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the cosines of unit vectors and points, float32 [n, points]: float64 products, so that ties stay ties."""
    turned = np.asarray(points, dtype=np.float64).T
    blocks = [
        (np.asarray(vectors[start : start + _BLOCK_ROWS], dtype=np.float64) @ turned).astype(np.float32)
        for start in range(0, len(vectors), _BLOCK_ROWS)
    ]
    return np.concatenate(blocks)
