"""How much memory each stage of a source takes: a generated source of any number of rows goes through all of them.

`python -m tests.stage_memory 10000000 FOLDER ENCODER` prints a line of JSON a stage: rows, peak and extra in MB. The
peak is that of the whole process, libraries and all; extra is what it grew by while the stage ran.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from medi.schema import text_id
from medi.vectors import CHUNK_ROWS, id_numbers
from pipelines.build.context import Context, prepare
from pipelines.build.mining import Desk, mine_unit
from pipelines.build.run import Job, look, publish
from pipelines.build.steps import (
    encode_texts,
    ingest_step,
    instruct_step,
    lengths_to_encode,
    missing_texts,
    sample_step,
    tokens_step,
)
from pipelines.build.units import plan_groups
from pipelines.presets import resolve

_Result = TypeVar("_Result")


def resident_bytes(name: str) -> int:
    """Return the resident size of this process: `VmRSS` now, or `VmHWM`, the most since the peak was reset."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(name))
    return int(line.split()[1]) * 1024


def measured(stage: str, rows: int, run: Callable[[], _Result]) -> _Result:
    """Return what a stage gives, and print what it took."""
    Path("/proc/self/clear_refs").write_text("5")
    before, began = resident_bytes("VmRSS"), time.monotonic()
    found = run()
    peak = resident_bytes("VmHWM")
    seconds = round(time.monotonic() - began, 1)
    told = {"stage": stage, "rows": rows, "peak_mb": peak // 10**6, "extra_mb": (peak - before) // 10**6}
    print(json.dumps({**told, "seconds": seconds}), flush=True)
    return found


def generate(path: Path, rows: int) -> None:
    """Write so many different lines of two short texts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for start in range(0, rows, 10_000):
            numbers = range(start, min(start + 10_000, rows))
            lines = (f'["what is the number of case {n}", "it is {n * 7919 % rows}, no other"]\n' for n in numbers)
            file.writelines(lines)


def give_vectors(context: Context, lengths: dict[str, int]) -> None:
    """Put seeded unit vectors of 64 dimensions in the place of an encoder's."""
    rng = np.random.default_rng(0)
    missing = missing_texts(context, lengths)
    for start in range(0, len(missing), CHUNK_ROWS):
        part = missing[start : start + CHUNK_ROWS]
        vectors = rng.normal(size=(len(part), 64)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        context.vectors.put(id_numbers([text_id(text) for text in part]), vectors)


def main(rows: int, folder: Path, encoder: Path, encode: bool) -> None:
    """Send a generated source of `rows` lines through all stages."""
    generate(folder / "raw" / "embedding_training_data" / "gooaq_pairs.jsonl", rows)
    workspace = folder / "w"
    settings = resolve(
        "full", raw=folder / "raw", sources=("gooaq_pairs",), encoder=str(encoder), workspace=workspace,
        out=workspace / "out", runner="none",
    )  # fmt: skip
    context = prepare(settings)
    plan = plan_groups(context)
    (unit,) = plan.groups[0].units
    made = measured("ingest", rows, lambda: ingest_step(context, unit))
    context.encoder()
    tokens = measured("tokens", made.rows, lambda: tokens_step(context, unit, made))
    lengths = lengths_to_encode(context, unit)
    measured("embed", len(lengths), lambda: (encode_texts if encode else give_vectors)(context, lengths))
    mined = measured("mine", made.rows, lambda: mine_unit(Desk(context, unit, made, tokens), frozenset()))
    sampled = measured("sample", made.rows, lambda: sample_step(context, unit, mined.pairs))
    measured("instruct", sampled.rows, lambda: instruct_step(context, unit, made, sampled))
    done = look(context, plan.groups)
    assert done is not None
    measured("shards", sampled.rows, lambda: publish(Job(context, plan, ""), done, {}))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), encode="--encode" in sys.argv)
