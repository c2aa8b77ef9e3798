"""The real files, built as a person would and read with four readers; `make test-real` runs this where they are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Once

pytestmark = pytest.mark.real
TASKS = Path(__file__).with_name("real_tasks.txt")


def medi(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pipelines.cli.app", *args], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def release(once: Once, shared_raw: Path) -> Path:
    """The release of every real file and 30 Super-NI tasks."""

    def build(folder: Path) -> None:
        places = ["--out", str(folder / "release"), "--workspace", str(folder / "workspace")]
        done = medi("build", "--raw", str(shared_raw), "--super-ni-tasks", str(TASKS), *places)
        assert done.returncode == 0, done.stderr[-4000:]
        sys.stderr.write(done.stderr)

    return once("real", build) / "release"


@pytest.fixture(scope="session")
def manifest(release: Path) -> dict[str, list[dict[str, object]]]:
    return json.loads((release / "manifest.json").read_text())


def rows_of(manifest: dict[str, list[dict[str, object]]]) -> int:
    return sum(int(str(file["rows"])) for file in manifest["files"] if str(file["path"]).startswith("data/"))


def test_every_source_with_a_file_gives_rows_or_a_reason(
    manifest: dict[str, list[dict[str, object]]], shared_raw: Path
) -> None:
    listed = json.loads(medi("sources", "--json", "--raw", str(shared_raw)).stdout)
    present = {entry["name"] for entry in listed if entry["present"]}
    assert {source["name"] for source in manifest["sources"]} == present
    silent = [s["name"] for s in manifest["sources"] if not s["got"] and not s["dropped"]]
    assert silent == []


def test_every_task_asked_for_gives_rows_or_a_reason(manifest: dict[str, list[dict[str, object]]]) -> None:
    asked = {line for line in TASKS.read_text().splitlines() if line and not line.startswith("#")}
    tasks = [task for task in manifest["tasks"] if task["source"] == "super_ni"]
    assert {task["task"] for task in tasks} == asked
    silent = [task for task in tasks if not task["got"] and not task["dropped"]]
    assert [task["task"] for task in silent if not task["evidence"]["ingest"].get("skipped")] == []  # type: ignore[index]


def test_the_release_is_clean(release: Path) -> None:
    done = medi("verify", str(release))
    assert (done.returncode, done.stdout) == (0, f"{release}: clean\n")


def test_four_readers_see_the_same_rows(
    release: Path, manifest: dict[str, list[dict[str, object]]], tmp_path: Path
) -> None:
    import duckdb
    import pandas
    import polars

    expected = rows_of(manifest)
    assert expected > 5_000
    ids = pandas.read_parquet(release / "data", columns=["id"])["id"]
    assert (len(ids), ids.is_unique) == (expected, True)
    counted = duckdb.sql(f"select count(*), count(distinct id) from '{release}/data/*.parquet'").fetchall()[0]
    assert counted == (expected, expected)
    negatives = polars.scan_parquet(release / "data" / "*.parquet").select(polars.col("negatives").list.len().sum())
    listed = duckdb.sql(f"select sum(len(negatives)) from '{release}/data/*.parquet'").fetchall()[0]
    assert (negatives.collect().item(),) == listed
    code = f"from datasets import load_dataset; print(load_dataset({str(release)!r}, split='train').num_rows)"
    env = os.environ | {"HF_HOME": str(tmp_path)}
    loaded = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert loaded.stdout == f"{expected}\n"
