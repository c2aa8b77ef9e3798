"""What a machine does to a build: files that may not be read, a disk that is full, an encoder that takes its time."""

import errno
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from medi.publish import writing
from pipelines.build.failures import failure_of
from pipelines.cli.app import line_of
from tests.builds import REPO, artifacts, cut_of_sample, medi_build
from tests.unprivileged import as_a_person

SOURCES = "gooaq_pairs,AllNLI,fever,super_ni"
TASK = "task9009_medi_news_summarization"


def options(raw: Path, workspace: Path, encoder: Path) -> list[str]:
    """The options of a build of a few sources without Prefect."""
    places = ["--raw", raw, "--encoder", encoder, "--workspace", workspace, "--out", workspace / "out"]
    return [*map(str, places), "--runner", "none", "--sources", SOURCES]


@pytest.mark.slow
def test_what_may_not_be_read_fails_alone(tiny_encoder: Path, tmp_path: Path) -> None:
    raw, workspace = tmp_path / "raw", tmp_path / "w"
    cut_of_sample(raw)
    names = ("embedding_training_data/gooaq_pairs.jsonl.gz", f"super_ni/tasks/{TASK}.json", "kilt")
    closed = [raw / name for name in names]
    for path in closed:
        path.chmod(0)
    call = as_a_person([sys.executable, "-m", "pipelines.build", *options(raw, workspace, tiny_encoder)])
    failed = subprocess.run(call, capture_output=True, text=True, check=False, cwd=REPO)
    for path in closed:
        path.chmod(0o755)
    *lines, last = [line for line in failed.stderr.splitlines() if line.startswith("medi: ")]
    told = "cannot be read: Permission denied; check"
    assert failed.returncode == 1 and len(lines) == 3, failed.stderr
    assert lines[0] == f"medi: gooaq_pairs: {closed[0]} {told} the path and its permissions"
    assert lines[1] == f"medi: fever: {closed[2]} {told} its permissions"
    assert lines[2] == f"medi: {TASK}: {closed[1]} {told} the path and its permissions"
    assert last.startswith("medi: 3 sources or tasks failed, nothing is published") and not (workspace / "out").exists()
    # The others went through all stages, and stay as they are when the files may be read.
    kept = artifacts(workspace)
    assert ("mine", "AllNLI") in kept and not any(unit in ("gooaq_pairs", "fever", TASK) for _, unit in kept)
    again = subprocess.run(call[-len(options(raw, workspace, tiny_encoder)) - 3 :], capture_output=True, cwd=REPO)
    assert again.returncode == 0
    assert artifacts(workspace)["mine", "AllNLI"] == kept["mine", "AllNLI"]


@pytest.mark.slow
def test_a_file_that_may_not_be_read_keeps_a_finished_build_from_being_published(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    cut_of_sample(raw)
    call = [*options(raw, tmp_path / "w", tiny_encoder)[:-1], "AllNLI,gooaq_pairs"]
    (raw / "embedding_training_data" / "gooaq_pairs.jsonl.gz").chmod(0)
    run = as_a_person([sys.executable, "-m", "pipelines.build", *call])
    for _ in range(2):
        done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=REPO)
        assert done.returncode == 1 and not (tmp_path / "w" / "out").exists()
    # The second build found all else in place: the line of the file is all it says.
    assert [line for line in done.stderr.splitlines() if not line.startswith("no file in")] == [
        f"medi: gooaq_pairs: {raw}/embedding_training_data/gooaq_pairs.jsonl.gz cannot be read: Permission "
        "denied; check the path and its permissions"
    ]


@pytest.mark.parametrize("size", ["4k", pytest.param("100k", marks=pytest.mark.slow)])
def test_a_full_disk_is_named(tiny_encoder: Path, tmp_path: Path, size: str) -> None:
    raw, workspace = tmp_path / "raw", tmp_path / "w"
    cut_of_sample(raw)
    workspace.mkdir()
    call = [*options(raw, workspace, tiny_encoder)[:-1], "AllNLI"]
    mounted = f'mount -t tmpfs -o size={size} none "$0" && exec "$@"'
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    run = ["unshare", "-rm", "sh", "-c", mounted, str(workspace), sys.executable, "-m", "pipelines.build", *call]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=REPO)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert re.search(rf"{workspace}/(digests|store)\b.*: no space left on device; make room", last, re.IGNORECASE), last


def test_an_error_of_the_disk_that_names_no_file_gets_the_folder() -> None:
    with pytest.raises(OSError) as full, writing(Path("/disk/out")), open("/dev/full", "w") as file:
        file.write("x")
    assert line_of(full.value) == (
        "/disk/out: no space left on device; make room there, or name another folder"
    )
    with pytest.raises(FileNotFoundError) as absent, writing(Path("/disk/out")):
        open("/nowhere/at/all")
    assert absent.value.filename == "/nowhere/at/all"
    with pytest.raises(OSError) as other, writing(Path("/disk/out")):
        raise PermissionError(errno.EACCES, "Permission denied", "/disk/outer.json")
    assert other.value.filename == "/disk/outer.json"
    with pytest.raises(OSError) as new, writing(Path("/disk/out")):
        raise OSError(errno.ENOSPC, "No space left on device", "/disk/out.new-0123456789ab/data/0")
    assert new.value.filename == "/disk/out"


@pytest.mark.slow
def test_loading_the_encoder_is_no_sources_time(tiny_encoder: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    cut_of_sample(raw)
    done = medi_build(*options(raw, tmp_path / "w", tiny_encoder)[:-1], "gooaq_pairs")
    assert done.returncode == 0, done.stderr
    loads = [line for line in done.stderr.splitlines() if line.startswith("load ")]
    assert len(loads) == 1 and re.fullmatch(r"load     local  in \d+ s", loads[0])
    seconds = json.loads((tmp_path / "w" / "out" / "run.json").read_bytes())["seconds"]["gooaq_pairs"]
    assert 0 < seconds < int(loads[0].split()[-2])


def test_equal_lines_are_one() -> None:
    assert str(failure_of(["a: gone", "a: gone"])) == "a: gone"
    many = failure_of(["a: gone", "b: bad", "a: gone"])
    assert many.__notes__ == ["a: gone", "b: bad"] and str(many).startswith("2 sources or tasks failed")
