"""A build that is killed at any moment goes on to the same bytes, computes nothing twice and leaves nothing behind.

The short form of `python -m tests.torture`.
"""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from medi.publish import remove_orphans
from medi.release.swap import remove_leftovers
from medi.release.verify import verify
from tests.builds import REPO, medi_build
from tests.torture import ROUTE, Ground, chunk_round, completed, interrupted, kill_round, moment_in, older, table
from tests.unharmed import content_of, temporaries
from tests.watched import Moment


@pytest.fixture
def ground(built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path) -> Ground:
    """A workspace that is empty yet, and the release that must come of it."""
    return Ground(tmp_path / "w", cut, tiny_encoder, built / "out")


@pytest.fixture
def searched(ground: Ground, built: Path) -> Ground:
    """A workspace in which all was found already, with its release."""
    shutil.copytree(built / "store", ground.workspace / "store")
    assert completed(ground, ground.build("none")) == 0
    return ground


@pytest.mark.slow
def test_six_kills_on_one_way_through_all_stages(ground: Ground) -> None:
    draw, old = random.Random(4), older(ground, ground.out)
    # The third change of the digests is the renaming of the first one.
    moments = [Moment("digests", 3), *(moment_in(ground, group, 2, draw) for group in ROUTE)]
    exact = [moment._replace(delay_seconds=0.0) for moment in moments]
    plain, threads = ground.build("none"), ground.build("threads")
    kills = kill_round(ground, [plain, plain, threads, plain, plain, plain], exact, old)
    assert [kill.stage for kill in kills] == [moment.stage for moment in moments], table(kills)
    assert sum(kill.recomputed for kill in kills) == 0, table(kills)
    kept = [kill.kept for kill in kills]
    assert kept == sorted(kept) and kept[0] == 0 < kept[1] and kept[-1] == kept[-2]
    assert sum(kill.temporaries for kill in kills) >= 3


@pytest.mark.slow
def test_a_long_encode_goes_on_inside_a_source(ground: Ground, tmp_path: Path) -> None:
    kills, encoded = chunk_round(ground, tmp_path, random.Random(0))
    assert [kill.stage for kill in kills] == ["embed", "candidates"] and encoded == [1, 2]
    assert kills[1].recomputed == 0


@pytest.mark.slow
def test_what_a_killed_reselect_leaves_the_next_one_removes(searched: Ground) -> None:
    again = ["reselect", str(searched.out), "--negatives", "2"]
    kill = interrupted(searched, again, Moment("mine", 2), searched.expected)
    assert kill and kill.temporaries == 1
    done = subprocess.run([sys.executable, "-m", "pipelines.cli.app", *again], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert temporaries(searched.workspace) == [] and list(verify(searched.out)) == []
    assert content_of(searched.out) != content_of(searched.expected)


def test_a_build_that_finds_all_in_place_removes_what_a_killed_one_left_beside_the_release(searched: Ground) -> None:
    call = searched.build("none")
    left = searched.out.with_name("out.new-0123456789ab")
    (left / "data").mkdir(parents=True)
    written = searched.out.stat().st_mtime_ns
    assert medi_build(*call[1:]).returncode == 0
    assert not left.exists() and searched.out.stat().st_mtime_ns == written


def test_a_folder_of_a_person_beside_the_release_stays(tmp_path: Path) -> None:
    names = ["x.new-idea", "x.new-0123456789abcdef", "x.new-0123456789ab"]
    for name in names:
        (tmp_path / name).mkdir()
    remove_leftovers(tmp_path / "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[:2])


def test_a_file_that_a_killed_process_was_writing_is_removed_where_it_may_lie(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from medi.fetch.local import write_atomically\n"
        "sys.addaudithook(lambda event, args: os._exit(7) if event == 'os.rename' else None)\n"
        "write_atomically(Path(sys.argv[1]), b'new')"
    )
    for place in (tmp_path / "memo", tmp_path / "deep" / "memo"):
        place.parent.mkdir(exist_ok=True)
        place.write_text("old")
        assert subprocess.run([sys.executable, "-c", code, str(place)], cwd=REPO, check=False).returncode == 7
        assert place.read_text() == "old" and len(list(place.parent.glob(".tmp-*"))) == 1
    assert remove_orphans(tmp_path, deep=False) == 1
    assert list(tmp_path.glob(".*")) == [] and remove_orphans(tmp_path) == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["deep", "memo", "memo"]
