"""How time and memory grow with rows: ingest, mining and shards at a tenth, at a hundredth and at a thousandth."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import ingest, shards
from benchmarks.machine import file_name
from benchmarks.paired import Benchmark, Measured, Ratio, main, measure, median
from benchmarks.texts import array, pairs, write_lines

INGESTED, SHARDED = (10_000, 100_000, 1_000_000, 10_000_000), (10_000, 100_000, 1_000_000)
# Each of the queries is compared with each of the documents: a million of both would take hours.
MINED, DIMENSION = (3_000, 10_000, 30_000, 100_000), 64
IMAGES = Path(__file__).parent.parent / "docs" / "images"
_CLUSTER_ROWS, _TASK_ROWS = 20, 50_000


def prepare(folder: Path) -> str:
    """Write the raw files; rows for mining and shards are made where they are used."""
    for lines in INGESTED:
        write_lines(folder / f"{lines}.jsonl.gz", lines, array)
    return (
        f"Ingest of lines of some 450 bytes, quota {ingest.QUOTA_ROWS:,}: up to 30,000 lines all are parsed, of more "
        f"those drawn. Mining compares n queries with n documents of {DIMENSION} dimensions: 64 candidates "
        "a row, then pairs with four negatives; a million of both would take hours, so it ends at a tenth of that. "
        "Shards have four negatives a row."
    )


def ingested(lines: int, folder: Path) -> Measured:
    """Measure ingest of so many lines."""
    return ingest.ingested(folder / f"{lines}.jsonl.gz", "gooaq_pairs")


def mined(rows: int, folder: Path) -> Measured:
    """Measure the candidates of so many pairs of distinct queries, and the choice among them."""
    import faiss  # noqa: F401 - not to be timed

    from medi.mine import (
        PROFILES,
        Hints,
        PairRules,
        Search,
        Texts,
        mine_pairs,
        pair_candidates,
        texts_to_encode,
        texts_to_tokenize,
    )
    from medi.schema import ROWS, TOKENS, row_id, table_of, text_id

    drawn = (pair for portion in pairs(rows, seed=rows) for pair in portion)
    found = {f"{query} {number}": positive for number, (query, positive) in enumerate(drawn)}
    empty = {"references": [], "other_positives": [], "negatives": [], "task": "toy", "origin": "toy:1"}
    table = table_of(
        (
            {"id": row_id("toy", "toy", query, positive), "query": query, "positive": positive, "rank": place, **empty}
            for place, (query, positive) in enumerate(found.items())
        ),
        ROWS,
    ).sort_by("id")
    given = PairRules(symmetric=False, clusters=False)
    known = texts_to_tokenize(table, "pair", given)
    ids = sorted(map(text_id, known))
    lines = ({"text_id": own, "token_key": int(own, 16), "length_tokens": 8} for own in ids)
    tokens = table_of(lines, TOKENS)
    encoded = texts_to_encode(table, "pair", given, tokens)
    place = {text: number for number, pair in enumerate(found.items()) for text in pair}
    texts = Texts.of(known, tokens, encoded, vectors(np.array([place[text] for text in encoded])))
    rules = PROFILES["clean"]

    def work() -> Mapping[str, float | str]:
        candidates, _ = pair_candidates(table, texts, given, rules.strategy, Search())
        chosen, _ = mine_pairs(table, texts, candidates, given, rules, Hints())
        return {"rows": len(chosen)}

    return measure(work)


def vectors(places: np.ndarray) -> np.ndarray:
    """Return unit vectors [n, DIMENSION]: close for those of one place, some 20 places around a centre."""
    random = np.random.default_rng(0)
    count = int(places.max()) + 1
    centres = random.normal(size=(count // _CLUSTER_ROWS + 1, DIMENSION))
    subjects = centres[random.integers(0, len(centres), count)] + random.normal(size=(count, DIMENSION))
    found = subjects[places] + 0.5 * random.normal(size=(len(places), DIMENSION))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def sharded(rows: int, folder: Path) -> Measured:
    """Measure the shards of so many rows, in tasks of at most 50,000."""
    import tempfile

    from medi.shards import write_shards

    tasks = max(1, rows // _TASK_ROWS)
    random = np.random.default_rng(0)
    given = [shards.examples(rows // tasks, task, tasks, random) for task in range(tasks)]

    def work() -> Mapping[str, float | str]:
        with tempfile.TemporaryDirectory(dir=folder) as release:
            files, _ = write_shards(Path(release), shards.contents(given))
        return {"rows": sum(entry.get("rows", 0) for entry in files)}

    return measure(work)


def draw(taken: Mapping[str, Sequence[Mapping]]) -> str:
    """Draw time and memory by rows into an image of this machine; return where it is, or why there is none."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        return "The plot was not drawn: matplotlib is missing (`pip install '.[report]'`)."
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for (stage, _, sizes), marker in zip(STAGES, "osD", strict=True):
        runs = [taken[_name(stage, rows)] for rows in sizes]
        left.plot(sizes, [median(each, "seconds") for each in runs], marker=marker, label=stage)
        right.plot(sizes, [median(each, "peak_bytes") / 2**20 for each in runs], marker=marker, label=stage)
    left.set(xscale="log", yscale="log", xlabel="rows", title="seconds")
    right.set(xscale="log", yscale="log", ylim=(1, 4096), xlabel="rows", title="memory beyond the start, MB")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)
    plot = IMAGES / f"growth-{file_name()}.png"
    figure.savefig(plot, dpi=110)
    return f"![Seconds and memory by rows, of ingest, mining and shards](../docs/images/{plot.name})"


STAGES: tuple[tuple[str, Callable[[int, Path], Measured], tuple[int, ...]], ...] = (
    ("ingest", ingested, INGESTED),
    ("mine", mined, MINED),
    ("shards", sharded, SHARDED),
)


def _name(stage: str, rows: int) -> str:
    return f"{stage}, {rows:,} rows"


def _ratios() -> list[Ratio]:
    """Return what ten times the rows may cost: ten times the time, of mining a hundred times, and no more memory."""
    found = []
    for stage, _, sizes in STAGES:
        for rows in sizes[:-1]:
            if 10 * rows in sizes:
                most = 100 if stage == "mine" else 10
                found.append(Ratio(_name(stage, 10 * rows), _name(stage, rows), most=most))
    flat = [("ingest", INGESTED[-1], INGESTED[-2]), ("shards", SHARDED[-1], SHARDED[-2])]
    return found + [Ratio(_name(s, more), _name(s, less), most=1.25, what="peak_bytes") for s, more, less in flat]


BENCHMARK = Benchmark(
    "benchmarks.growth",
    "Growth",
    prepare,
    {_name(stage, rows): partial(work, rows) for stage, work, sizes in STAGES for rows in sizes},
    _ratios(),
    draw=draw,
)

if __name__ == "__main__":
    main(BENCHMARK)
