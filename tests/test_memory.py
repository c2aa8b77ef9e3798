"""The memory of a build does not grow with its files: a long generated source stays under a stated bound in each stage.

Ten million lines were measured by hand with `python -m tests.stage_memory` (benchmarks/NOTES.md).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builds import REPO

LINES = 1_000_000
# By how many MB a stage may make the process larger. A million lines held in memory would take more than 250.
BOUND_MB = {"ingest": 192, "tokens": 96, "embed": 64, "mine": 384, "sample": 64, "instruct": 64, "shards": 64}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="there is no /proc to read the peak from")
def test_a_long_source_takes_no_more_memory_than_its_pool(tiny_encoder: Path, tmp_path: Path) -> None:
    call = [sys.executable, "-m", "tests.stage_memory", str(LINES), str(tmp_path), str(tiny_encoder)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=REPO, env=env)
    assert done.returncode == 0, done.stderr
    told = {line["stage"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert (told["ingest"]["rows"], told["mine"]["rows"], told["shards"]["rows"]) == (LINES, 30_000, 25_000)
    extra_mb = {stage: line["extra_mb"] for stage, line in told.items()}
    assert list(extra_mb) == list(BOUND_MB)
    assert not {stage: mb for stage, mb in extra_mb.items() if mb > BOUND_MB[stage]}, extra_mb
