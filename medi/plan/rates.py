"""How fast a machine is: operations a second of an encoder by device, and what the other stages take of a core.

An earlier build's chunks of vectors in the workspace say better than any table how fast the encoder is here.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from medi.encoder import slowness_of

# GFLOP/s of one core of the reference, a Xeon of 2.6 GHz with AVX-512 and AMX, for models 384 and at least 768 wide:
# BERT (6 layers of 384) and T5 (12 of 768) forward in batches of 2,048 tokens, torch 2.13, one thread, CPU seconds,
# median of 4 (float32 94 to 105 and 104 to 115, bfloat16 by AMX 311 to 352 and 474 to 543). bfloat16 without AMX has
# twice the products of float32 and as much else to do.
_FLOAT32_GFLOPS = (95, 108)
_BFLOAT16_GFLOPS = {"cpu-amxbf16": (320, 510), "cpu-avx512bf16": (140, 180)}
# What bfloat16 leaves of float32's speed where no instruction knows it, by products of 2,048 by 768 by 768.
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

# GFLOP/s of one core of the reference in the search for candidates, exact scores and order included (60,000 queries and
# documents of 768 dimensions, as in benchmarks/hard_negatives.py): shortlists of matrix units, and FAISS in float32.
_AMX_SEARCH_GFLOPS, _SEARCH_GFLOPS = 210, 75

# numpy's products of float32 matrices, GFLOP/s of one core of the reference. On a Xeon of 2.0 GHz they are a third as
# fast, and encoding and reading take twice as long: so about half of all time is reckoned to go with them.
_PRODUCT_GFLOPS, _SHARE_OF_PRODUCTS = 138, 0.54
_PROBES, _PROBE_SHAPE, _PROBE_SECONDS = 5, (1_024, 768, 4_096), 0.5

# Chunks that came within one run of the encoder lie this near to each other; smaller ones say little.
_LONGEST_GAP_SECONDS, _LEAST_ROWS, _LEAST_CHUNKS = 1_800.0, 500, 3


@dataclass(frozen=True)
class Rate:
    """Operations a second, and whether they were counted in this workspace."""

    flops: float
    is_counted: bool = False


def table_rate(arithmetic: str, dtype: str, width: int, cores: int) -> Rate:
    """Return the rate of an encoder of that `width` on a GPU, or on a processor as fast as the reference."""
    wide = width >= _WIDE
    if arithmetic.startswith("cuda"):
        peak = _GPU_TFLOPS.get(arithmetic, _GPU_TFLOPS[_OTHER_GPU])[dtype == "bfloat16"]
        return Rate(peak * 1e12 * _GPU_SHARE[dtype][wide])
    gflops = _BFLOAT16_GFLOPS.get(arithmetic, _FLOAT32_GFLOPS) if dtype == "bfloat16" else _FLOAT32_GFLOPS
    share = _SLOWED if slowness_of(dtype, arithmetic) else 1.0
    return Rate(gflops[wide] * share * 1e9 * cores**_CORES_EXPONENT)


def search_rate(arithmetic: str, cores: int) -> float:
    """Return the operations a second of the search on a kind of processor, named as that of an encoder in bfloat16."""
    gflops = _AMX_SEARCH_GFLOPS if arithmetic == "cpu-amxbf16" else _SEARCH_GFLOPS
    return gflops * 1e9 * cores**_CORES_EXPONENT


def pace(cores: int) -> float:
    """Return how many times as long as the reference this machine takes, by the fastest of some matrix products.

    That is a matter of 0.2 to 0.5 s. They are timed in CPU seconds, so what others take of the cores does not count.
    """
    rows, inner, columns = _PROBE_SHAPE
    left, right, product = (np.ones(shape, np.float32) for shape in ((rows, inner), (inner, columns), (rows, columns)))
    seconds: list[float] = []
    while len(seconds) < _PROBES and sum(seconds) < _PROBE_SECONDS:
        began = time.process_time()
        np.matmul(left, right, out=product)
        seconds.append((time.process_time() - began) / cores)
    return pace_of(2.0 * rows * inner * columns / min(seconds), cores)


def pace_of(flops: float, cores: int) -> float:
    """Return how many times as long as the reference a machine takes whose products run at so many `flops` a second."""
    expected = _PRODUCT_GFLOPS * 1e9 * cores**_CORES_EXPONENT
    return _SHARE_OF_PRODUCTS * expected / flops + 1 - _SHARE_OF_PRODUCTS


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


# Seconds of one core of the reference, over the real files (34 MB, 76,849 rows of a pool, 5.3 million tokens): reading,
# by unpacked byte and by row of the pool; tokenizing; mining by row, its audit included; a release by row, with its
# checks and its report.
INGEST_SECONDS_OF_BYTE = 1 / 80e6
INGEST_SECONDS_OF_ROW = 60e-6
TOKENS_SECONDS_OF_TOKEN = 2.2e-6
MINE_SECONDS_OF_ROW = 0.4e-3
RELEASE_SECONDS_OF_ROW = 0.16e-3
# Importing torch and loading the encoder; Prefect's server on a home of its own; the least that a release takes.
LOAD_SECONDS, PREFECT_SECONDS, RELEASE_SECONDS = 9.0, 12.0, 2.0
FETCH_BYTES_OF_SECOND = 20e6
