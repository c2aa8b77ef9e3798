"""MSMARCO's clusters: how many, how they are numbered, that threads do not matter, and each one's nearest word."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from medi.domains import centres, cluster_queries, nearest_words

ROOT = Path(__file__).parent.parent


def blobs(seed: int = 0) -> np.ndarray:
    """Return 240 unit vectors [240, 8] around three axes: 40, 120 and 80 of them, then six clusters are asked for."""
    around = np.repeat(np.eye(8, dtype=np.float32)[:3], [40, 120, 80], axis=0)
    noisy = around + np.random.default_rng(seed).normal(scale=0.02, size=around.shape).astype(np.float32)
    return (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)


def test_clusters_are_numbered_by_size_and_keep_to_their_blob() -> None:
    of_row = cluster_queries(blobs(), seed=0)
    sizes = np.bincount(of_row)
    assert sizes.sum() == 240 and len(sizes) == 6
    assert list(sizes) == sorted(sizes, reverse=True)
    blob = np.repeat([0, 1, 2], [40, 120, 80])
    assert all(len(set(blob[of_row == number])) == 1 for number in range(6))
    assert cluster_queries(blobs()[:79], seed=0).tolist() == [0] * 79
    assert cluster_queries(blobs()[:0], seed=0).tolist() == []


def test_of_clusters_of_one_size_the_one_with_the_first_row_comes_first() -> None:
    two = np.repeat(np.eye(4, dtype=np.float32)[[2, 0]], 40, axis=0)
    assert cluster_queries(two, seed=5).tolist() == [0] * 40 + [1] * 40


CLUSTERS_OF_NOISE = """
import hashlib, numpy as np
from medi.domains import cluster_queries
noise = np.random.default_rng(3).normal(size=(1500, 48)).astype(np.float32)
noise /= np.linalg.norm(noise, axis=1, keepdims=True)
print(hashlib.sha256(cluster_queries(noise, seed=7).tobytes()).hexdigest())
"""


def test_the_number_of_threads_does_not_matter() -> None:
    digests = set()
    for threads in ("1", "2"):
        environment = os.environ | {
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-c", CLUSTERS_OF_NOISE]
        digests.add(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)
    assert len(digests) == 1


def test_each_cluster_gets_the_nearest_word() -> None:
    vectors = np.array([[1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)
    middle = centres(vectors, np.array([0, 1, 1]))
    assert np.allclose(middle, [[1, 0], [0.3162, 0.9487]], atol=1e-4)
    words, axes = ["wine", "law", "art"], np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert nearest_words(middle, axes, words) == ["law", "art"]
    assert nearest_words(middle, axes, words, {"01": "music", "29": "tax"}) == ["law", "music"]
