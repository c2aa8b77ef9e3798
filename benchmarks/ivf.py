"""Times the search of 100,000 queries among 100,000 documents, k = 64: exactly, and in an inverted file (`--ivf-from`).

    python -m benchmarks.ivf [--rows 100000] [--repeats 5]

Documents lie as in `benchmarks.vectors`, some 50 around a centre, fewer than are looked for; and 1,000 around one.
`recall` is the share of all exact neighbours that were found, `probes` how many of the `lists` each query looked into.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import paired
from benchmarks.vectors import DIMENSIONS, like_texts, near_to
from medi.mine.ivf import top_k_of_many
from medi.mine.search import Lists, Search, top_k

ROWS, K = 100_000, 64
# So many documents around a centre; what is added to one to make its query: their cosine is about 0.9.
GATHERED = {"some 50 around a centre": 50, "1,000 around a centre": 1_000}
_ADDED = 0.5


def prepare(folder: Path, rows: int = ROWS) -> str:
    """Write the vectors of queries and documents; return what they are."""
    for together in GATHERED.values():
        rng = np.random.default_rng(6)
        documents = like_texts(rng, rows, cluster_rows=together)
        np.save(folder / f"documents-{together}.npy", documents)
        np.save(folder / f"queries-{together}.npy", near_to(rng, documents, _ADDED))
    return (
        f"{rows:,} queries, as many documents, of {DIMENSIONS} dimensions; the {K} best but a query's own document. "
        "Where over a fifth of the documents would have to be looked at for a recall of 0.99, all is searched exactly."
    )


def searched(folder: Path, together: int, in_lists: bool) -> paired.Measured:
    """Search as a build does, where the encoder has loaded torch before."""
    import torch  # noqa: F401

    queries, documents = (np.load(folder / f"{name}-{together}.npy") for name in ("queries", "documents"))
    itself = Lists.of(list(np.arange(len(queries))[:, None]))
    found: list[np.ndarray] = []

    def work() -> dict[str, float | str]:
        if not in_lists:
            found.append(top_k(queries, documents, K, itself, Search()).numbers)
            return {}
        outcome = top_k_of_many(queries, documents, K, itself, Search())
        found.append(outcome.found.numbers)
        return {name: int(str(outcome.facts[name])) for name in ("lists", "probes")}

    measured, exact = paired.measure(work), folder / f"exact-{together}.npy"
    if not in_lists:
        np.save(exact, found[0])
    recall = _recall(found[0], np.load(exact)) if exact.exists() else float("nan")
    return replace(measured, found={"recall": f"{recall:.4f}", "lists": "", "probes": "", **measured.found})


def _recall(numbers: np.ndarray, expected: np.ndarray) -> float:
    """Return the share of the expected numbers [n, K] that are among the found ones of their row."""
    parts = zip(np.array_split(numbers, 200), np.array_split(expected, 200), strict=True)
    hits = sum(int((one[:, :, None] == other[:, None, :]).sum()) for one, other in parts)
    return hits / expected.size


def benchmark(rows: int = ROWS) -> paired.Benchmark:
    """Return the benchmark over so many queries and documents."""
    ways: dict[str, paired.Way] = {}
    for words, together in GATHERED.items():
        ways[f"exact, {words}"] = partial(searched, together=together, in_lists=False)
        ways[f"inverted file, {words}"] = partial(searched, together=together, in_lists=True)
    # Where lists do not pay, looking whether they do must not cost much.
    most = dict(zip(GATHERED, (1.1, 0.5), strict=True))
    return paired.Benchmark(
        module="benchmarks.ivf",
        title="Inverted file",
        prepare=partial(prepare, rows=rows),
        ways=ways,
        ratios=[paired.Ratio(f"inverted file, {each}", f"exact, {each}", most=most[each]) for each in GATHERED],
    )


BENCHMARK = benchmark()

if __name__ == "__main__":
    paired.main(BENCHMARK, benchmark)
