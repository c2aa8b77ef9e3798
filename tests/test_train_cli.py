"""`medi train` as a person types it: what it prints, its errors of one line, and the same run as a Prefect flow."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from sentence_transformers import SentenceTransformer

from medi.errors import UsageError
from medi.train.loop import StepDone
from medi.train.recipe import Recipe
from pipelines.cli.app import main
from pipelines.training import Shown, job_of
from tests.conftest import Once
from tests.release_builder import tiny
from tests.training import write_release

REPO = Path(__file__).resolve().parent.parent
SHORT = ("--max-steps", "3", "--batch-size", "8", "--offline", "--trackers", "none")


@pytest.fixture(scope="session")
def release(once: Once) -> Path:
    return once("train-release", write_release)


def train(module: str, folder: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"OMP_NUM_THREADS": "1", "MEDI_HOME": str(folder / "workspace"), "PYTHONPATH": str(REPO)}
    call = [sys.executable, "-m", *module.split(), *map(str, args)]
    return subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)


def test_the_folder_is_on_stdout_and_everything_else_on_stderr(
    release: Path, tiny_t5_encoder: Path, tmp_path: Path
) -> None:
    done = train("pipelines.cli.app train", tmp_path, release, "--model", tiny_t5_encoder, "--out", "out", *SHORT)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'out'}\n"), done.stderr
    lines = done.stderr.splitlines()
    assert "  batch size: 8" in lines and "  level: detailed" in lines
    assert "3 steps to go; the whole run sees 30.0% of the rows" in lines
    assert lines[-3].startswith("train    3/3  loss ") and "% padding  0:00:00 left" in lines[-3]
    assert re.fullmatch(r"mean loss \d+\.\d{4}; no task had a second step to compare it with", lines[-1])
    assert "Traceback" not in done.stderr and "Warning" not in done.stderr
    assert SentenceTransformer(str(tmp_path / "out"), device="cpu").max_seq_length == 128


def says(capsys: pytest.CaptureFixture[str], *args: str | Path) -> tuple[int, str]:
    code = main(["train", *map(str, args)])
    printed = capsys.readouterr()
    assert printed.out == ""
    return code, printed.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["--temperature", "0"], 2, "medi: --temperature 0.0: give a number above 0"),
        (["--epochs", "2"], 2, "medi: --epochs and --max-steps say the same; give one of them"),
        (["--no-instructions", "--level", "tag"], 2, "medi: --no-instructions and --level tag: give one of them"),
        (["--level", "full"], 2, "medi: --level full: give one of none, tag, simple, detailed"),
        (["--runner", "ray"], 2, "medi: --runner ray: give none or prefect"),
        (["--trackers", "mlflow"], 2, "medi: --trackers mlflow: give tensorboard, wandb, both with a comma, or none"),
        (["--model", "no/such/model"], 2, "medi: model no/such/model is neither a folder here nor a Hub name"),
        (["--max-length", "4096"], 1, "medi: --max-length 4096: "),
        (["--max-length", "24"], 1, "medi: tasks whose instructions leave fewer than 16 of 24 tokens for text: asks ("),
        (["--tasks", "asymmetric", "--no-super-ni", "--forward-candidates", "negatives"], 1,
         "medi: no step of 8 rows is left of 20 rows (no negatives in the step: 20)"),
        (["--negatives", "0", "--forward-candidates", "negatives"], 2,
         "medi: --forward-candidates negatives and --negatives 0: no query would have a negative to tell its positive"
         " from; give more --negatives, or --forward-candidates all"),
        (["--sampling-temperature", "3"], 2,
         "medi: --sampling-temperature: says something of --sampling temperature; give that too"),
        (["--sampling", "uniform", "--sampling-temperature", "3"], 2, "medi: --sampling-temperature: says something"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(
    release: Path, tiny_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    args: list[str], code: int, told: str,
) -> None:  # fmt: skip
    plain = [release, "--model", tiny_encoder, "--out", tmp_path / "out", "--workspace", tmp_path, *SHORT, "--cpu"]
    found, line = says(capsys, *plain, *args)
    assert found == code and line.startswith(told), line
    assert not (tmp_path / "out").exists()


def test_a_release_that_is_none_or_damaged_is_one_line(
    tiny_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = ["--model", tiny_encoder, "--out", tmp_path / "out", "--workspace", tmp_path, *SHORT]
    code, line = says(capsys, tmp_path, *plain)
    assert code == 2, line
    assert line.endswith("is not a release; name the folder `medi build` printed")
    tiny(1).write(tmp_path / "one")
    code, line = says(capsys, tmp_path / "one", *plain, "--negatives", "0")
    assert code == 1 and "no step of 8 rows is left of 4 rows (one row without negatives: 4)" in line
    shard = next((tmp_path / "one" / "data").iterdir())
    shard.write_bytes(b"?" * shard.stat().st_size)
    code, line = says(capsys, tmp_path / "one", *plain)
    assert code == 1 and "does not verify: data/train-00000-of-00001.parquet: is not the file of the manifest" in line


def test_tasks_with_long_instructions_are_left_out_where_that_is_asked_for(
    tiny_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = tiny()
    for row in builder.rows["twins", "twins"]:
        row["document_instruction"] = "Represent the question answer, " + "of all the people " * 20 + "here:"
    builder.write(tmp_path / "release")
    asked = ["--model", tiny_encoder, "--out", tmp_path / "out", "--workspace", tmp_path, *SHORT, "--cpu"]
    args = ["train", tmp_path / "release", *asked, "--max-length", "64", "--skip-long-instructions"]
    assert main([str(arg) for arg in args]) == 0
    printed = capsys.readouterr()
    assert "left out, as their instructions leave no room for text: twins (1" in printed.err
    about = json.loads((tmp_path / "out" / "medi_training.json").read_text())
    assert about["recipe"]["left_out"] == ["twins"] and about["recipe"]["skip_long_instructions"] is True


def test_options_become_a_job() -> None:
    needed = {"release": "r", "model": "m", "out": "o"}
    job = job_of(needed | {"batch_size": 32, "super_ni": False, "keep": 1, "trackers": ["wandb"], "revision": None})
    assert (job.recipe.batch_size, job.recipe.ablation.super_ni, job.resources.keep) == (32, False, 1)
    assert job.resources.trackers == ("wandb",) and job.revision is None
    assert replace(job.recipe, batch_size=64, ablation=Recipe().ablation) == Recipe()
    with pytest.raises(UsageError, match="model: is needed"):
        job_of({"release": "r"})
    with pytest.raises(UsageError, match="batchsize: no option of training has this name"):
        job_of(needed | {"batchsize": 3})


def test_a_run_is_shown_by_loss_speed_padding_and_time_left() -> None:
    written = StringIO()
    shows = Shown(Console(file=written, width=200), every_seconds=0.0)
    shows.begin(0, 100, 0.5)
    for step in (1, 2):
        shows.step(StepDone(step, 0, "t", 2.0 + step, 1e-5, 1.0, 8, 300, 400, 0, 0.0, 0.5))
    assert written.getvalue().splitlines() == [
        "100 steps to go; the whole run sees 50.0% of the rows",
        "train    1/100  loss 3.000  600 tokens/s  25% padding  0:00:49 left",
        "train    2/100  loss 3.500  600 tokens/s  25% padding  0:00:49 left",
    ]
    quiet = StringIO()
    Shown(Console(file=quiet), quiet=True).say("nothing")
    assert quiet.getvalue() == ""


@pytest.mark.slow
def test_a_run_in_prefect_has_the_same_weights(release: Path, tiny_t5_encoder: Path, tmp_path: Path) -> None:
    for runner in ("none", "prefect"):
        args = [release, "--model", tiny_t5_encoder, "--out", runner, "--cpu", "--runner", runner, *SHORT]
        done = train("pipelines.cli.app train", tmp_path, *args)
        assert (done.returncode, done.stdout) == (0, f"{tmp_path / runner}\n"), done.stderr
        assert "INFO" not in done.stderr and done.stderr.count("\ntrain    3/3  loss ") == 1
    one, other = (tmp_path / runner / "model.safetensors" for runner in ("none", "prefect"))
    assert one.read_bytes() == other.read_bytes()
    assert (tmp_path / "workspace" / "prefect").is_dir()


@pytest.mark.parametrize("epochs", [0.0, -1.0, float("nan"), float("inf")])
def test_passes_over_the_rows_are_a_number_above_0(epochs: float) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--epochs {epochs}: give a number above 0")):
        job_of({"release": "r", "model": "m", "out": "o", "epochs": epochs})
