"""Equal bytes whatever a machine does, whatever a workspace has seen; and of what changed, only what hangs on it."""

import gzip
import json
import os
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

from tests.builds import REPO, artifacts, files_of, manifest_of, medi_build, options, vector_ids

SETS = ("gooaq_pairs", "NQ", "WikiAnswers", "AllNLI", "msmarco", "fever")
LABEL, TEXT, CHOICE = (
    f"task90{name}" for name in ("01_medi_sentiment_classification", "09_medi_news_summarization",
                                 "15_medi_geography_multiple_choice")
)  # fmt: skip
ONE_CLASS = "task9017_medi_one_class_answerability"
ALL = (*SETS, LABEL, TEXT, CHOICE)
# From a unit's rows to its examples.
ALONG = "tokens candidates mine audit sample instruct"

Ran = set[tuple[str, str]]
Again = Callable[..., tuple[Path, Ran]]


def of(stages: str, *units: str) -> Ran:
    """Return these stages of these units."""
    return {(stage, unit) for stage in stages.split() for unit in units}


@pytest.fixture
def again(built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path) -> Again:
    """Build once more in a copy of the built workspace: returns the copy, and what ran of which units."""

    def build(
        *asked: str | Path, raw: Path = cut, encoder: Path = tiny_encoder, package: Path = REPO
    ) -> tuple[Path, Ran]:
        workspace = tmp_path / "w"
        shutil.copytree(built / "store", workspace / "store", copy_function=os.link)
        before = artifacts(workspace)
        call = [*options(raw, workspace, encoder), *asked]
        done = medi_build(*call, environment={"PYTHONPATH": str(package)}, cwd=package)
        assert done.returncode == 0, done.stderr
        assert len(vector_ids(workspace)) == len({*vector_ids(workspace)}) or encoder != tiny_encoder
        return workspace, {what for what, keys in artifacts(workspace).items() if keys != before.get(what)}

    return build


@pytest.mark.slow
def test_prefect_threads_hash_seed_locale_folder_and_foreign_files_do_not_change_a_byte(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    """C10, C38."""
    raw, workspace = tmp_path / "raw elsewhere", tmp_path / "w"
    for path in sorted(cut.rglob("*.*"), reverse=True):
        copy = raw / path.relative_to(cut)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    (encoder_key,) = (path.name for path in (built / "store" / "vectors").iterdir())
    foreign = [*(f"store/{stage}/notes" for stage in ("ingest", "candidates", "near", "vectors")), "digests/notes"]
    foreign += [f"store/vectors/{encoder_key}/mine/ids.npy", "store/mine/of.another/record.txt", "store/notes"]
    foreign += [".hidden", "store/sample/.tmp-elsewhere-1-2-3/record.json", "out.new-idea/thesis.tex"]
    for name in foreign:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("not ours")
    variables = {"PYTHONHASHSEED": "2", "LC_ALL": "C", "PYTHONUTF8": "0", "HOME": str(tmp_path / "no home")}
    call = [*options(raw, workspace, tiny_encoder), "--workers", "2", "--runner", "threads"]
    done = medi_build(*call, environment=variables, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert files_of(workspace / "out") == files_of(built / "out")
    assert [(workspace / name).read_text() for name in foreign] == ["not ours"] * len(foreign)
    assert not (tmp_path / "no home").exists()
    assert "database is locked" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_whatever_was_built_before_a_build_equals_one_from_nothing(
    built: Path, cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    """Other sources, another seed, scale and profile, another encoder; texts that were encoded are not again."""
    call, before = options(cut, tmp_path, tiny_encoder), []
    other = ("--encoder", other_encoder(tiny_encoder, tmp_path / "other"))
    for asked in (
        ("--sources", "gooaq_pairs,AllNLI,super_ni"),
        ("--sources", "msmarco,fever", "--seed", "7", "--scale", "0.001", "--profile", "clean"),
        ("--sources", "NQ,AllNLI", "--take", "first", "--fill", "random", *other),
    ):
        done = medi_build(*call, *asked)
        assert done.returncode == 0, done.stderr
        before.append(artifacts(tmp_path))
    done = medi_build(*call)
    assert done.returncode == 0, done.stderr
    assert files_of(tmp_path / "out") == files_of(built / "out")
    after = artifacts(tmp_path)
    assert {what: after[what] for what in before[0] if what[1] != "AllNLI"} == {
        what: keys for what, keys in before[0].items() if what[1] != "AllNLI"
    }
    assert all(keys <= after[what] for what, keys in before[-1].items())
    (encoder_key,) = (path.name for path in (built / "store" / "vectors").iterdir())
    everything = vector_ids(tmp_path, encoder_key)
    assert len(everything) == len(set(everything)) and set(everything) >= set(vector_ids(built))


def other_encoder(encoder: Path, folder: Path) -> Path:
    """Write the encoder with other weights: another revision of it."""
    shutil.copytree(encoder, folder)
    weights = load_file(folder / "model.safetensors")
    save_file({name: (value * np.float32(1.25)) for name, value in weights.items()}, folder / "model.safetensors")
    return folder


@pytest.mark.slow
def test_order_of_rows_and_cuts_of_files_change_origins_alone(
    built: Path, cut: Path, again: Again, tmp_path: Path
) -> None:
    """The files of `embedding_training_data` have one name each; DPR and KILT files may come in several."""
    raw, draw = tmp_path / "raw", random.Random(0)
    shutil.copytree(cut, raw)
    for path in raw.glob("embedding_training_data/*"):
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        path.write_bytes(gzip.compress(b"".join(draw.sample(lines, len(lines)))))
    for path in raw.glob("super_ni/tasks/*"):
        task = json.loads(path.read_bytes())
        draw.shuffle(task["Instances"])
        path.write_text(json.dumps(task))
    array = raw / "dpr_format" / "nq-train.json"
    parts(array, [json.dumps(record) for record in json.loads(array.read_bytes())], "[", ",", "]", draw)
    for path in raw.glob("kilt/*"):
        parts(path, path.read_text().splitlines(), "", "\n", "\n", draw)
    workspace, ran = again(raw=raw)
    # An instance of a task is named by its id, which goes with it.
    assert ran == of("ingest", *ALL, ONE_CLASS) | of(ALONG, *SETS)
    old, new = manifest_of(built / "out"), manifest_of(workspace / "out")
    assert new["content_digest"] == old["content_digest"]
    old_rows, new_rows = (pq.read_table(release / "data") for release in (built / "out", workspace / "out"))
    assert new_rows.drop_columns("origin") == old_rows.drop_columns("origin")
    assert new_rows["origin"] != old_rows["origin"]
    audits = (release / "audit" / "positives.parquet" for release in (built / "out", workspace / "out"))
    assert len({path.read_bytes() for path in audits}) == 1


def parts(path: Path, records: list[str], opening: str, between: str, closing: str, draw: random.Random) -> None:
    """Write the records of a file, in another order, as two files in its place."""
    draw.shuffle(records)
    stem, dash, rest = path.name.partition("-")
    for number, part in enumerate((records[::2], records[1::2])):
        name = f"{stem}-train-{number}{rest.removeprefix('train')}" if "train" in rest else f"{stem}-{number}.json"
        path.with_name(name).write_text(opening + between.join(part) + closing)
    path.unlink()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("--scale 0.5", of("ingest", *SETS) | of("sample", *ALL)),
        pytest.param(
            "--scale 0.001", of("ingest", *SETS) | of("sample", *ALL)
            | of(ALONG, "gooaq_pairs", "NQ", "WikiAnswers", "AllNLI") | of("instruct", LABEL, TEXT, CHOICE),
            marks=pytest.mark.slow,
        ),
        ("--negatives 2", of("mine audit sample instruct", *ALL)),
        ("--fill random", of("mine", *ALL)),
        ("--profile clean", of("near", *SETS) | of("mine", "msmarco")
         | of("mine audit sample instruct", *(unit for unit in ALL if unit != "msmarco"))),
    ],
)  # fmt: skip
def test_an_option_runs_what_hangs_on_it_and_encodes_nothing(
    built: Path, again: Again, asked: str, expected: Ran
) -> None:
    """All rows of the cut are within half of every quota; no row of it is in need of filling up."""
    workspace, ran = again(*asked.split())
    assert ran == expected
    assert sorted(vector_ids(workspace)) == sorted(vector_ids(built))


@pytest.mark.slow
def test_another_seed_draws_again_and_encodes_only_texts_that_were_never_drawn(built: Path, again: Again) -> None:
    workspace, ran = again("--seed", "1")
    # A Super-NI task is cut to its quota by score: the same pairs in the same order, whatever the seed.
    of_tasks = of("ingest tokens candidates mine audit", LABEL, TEXT, CHOICE) | of("ingest", ONE_CLASS)
    assert ran == of_tasks | of(f"ingest {ALONG}", *SETS)
    before, after = set(vector_ids(built)), set(vector_ids(workspace))
    assert before < after and len(after) < 1.1 * len(before)


@pytest.mark.slow
def test_another_revision_of_the_encoder_reads_no_raw_file_again(
    built: Path, tiny_encoder: Path, again: Again, tmp_path: Path
) -> None:
    workspace, ran = again(encoder=other_encoder(tiny_encoder, tmp_path / "other"))
    assert ran == of(ALONG, *ALL)
    both = [vector_ids(workspace, path.name) for path in (workspace / "store" / "vectors").iterdir()]
    assert [sorted(ids) for ids in both] == [sorted(vector_ids(built))] * 2


@pytest.mark.slow
def test_changed_files_run_only_their_own_units(built: Path, cut: Path, again: Again, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    shutil.copytree(cut, raw)
    path = raw / "super_ni" / "tasks" / f"{TEXT}.json"
    task = json.loads(path.read_bytes())
    task["Instances"] = task["Instances"][:-1]
    path.write_text(json.dumps(task))
    path = raw / "embedding_training_data" / "gooaq_pairs.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[1:])))
    workspace, ran = again(raw=raw)
    assert ran == of(f"ingest {ALONG}", TEXT, "gooaq_pairs")
    assert sorted(vector_ids(workspace)) == sorted(vector_ids(built))


def package_with(folder: Path, edits: Iterable[tuple[str, str, str]]) -> Path:
    """Write a copy of the program in which (file, old, new) are changed, once each."""
    for part in ("medi", "pipelines", "instructions"):
        shutil.copytree(REPO / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in edits:
        text = (folder / name).read_text()
        assert text.count(old) == 1, (name, old)
        (folder / name).write_text(text.replace(old, new))
    return folder


_GOOAQ = "[gooaq_pairs]\nquery = { domain = "
_SETS_FILE = "medi/sources/embedding_training_data.py"


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([("instructions/embedding.toml", f'{_GOOAQ}"Google"', f'{_GOOAQ}"Web"')], of("instruct", "gooaq_pairs")),
        ([("instructions/templates.toml", '"Represent the[', '"Encode the[')], of("instruct", *ALL)),
        ([(_SETS_FILE, '"AllNLI", "specter', '"specter'), (_SETS_FILE, "unstated (research)", "CC0"),
          (_SETS_FILE, "Bajaj et al. 2016", "Bajaj and others 2016")],
         # The cut's pairs of AllNLI are the same without symmetry, so nothing behind them runs.
         of("candidates mine", "AllNLI") | of("instruct", "WikiAnswers")),
        ([("medi/stages.py", '"sample": 1', '"sample": 901')], of("sample", *ALL)),
    ],
    ids=["an instruction", "all instructions", "declarations", "a stage's version"],
)  # fmt: skip
def test_a_change_of_the_program_or_its_texts_runs_what_hangs_on_it(
    built: Path,
    again: Again,
    tmp_path: Path,
    edits: list[tuple[str, str, str]],
    expected: Ran,
) -> None:
    workspace, ran = again(package=package_with(tmp_path / "package", edits))
    assert ran == expected
    assert sorted(vector_ids(workspace)) == sorted(vector_ids(built))
    assert files_of(workspace / "out") != files_of(built / "out")
