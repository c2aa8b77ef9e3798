"""Times whole commands: the bundled sample built in each way, a build that finds all in place, and `medi --help`.

python -m benchmarks.overhead [--repeats 5]
"""

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import paired

MEDI = Path(sys.executable).with_name("medi")
HELP, PLAIN = "medi --help", "sample, --runner none"
FIRST, WARM, IN_PLACE = "sample, Prefect for the first time", "sample, Prefect's home is there", "sample, all in place"
# What a build leaves in its workspace beside Prefect's home.
_MADE = ("store", "medi")


def prepare(folder: Path) -> str:
    """Build the sample once, for the builds that find something there."""
    built(folder, "threads")
    return (
        "Each a process from its start to its end, with the libraries' imports; a build takes all texts of the sample "
        "through the encoder, unless all is in place. CPU seconds and memory are those of the command's processes."
    )


def call(args: Sequence[str | Path]) -> paired.Measured:
    """Run `medi` with these words and return what its processes took."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([MEDI, *args], check=True, capture_output=True, env=environment())
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return paired.Measured(seconds, cpu, after.ru_maxrss << 10)


def environment() -> dict[str, str]:
    """Return the variables of a person who has set none of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MEDI_", "PREFECT_"))}


def built(folder: Path, runner: str) -> paired.Measured:
    """Build the sample in a workspace."""
    return call(["build", "--preset", "sample", "--workspace", folder / "workspace", "--runner", runner])


def anew(runner: str, keep_prefect: bool, folder: Path) -> paired.Measured:
    """Build the sample where nothing is made yet; Prefect's home may be there."""
    place = folder / "anew"
    shutil.rmtree(place, ignore_errors=True)
    if keep_prefect:
        shutil.copytree(folder / "workspace", place / "workspace", ignore=shutil.ignore_patterns(*_MADE))
    return built(place, runner)


BENCHMARK = paired.Benchmark(
    module="benchmarks.overhead",
    title="Overhead: whole commands",
    prepare=prepare,
    ways={
        HELP: lambda _: call(["--help"]),
        IN_PLACE: partial(built, runner="threads"),
        PLAIN: partial(anew, "none", False),
        WARM: partial(anew, "threads", True),
        FIRST: partial(anew, "threads", False),
    },
    ratios=[
        paired.Ratio(HELP, most=0.4),
        paired.Ratio(IN_PLACE, most=3),
        paired.Ratio(PLAIN, most=60),
        paired.Ratio(WARM, most=75),
        paired.Ratio(FIRST, most=95),
    ],
)

if __name__ == "__main__":
    paired.main(BENCHMARK)
