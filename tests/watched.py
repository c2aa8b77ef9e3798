"""Runs `medi` with every change to a workspace's files in a journal, and kills it just before the n-th or later.

A hook of Python's own audit events sees the changes (what Arrow writes itself is not among them); nothing of `medi` is
replaced. The journal has a line a change: stage, event, paths.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.builds import REPO

# Audit event -> how many of its arguments are paths.
_CHANGES = {"os.mkdir": 1, "os.rename": 2, "os.remove": 1, "os.rmdir": 1, "shutil.rmtree": 1, "open": 1}
_LONGEST_SECONDS = 600.0


class Moment(NamedTuple):
    """When a run is killed: just before the n-th change to files of a stage, or so many seconds after it."""

    stage: str
    number: int
    delay_seconds: float = 0.0


def watched(workspace: Path, journal: Path, moment: str, args: list[str]) -> int:
    """Run `medi` in this process with every change to the workspace noted; at `STAGE:NUMBER`, kill the group."""
    stage, _, number = moment.partition(":")
    seen: Counter[str] = Counter()
    tree = [workspace]
    handle = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(event: str, found: tuple[object, ...]) -> None:
        if event not in _CHANGES or (event == "open" and not int(str(found[2])) & (os.O_WRONLY | os.O_RDWR)):
            return
        paths = [Path(os.fspath(p)) for p in found[: _CHANGES[event]] if isinstance(p, str | os.PathLike)]
        if event == "shutil.rmtree":
            tree[0] = paths[0]
        # Inside a tree that goes, only the last parts of the names are told.
        paths = [path if path.is_absolute() else tree[0] / path for path in paths]
        where = _stage_of(workspace, paths)
        if where:
            seen[where] += 1
            os.write(handle, ("\t".join([where, event, *map(str, paths)]) + "\n").encode())
            if stage == where and seen[where] == int(number):
                os.killpg(0, signal.SIGKILL)

    sys.addaudithook(note)
    from pipelines.cli.app import main

    return main(args)


def _stage_of(workspace: Path, paths: Sequence[Path]) -> str:
    """Return the stage whose files a change is about, "" for others."""
    if not paths or not paths[-1].is_relative_to(workspace):
        return ""
    first, *rest = [*paths[-1].relative_to(workspace).parts, ""]
    if first == "store" and len(rest) > 2:
        return "embed" if rest[0] == "vectors" else rest[0]
    if first in ("out", "out.old") or paths[-1].name == ".replacing":
        return "swap"
    return "release" if first.startswith("out.new-") else first if first in ("digests", "prefect") else ""


def start(workspace: Path, journal: Path, args: Sequence[str], moment: Moment | None = None) -> subprocess.Popen[bytes]:
    """Start a watched run in a process group of its own; it kills itself where the moment is exact."""
    at = f"{moment.stage}:{moment.number}" if moment and not moment.delay_seconds else "-:0"
    call = [sys.executable, "-m", "tests.watched", str(workspace), str(journal), at, *args]
    variables = {**os.environ, "PYTHONPATH": str(REPO), "OMP_NUM_THREADS": "1"}
    journal.touch()
    with journal.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(call, cwd=REPO, env=variables, stdout=log, stderr=log, start_new_session=True)


def end(process: subprocess.Popen[bytes], journal: Path, moment: Moment | None = None) -> int:
    """Wait for a run, killing its group some time after the moment where that is not exact; return the exit code."""
    until = time.monotonic() + _LONGEST_SECONDS
    while moment and moment.delay_seconds and process.poll() is None and time.monotonic() < until:
        if sum(change[0] == moment.stage for change in changes_of(journal)) >= moment.number:
            time.sleep(moment.delay_seconds)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            break
        time.sleep(0.002)
    return process.wait(_LONGEST_SECONDS)


def changes_of(journal: Path) -> list[list[str]]:
    """Return the changes that a run made: stage, audit event, paths."""
    return [line.split("\t") for line in journal.read_text().split("\n")[:-1]]


if __name__ == "__main__":
    sys.exit(watched(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:]))
