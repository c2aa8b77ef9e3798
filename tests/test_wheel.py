"""The wheel is whole: built, installed alone in an empty folder, it builds a release far from the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def run(*call: str, folder: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(call, cwd=folder, env=os.environ | (env or {}), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(call)}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.slow
def test_the_wheel_builds_two_sources_far_from_the_checkout(repo_root: Path, tmp_path: Path) -> None:
    """One test, so that the wheel is built once."""
    run(*PIP, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(repo_root), folder=tmp_path)
    (wheel,) = tmp_path.glob("medi-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"medi", "pipelines", "instructions"}
    assert {"instructions/embedding.toml", "medi/_sample/LICENSE"} <= set(names)

    site = tmp_path / "site"
    run(*PIP, "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel), folder=tmp_path)
    away = tmp_path / "away"
    away.mkdir()
    medi, env = str(site / "bin" / "medi"), {"PYTHONPATH": str(site)}
    where = run(sys.executable, "-c", "import medi; print(medi.__file__)", folder=away, env=env)
    assert where == f"{site / 'medi' / '__init__.py'}\n"

    printed = run(medi, "build", "--sources", "gooaq_pairs,AllNLI", "--runner", "none", folder=away, env=env)
    out = away / "data" / "medi" / "sample"
    assert printed == f"{out}\n"
    assert run(medi, "verify", str(out), folder=away, env=env) == f"{out}: clean\n"
