"""How fast a machine is: operations a second of an encoder by device, and what the other stages take of a core.

An earlier build's chunks of vectors in the workspace say better than any table how fast the encoder is here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from medi.encoder import slowness_of

# GFLOP/s of one core, by arithmetic, for models 384 and at least 768 wide: BERT (6 layers of 384) and T5 (12 of 768)
# forward in batches of 2,048 tokens, torch 2.13, one thread of a Xeon of 2.6 GHz with AVX-512 and AMX, CPU seconds,
# median of 4 (fp32 94 to 105 and 104 to 115, bf16 311 to 352 and 474 to 543). AVX2 is half as wide; bf16 without AMX
# has twice the products of fp32 and as much else to do. The last is a guess for what is no x86.
_CORE_GFLOPS = {
    "cpu-avx512": (95, 108),
    "cpu-amxbf16": (320, 510),
    "cpu-avx512bf16": (140, 180),
    "cpu-avx2": (50, 55),
    "cpu": (30, 35),
}
# What bfloat16 leaves of a speed where no instruction knows it: 0.28 of float32's, products of 2,048 by 768 by 768.
_SLOWED = 0.28
# Two threads gave 0.92 of twice one thread's speed; more cores share one memory.
_CORES_EXPONENT = 0.88
# Dense peaks of the data sheets in TFLOP/s, float32 (no TF32) and bfloat16: A100 SXM 19.5 and 312, H100 SXM 67 and 989.
# An encoder reaches a share of them that grows with its width; nobody has measured ours there.
_GPU_TFLOPS = {"cuda-sm80": (19.5, 312), "cuda-sm90": (67, 989)}
_GPU_SHARE = {"float32": (0.4, 0.6), "bfloat16": (0.12, 0.35)}
_OTHER_GPU = "cuda-sm80"
_WIDE = 768
DEVICES = {"a100": "cuda-sm80", "h100": "cuda-sm90"}

# GFLOP/s of one core in the search for candidates, exact scores and order included (60,000 queries and documents of 768
# dimensions, as in benchmarks/hard_negatives.py): shortlists of matrix units, and FAISS in float32.
_SEARCH_GFLOPS = {"cpu-amxbf16": 210, "cpu-avx512bf16": 75, "cpu-avx512": 75, "cpu-avx2": 40}
_LEAST_SEARCH_GFLOPS = 25

# Chunks that came within one run of the encoder lie this near to each other; smaller ones say little.
_LONGEST_GAP_SECONDS, _LEAST_ROWS, _LEAST_CHUNKS = 1_800.0, 500, 3


@dataclass(frozen=True)
class Rate:
    """Operations a second, and whether they were counted in this workspace."""

    flops: float
    is_counted: bool = False


def table_rate(arithmetic: str, dtype: str, width: int, cores: int) -> Rate:
    """Return the rate of an encoder of that `width` on a kind of processor, by the tables."""
    wide = width >= _WIDE
    if arithmetic.startswith("cuda"):
        peak = _GPU_TFLOPS.get(arithmetic, _GPU_TFLOPS[_OTHER_GPU])[dtype == "bfloat16"]
        return Rate(peak * 1e12 * _GPU_SHARE[dtype][wide])
    share = _SLOWED if slowness_of(dtype, arithmetic) else 1.0
    gflops = share * _CORE_GFLOPS.get(arithmetic, _CORE_GFLOPS["cpu"])[wide]
    return Rate(gflops * 1e9 * cores**_CORES_EXPONENT)


def search_rate(arithmetic: str, cores: int) -> float:
    """Return the operations a second of the search on a kind of processor, named as that of an encoder in bfloat16."""
    return _SEARCH_GFLOPS.get(arithmetic, _LEAST_SEARCH_GFLOPS) * 1e9 * cores**_CORES_EXPONENT


def counted_rate(chunks: Sequence[tuple[float, int, float]], table: Rate) -> Rate:
    """Return the rate at which `chunks` of vectors came: (seconds since 1970 when it was there, rows, operations).

    The median over chunks and the ones right before them; where few tell, or they tell what no machine of this kind
    does, as after a copy, it is the `table`'s.
    """
    ordered = sorted(chunks)
    seen = [
        flops / (there - before)
        for (before, _, _), (there, rows, flops) in zip(ordered, ordered[1:], strict=False)
        if rows >= _LEAST_ROWS and 0 < there - before < _LONGEST_GAP_SECONDS and flops
    ]
    if len(seen) < _LEAST_CHUNKS:
        return table
    median = float(np.median(seen))
    return Rate(median, True) if 0.1 < median / table.flops < 10 else table


# Seconds of one core, measured over the real files (34 MB, 76,849 rows of a pool, 5.3 million tokens) on the processor
# above: reading, by unpacked byte and by row of the pool; tokenizing; mining by row, its audit included;
# a release by row, with its checks and its report.
INGEST_SECONDS_OF_BYTE = 1 / 80e6
INGEST_SECONDS_OF_ROW = 60e-6
TOKENS_SECONDS_OF_TOKEN = 2.2e-6
MINE_SECONDS_OF_ROW = 0.4e-3
RELEASE_SECONDS_OF_ROW = 0.16e-3
# Importing torch and loading the encoder; Prefect's server on a home of its own; the least that a release takes.
LOAD_SECONDS, PREFECT_SECONDS, RELEASE_SECONDS = 9.0, 12.0, 2.0
FETCH_BYTES_OF_SECOND = 20e6
