"""Small inputs that break pipelines of this kind, one test a case, by its number: those that take a whole build.

Most look at one build of a few sources and Super-NI tasks, each of which is the input of a case.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from medi.instruct import Slots, load_instructions, render
from tests.builds import REPO, artifacts, files_of, manifest_of, medi_build
from tests.conftest import Once
from tests.raw_lines import task
from tests.unprivileged import as_a_person

PAIRS = {"gooaq_pairs": 3, "yahoo_answers_title_answer": 50, "eli5_question_answer": 1_000}
CUT = "squad_pairs"
# 25,000 rows x 0.0008 are 20.
OPTIONS = ("--scale", "0.0008", "--max-bad-rows", "1")
# Refuses, and notes, every way out but those to this machine, which Prefect's own server needs.
GUARD = """
import os, socket
def closed(call, host_of):
    def checked(*args, **kwargs):
        if host_of(args) not in (None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0"):
            with open(os.environ["ATTEMPTS"], "a") as file:
                file.write(repr(host_of(args)) + "\\n")
            raise OSError("the network is closed in this test")
        return call(*args, **kwargs)
    return checked
def host_of_address(args):
    return args[1][0] if isinstance(args[1], tuple) else None
socket.socket.connect = closed(socket.socket.connect, host_of_address)
socket.socket.connect_ex = closed(socket.socket.connect_ex, host_of_address)
socket.getaddrinfo = closed(socket.getaddrinfo, lambda args: args[0])
"""


def answers(name: str, count: int, *, language: tuple[str, str, str] = ("English",) * 3) -> dict[str, object]:
    """Return a text task in three languages: of input, output and instruction."""
    instances: list[object] = [
        {"input": f"rewrite line {i} of {name}", "output": [f"{i} is the line"]} for i in range(count)
    ]
    keys = ("Input_language", "Output_language", "Instruction_language")
    languages = {key: [one] for key, one in zip(keys, language, strict=True)}
    return task(instances, Definition=[" Say it  in\nother words. "], **languages)


TASKS = {
    "task902_one_class": task([{"input": f"is {i} odd?", "output": ["Yes"]} for i in range(30)]),
    "task1_english": answers("english", 9),
    "task2_spanish": answers("spanish", 9, language=("Spanish", "English", "English")),
    "task3_french": answers("french", 9, language=("English", "French", "English")),
    "task4_no_rows": task([{"input": f"x {i}", "output": [None]} for i in range(9)]),
}


def write_tasks(raw: Path, tasks: dict[str, dict[str, object]]) -> None:
    (raw / "super_ni" / "tasks").mkdir(parents=True)
    for name, record in tasks.items():
        (raw / "super_ni" / "tasks" / f"{name}.json").write_text(json.dumps(record))


@pytest.fixture(scope="session")
def raw(once: Once) -> Path:
    """A raw folder of cases: sources of 3, 50 and 1,000 rows, one whose gz is cut, and odd Super-NI tasks."""

    def write(folder: Path) -> None:
        write_tasks(folder, TASKS)
        (folder / "embedding_training_data").mkdir()
        for name, rows in {**PAIRS, CUT: 2_000}.items():
            lines = "".join(f'["what is {i} of {name}","it is thing {i}"]\n' for i in range(rows))
            packed = gzip.compress(lines.encode(), mtime=0)
            path = folder / "embedding_training_data" / f"{name}.jsonl.gz"
            path.write_bytes(packed[:-8] if name == CUT else packed)

    return once("cases", write)


def shut(folder: Path) -> dict[str, str]:
    """Return the environment of a person without a network whose home, `folder`/home, is empty and read-only."""
    (folder / "guard").mkdir(parents=True)
    (folder / "guard" / "sitecustomize.py").write_text(GUARD)
    (folder / "home").mkdir(mode=0o555)
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "HF_", "XDG_"))}
    paths = os.pathsep.join([str(folder / "guard"), str(REPO)])
    return mine | {"HOME": str(folder / "home"), "PYTHONPATH": paths, "ATTEMPTS": str(folder / "attempts")}


@pytest.fixture(scope="session")
def workspace(once: Once, raw: Path, tiny_encoder: Path) -> Path:
    """The workspace of a build of these cases without Prefect: what it said in `said`, its release in `out`."""

    def build(folder: Path) -> None:
        environment = shut(folder / "person")
        done = medi_build(*places(raw, folder, tiny_encoder), *OPTIONS, "--runner", "none", environment=environment)
        assert done.returncode == 0, done.stderr
        (folder / "said").write_text(done.stderr)

    return once("cases-built", build)


def places(raw: Path, workspace: Path, encoder: Path) -> list[str | Path]:
    return ["--raw", raw, "--encoder", encoder, "--workspace", workspace, "--out", workspace / "out"]


@pytest.fixture(scope="session")
def tasks(workspace: Path) -> dict[str, dict]:
    """The tasks of the manifest, by name."""
    return {str(entry["task"]): entry for entry in manifest_of(workspace / "out")["tasks"]}


def ids_of(release: Path, name: str) -> list[str]:
    rows = pq.read_table(release / "data", columns=["task", "id"], filters=[("task", "==", name)])
    return rows["id"].to_pylist()


def test_c4_one_class_task(tasks: dict[str, dict], workspace: Path) -> None:
    """C4: no rows, skipped as a single class, and the build goes on."""
    entry = tasks["task902_one_class"]
    assert (entry["got"], entry["dropped"]) == (0, {"single_class": 30})
    assert entry["evidence"]["ingest"]["skipped"] == "single_class"
    assert "left out (single_class): task902_one_class" in (workspace / "said").read_text()


def test_c9_language_filter(tasks: dict[str, dict], workspace: Path) -> None:
    """C9: of three tasks the English one is kept, the others are listed with the language that excluded them."""
    assert [tasks[name]["got"] for name in ("task1_english", "task2_spanish", "task3_french")] == [1, 0, 0]
    said = (workspace / "said").read_text()
    for name, reason in (
        ("task2_spanish", "language Input_language Spanish"),
        ("task3_french", "language Output_language French"),
    ):
        assert tasks[name]["evidence"]["ingest"]["skipped"] == reason and f"left out ({reason}): {name}" in said


def test_c22_lines_of_a_cut_gz_that_are_allowed_are_on_record(tasks: dict[str, dict], workspace: Path) -> None:
    """The rest of C22 (in `tests/test_cases.py`): with --max-bad-rows the manifest says what is missing."""
    entry = tasks[CUT]
    assert (entry["got"], entry["dropped"]["bad"], entry["evidence"]["ingest"]["lines_read"]) == (20, 1, 2_000)
    (bad,) = entry["evidence"]["ingest"]["quarantine"]
    assert bad["origin"].endswith(f"{CUT}.jsonl.gz") and bad["reason"].startswith("the gz is cut: it ends after ")


def test_c27_task_that_ends_with_no_rows(tasks: dict[str, dict], workspace: Path, tmp_path: Path) -> None:
    """C27: no zero-row file, the task in the manifest with its reason, and `datasets` loads the folder."""
    import datasets

    assert (tasks["task4_no_rows"]["got"], tasks["task4_no_rows"]["dropped"]) == (0, {"null": 9})
    shards = sorted((workspace / "out" / "data").iterdir())
    assert all(pq.read_metadata(shard).num_rows for shard in shards)
    loaded = datasets.load_dataset(str(workspace / "out"), split="train", cache_dir=str(tmp_path))
    assert len(loaded) == sum(entry["got"] for entry in tasks.values()) == 64


def test_c31_instruction_endings(workspace: Path) -> None:
    """C31: absent parts leave nothing behind, one terminator in the whole build, text follows it at once."""
    style = load_instructions().style
    slots = [Slots("sentence", domain="science"), Slots("sentence"), Slots("document", objective="retrieval")]
    expected = ["Represent the science sentence:", "Represent the sentence:", "Represent the document for retrieval:"]
    assert [render(one, style) for one in slots] == expected
    table = pq.read_table(workspace / "out" / "data")
    said = {text for side in ("query", "document") for text in table[f"{side}_instruction"].to_pylist()}
    assert "Represent the example for the following task: Say it in other words.:" in said and len(said) == 9
    for text in said:
        assert text.endswith(":") and not text.endswith((" :", "for:", "::", ";:")) and "  " not in text


def test_c40_cut_and_quota(tasks: dict[str, dict], raw: Path, workspace: Path, tiny_encoder: Path) -> None:
    """C40: of 3, 50 and 1,000 rows 3, 20 and 20 at a quota of 20, and another set of tasks changes none of them."""
    assert [tasks[name]["got"] for name in PAIRS] == [3, 20, 20]
    assert [tasks[name]["planned"] - tasks[name]["got"] for name in PAIRS] == [17, 0, 0]
    fewer = [*places(raw, workspace, tiny_encoder)[:-1], workspace / "fewer", "--sources", ",".join(list(PAIRS)[1:])]
    done = medi_build(*fewer, *OPTIONS, "--runner", "none")
    assert done.returncode == 0, done.stderr
    for name in list(PAIRS)[1:]:
        ids = ids_of(workspace / "fewer", name)
        assert ids == ids_of(workspace / "out", name) and len(set(ids)) == 20


@pytest.mark.slow
def test_c44_prefect_without_a_network_and_without_a_home(
    raw: Path, workspace: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    """C44: two builds at once end well, write nowhere else, and equal the one without Prefect."""
    shared, plain, environment, builds = tmp_path / "w", tmp_path / "plain", shut(tmp_path), {}
    # What takes time and is none of Prefect's is there already; ingest to instruct run again, in the one workspace.
    made_again = shutil.ignore_patterns("ingest", "candidates", "mine", "audit", "sample", "instruct")
    for folder in (shared, plain):
        shutil.copytree(workspace / "store", folder / "store", ignore=made_again)
    smallest = ["--sources", "gooaq_pairs", *OPTIONS, "--workers", "2", "--runner"]
    (tmp_path / "here").mkdir()
    for out in (shared / "one", shared / "other"):
        call = [*places(raw, shared, tiny_encoder)[:-1], out, *smallest, "threads"]
        run = as_a_person([sys.executable, "-m", "pipelines.build", *map(str, call)])
        builds[out] = subprocess.Popen(run, env=environment, cwd=tmp_path / "here", stderr=subprocess.PIPE, text=True)
    assert medi_build(*places(raw, plain, tiny_encoder), *smallest, "none").returncode == 0
    for out, build in builds.items():
        said = build.communicate(timeout=300)[1]
        assert build.returncode == 0 and "database is locked" not in said and "Traceback" not in said, said
        assert files_of(out) == files_of(plain / "out")
    assert (shared / "prefect" / "prefect.db").exists()
    for person in (tmp_path, workspace / "person"):
        assert not (person / "attempts").exists() and list((person / "home").iterdir()) == []
    assert list((tmp_path / "here").iterdir()) == []
    away = "import socket; socket.create_connection(('192.0.2.1', 80))"
    assert subprocess.run([sys.executable, "-c", away], env=environment, stderr=subprocess.PIPE).returncode == 1
    assert (tmp_path / "attempts").read_text() == "'192.0.2.1'\n"


@pytest.mark.slow
def test_c45_one_of_ten_tasks_fails(tiny_encoder: Path, tmp_path: Path) -> None:
    """C45: nine stand, the seventh is named, nothing is published; a rerun does only that task."""
    names = [f"task{number}_rewrite" for number in range(1, 11)]
    write_tasks(tmp_path / "raw", {name: answers(name, 6) for name in names})
    path = tmp_path / "raw" / "super_ni" / "tasks" / "task7_rewrite.json"
    good = path.read_text()
    path.write_text(good[: len(good) // 2])
    call = [*places(tmp_path / "raw", tmp_path / "w", tiny_encoder), "--runner", "none"]
    failed = medi_build(*call)
    named = [line for line in failed.stderr.splitlines() if line.startswith("medi: ")]
    assert failed.returncode == 1 and "Traceback" not in failed.stderr
    assert len(named) == 1 and "task7_rewrite" in named[0], failed.stderr
    assert not (tmp_path / "w" / "out").exists() and not list((tmp_path / "w").glob("out.*"))
    before = artifacts(tmp_path / "w")
    assert {unit for stage, unit in before if stage == "instruct"} == {*names} - {"task7_rewrite"}
    path.write_text(good)
    done = medi_build(*call)
    assert done.returncode == 0, done.stderr
    assert {unit for stage, unit in artifacts(tmp_path / "w").keys() - before.keys()} == {"task7_rewrite"}
    assert [entry["got"] for entry in manifest_of(tmp_path / "w" / "out")["tasks"]] == [6] * 10
