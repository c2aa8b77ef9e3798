"""Writing a release: where shards are cut, what is refused, equal bytes, and that a kill leaves a whole one."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from medi.errors import MediError
from medi.release import open_release
from medi.release.swap import finish_swap
from medi.release.verify import verify
from medi.schema import EXAMPLES
from medi.shards import manifest_head, same_release, write_release
from tests.release_builder import Builder, tiny


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return every file of a release but run.json."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "run.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_equal_contents_give_equal_bytes_and_run_json_alone_may_differ(tmp_path: Path) -> None:
    one, two = tiny(), tiny()
    first = one.write(tmp_path / "one")
    assert write_release(tmp_path / "two", replace(two.contents(), run={"seconds": 2.5})) == first
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")
    assert (tmp_path / "two" / "run.json").read_text() == '{\n "seconds": 2.5\n}\n'


def test_row_groups_hold_one_task_and_a_shard_ends_when_it_is_full(tmp_path: Path) -> None:
    """2,500 rows a task make groups of 1,000, 1,000 and 500; a shard of one byte is full after one group."""
    digest = tiny(2500).write(tmp_path / "many", shard_bytes=1)
    assert tiny(2500).write(tmp_path / "one") == digest
    many, one = open_release(tmp_path / "many"), open_release(tmp_path / "one")
    assert [entry["path"] for entry in one.shards()] == ["data/train-00000-of-00001.parquet"]
    assert [entry["path"] for entry in many.shards()][::11] == [
        "data/train-00000-of-00012.parquet",
        "data/train-00011-of-00012.parquet",
    ]
    assert [entry.get("rows") for entry in many.shards()] == [1000, 1000, 500] * 4
    assert [place.rows for place in one.places()] == [1000, 1000, 500] * 4
    assert [len(table.column("task").unique()) for table in one.tables()] == [1] * 12


def test_a_shard_is_plain_parquet(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x")
    file = pq.ParquetFile(tmp_path / "x" / "data" / "train-00000-of-00001.parquet")
    assert file.schema_arrow.equals(EXAMPLES)
    assert file.metadata.metadata is None
    assert {file.metadata.row_group(0).column(i).compression for i in range(file.metadata.num_columns)} == {"ZSTD"}
    names = ["README.md", "audit", "data", "manifest.json", "report.html", "run.json"]
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == names


def test_a_task_without_rows_makes_no_empty_shard_and_stays_in_the_manifest(tmp_path: Path) -> None:
    """C27."""
    builder = tiny()
    builder.rows["asks", "asks"] = []
    builder.sources[0]["got"] = builder.tasks[0]["got"] = 0
    builder.sources[0]["drawn"], builder.tasks[0]["drawn"] = 3, 0
    builder.write(tmp_path / "x", shard_bytes=1)
    release = open_release(tmp_path / "x")
    assert [entry.get("rows") for entry in release.shards()] == [4, 4, 4]
    assert release.manifest["tasks"][0]["got"] == 0
    assert list(verify(tmp_path / "x")) == []


def swapped(builder: Builder) -> None:
    builder.rows = dict(reversed(builder.rows.items()))


def unsorted(builder: Builder) -> None:
    builder.sort = False
    rows = builder.rows["asks", "asks"]
    rows.sort(key=lambda row: str(row["id"]), reverse=True)


def short(builder: Builder) -> None:
    builder.rows["asks", "asks"].pop()


def absent(builder: Builder) -> None:
    del builder.rows["asks", "asks"]


def unlisted(builder: Builder) -> None:
    del builder.tasks[0]


def mixed(builder: Builder) -> None:
    builder.rows["asks", "asks"][0]["task"] = "other"


def without_json(builder: Builder) -> None:
    builder.sources[0]["mended"] = {"bom": Path("x")}  # type: ignore[dict-item]


def without_citation(builder: Builder) -> None:
    del builder.sources[0]["citation"]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (swapped, "super_ni: task task001_yes_or_no comes after a task it should precede, or twice"),
        (unsorted, "asks: task asks: row asks/"),
        (short, "asks: task asks should have 4 rows and has 3"),
        (absent, "asks: task asks should have 4 rows and never came"),
        (unlisted, "asks: task asks has rows and no entry in the manifest"),
        (mixed, "a table has rows of 2 tasks"),
        (without_json, "the manifest would be wrong: sources[0].mended.bom is not a whole number"),
        (without_citation, "sources[0].citation is absent"),
    ],
)
def test_contents_that_contradict_themselves_leave_nothing_behind(tmp_path: Path, spoil, message: str) -> None:
    builder = tiny()
    spoil(builder)
    with pytest.raises(MediError) as error:
        builder.write(tmp_path / "x")
    assert message in str(error.value) and "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_release_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MediError, match="no task gave a row"):
        Builder({}, [], []).write(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "damaged", "foreign"])
def test_what_is_not_ours_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "x"
    if kind == "file":
        out.write_text("letter")
    else:
        out.mkdir()
        texts = {"folder": "[]", "damaged": '{"format": ', "foreign": '{"format": "x/1"}'}
        (out / "manifest.json").write_text(texts[kind])
    with pytest.raises(MediError, match="exists and is not a release of medi"):
        tiny().write(out)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_folder_with_the_name_of_the_old_one_is_never_removed(tmp_path: Path) -> None:
    """A person may keep the last release as x.old; only what a swap put there is ours."""
    tiny().write(tmp_path / "x")
    (tmp_path / "x").rename(tmp_path / "x.old")
    with pytest.raises(MediError, match="x.old stands in the way of a new x"):
        tiny().write(tmp_path / "x")
    with pytest.raises(MediError, match="is not a folder"):
        open_release(tmp_path / "x")
    assert list(verify(tmp_path / "x.old")) == []


def test_an_empty_folder_and_an_older_release_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    tiny(2).write(tmp_path / "x")
    tiny(3).write(tmp_path / "x")
    assert open_release(tmp_path / "x").rows() == 12
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("kind", ["file", "link", "release of another version"])
def test_what_a_person_put_into_a_release_is_never_deleted(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "x"
    tiny(2).write(out)
    mine = out / "checkpoints" / "model.bin"
    mine.parent.mkdir()
    if kind == "link":
        (tmp_path / "elsewhere").mkdir()
        mine.symlink_to(tmp_path / "elsewhere")
    else:
        mine.write_text("a week of training")
    if kind == "release of another version":
        mine = out / "README.md"
        (out / "manifest.json").write_text('{"format": "medi-release/0"}')
    with pytest.raises(MediError, match=f"{mine} is not part of the release in {out} and would be deleted"):
        tiny(3).write(out)
    assert os.path.lexists(mine) and not list(tmp_path.glob("x.*"))
    if kind == "link":
        mine.unlink()
        tiny(3).write(out)
        assert open_release(out).rows() == 12


def test_same_release_knows_its_own_head_and_its_missing_files(tmp_path: Path) -> None:
    out = tmp_path / "x"
    assert not same_release(out, manifest_head(tiny().contents()))
    tiny().write(out)
    assert same_release(out, manifest_head(tiny().contents()))
    assert not same_release(out, manifest_head(tiny(3).contents()))
    assert not same_release(out, {"params": {"seed": 1}})
    (out / "README.md").unlink()
    assert not same_release(out, manifest_head(tiny().contents()))


# Writes a release of 3 rows a task over one of 2, and dies just before the n-th change of a name or removal.
DYING = """
    import os, signal, sys
    from pathlib import Path
    from tests.release_builder import tiny

    out, last = Path(sys.argv[1]), int(sys.argv[2])
    builder = tiny(3)
    seen = 0

    def die(event, details):
        global seen
        if event in ("os.rename", "os.remove", "os.rmdir"):
            seen += 1
            if seen > last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(die)
    builder.write(out)
"""


def dies(out: Path, last: int) -> bool:
    """Run DYING; return whether it came to its end."""
    command = [sys.executable, "-c", textwrap.dedent(DYING), str(out), str(last)]
    code = subprocess.run(command, cwd=Path(__file__).parent.parent, check=False).returncode
    assert code in (0, -signal.SIGKILL)
    return code == -signal.SIGKILL


@pytest.mark.slow
def test_a_kill_at_any_point_of_the_swap_leaves_one_whole_release(tmp_path: Path) -> None:
    """Whatever was reached, the next command finds a clean release, old or new, and the next build cleans up."""
    found, last = [], 0
    while True:
        out = tmp_path / str(last) / "x"
        tiny(2).write(out)
        died = dies(out, last)
        release = open_release(out)
        assert list(verify(out)) == []
        assert not (out.parent / "x.old").exists()
        found.append(release.rows())
        tiny(4).write(out)
        assert open_release(out).rows() == 16 and list(verify(out)) == []
        assert [path.name for path in out.parent.iterdir()] == ["x"]
        if not died:
            break
        last += 1
    assert found == sorted(found) and set(found) == {8, 12}
    assert last >= 8


def test_a_kill_while_rows_are_written_leaves_the_old_release(tmp_path: Path) -> None:
    tiny(2).write(tmp_path / "x")
    before = bytes_of(tmp_path / "x")
    assert dies(tmp_path / "x", 0)  # before the first shard gets its name
    assert sorted(path.name[:6] for path in tmp_path.iterdir()) == ["x", "x.new-"]
    assert bytes_of(tmp_path / "x") == before
    tiny(2).write(tmp_path / "x")
    assert bytes_of(tmp_path / "x") == before and len(list(tmp_path.iterdir())) == 1


def test_the_folder_of_a_living_build_is_not_taken_for_a_leftover(tmp_path: Path) -> None:
    builder, other = tiny(2), tiny(3)
    tables = builder.examples

    def slow():
        yield from tables()
        other.write(tmp_path / "x")  # a second build begins and ends while the first one writes

    builder.examples = slow  # type: ignore[method-assign]
    builder.write(tmp_path / "x")
    assert open_release(tmp_path / "x").rows() == 8
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_finishing_where_nothing_was_interrupted_touches_nothing(tmp_path: Path) -> None:
    tiny().write(tmp_path / "x")
    os.utime(tmp_path / "x", (1, 1))
    finish_swap(tmp_path / "x")
    finish_swap(tmp_path / "absent")
    assert (tmp_path / "x").stat().st_mtime == 1


def test_what_does_not_verify_is_not_published(tmp_path: Path) -> None:
    """A known positive among the negatives: the release that stood there stays."""
    out = tmp_path / "release"
    good, broken = tiny().write(out), tiny()
    row = broken.row("asks")
    row["negatives"] = [row["positive"], *row["negatives"][1:]]  # type: ignore[index]
    with pytest.raises(MediError, match=r"negatives\[0\] is the positive") as error:
        write_release(out, broken.contents(), check=verify)
    assert "\n" not in str(error.value) and open_release(out).manifest["content_digest"] == good
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
