"""Presets and options become Settings: what each preset sets, and where things go."""

import subprocess
import sys
from pathlib import Path

import pytest

from medi.errors import UsageError
from pipelines.presets import MINILM, PRESETS, SENTENCE_T5, memory_bytes, resolve, sample_raw_dir


def test_each_preset_sets_what_it_is_for(repo_root: Path) -> None:
    sample, lite, full = (resolve(name) for name in PRESETS)
    assert (sample.raw, sample.offline, sample.super_ni_tasks) == (repo_root / "data" / "sample", True, "all")
    assert (lite.raw, lite.offline, lite.super_ni_tasks) == (None, False, "listed")
    assert (lite.take, lite.scale) == ("first", 0.02)
    assert (full.raw, full.take, full.scale) == (None, "hash", 1.0)
    assert [s.encoder for s in (sample, lite, full)] == [MINILM, MINILM, SENTENCE_T5]
    common = {(s.seed, s.profile, s.dtype, s.max_bad_rows) for s in (sample, lite, full)}
    assert common == {(0, "paper", "float32", "0")}


def test_what_is_given_goes_before_the_preset(tmp_path: Path) -> None:
    settings = resolve("lite", raw=tmp_path, scale=2.0, take=None, memory_bytes="2G", variants={"NQ": "dpr"})
    assert (settings.raw, settings.scale, settings.take) == (tmp_path, 2.0, "first")
    assert (settings.memory_bytes, settings.variants) == (2 << 30, {"NQ": "dpr"})


def test_places_follow_workspace_preset_and_raw_folder(tmp_path: Path) -> None:
    raw = tmp_path / "my files"
    raw.mkdir()
    assert resolve().workspace == Path.cwd() / "data"
    assert resolve(workspace=tmp_path).out == tmp_path / "medi" / "sample"
    assert resolve(workspace=tmp_path, raw=raw).out == tmp_path / "medi" / "raw-my files"
    assert resolve(workspace=tmp_path, out=tmp_path / "x").out == tmp_path / "x"


def test_the_environment_names_the_workspace(tmp_path: Path) -> None:
    call = [sys.executable, "-c", "from pipelines.presets import resolve; print(resolve().workspace)"]
    done = subprocess.run(call, env={"MEDI_HOME": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}\n"


@pytest.mark.parametrize(("given", "offline"), [({}, True), ({"encoder": "x/y"}, False), ({"offline": True}, True)])
def test_only_the_bundled_sample_is_offline_by_itself(given: dict[str, object], offline: bool) -> None:
    assert resolve(**given).offline is offline


@pytest.mark.parametrize(("text", "expected"), [("300000000", 300_000_000), ("512M", 512 << 20), ("8g", 8 << 30)])
def test_memory_is_bytes_or_a_number_with_a_unit(text: str, expected: int) -> None:
    assert memory_bytes(text) == expected


def test_an_option_nobody_knows_is_named() -> None:
    with pytest.raises(UsageError, match="colour: no option of a build has this name"):
        resolve(colour="red")


def test_the_sample_is_found(repo_root: Path) -> None:
    assert sample_raw_dir() == repo_root / "data" / "sample"


@pytest.mark.parametrize("option", ["workspace", "out"])
def test_a_file_in_the_place_of_a_folder_is_refused(option: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("q,p\n")
    with pytest.raises(UsageError) as refused:
        resolve("sample", **{option: path})
    assert str(refused.value) == f"--{option} {path}: is a file; name a folder"
