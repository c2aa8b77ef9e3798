"""What is left of each source -> what each stage will take: time, memory, disk.

The stages stand in the order of the data's route. Time is that of a machine with nothing else to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from medi.plan import rates
from medi.plan.figures import COUNTED, EXACT, GUESSED, Figure, total
from medi.plan.lengths import Shapes, whole_batches
from medi.plan.model import Model

STAGES = ("start", "fetch", "ingest", "tokens", "embed", "mine", "release")
NOTHING = Figure(0.0, EXACT)

# Bytes that each stage leaves in the workspace, of the tables of a real build (76,849 rows in pools, 137,372 texts of
# 40 tokens each).
_INGEST_BYTES_OF_ROW, _TOKENS_BYTES_OF_TEXT, _TOKENS_OF_TEXT = 570, 33, 40
_MINE_BYTES_OF_ROW = 900 + 1_000 + 90
_RELEASE_BYTES_OF_ROW = 990 + 1_600 + 290
# Memory of a process: with pyarrow and Prefect alone, with torch as well; the tables of a unit, by row and by text.
_BASE_BYTES, _TORCH_BYTES = 300e6, 450e6
_INGEST_MEMORY_OF_ROW, _TOKENS_MEMORY_OF_TEXT, _MINE_MEMORY_OF_ROW, _RELEASE_MEMORY = 4_000, 600, 8_000, 300e6
# What one batch holds while it is computed, by token of it and number of its widest state.
_MEMORY_OF_STATE = 16


@dataclass(frozen=True)
class Left:
    """What of a source is still to do: bytes to fetch, unpacked bytes and rows to read, tokens, rows to mine.

    `batches` are those of the encoder by shape, float [s]; `search_flops` the operations of the search.
    """

    fetch_bytes: float = 0.0
    ingest_bytes: float = 0.0
    ingest_rows: float = 0.0
    tokens: float = 0.0
    texts: Figure = NOTHING
    batches: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mine_rows: float = 0.0
    search_flops: float = 0.0
    release_rows: float = 0.0


_SUMMED = ("fetch_bytes", "ingest_bytes", "ingest_rows", "tokens", "mine_rows", "search_flops", "release_rows")


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
    """What a build will run on: the encoder's rate, its model and shapes, what of it is to be fetched, the runner.

    `search_flops` are the operations a second of the search for candidates; `pace` is how many times as long as the
    reference it takes for what is no encoding and no search.
    """

    rate: rates.Rate
    model: Model
    shapes: Shapes
    encoder_bytes: float = 0.0
    runner: str = "threads"
    search_flops: float = rates.search_rate("cpu", 1)
    pace: float = 1.0


@dataclass(frozen=True)
class Stage:
    """What one stage will take for an `amount` of rows, texts, tokens or bytes (`of`).

    `in_place` of its `units` are done: sources, and Super-NI tasks.
    """

    name: str
    amount: Figure
    of: str
    seconds: Figure
    memory_bytes: Figure
    disk_bytes: Figure
    in_place: int = 0
    units: int = 0


def merged(parts: Sequence[Part]) -> Part:
    """Return the units of one source as one part."""
    first = parts[0]
    lefts = [p.left for p in parts]
    sums = {n: sum(getattr(left, n) for left in lefts) for n in _SUMMED}
    figures = ("lines", "pool_rows", "rows", "texts", "tokens", "download_bytes")
    return Part(
        first.source,
        first.variant,
        **{name: total(getattr(p, name) for p in parts) for name in figures},
        left=Left(**sums, texts=total(left.texts for left in lefts), batches=sum_of_batches(lefts)),
        done=tuple(stage for p in parts for stage in p.done),
        kept_vectors=sum(p.kept_vectors for p in parts),
        units=sum(p.units for p in parts),
    )


def sum_of_batches(lefts: Sequence[Left]) -> np.ndarray:
    """Return the batches of units that are encoded together, float [s]."""
    known = [left.batches for left in lefts if len(left.batches)]
    return np.sum(known, axis=0) if known else np.zeros(0)


def encoding(sources: Sequence[Part], machine: Machine) -> tuple[float, float]:
    """Return the tokens that the encoder will compute, padding and blanks included, and its operations."""
    each = [whole_batches(part.left.batches) for part in sources if len(part.left.batches)]
    if not each:
        return 0.0, 0.0
    every = np.sum(each, axis=0)
    padded_tokens = float(every @ np.array([rows * length for length, rows in machine.shapes]))
    return padded_tokens, machine.model.flops(every, machine.shapes)


def stages(sources: Sequence[Part], machine: Machine) -> list[Stage]:
    """Return what each stage will take, those with nothing to do as well."""
    left = merged(sources).left
    _, flops = encoding(sources, machine)
    memory, disk = _memory_bytes(sources, machine, bool(left.tokens or flops)), _disk_bytes(sources, machine)
    amounts, units = _amounts(sources, machine), sum(part.units for part in sources)
    found = []
    for name, took in _seconds(left, flops, machine).items():
        amount, of = amounts[name] if took else (NOTHING, "")
        # Only of texts that were tokenized, at a speed that was measured here, more than a guess is known.
        is_counted = name == "embed" and machine.rate.is_counted and amount.basis == EXACT
        time = Figure(took, COUNTED if is_counted else GUESSED) if took else NOTHING
        needs, leaves = (Figure(of_stage[name], GUESSED) if took else NOTHING for of_stage in (memory, disk))
        done = sum(part.done.count(name) for part in sources)
        found.append(Stage(name, amount, of, time, needs, leaves, done, units))
    return found


def _amounts(sources: Sequence[Part], machine: Machine) -> dict[str, tuple[Figure, str]]:
    """Return of how much each stage has something to do, as sure as what is known of the sources that have it left."""

    def amount(name: str, known: str) -> Figure:
        """Return the sum of one field of what is left."""
        return total(Figure(getattr(part.left, name), getattr(part, known).basis) for part in sources)

    fetched = total([amount("fetch_bytes", "download_bytes"), Figure(machine.encoder_bytes)])
    return {
        "start": (NOTHING, "encoder" + (" and Prefect" if machine.runner != "none" else "")),
        "fetch": (fetched, "bytes"),
        "ingest": (amount("ingest_rows", "pool_rows"), "rows"),
        "tokens": (amount("tokens", "tokens"), "tokens"),
        "embed": (total(part.left.texts for part in sources), "texts"),
        "mine": (amount("mine_rows", "pool_rows"), "rows"),
        "release": (amount("release_rows", "rows"), "rows"),
    }


def _seconds(left: Left, flops: float, machine: Machine) -> dict[str, float]:
    """Return the seconds of each stage; 0 for one with nothing to do."""
    needs_encoder = bool(left.tokens or flops)
    with_prefect = machine.runner != "none" and bool(left.ingest_rows or left.mine_rows)
    fetched_bytes = left.fetch_bytes + machine.encoder_bytes * needs_encoder
    python = {
        "start": rates.LOAD_SECONDS * needs_encoder + rates.PREFECT_SECONDS * with_prefect,
        "ingest": rates.INGEST_SECONDS_OF_BYTE * left.ingest_bytes + rates.INGEST_SECONDS_OF_ROW * left.ingest_rows,
        "tokens": rates.TOKENS_SECONDS_OF_TOKEN * left.tokens,
        "mine": rates.MINE_SECONDS_OF_ROW * left.mine_rows,
        "release": rates.RELEASE_SECONDS_OF_ROW * left.release_rows + rates.RELEASE_SECONDS * bool(left.release_rows),
    }
    taken = {name: seconds * machine.pace for name, seconds in python.items()}
    taken["fetch"] = fetched_bytes / rates.FETCH_BYTES_OF_SECOND
    taken["embed"] = flops / machine.rate.flops
    taken["mine"] += left.search_flops / machine.search_flops
    return {name: taken[name] for name in STAGES}


def _memory_bytes(sources: Sequence[Part], machine: Machine, needs_encoder: bool) -> dict[str, float]:
    """Return the memory of the process in each stage, by the widest of the units."""
    rows = max((part.pool_rows.value / part.units for part in sources), default=0.0)
    texts = max((part.texts.value / part.units for part in sources), default=0.0)
    batch_tokens = max((rows_of * length for length, rows_of in machine.shapes), default=0)
    held = _BASE_BYTES + (_TORCH_BYTES + machine.model.weight_bytes) * needs_encoder
    return {
        "start": held,
        "fetch": _BASE_BYTES,
        "ingest": _BASE_BYTES + _INGEST_MEMORY_OF_ROW * rows,
        "tokens": held + _TOKENS_MEMORY_OF_TEXT * texts,
        "embed": held + _MEMORY_OF_STATE * machine.model.inner * batch_tokens,
        "mine": held + _MINE_MEMORY_OF_ROW * rows,
        "release": held + _RELEASE_MEMORY,
    }


def _disk_bytes(sources: Sequence[Part], machine: Machine) -> dict[str, float]:
    """Return what each stage will leave on the disk."""
    left = merged(sources).left
    return {
        "start": 0.0,
        "fetch": left.fetch_bytes + machine.encoder_bytes,
        "ingest": _INGEST_BYTES_OF_ROW * left.ingest_rows,
        "tokens": _TOKENS_BYTES_OF_TEXT * left.tokens / _TOKENS_OF_TEXT,
        "embed": 4.0 * machine.model.width * left.texts.value,
        "mine": _MINE_BYTES_OF_ROW * left.mine_rows,
        "release": _RELEASE_BYTES_OF_ROW * left.release_rows,
    }
