"""A disk that is full, closed or somebody else's: one line that names the place, nothing half-done, and with room the
same command goes on to the same bytes.
"""

import errno
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pipelines.cli.app import line_of
from tests.builds import REPO, medi_build, options, undone
from tests.conftest import Once
from tests.disks import SOMEBODY, Disk, small_disk
from tests.unharmed import content_of, nothing_is_left, temporaries

FEW = ("--sources", "gooaq_pairs,msmarco")
MAKE_ROOM = "make room there, or name another folder"


def told(done: subprocess.CompletedProcess[str], code: int = 1) -> str:
    """Return the one line of a build that failed."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("medi: ")]
    assert done.returncode == code and len(lines) == 1 and "Traceback" not in done.stderr, done.stderr
    return lines[0].removeprefix("medi: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "stages", [("ingest",), ("vectors", "candidates"), ("candidates",), ("instruct",)], ids=" ".join
)
def test_a_full_workspace_is_named_and_with_room_the_build_goes_on(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path, stages: tuple[str, ...]
) -> None:
    workspace = tmp_path / "w"
    call = options(cut, workspace, tiny_encoder)
    with small_disk(workspace) as disk:
        undone(built, disk.seen, *stages)
        # Enough for the digests that are noted first, too little for the stage.
        disk.leave(free_kib=160)
        assert told(disk.medi(*call)) == f"{workspace}/store: no space left on device; {MAKE_ROOM}"
        # The bytes of what was being written are the first that a full disk needs back.
        assert temporaries(disk.seen) == [] and not (disk.seen / "out").exists()
        disk.remount("size=100m")
        done = disk.medi(*call)
        assert done.returncode == 0, done.stderr
        nothing_is_left(disk.seen, built / "out")


@pytest.fixture(scope="session")
def few(once: Once, built: Path, cut: Path, tiny_encoder: Path) -> Path:
    """A release of two of the cut's sources."""

    def build(folder: Path) -> None:
        done = medi_build(*options(cut, built, tiny_encoder), *FEW, "--out", folder)
        assert done.returncode == 0, done.stderr

    return once("few", build)


def test_a_disk_that_is_full_in_a_shard_leaves_the_old_release(
    built: Path, few: Path, cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    call = [*options(cut, built, tiny_encoder), "--out", tmp_path / "disk" / "out"]
    shard = next((built / "out" / "data").iterdir())
    with small_disk(tmp_path / "disk") as disk:
        shutil.copytree(few, disk.seen / "out")
        for free_kib in (4, shard.stat().st_size // 2048, shard.stat().st_size // 1024 + 8):
            disk.leave(free_kib)
            assert told(disk.medi(*call)) == f"{tmp_path}/disk/out: no space left on device; {MAKE_ROOM}"
            assert content_of(disk.seen / "out") == content_of(few) and temporaries(disk.seen) == []
        disk.remount("size=100m")
        assert disk.medi(*call).returncode == 0
        nothing_is_left(disk.seen, built / "out")


@pytest.mark.parametrize("undone_stage", ["instruct", "none"])
def test_a_limit_on_the_size_of_files_is_named(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path, undone_stage: str
) -> None:
    workspace = tmp_path / "w"
    undone(built, workspace, undone_stage)
    shard = next((built / "out" / "data").iterdir())
    limit_bytes, place = (16_000, "store") if undone_stage == "instruct" else (shard.stat().st_size - 1_000, "out")
    call = [sys.executable, "-m", "pipelines.build", *map(str, options(cut, workspace, tiny_encoder))]
    limited = ["prlimit", f"--fsize={limit_bytes}", *call]
    done = subprocess.run(limited, capture_output=True, text=True, check=False, cwd=REPO)
    helps = "raise the limit of a file's size (`ulimit -f`) and run again"
    assert told(done) == f"{workspace / place}: file too large; {helps}"
    assert temporaries(workspace) == [] and not (workspace / "out").exists()
    assert medi_build(*options(cut, workspace, tiny_encoder)).returncode == 0
    nothing_is_left(workspace, built / "out")


def test_a_closed_place_is_named_before_anything_is_computed(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    def with_out(workspace: Path, out: Path) -> list[str | Path]:
        return [*options(cut, workspace, tiny_encoder), "--out", out]

    with small_disk(tmp_path / "disk") as disk:
        place = disk.folder
        undone(built, disk.seen / "undone", "instruct")
        undone(built, disk.seen / "done")
        disk.remount("ro")
        closed = "(read-only file system); mend that, or name another"
        undone(built, tmp_path / "w", "instruct")
        said = told(disk.medi(*with_out(tmp_path / "w", place / "new" / "out")))
        assert said == f"--out {place}/new: {place} cannot be written {closed} --out"
        said = told(disk.medi(*with_out(place / "undone", tmp_path / "out")))
        assert said == f"--workspace {place}/undone: {place}/undone cannot be written {closed} --workspace"
        assert told(disk.medi(*with_out(place / "w", tmp_path / "out"))) == (
            f"{place}/w: read-only file system; name another folder, or mount it for writing"
        )
        assert not (tmp_path / "w" / "store" / "instruct").exists() and not (tmp_path / "out").exists()
        # What is finished needs no writing: a release can be made of a workspace that is closed.
        assert disk.medi(*with_out(place / "done", tmp_path / "out")).returncode == 0
        assert content_of(tmp_path / "out") == content_of(built / "out")
        said = told(disk.medi(*with_out(tmp_path / "w", place)))
        assert said.startswith(f"{place} is a mount point, ") and said.endswith(f"name a folder in it: {place}/medi")


def test_somebody_elses_place_is_named(built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    # Below /tmp itself, because nobody else may look into pytest's folders.
    with TemporaryDirectory() as folder, small_disk(Path(folder) / "disk", "size=100m,mode=755") as disk:
        _need_somebody(disk)
        Path(folder).chmod(0o755)
        place = disk.folder
        for given in (cut, tiny_encoder):
            shutil.copytree(given, disk.seen / given.name)
        cut, tiny_encoder = place / cut.name, place / tiny_encoder.name
        (disk.seen / "open").mkdir()
        (disk.seen / "open").chmod(0o777)
        undone(built, disk.seen / "theirs", "instruct")
        theirs = [*options(cut, place / "theirs", tiny_encoder), "--out", place / "open" / "out"]
        said = told(disk.medi(*theirs, before=tuple(SOMEBODY)))
        assert said.startswith(f"{place}/theirs/digests/") and said.endswith(
            ".json cannot be written: Permission denied; choose another --workspace"
        )
        own = [*options(cut, place / "open" / "w", tiny_encoder), "--sources", "gooaq_pairs"]
        said = told(disk.medi(*own, "--out", place / "out", before=tuple(SOMEBODY)))
        assert said == f"--out {place}: {place} cannot be written (permission denied); mend that, or name another --out"
        assert not (disk.seen / "out").exists() and not (disk.seen / "open" / "out").exists()


def _need_somebody(disk: Disk) -> None:
    """Skip the test where nobody may become another user."""
    if disk.run("true", before=tuple(SOMEBODY)).returncode:
        pytest.skip("nobody may become another user here: there is no setpriv, or this is not root")


MAPPED = """
import sys
from pathlib import Path
import numpy as np
from medi.vectors import VectorStore
store = VectorStore(Path(sys.argv[1]), "e")
store.put(np.array([7], dtype=np.uint64), np.ones((1, 4096), dtype=np.float32))
try:
    store.gather(np.full(20_000, 7, dtype=np.uint64))
except OSError as error:
    print(error.errno)
"""


def test_vectors_that_find_no_room_do_not_kill_the_process(tmp_path: Path) -> None:
    """Above 256 MB vectors are gathered in a mapped file; a page of it that finds no room is a bus error."""
    with small_disk(tmp_path / "w", "size=8m") as disk:
        done = disk.run(sys.executable, "-c", MAPPED, tmp_path / "w")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{errno.ENOSPC}\n", "")
        assert [path.name for path in (disk.seen / "e").iterdir() if not path.is_dir()] == []


def test_prefects_own_server_is_not_started_where_it_finds_no_room(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    workspace = tmp_path / "w"
    with small_disk(workspace) as disk:
        undone(built, disk.seen, "instruct")
        disk.leave(free_kib=10_000)
        said = told(disk.medi(*options(cut, workspace, tiny_encoder), "--runner", "threads"))
        assert said.startswith(f"{workspace}/prefect: 10.") and said.endswith(
            " MB are free, and Prefect's own server needs 34; make room there, or use --runner none"
        )
        assert [path.name for path in (disk.seen / "prefect").iterdir() if path.suffix == ".db"] == []


def test_a_quota_is_told_like_a_full_disk() -> None:
    assert line_of(OSError(errno.EDQUOT, "Disk quota exceeded", "/w/store")) == (
        f"/w/store: disk quota exceeded; {MAKE_ROOM}"
    )
