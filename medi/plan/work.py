"""What is left of each source -> what each stage will take: time, memory, disk.

The stages stand in the order of the data's route. Time is that of a machine with nothing else to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from medi.plan import rates
from medi.plan.figures import COUNTED, EXACT, GUESSED, Figure, least_sure, total
from medi.plan.lengths import Shapes
from medi.plan.model import Model

NOTHING = Figure(0.0, EXACT)

# Bytes that each stage leaves in the workspace, of the tables of a real build (76,849 rows in pools, 137,372 texts).
_INGEST_BYTES_OF_ROW, _TOKENS_BYTES_OF_TEXT = 570, 33
_MINE_BYTES_OF_ROW = 900 + 1_000 + 90
_RELEASE_BYTES_OF_ROW = 990 + 1_600 + 290
# Memory of a process: with pyarrow and Prefect alone, with torch as well; the tables of a unit, by row and by text.
_BASE_BYTES, _TORCH_BYTES = 300e6, 450e6
_INGEST_MEMORY_OF_ROW, _TOKENS_MEMORY_OF_TEXT, _MINE_MEMORY_OF_ROW, _RELEASE_MEMORY = 4_000, 600, 8_000, 300e6
# What one batch holds while it is computed, by token of it and number of a state.
_BATCH_BYTES = 40



@dataclass(frozen=True)
class Left:
    """What of a source is still to do: bytes to fetch, unpacked bytes and rows to read, tokens, rows to mine.

    `batches` are those of the encoder by shape, float [s]; `search_flops` the operations of the search.
    """

    fetch_bytes: float = 0.0
    ingest_bytes: float = 0.0
    ingest_rows: float = 0.0
    tokens: float = 0.0
    texts: float = 0.0
    batches: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mine_rows: float = 0.0
    search_flops: float = 0.0
    release_rows: float = 0.0


@dataclass(frozen=True)
class Part:
    """One source of a plan, or one unit of it: what it has, and what is `left` to do.

    `pool_rows` are drawn, `rows` come out; `done` counts artifacts in place by stage.
    """

    source: str
    variant: str
    lines: Figure
    pool_rows: Figure
    rows: Figure
    texts: Figure
    tokens: Figure
    download_bytes: Figure = NOTHING
    left: Left = Left()
    done: tuple[str, ...] = ()
    kept_vectors: int = 0
    units: int = 1


@dataclass(frozen=True)
class Machine:
    """What a build will run on: the encoder's rate of a device, its model and shapes, and the cores for the rest."""

    rate: rates.Rate
    model: Model
    shapes: Shapes
    with_prefect: bool = True


@dataclass(frozen=True)
class Stage:
    """What one stage will take; `work` says of how much, `in_place` how many of its `units` are done."""

    name: str
    work: str
    seconds: Figure
    memory_bytes: Figure
    disk_bytes: Figure
    in_place: int = 0
    units: int = 0


def merged(parts: Sequence[Part]) -> Part:
    """Return the units of one source as one part."""
    first = parts[0]
    lefts = [p.left for p in parts]
    sums = {n: sum(getattr(left, n) for left in lefts) for n in Left.__dataclass_fields__ if n != "batches"}
    figures = ("lines", "pool_rows", "rows", "texts", "tokens", "download_bytes")
    return Part(
        first.source,
        first.variant,
        **{name: total(getattr(p, name) for p in parts) for name in figures},
        left=Left(**sums, batches=sum_of_batches(lefts)),
        done=tuple(stage for p in parts for stage in p.done),
        kept_vectors=sum(p.kept_vectors for p in parts),
        units=len(parts),
    )


def sum_of_batches(lefts: Sequence[Left]) -> np.ndarray:
    """Return the batches of all parts, float [s]."""
    known = [left.batches for left in lefts if len(left.batches)]
    return np.sum(known, axis=0) if known else np.zeros(0)


def flops_of(parts: Sequence[Part], machine: Machine) -> float:
    """Return the encoder's operations of what is left."""
    batches = sum_of_batches([p.left for p in parts])
    return machine.model.flops(batches, machine.shapes) if len(batches) else 0.0


def stages(parts: Sequence[Part], machine: Machine) -> list[Stage]:
    """Return what the stages will take, those that have nothing to do as well."""
    left = merged(parts).left
    how = least_sure([GUESSED] * bool(left.mine_rows or left.fetch_bytes))
    batches, flops = sum_of_batches([p.left for p in parts]), flops_of(parts, machine)
    padded = sum(n * rows * length for n, (length, rows) in zip(batches, machine.shapes, strict=False))
    needs_torch = bool(left.tokens or flops)
    starting = rates.LOAD_SECONDS * needs_torch + rates.PREFECT_SECONDS * bool(machine.with_prefect and left.mine_rows)
    torch_bytes = _BASE_BYTES + _TORCH_BYTES * needs_torch
    model_bytes = torch_bytes + machine.model.weight_bytes * needs_torch
    widest = max((p.pool_rows.value / p.units for p in parts), default=0.0)
    most_texts = max((p.texts.value / p.units for p in parts), default=0.0)
    searched = rates.MINE_SECONDS_OF_ROW * left.mine_rows + rates.MINE_SECONDS_OF_FLOP * left.search_flops
    released = left.release_rows * rates.RELEASE_SECONDS_OF_ROW + rates.RELEASE_SECONDS * bool(left.release_rows)
    read = rates.INGEST_SECONDS_OF_BYTE * left.ingest_bytes + rates.INGEST_SECONDS_OF_ROW * left.ingest_rows
    batch_bytes = _BATCH_BYTES * machine.model.inner * max((r * length for length, r in machine.shapes), default=0)
    rate_basis = COUNTED if machine.rate.is_counted else GUESSED

    def stage(name: str, work: str, seconds: float, memory_bytes: float, disk_bytes: float) -> Stage:
        """Return one stage; how many of its units are done, the parts say."""
        units = sum(p.units for p in parts)
        done = sum(p.done.count(name) for p in parts)
        idle = not seconds
        time = NOTHING if idle else Figure(seconds, least_sure((rate_basis, how)) if name == "embed" else GUESSED)
        memory, disk = (NOTHING if idle else Figure(v, GUESSED) for v in (memory_bytes, disk_bytes))
        return Stage(name, work, time, memory, disk, done, units)

    fetched = total(p.download_bytes for p in parts).value
    return [
        stage("start", "torch, encoder, Prefect", starting, model_bytes, 0.0),
        stage("fetch", "", left.fetch_bytes / rates.FETCH_BYTES_OF_SECOND, _BASE_BYTES, fetched),
        stage("ingest", f"{left.ingest_rows:,.0f} rows", read, _BASE_BYTES + widest * _INGEST_MEMORY_OF_ROW,
              left.ingest_rows * _INGEST_BYTES_OF_ROW),
        stage("tokens", f"{left.tokens:,.0f} tokens", left.tokens * rates.TOKENS_SECONDS_OF_TOKEN,
              model_bytes + most_texts * _TOKENS_MEMORY_OF_TEXT, left.texts * _TOKENS_BYTES_OF_TEXT),
        stage("embed", f"{padded:,.0f} tokens", flops / machine.rate.flops, model_bytes + batch_bytes,
              left.texts * machine.model.width * 4),
        stage("mine", f"{left.mine_rows:,.0f} rows", searched, model_bytes + widest * _MINE_MEMORY_OF_ROW,
              left.mine_rows * _MINE_BYTES_OF_ROW),
        stage("release", f"{left.release_rows:,.0f} rows", released, model_bytes + _RELEASE_MEMORY,
              left.release_rows * _RELEASE_BYTES_OF_ROW),
    ]  # fmt: skip
