"""Small disks: a folder becomes a file system of its own size, for the commands that run on it and for nobody else.

It lives in a mount namespace that a waiting process keeps, so nothing is left behind whatever becomes of a test.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builds import REPO

# Another person: may read everything, as the interpreter may lie in root's home, but writes only what is theirs.
SOMEBODY = [
    *("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
]


@dataclass(frozen=True)
class Disk:
    """A small disk at `folder`; `seen` is the same folder as the test sees it, from outside."""

    folder: Path
    seen: Path
    inside: tuple[str, ...]

    def run(self, *call: str | Path, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run a command that sees the disk; `before` stands in front of it."""
        whole = [*self.inside, *before, *map(str, call)]
        env = os.environ | {"PYTHONPATH": str(REPO), "OMP_NUM_THREADS": "1"}
        return subprocess.run(whole, capture_output=True, text=True, check=False, cwd=REPO, env=env)

    def medi(self, *options: str | Path, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run `medi build` with these options."""
        return self.run(sys.executable, "-m", "pipelines.build", *options, before=before)

    def remount(self, options: str) -> None:
        """Change the disk: `size=100m` makes room, `ro` closes it."""
        done = self.run("mount", "-o", f"remount,{options}", self.folder)
        assert done.returncode == 0, done.stderr

    def leave(self, free_kib: int) -> None:
        """Let so much room be left as is not taken now."""
        disk = os.statvfs(self.seen)
        self.remount(f"size={(disk.f_blocks - disk.f_bfree) * disk.f_frsize // 1024 + free_kib}k")


@contextmanager
def small_disk(folder: Path, options: str = "size=100m") -> Iterator[Disk]:
    """Yield a disk (tmpfs) at `folder` until the block ends; skips the test where nobody may mount one."""
    # Without root a person may mount in a user namespace of their own.
    alone = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if shutil.which("nsenter") is None or subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    folder.mkdir(parents=True, exist_ok=True)
    wait = 'mount -t tmpfs -o "$1" none "$0" && echo ready && read _'
    call = [*alone, "sh", "-c", wait, str(folder), options]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdin and keeper.stdout
        if keeper.stdout.readline() != "ready\n":
            pytest.skip("this machine lets nobody mount a small disk")
        user = [] if os.geteuid() == 0 else ["-U", "--preserve-credentials"]
        inside = ("nsenter", "-t", str(keeper.pid), "-m", *user, f"--wd={REPO}")
        try:
            yield Disk(folder, Path(f"/proc/{keeper.pid}/root{folder}"), inside)
        finally:
            keeper.stdin.close()
