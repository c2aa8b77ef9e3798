"""Builds in tests: a cut of the bundled sample with every kind of unit, and `medi build` run as a person runs it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

REPO = Path(__file__).resolve().parent.parent
SOURCES = ("gooaq_pairs", "NQ", "WikiAnswers", "AllNLI", "msmarco", "fever", "super_ni")
_FILES = (
    "embedding_training_data/gooaq_pairs.jsonl.gz",
    "embedding_training_data/WikiAnswers.jsonl.gz",
    "embedding_training_data/AllNLI.jsonl.gz",
    "embedding_training_data/msmarco-triplets.jsonl.gz",
    "dpr_format/nq-train.json",
    "kilt/fever-train-kilt.jsonl",
    "kilt/knowledgesource-sample.json",
    "super_ni/tasks/task9001_medi_sentiment_classification.json",
    "super_ni/tasks/task9009_medi_news_summarization.json",
    "super_ni/tasks/task9015_medi_geography_multiple_choice.json",
    "super_ni/tasks/task9017_medi_one_class_answerability.json",
)


def cut_of_sample(folder: Path) -> None:
    """Copy the files of the cut into a raw folder."""
    for name in _FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / "data" / "sample" / name, folder / name)


def options(raw: Path, workspace: Path, encoder: Path) -> list[str | Path]:
    """Return the options of a plain build."""
    places: list[str | Path] = ["--workspace", workspace, "--out", workspace / "out"]
    return ["--raw", raw, "--encoder", encoder, "--runner", "none", *places]


def undone(built: Path, workspace: Path, *stages: str) -> None:
    """Copy a finished workspace without its release and without what some stages made."""
    shutil.copytree(built, workspace, ignore=shutil.ignore_patterns("out", *stages), dirs_exist_ok=True)


def medi_build(
    *args: str | Path, environment: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `medi build` in a process of its own."""
    call = [sys.executable, "-m", "pipelines.build", *map(str, args)]
    variables = {**os.environ, "PYTHONPATH": str(REPO), **(environment or {})}
    return subprocess.run(
        call, capture_output=True, text=True, check=False, env=variables, cwd=cwd or REPO, timeout=900
    )


def files_of(release: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a release but run.json, by name."""
    found = {p.relative_to(release).as_posix(): p.read_bytes() for p in release.rglob("*") if p.is_file()}
    found.pop("run.json")
    return found


def manifest_of(release: Path) -> dict[str, list[dict[str, object]]]:
    """Return the manifest of a release."""
    return json.loads((release / "manifest.json").read_bytes())


def artifacts(workspace: Path) -> dict[tuple[str, str], set[str]]:
    """Return (stage, unit) -> keys of every artifact in the workspace."""
    found: dict[tuple[str, str], set[str]] = {}
    for path in (workspace / "store").glob("*/*/record.json"):
        record = json.loads(path.read_bytes())
        if "stage" in record:
            found.setdefault((record["stage"], record["unit"]), set()).add(record["key"])
    return found


def vector_ids(workspace: Path, encoder_key: str = "*") -> list[int]:
    """Return the text ids of all vectors in a workspace, or of one encoder's."""
    chunks = (workspace / "store" / "vectors").glob(f"{encoder_key}/[!.]*/record.json")
    return [number for path in chunks for number in np.load(path.with_name("ids.npy")).tolist()]
