"""Times the ways of doing one thing in turn, each in a fresh process, and puts their medians into a table.

A benchmark is a module with a BENCHMARK and, at its end, `paired.main(BENCHMARK)`:

    python -m benchmarks.NAME                    all ways in turn, five times, and the table
    python -m benchmarks.NAME --repeats 1        once, to see that it works
    python -m benchmarks.NAME --rows 1000        over smaller inputs, where a benchmark has a number of rows
    python -m benchmarks.NAME --way WAY --folder FOLDER    one way over inputs that lie there, as a line of JSON

`python -m benchmarks` (`make bench`) runs them all and writes benchmarks/RESULTS.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

THREADS = 2


@dataclass(frozen=True)
class Measured:
    """What one way took: seconds of the clock and of the processors, bytes beyond those at its start; what it found."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    found: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ratio:
    """A target: the median of way `over` divided by that of way `of`, of `what`, and what it should be.

    Without `of` it is the median itself.
    """

    over: str
    of: str = ""
    least: float = 0.0
    most: float = float("inf")
    what: str = "seconds"


Way = Callable[[Path], Measured]


@dataclass(frozen=True)
class Benchmark:
    """Ways to do one thing. `prepare` makes the inputs in an empty folder once, and says in a sentence what they are.

    A way loads what it needs, then calls `measure` around what is timed. `repeats` holds where nobody says another.
    """

    module: str
    title: str
    prepare: Callable[[Path], str]
    ways: Mapping[str, Way]
    ratios: Sequence[Ratio] = ()
    repeats: int = 5
    # What the runs of each way took -> a line of Markdown below the table.
    draw: Callable[[Mapping[str, list[dict]]], str] | None = None


def measure(work: Callable[[], Mapping[str, float | str]]) -> Measured:
    """Run `work` once and return what it took; what it returns becomes the columns `found`."""
    # The highest resident size since now, where the kernel lets us begin anew; else since the process began.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before, began, cpu = resident_bytes("VmRSS"), time.perf_counter(), time.process_time()
    found = work()
    taken = time.perf_counter() - began, time.process_time() - cpu
    return Measured(*taken, peak_bytes=max(0, resident_bytes("VmHWM") - before), found=found)


def resident_bytes(field_name: str) -> int:
    """Return a size in bytes that the kernel tells of this process: VmRSS now, VmHWM the highest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field_name + ":"))


def main(benchmark: Benchmark, resized: Callable[[int], Benchmark] | None = None) -> None:
    """Run a benchmark as its command line says; `resized` gives it with so many rows."""
    parser = argparse.ArgumentParser(description=benchmark.title)
    parser.add_argument("--way", choices=benchmark.ways)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--repeats", type=int, default=benchmark.repeats)
    if resized:
        parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    if resized and options.rows:
        benchmark = resized(options.rows)
    if options.way:
        measured = benchmark.ways[options.way](options.folder)
        print(json.dumps(vars(measured) | {"found": dict(measured.found)}))
    else:
        resizing = f" --rows {options.rows}" if resized and options.rows else ""
        print(section(benchmark, options.repeats, options.folder, resizing))


def section(benchmark: Benchmark, repeats: int, folder: Path | None = None, resizing: str = "") -> str:
    """Return the Markdown of a benchmark: what its inputs are, the table, and each target beside what was reached.

    `resizing` is the option that made it as large as it is, "" where there was none.
    """
    with tempfile.TemporaryDirectory() as made:
        place = folder or Path(made)
        said = benchmark.prepare(place)
        taken: dict[str, list[dict]] = {way: [] for way in benchmark.ways}
        for number in range(repeats):
            for way, runs in taken.items():
                runs.append(_in_process(benchmark.module, way, place))
                told = f"{runs[-1]['seconds']:.2f} s, load {os.getloadavg()[0]:.1f}"
                print(f"{benchmark.module} {number + 1}/{repeats} {way}: {told}", file=sys.stderr, flush=True)
    asked = resizing + (f" --repeats {repeats}" if repeats != benchmark.repeats else "")
    how = f"`python -m {benchmark.module}{asked}`, medians of {repeats}, {state()}."
    lines = [f"### {benchmark.title}", "", said, "", how, ""]
    lines += [*_table(taken), "", *(_reached(ratio, taken) for ratio in benchmark.ratios)]
    if benchmark.draw:
        lines += ["", benchmark.draw(taken)]
    return "\n".join(lines).rstrip() + "\n"


def state() -> str:
    """Return which code is measured: its commit, and whether it was changed since."""
    call = ("git", "-C", str(Path(__file__).parent))
    commit, changed = (
        subprocess.run((*call, *args), capture_output=True, text=True, check=False).stdout.strip()
        for args in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "--", "../medi", "../pipelines"))
    )
    return f"commit {commit}{' and changes' if changed else ''}" if commit else "outside of a checkout"


def _in_process(module: str, way: str, folder: Path) -> dict:
    """Run one way in a process of its own, and return what it took. Raises RuntimeError where it fails."""
    call = [sys.executable, "-m", module, "--way", way, "--folder", str(folder)]
    threads = {"OMP_NUM_THREADS": str(THREADS), "TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=os.environ | threads)
    if done.returncode:
        raise RuntimeError(f"{way} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _table(taken: Mapping[str, list[dict]]) -> list[str]:
    """Return the lines of a Markdown table: a way a line, medians, and how far the times of its runs were apart."""
    found = list(dict.fromkeys(name for runs in taken.values() for name in runs[0]["found"]))
    heads = ["way", "seconds", "from - to", "CPU seconds", "extra peak MB", *found]
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    for way, runs in taken.items():
        seconds = [run["seconds"] for run in runs]
        cells = [way, f"{statistics.median(seconds):.2f}", f"{min(seconds):.2f} - {max(seconds):.2f}"]
        cells += [f"{median(runs, 'cpu_seconds'):.2f}", f"{median(runs, 'peak_bytes') / 2**20:,.0f}"]
        # Of the run that the seconds are of: some of it is reckoned from them.
        middle = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]["found"]
        cells += [_shown(middle.get(name, "")) for name in found]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _shown(value: float | str) -> str:
    """Return a found value as a person reads it."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if isinstance(value, float) else value


def _reached(ratio: Ratio, taken: Mapping[str, list[dict]]) -> str:
    """Return one line: the ratio that was reached and the target."""
    value = median(taken[ratio.over], ratio.what)
    if ratio.of:
        value /= max(median(taken[ratio.of], ratio.what), 1e-9)
    asked = f"at least {ratio.least:g}" if ratio.least else f"at most {ratio.most:g}"
    what = "" if ratio.what == "seconds" else f" ({ratio.what.replace('_', ' ')})"
    verdict = "reached" if ratio.least <= value <= ratio.most else "**not reached**"
    of = f" / {ratio.of}" if ratio.of else ", seconds"
    return f"- {ratio.over}{of}{what}: {value:.3g}, asked: {asked}: {verdict}"


def median(runs: Sequence[Mapping], what: str) -> float:
    """Return the median over some runs of seconds, cpu_seconds or peak_bytes."""
    return statistics.median(run[what] for run in runs)
