"""docs/add-a-source.md is run as it stands: what it writes, every command, and what it says of the real file."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from medi.own import load, source_file
from medi.release import open_release
from medi.release.verify import verify
from medi.source import Fields
from pipelines.cli.app import main
from tests.builds import REPO, manifest_of

pytestmark = pytest.mark.slow
PAGE = (REPO / "docs" / "add-a-source.md").read_text()


def fences(language: str) -> list[str]:
    """Return what stands in the page's fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> Path:
    """A folder in which the page was followed from its first line to its last."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "bin").mkdir()
    # Every build of the page with an encoder that is small: its own words stay.
    program = folder / "bin" / "medi"
    extra = f'[ "$1" = build ] && set -- "$@" --runner none --encoder {tiny_encoder}'
    program.write_text(f'#!/bin/sh\n{extra}\nexec {sys.executable} -m pipelines.cli.app "$@"\n')
    program.chmod(0o755)
    (code,) = fences("python")
    variables = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(REPO)}
    for number, text in enumerate(fences("bash")):
        done = subprocess.run(
            ["bash", "-e", "-c", text], cwd=folder, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stderr[-2000:]}"
        if "msr-para-test.tsv" in text:
            (folder / "msrp" / "paraphrases.py").write_text(code)
        (folder / f"{number}.out").write_text(done.stdout)
    return folder


def test_the_page_gives_the_releases_that_it_names(folder: Path) -> None:
    releases = folder / "data" / "medi"
    assert sorted(path.name for path in releases.iterdir()) == ["msrp", "msrp-clean", "questions", "sentences"]
    for path in releases.iterdir():
        assert list(verify(path)) == []
    assert [source["name"] for source in manifest_of(releases / "sentences")["sources"]] == ["AllNLI", "msrp"]


def test_its_pairs_are_those_of_the_table(folder: Path) -> None:
    rows = {row["query"]: row for row in pq.read_table(folder / "data" / "medi" / "questions" / "data").to_pylist()}
    assert len(rows) == 5
    eggs, salt = rows["how long do eggs boil"], rows["how much salt in pasta water"]
    assert (eggs["positive"], eggs["origin"]) == ("Six minutes for a soft egg.", "questions.csv:2")
    assert (eggs["negatives"], eggs["negative_origins"]) == (["Potatoes, cut small, take twenty minutes."], ["given"])
    assert salt["negative_origins"] == ["mined"]


def test_its_source_is_what_the_page_says(folder: Path) -> None:
    entry = open_release(folder / "data" / "medi" / "msrp").manifest["sources"][0]
    assert (entry["got"], entry["dropped"], entry["symmetric"]) == (4, {"no_paraphrase": 1}, True)
    own = load(source_file(folder / "msrp" / "paraphrases.py"))
    record = {"Quality": "1", "#1 String": "a", "#2 String": "b"}
    assert own.source.variants[0].read(record) == Fields("a", "b")  # type: ignore[arg-type]


def test_every_option_of_the_page_is_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "--help"]) == 0
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) | {"--n", "--task", "--why"}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= known


def test_the_real_table_gives_the_numbers_of_the_page(
    folder: Path, tmp_path: Path, tiny_encoder: Path, repo_root: Path
) -> None:
    real = repo_root.parent / "shared" / "data" / "eval" / "msrp" / "msr-para-test.tsv"
    if not real.is_file():
        pytest.skip("the real table is not here: ../shared/data/eval is absent")
    shutil.copy(real, tmp_path / real.name)
    shutil.copy(folder / "msrp" / "paraphrases.py", tmp_path / "paraphrases.py")
    places = ["--workspace", str(tmp_path / "w"), "--encoder", str(tiny_encoder), "--runner", "none"]
    assert main(["build", "--source", str(tmp_path / "paraphrases.py"), *places]) == 0
    entry = manifest_of(tmp_path / "w" / "medi" / "msrp")["sources"][0]
    assert (entry["got"], entry["dropped"], entry["drawn"]) == (1_147, {"no_paraphrase": 578}, 1_725)
    assert "1,147 of 1,725 pairs are paraphrases, and the other 578" in " ".join(PAGE.split())
