"""Runs all paired benchmarks and writes benchmarks/RESULTS.md: `python -m benchmarks [NAME ...] [--repeats N]`.

With names, only those run, and only their sections are replaced. Sections of other titles, as that of the training
step, stay at the end as they are.
"""

import argparse
import importlib
import os
import platform
import re
from importlib import metadata
from pathlib import Path

from benchmarks import paired

NAMES = ("ingest", "embed", "embed_t5", "two_space", "hard_negatives", "ivf", "shards", "overhead", "growth")
RESULTS = Path(__file__).with_name("RESULTS.md")
_VERSIONS = ("torch", "faiss-cpu", "sentence-transformers", "datasets", "pyarrow", "numpy", "isal", "prefect")


def main() -> None:
    """Run what was asked for, and write the page after each section, so that a run that is cut loses little."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--repeats", type=int)
    options = parser.parse_args()
    for name in options.names:
        benchmark = importlib.import_module(f"benchmarks.{name}").BENCHMARK
        sections = sections_of(RESULTS.read_text() if RESULTS.exists() else "")
        sections[benchmark.title] = paired.section(benchmark, options.repeats or benchmark.repeats)
        titles = [importlib.import_module(f"benchmarks.{each}").BENCHMARK.title for each in NAMES]
        titles += [title for title in sections if title not in titles]
        RESULTS.write_text("\n".join([opening(), *(sections[title] for title in titles if title in sections)]))


def sections_of(page: str) -> dict[str, str]:
    """Return title -> text of each section of a page."""
    return {part.splitlines()[0]: f"## {part.rstrip()}\n" for part in re.split(r"^## ", page, flags=re.M)[1:]}


def opening() -> str:
    """Return what stands above the sections: what the page is, the machine, the versions."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _VERSIONS)
    return (
        "# Results\n\nWritten by `make bench`: a fresh process for each way, two threads, ways in turn, medians.\n"
        "What was learned, and more of the trainer, is in [NOTES.md](NOTES.md).\n\n"
        f"Machine: {processor()}, {len(os.sched_getaffinity(0))} cores, {memory_gb()} GB, Python "
        f"{platform.python_version()}. {versions}.\n"
    )


def processor() -> str:
    """Return the processor's name and the wide arithmetic that it has."""
    text = Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*:\s*(.*)", text)
    wide = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f" {flag}" in text]
    return f"{name[1] if name else platform.machine()} ({', '.join(wide)})"


def memory_gb() -> int:
    """Return the machine's memory in GB."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


if __name__ == "__main__":
    main()
