"""Releases become rows by number: checked, decoded once, cut into tasks; ablations choose tasks and instructions."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from medi.errors import MediError, UsageError
from medi.release import open_release
from medi.store import Store
from medi.train.ablations import Ablation, chosen, instructions
from medi.train.data import COLUMNS, open_data
from tests.release_builder import tiny


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release of three shards: four tasks of 1,100, 3, 3 and 3 rows."""
    builder = tiny(3)
    builder.rows["asks", "asks"] = tiny(1100).rows["asks", "asks"]
    for entry in (builder.sources[0], builder.tasks[0]):
        entry |= {"got": 1100, "planned": 1100, "drawn": 1100 + 3 * ("variant" in entry)}  # type: ignore[operator]
    builder.row("twins", 1)["negatives"] = ["another negative"]
    builder.row("twins", 1)["negative_scores"], builder.row("twins", 1)["negative_origins"] = [0.5], ["mined"]
    builder.write(tmp_path / "release", shard_bytes=1)
    return tmp_path / "release"


def test_rows_are_those_of_the_release_by_number(release: Path, tmp_path: Path) -> None:
    data = open_data(release, Store(tmp_path / "store"))
    rows = [row for table in open_release(release).tables() for row in table.select(COLUMNS).to_pylist()]
    numbers = np.array([1105, 2, 1099, 2, 1000, 999, 0, 1108])
    assert data.take(numbers).to_pylist() == [rows[number] for number in numbers]
    assert [(task.name, task.first_row, task.rows) for task in data.tasks] == [
        ("asks", 0, 1100), ("twins", 1100, 3), ("task001_yes_or_no", 1103, 3), ("task002_rewrite", 1106, 3),
    ]  # fmt: skip
    assert sorted(data.tasks[1].negatives.tolist()) == [1, 2, 2]
    told = ("Represent the question for retrieving answers:", "Represent the answer for retrieval:")
    assert data.tasks[0].instructions == told


def test_a_shard_is_decoded_once_and_a_changed_one_is_still_refused(release: Path, tmp_path: Path) -> None:
    store, said = Store(tmp_path / "store"), []
    open_data(release, store, said.append)
    assert len(open_release(release).shards()) == len(list((tmp_path / "store" / "decoded").iterdir()))
    assert [line.split()[0] for line in said] == ["verifying"] + ["decoding"] * len(open_release(release).shards())
    said.clear()
    open_data(release, store, said.append)
    assert said == []

    other = release.parent / "elsewhere"
    shutil.copytree(release, other)
    shard = next((other / "data").iterdir())
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    with pytest.raises(MediError, match=r"elsewhere does not verify: data/train-\S+: is not the file of the manifest"):
        open_data(other, store)
    shard.unlink()
    with pytest.raises(MediError, match=r"is missing; `medi verify` says all"):
        open_data(other, store)


def test_a_release_that_does_not_verify_is_refused_with_its_first_fault(tmp_path: Path) -> None:
    builder = tiny()
    builder.row("asks")["negatives"] = [builder.row("asks")["query"], "another"]
    builder.write(tmp_path / "release")
    with pytest.raises(MediError, match=r"release does not verify: data/train\S+: asks/\w+: .*negative"):
        open_data(tmp_path / "release", Store(tmp_path / "store"))
    assert not (tmp_path / "store" / "verified").exists()


def test_a_task_with_two_instructions_is_refused(tmp_path: Path) -> None:
    builder = tiny()
    builder.row("twins")["query_instruction"] = "Represent the other question, an answer:"
    builder.write(tmp_path / "release")
    with pytest.raises(MediError, match="task twins has several instructions on one side"):
        open_data(tmp_path / "release", Store(tmp_path / "store"))


@pytest.mark.parametrize(
    ("ablation", "expected"),
    [
        (Ablation(), ["asks", "twins", "task001_yes_or_no", "task002_rewrite"]),
        (Ablation(tasks="asymmetric"), ["asks"]),
        (Ablation(tasks="symmetric"), ["twins", "task001_yes_or_no", "task002_rewrite"]),
        (Ablation(tasks="symmetric", super_ni=False), ["twins"]),
    ],
)
def test_ablations_choose_tasks(release: Path, tmp_path: Path, ablation: Ablation, expected: list[str]) -> None:
    data = open_data(release, Store(tmp_path / "store"))
    assert [task.name for task in chosen(data.tasks, ablation)] == expected


def test_an_ablation_of_everything_and_unknown_words_are_refused(release: Path, tmp_path: Path) -> None:
    data = open_data(release, Store(tmp_path / "store"))
    with pytest.raises(UsageError, match="--tasks asymmetric --no-super-ni: leaves no task"):
        chosen(data.tasks[1:], Ablation(tasks="asymmetric", super_ni=False))
    with pytest.raises(UsageError, match="--level full: give one of none, tag, simple, detailed"):
        Ablation(level="full").check()  # type: ignore[arg-type]


def test_levels_are_renderings_of_the_slots(release: Path, tmp_path: Path) -> None:
    asks, twins, label, _ = open_data(release, Store(tmp_path / "store")).tasks
    asks.entry["slots"] = {"query": {"text_type": "question", "domain": "Google"}, "document": {"text_type": "answer"}}
    assert instructions(asks, "detailed") == asks.instructions
    assert instructions(asks, "none") == ("", "")
    assert instructions(asks, "tag") == ("asks:", "asks:")
    assert instructions(asks, "simple") == ("Google question:", "answer:")
    assert instructions(label, "tag") == ("task001_yes_or_no:", "task001_yes_or_no:")
    twins.entry["slots"] = None
    assert instructions(twins, "none") == ("", "")
    with pytest.raises(UsageError, match="--level tag: the manifest has no slots for task twins"):
        instructions(twins, "tag")
