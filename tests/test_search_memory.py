"""The memory of a search: its blocks stay within the bytes they may take, and more queries need no more but answers.

Measured from outside, in a process of its own: the highest resident size, which FAISS's and numpy's own share is in.
"""

import subprocess
import sys
from pathlib import Path

import pytest

STATUS = Path("/proc/self/status")
MEGABYTE = 1 << 20
# Blocks are bounded by what their arrays take at most; allocators round up, and libraries keep buffers of their own.
TOLERATED_BYTES = 6 * MEGABYTE

SEARCH = """
import sys
from pathlib import Path
import numpy as np
from medi.mine.search import Lists, Search, top_k

kind, count, scan_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
documents = rng.normal(size=(3_000, 32)).astype(np.float32)
if kind == "equal":
    documents[:] = documents[0]
queries = rng.normal(size=(count, 32)).astype(np.float32)
starts = np.arange(count + 1)
items = np.arange(count) % 3_000
if kind == "one query of 1,000":
    starts[1:] += 999
    items = np.concatenate([np.arange(1_000), items[1:]])
excluded = Lists(starts, items)

def resident_bytes(name):
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(name))
    return int(line.split()[1]) * 1024

top_k(queries[:900], documents, 64, excluded.part(slice(0, 900)), Search(1 << 20))
Path("/proc/self/clear_refs").write_text("5")
before = resident_bytes("VmRSS")
found = top_k(queries, documents, 64, excluded, Search(scan_bytes))
print(resident_bytes("VmHWM") - before - sum(part.nbytes for part in found))
"""


def extra_bytes(kind: str, queries: int, scan_bytes: int) -> int:
    """Return by how many bytes a search makes a process larger than its answer does."""
    command = [sys.executable, "-c", SEARCH, kind, str(queries), str(scan_bytes)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not STATUS.exists(), reason="there is no /proc to read the resident size from")
@pytest.mark.parametrize("kind", ["any", "one query of 1,000", "equal"])
def test_ten_times_the_queries_take_no_more_memory_than_their_answers(kind: str) -> None:
    scan_bytes = 8 * MEGABYTE
    counts = (1_000, 2_000) if kind == "equal" else (2_000, 20_000)
    few, many = (extra_bytes(kind, count, scan_bytes) for count in counts)
    assert max(few, many) < scan_bytes + TOLERATED_BYTES, f"{few:,} and {many:,} bytes"
    assert many < few + TOLERATED_BYTES, f"{few:,} and {many:,} bytes"


@pytest.mark.skipif(not STATUS.exists(), reason="there is no /proc to read the resident size from")
def test_more_bytes_are_used_where_they_are_given() -> None:
    """Else the bound above would hold for a search that has no blocks."""
    assert extra_bytes("any", 20_000, 64 * MEGABYTE) > 20 * MEGABYTE
