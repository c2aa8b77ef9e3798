"""Times the search of Super-NI's text tasks: of 6,500 examples the ten best by s_pos and by s_neg.

    python -m benchmarks.two_space [--rows 6500] [--repeats 5]

Each way is compared with the float64 answer: `recall` is the share of it that was found, `in exact order` the share of
lists that are equal to it in every place, ties included (the lower number first).
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import paired
from benchmarks.vectors import like_texts
from medi.mine.scores import keys_of, read_keys, scores_at
from medi.mine.search import Lists, Search
from medi.mine.two_space import nearest_in_both

ROWS, K = 6_500, 10
# One example in so many says again, word for word, what another says.
_ONE_REPEATED_IN = 50
Found = tuple[np.ndarray, np.ndarray]


def prepare(folder: Path, rows: int = ROWS) -> str:
    """Write the vectors, and the exact answer; return what they are."""
    rng = np.random.default_rng(3)
    inputs, outputs = like_texts(rng, rows), like_texts(rng, rows)
    again, first = np.split(rng.permutation(rows)[: 2 * (rows // _ONE_REPEATED_IN)], 2)
    inputs[again], outputs[again] = inputs[first], outputs[first]
    np.savez(folder / "vectors.npz", inputs=inputs, outputs=outputs)
    for name, askers in (("s_pos", np.hstack([inputs, outputs])), ("s_neg", np.hstack([inputs, -outputs]))):
        np.save(folder / f"{name}.npy", exact(askers, np.hstack([inputs, outputs])))
    return (
        f"{rows:,} examples, inputs and outputs of {inputs.shape[1]} dimensions, the {K} best by s_pos and by s_neg of "
        f"each among the others; one example in {_ONE_REPEATED_IN} repeats another, so there are ties."
    )


def exact(askers: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Return the numbers of the K best documents of each asker but itself, int64 [n, K], by float64 products."""
    best = []
    for start in range(0, len(askers), 1_000):
        block = askers[start : start + 1_000]
        products = block.astype(np.float64) @ documents.T.astype(np.float64)
        products[np.arange(len(block)), start + np.arange(len(block))] = -np.inf
        # A few more than K: equal scores may come in any order here, and are put into theirs by the keys.
        near = np.argpartition(-products, 3 * K, axis=1)[:, : 3 * K]
        keys = np.sort(keys_of(scores_at(block, documents, near), near))
        best.append(read_keys(keys[:, :K])[0])
    return np.concatenate(best)


def ours(folder: Path) -> paired.Measured:
    """Search as a build does, where the encoder has loaded torch before."""
    import torch  # noqa: F401

    inputs, outputs = _vectors(folder)
    itself = Lists.of(list(np.arange(len(inputs))[:, None]))
    found: list[np.ndarray] = []
    search = Search()

    def work() -> dict[str, str]:
        sides = nearest_in_both(inputs, outputs, K, itself, search)
        found.extend(side.numbers for side in sides)
        return {}

    measured = _judged(paired.measure(work), found, folder)
    counts = {"decided from lists": search.decided.listed, "scanned": search.decided.scanned}
    return replace(measured, found={**measured.found, **counts})


def by_faiss(folder: Path) -> paired.Measured:
    """Search a flat index of [x; y] for [x; y] and for [x; -y], one more than asked for, and leave itself out."""
    import faiss

    inputs, outputs = _vectors(folder)
    faiss.omp_set_num_threads(paired.THREADS)
    found: list[np.ndarray] = []

    def work() -> dict[str, str]:
        both = np.hstack([inputs, outputs])
        index = faiss.IndexFlatIP(both.shape[1])
        index.add(both)
        for askers in (both, np.hstack([inputs, -outputs])):
            numbers = index.search(askers, K + 1)[1]
            others = numbers != np.arange(len(numbers))[:, None]
            others[others.all(axis=1), -1] = False
            found.append(numbers[others].reshape(-1, K))
        return {}

    return _judged(paired.measure(work), found, folder)


def products(folder: Path) -> paired.Measured:
    """Take the two products in float32, x by x and y by y, in blocks of 1,024 rows; search nothing."""
    inputs, outputs = _vectors(folder)

    def work() -> dict[str, str]:
        for start in range(0, len(inputs), 1_024):
            for vectors in (inputs, outputs):
                np.matmul(vectors[start : start + 1_024], vectors.T)
        return {}

    return paired.measure(work)


def _vectors(folder: Path) -> Found:
    """Return the inputs and the outputs, float32 [n, D]."""
    with np.load(folder / "vectors.npz") as vectors:
        return vectors["inputs"], vectors["outputs"]


def _judged(measured: paired.Measured, found: list[np.ndarray], folder: Path) -> paired.Measured:
    """Return what was measured, and how far the two answers are the exact ones."""
    expected = np.concatenate([np.load(folder / f"{name}.npy") for name in ("s_pos", "s_neg")])
    numbers = np.concatenate(found)
    recall = float((numbers[:, :, None] == expected[:, None, :]).any(axis=2).mean())
    in_order = float((numbers == expected).all(axis=1).mean())
    return replace(measured, found={"recall": f"{recall:.6f}", "in exact order": f"{in_order:.6f}"})


def benchmark(rows: int = ROWS) -> paired.Benchmark:
    """Return the benchmark over so many examples."""
    return paired.Benchmark(
        module="benchmarks.two_space",
        title="Nearest in two spaces",
        prepare=partial(prepare, rows=rows),
        ways={"medi": ours, "FAISS flat over [x; y]": by_faiss, "float32 products alone": products},
        ratios=(
            paired.Ratio("medi", "FAISS flat over [x; y]", most=0.6),
            paired.Ratio("medi", "FAISS flat over [x; y]", most=0.6, what="cpu_seconds"),
        ),
    )


BENCHMARK = benchmark()

if __name__ == "__main__":
    paired.main(BENCHMARK, benchmark)
