"""The machine that measures, in words: no number means anything without it."""

import os
import platform
import re
from pathlib import Path


def machine() -> str:
    """Return what is said of this machine: its processor and the wide arithmetic that it has, cores and memory."""
    return f"{processor()}, {len(os.sched_getaffinity(0))} cores, {memory_gb()} GB"


def processor() -> str:
    """Return the processor's name and the wide arithmetic that it has."""
    text = Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*:\s*(.*)", text)
    wide = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f" {flag}" in text]
    return f"{name[1] if name else platform.machine()} ({', '.join(wide)})"


def memory_gb() -> int:
    """Return the machine's memory in GB."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def file_name() -> str:
    """Return the machine as a part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", machine().lower()).strip("-")
