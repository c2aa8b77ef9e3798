"""A whole build by its command: what it gives, what it says, and how it fails, with nothing half done."""

import gzip
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from medi.instruct import load_instructions
from tests.builds import REPO, SOURCES, manifest_of, medi_build, options
from tests.hub_server import Hub, publish_task, serving

LABEL, TEXT = "task9001_medi_sentiment_classification", "task9009_medi_news_summarization"
CHOICE, ONE_CLASS = "task9015_medi_geography_multiple_choice", "task9017_medi_one_class_answerability"


def test_a_build_that_finds_all_in_place_starts_neither_prefect_nor_torch(
    built: Path, cut: Path, tiny_encoder: Path
) -> None:
    code = (
        "import sys; from rich.console import Console; from pathlib import Path; from pipelines.build import build;"
        "from pipelines.presets import resolve;"
        f"encoder, raw, workspace = {str(tiny_encoder)!r}, Path({str(cut)!r}), Path({str(built)!r});"
        "settings = resolve('sample', raw=raw, encoder=encoder, workspace=workspace, out=workspace / 'out');"
        "build(settings, Console(stderr=True));"
        "print(sorted({'torch', 'prefect', 'faiss', 'sentence_transformers'} & set(sys.modules)))"
    )
    before = {p: p.stat().st_mtime_ns for p in (built / "out").rglob("*")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=REPO)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    assert {p: p.stat().st_mtime_ns for p in (built / "out").rglob("*")} == before


def test_every_unit_is_in_the_manifest_with_rows_or_a_reason(built: Path) -> None:
    manifest = manifest_of(built / "out")
    assert [s["name"] for s in manifest["sources"]] == list(SOURCES)
    tasks = {t["task"]: t for t in manifest["tasks"]}
    assert [tasks[t]["kind"] for t in (LABEL, TEXT, CHOICE)] == ["label", "text", "text"]
    assert tasks[ONE_CLASS]["got"] == 0 and tasks[ONE_CLASS]["evidence"]["ingest"]["skipped"] == "single_class"  # type: ignore[index]
    assert all(t["got"] for name, t in tasks.items() if name != ONE_CLASS)
    assert all(t["drawn"] == t["got"] + sum(t["dropped"].values()) for t in tasks.values())  # type: ignore[attr-defined, operator]
    clusters = sorted(name for name in tasks if name.startswith("msmarco/"))
    assert len(clusters) == 4
    sizes = [tasks[name]["got"] for name in clusters]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) == 160  # type: ignore[arg-type, type-var]
    source = next(s for s in manifest["sources"] if s["name"] == "msmarco")
    counted = {name: source[name] for name in ("planned", "drawn", "got", "dropped")}
    wholes = [tasks[name]["evidence"]["cluster_of"] for name in clusters]  # type: ignore[index]
    # The pool of all clusters was mined as one: its account stands in that place alone.
    assert all(counted.items() <= whole.items() and whole["task"] == "msmarco" for whole in wholes)
    assert all(whole["pool_rows"] >= 160 < sum(whole["mine"]["negatives"].values()) for whole in wholes)
    assert not any("mine" in tasks[name]["evidence"] for name in clusters)  # type: ignore[operator]
    assert sum(tasks[name]["planned"] for name in clusters) == source["got"] < source["drawn"]  # type: ignore[misc, operator]
    assert all(json.dumps(manifest).find(str(place)) < 0 for place in (built, REPO))


def test_verify_finds_nothing(built: Path) -> None:
    call = [sys.executable, "-m", "pipelines.cli.app", "verify", str(built / "out")]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=REPO)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_each_unit_that_fails_is_a_line(cut: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    shutil.copytree(cut, raw)
    bad = ("embedding_training_data/gooaq_pairs.jsonl.gz", f"super_ni/tasks/{TEXT}.json")
    for name in bad:
        (raw / name).write_bytes(b"{")
    call = options(raw, tmp_path / "w", tiny_encoder)
    failed = medi_build(*call, "--sources", "super_ni,gooaq_pairs")
    *lines, last = [line for line in failed.stderr.splitlines() if line.startswith("medi: ")]
    assert failed.returncode == 1 and len(lines) == 2, failed.stderr
    assert all(sum(name in line for line in lines) == 1 for name in bad)
    assert last.startswith("medi: 2 sources or tasks failed, nothing is published; ")


@pytest.mark.slow
def test_what_has_no_file_is_told_and_in_the_manifest(cut: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    raw, workspace = tmp_path / "raw", tmp_path / "w"
    shutil.copytree(cut / "super_ni", raw / "super_ni")
    shutil.copytree(cut / "kilt", raw / "kilt")
    listed = sorted(load_instructions().super_ni_tasks)
    for here in listed[:2]:
        shutil.copy(raw / "super_ni" / "tasks" / f"{LABEL}.json", raw / "super_ni" / "tasks" / f"{here}.json")
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    call = [*options(raw, workspace, tiny_encoder), "--super-ni-tasks", "listed"]
    done = medi_build(*call)
    ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    assert done.returncode == 0, done.stderr
    told = done.stderr.splitlines()
    assert any(line.startswith(f"no file in {raw}, left out: ") and " agnews," in line for line in told)
    tasks = f"super_ni: no file in {raw} of 298 listed tasks, left out: {', '.join(listed[2:5])} and 295 more"
    assert tasks in told and f"variants by the files in {raw}: fever=kilt" in told
    absent = manifest_of(workspace / "out")["params"]["absent"]  # type: ignore[call-overload]
    assert absent["super_ni_tasks"] == listed[2:]
    assert len(absent["sources"]) == 29 and not {"fever", "super_ni"} & set(absent["sources"])
    run = json.loads((workspace / "out" / "run.json").read_bytes())
    assert began <= run["started"] < ended


@pytest.mark.slow
def test_a_task_outside_the_list_is_fetched_by_its_name(tiny_encoder: Path, tmp_path: Path) -> None:
    hub, names = Hub(), tmp_path / "names.txt"
    publish_task(
        hub, "task547_alt_translation_entk_en", (REPO / f"data/sample/super_ni/tasks/{TEXT}.json").read_bytes()
    )
    names.write_text("task547_alt_translation_entk_en\ntask9999_nowhere\n")
    places = ["--workspace", tmp_path, "--out", tmp_path / "out", "--encoder", tiny_encoder, "--runner", "none"]
    call = ["--preset", "full", "--sources", "super_ni", "--super-ni-tasks", names, *places]
    with serving(hub):
        online = {"HF_ENDPOINT": hub.address, "MEDI_MIRROR": hub.address, "HF_HUB_DISABLE_TELEMETRY": "1"}
        failed = medi_build(*call, environment=online)
        last = failed.stderr.splitlines()[-1]
        assert failed.returncode == 1 and "task9999_nowhere" in last and "answer 404" in last, failed.stderr
        names.write_text("task547_alt_translation_entk_en\n")
        done = medi_build(*call, environment=online)
    assert done.returncode == 0, done.stderr
    manifest = manifest_of(tmp_path / "out")
    assert [task["task"] for task in manifest["tasks"]] == ["task547_alt_translation_entk_en"]
    chosen = {"choice": "file", "names": ["task547_alt_translation_entk_en"]}
    assert manifest["params"]["super_ni_tasks"] == chosen  # type: ignore[call-overload]


def damage(raw: Path, kind: str) -> None:
    """Damage the only source of a raw folder."""
    path = raw / "embedding_training_data" / "gooaq_pairs.jsonl.gz"
    content = path.read_bytes()
    lines = gzip.decompress(content)
    path.unlink()
    if kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(
            {
                "cut": content[: len(content) // 2],
                "junk": content + b"junk",
                "empty": b"",
                "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
                "page": b"<!DOCTYPE html><html>not found</html>",
                "layout": gzip.compress(lines.replace(b'["', b'{"set": ["', 1).replace(b"]\n", b"]}\n", 1)),
                "triplets": gzip.compress(b'["a","b","c"]\n'),
            }[kind]
        )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("cut", "gooaq_pairs.jsonl.gz"),
        ("junk", "gooaq_pairs.jsonl.gz"),
        ("empty", "gooaq_pairs.jsonl.gz"),
        ("pointer", "Git-LFS pointer"),
        ("page", "HTML page"),
        ("layout", "gooaq_pairs.jsonl.gz:"),
        ("triplets", "gooaq_pairs.jsonl.gz:1"),
        ("folder", "medi: gooaq_pairs: "),
    ],
)
def test_bad_files_are_one_line_and_leave_no_release(
    cut: Path, tiny_encoder: Path, tmp_path: Path, kind: str, words: str
) -> None:
    """C22 has all kinds of damage; here, that none of it leaves a release."""
    raw, workspace = tmp_path / "raw", tmp_path / "w"
    (raw / "embedding_training_data").mkdir(parents=True)
    shutil.copy(cut / "embedding_training_data" / "gooaq_pairs.jsonl.gz", raw / "embedding_training_data")
    damage(raw, kind)
    done = medi_build(*options(raw, workspace, tiny_encoder))
    errors = [line for line in done.stderr.splitlines() if "no file in" not in line and "s/s" not in line]
    assert done.returncode in (1, 2) and len(errors) == 1 and words in errors[0], done.stderr
    assert done.stdout == "" and not list(workspace.glob("out*"))


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--raw", "/nowhere/at/all"], 2, "/nowhere/at/all"),
        (["--sources", "gooaq"], 2, "gooaq_pairs"),
        (["--scale", "0"], 2, "--scale 0"),
        (["--seed", "-1"], 2, "--seed -1"),
        (["--super-ni-tasks", "/nowhere.txt"], 2, "/nowhere.txt"),
        (["--encoder", "/nowhere/model"], 2, "/nowhere/model"),
        (["--variant", "NQ=other"], 2, "pairs"),
        (["--max-bad-rows", "many"], 2, "many"),
    ],
)
def test_wrong_calls_are_one_line(tmp_path: Path, args: list[str], code: int, words: str) -> None:
    done = medi_build("--workspace", tmp_path / "w", *args)
    assert done.returncode == code and words in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stdout == "" and not list(tmp_path.glob("w/medi*"))


def test_a_folder_that_is_not_ours_is_never_replaced(cut: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")
    done = medi_build(*options(cut, tmp_path, tiny_encoder), "--sources", "gooaq_pairs")
    told = f"medi: {tmp_path / 'out'} exists and is not a release of medi; name another --out, or move it away\n"
    assert (done.returncode, done.stderr) == (1, told)
    assert (tmp_path / "out" / "thesis.tex").read_text() == "mine"


@pytest.mark.slow
def test_a_smaller_scale_gives_a_subset(built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    done = medi_build(*options(cut, tmp_path, tiny_encoder), "--scale", "0.001", "--sources", "gooaq_pairs,AllNLI")
    assert done.returncode == 0, done.stderr
    manifest = manifest_of(tmp_path / "out")
    assert [(s["name"], s["planned"], s["got"]) for s in manifest["sources"]] == [
        ("gooaq_pairs", 25, 25), ("AllNLI", 50, 50),
    ]  # fmt: skip
    small, large = (
        pq.read_table(folder / "data", columns=["id"])["id"].to_pylist() for folder in (tmp_path / "out", built / "out")
    )
    assert len(small) == 75 and set(small) < set(large)
