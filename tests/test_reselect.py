"""Other negatives for a finished release: the bytes of a build with these options, without encoding or searching."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.builds import REPO, artifacts, files_of, manifest_of, medi_build, options

# FAISS may be there: it cuts the chosen queries of msmarco into clusters.
_HEAVY = {"torch", "sentence_transformers", "prefect"}


def reselect(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `medi reselect` in a process of its own, which writes on its last line what it had to import."""
    code = (
        "import sys; from pipelines.cli.app import main; code = main(['reselect', *sys.argv[1:]]);"
        f"print(sorted({_HEAVY!r} & set(sys.modules))); sys.exit(code)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=False, cwd=REPO
    )


@pytest.fixture
def workspace(built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path) -> Path:
    """A copy of the built workspace, in which a build has said where its release lies now."""
    shutil.copytree(built, tmp_path / "w")
    shutil.rmtree(tmp_path / "w" / "out")
    done = medi_build(*options(cut, tmp_path / "w", tiny_encoder))
    assert done.returncode == 0, done.stderr
    return tmp_path / "w"


@pytest.mark.slow
def test_it_gives_the_bytes_of_a_build_with_these_options_and_only_chooses(
    workspace: Path, cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    before, asked = artifacts(workspace), ("--profile", "clean", "--max-score", "0.99", "--fill", "other_rows")
    done = reselect(workspace / "out", *asked, "--out", tmp_path / "chosen")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(tmp_path / "chosen"), "[]"]
    ran = {stage for (stage, unit), keys in artifacts(workspace).items() if keys != before.get((stage, unit))}
    assert ran <= {"near", "mine", "audit", "sample", "instruct"} and "mine" in ran
    # In a workspace of its own; given negatives are four in both.
    built = medi_build(*options(cut, tmp_path / "other", tiny_encoder), *asked)
    assert built.returncode == 0, built.stderr
    assert files_of(tmp_path / "chosen") == files_of(tmp_path / "other" / "out")


@pytest.mark.slow
def test_another_profile_keeps_how_candidates_were_searched(
    workspace: Path, cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    """By s_neg; those by passage were never looked for."""
    built = medi_build(*options(cut, workspace, tiny_encoder), "--strategy", "s_neg", "--out", tmp_path / "first")
    assert built.returncode == 0, built.stderr
    done = reselect(tmp_path / "first", "--profile", "clean", "--out", tmp_path / "chosen")
    assert done.returncode == 0, done.stderr
    mining = json.loads((tmp_path / "chosen" / "manifest.json").read_bytes())["params"]["mining"]
    assert (mining["strategy"], mining["relative_margin"]) == ("s_neg", 0.05)


def test_in_its_place_and_again_without_a_change(workspace: Path) -> None:
    assert reselect(workspace / "out", "--negatives", "2").returncode == 0
    manifest = json.loads((workspace / "out" / "manifest.json").read_bytes())
    mining = manifest["params"]["mining"]
    assert (mining["negatives"], mining["given_negatives"], mining["window"]) == (2, 2, 64)
    rows = pq.read_table(workspace / "out" / "data").to_pylist()
    pairs = [row for row in rows if row["source"] == "gooaq_pairs"]
    assert pairs and all(row["negative_origins"] == ["mined", "mined"] for row in pairs)
    first = {path: path.stat().st_mtime_ns for path in (workspace / "out").rglob("*")}
    assert reselect(workspace / "out", "--negatives", "2").returncode == 0
    assert {path: path.stat().st_mtime_ns for path in (workspace / "out").rglob("*")} == first


@pytest.mark.slow
def test_a_release_chosen_again_is_as_if_it_were_chosen_at_once(workspace: Path, tmp_path: Path) -> None:
    """How many given negatives are kept hangs on what is asked for now, not on what was asked for before."""
    first, again = workspace / "out", tmp_path / "again"
    for number in ("4", "2", "4"):
        assert reselect(first, "--negatives", number, "--out", tmp_path / number).returncode == 0
        done = reselect(again if again.exists() else first, "--negatives", number, "--out", again)
        assert done.returncode == 0 and "mined instead" not in done.stderr
        assert files_of(again) == files_of(tmp_path / number)
    assert files_of(tmp_path / "2") != files_of(tmp_path / "4")


def test_more_negatives_than_were_given_are_mined(workspace: Path, tmp_path: Path) -> None:
    """The fifth given negative was never encoded; reselect mines instead, a build keeps it."""
    done = reselect(workspace / "out", "--negatives", "6", "--out", tmp_path / "six")
    assert done.returncode == 0 and "4 a row were encoded: further ones are mined instead" in done.stderr
    rows = pq.read_table(tmp_path / "six" / "data").to_pylist()
    given = [row["negative_origins"].count("given") for row in rows if row["source"] == "msmarco"]
    assert given and max(given) <= 4 and manifest_of(tmp_path / "six")["params"]["mining"]["given_negatives"] == 4  # type: ignore[call-overload, index]
    assert max(len(row["negatives"]) for row in rows) == 6


def test_without_candidates_it_says_so_and_leaves_the_release(workspace: Path) -> None:
    before = files_of(workspace / "out")
    shutil.rmtree(workspace / "store" / "candidates")
    done = reselect(workspace / "out", "--negatives", "2")
    assert done.returncode == 1 and files_of(workspace / "out") == before
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("medi:")]
    assert "lacks candidates of" in line and "run `medi build`" in line
    # Not even an empty folder is put in the place of a workspace that is gone.
    release = workspace.parent / "kept"
    shutil.copytree(workspace / "out", release)
    shutil.rmtree(workspace)
    done = reselect(release, "--negatives", "2")
    assert done.returncode == 1 and not workspace.exists()
    assert done.stderr == f"medi: {workspace}, the workspace of this release, is gone; run `medi build` instead\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "nothing to change"),
        (("--window", "4", "--skip-top", "4"), "--skip-top 4 and --window 4"),
        (("--negatives", "0"), "--negatives 0: give a number from 1 to 16"),
    ],
)
def test_a_wrong_call_is_one_line(built: Path, args: tuple[str, ...], message: str) -> None:
    done = reselect(built / "out", *args)
    assert done.returncode == 2 and message in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_folder_that_does_not_say_how_it_was_built(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built / "out", tmp_path / "out")
    (tmp_path / "out" / "run.json").write_text("{}")
    done = reselect(tmp_path / "out", "--negatives", "2")
    assert done.returncode == 1 and "does not say how the release was built" in done.stderr


@pytest.mark.slow
def test_a_cross_encoder_rescores_in_build_and_reselect(
    workspace: Path, cut: Path, tiny_encoder: Path, tiny_cross_encoder: Path, tmp_path: Path
) -> None:
    asked = ("--rescore", tiny_cross_encoder, "--window", "6", "--negatives", "2")
    done = reselect(workspace / "out", *asked, "--out", tmp_path / "chosen")
    assert done.returncode == 0, done.stderr
    built = medi_build(*options(cut, workspace, tiny_encoder), *asked)
    assert built.returncode == 0, built.stderr
    assert files_of(tmp_path / "chosen") == files_of(workspace / "out")
    rescore = json.loads((workspace / "out" / "manifest.json").read_bytes())["params"]["mining"]["rescore"]
    assert rescore["name"] == "local" and len(rescore["revision"]) >= 16
    assert "rescore" in {stage for stage, _ in artifacts(workspace)}
