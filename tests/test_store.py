"""Artifacts are complete or not there; records name contents; orphans of dead processes go, living ones stay."""

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from medi.errors import MediError
from medi.publish import new_temporary, publish, remove_orphans, write_json
from medi.schema import digest_of, digest_table
from medi.store import Record, Store

TABLE = pa.table({"id": ["a", "b"], "n": [1, 2]})


def record(key: str = "k", rows: int = 2) -> Record:
    """Return a record of the table above."""
    return Record("toy", 1, "unit", {"p": 1}, {"raw": "0" * 64}, key, digest_table(TABLE), rows, {"rows_in": 2})


def test_what_was_written_is_found_and_opened(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.find("toy", "k") is None
    assert store.write(record(), TABLE) == record()
    assert store.find("toy", "k") == record()
    assert store.open(record()).equals(TABLE)


def test_of_two_workers_with_one_key_the_first_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(record(), TABLE)
    kept = store.write(record(rows=99), TABLE.slice(0, 1))
    assert kept.rows == 2 and len(store.open(kept)) == 2
    assert not list(tmp_path.rglob(".tmp-*"))


def test_a_folder_without_its_record_is_not_an_artifact(tmp_path: Path) -> None:
    (tmp_path / "toy" / "k").mkdir(parents=True)
    (tmp_path / "toy" / "k" / "table.arrow").write_bytes(b"half")
    assert Store(tmp_path).find("toy", "k") is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"stage": "toy"}'])
def test_a_damaged_record_is_named(tmp_path: Path, damage: bytes) -> None:
    Store(tmp_path).write(record(), TABLE)
    (tmp_path / "toy" / "k" / "record.json").write_bytes(damage)
    with pytest.raises(MediError, match=r"toy/k/record.json: damaged record"):
        Store(tmp_path).find("toy", "k")


def test_a_cut_table_is_named(tmp_path: Path) -> None:
    Store(tmp_path).write(record(), TABLE)
    path = tmp_path / "toy" / "k" / "table.arrow"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(MediError, match=r"table.arrow: cannot be read"):
        Store(tmp_path).open(record())


def test_a_changed_byte_of_a_table_is_found_wherever_it_is(tmp_path: Path) -> None:
    Store(tmp_path).write(record(), TABLE)
    path = tmp_path / "toy" / "k" / "table.arrow"
    good = path.read_bytes()
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        told = f"{path}: cannot be read (its bytes are not those that were written); delete its folder"
        with pytest.raises(MediError, match=re.escape(told)):
            Store(tmp_path).open(record())
    path.write_bytes(good)
    assert Store(tmp_path).open(record()).equals(TABLE)


def test_an_artifact_of_before_the_digest_is_read(tmp_path: Path) -> None:
    Store(tmp_path).write(record(), TABLE)
    write_json(tmp_path / "toy" / "k" / "record.json", record().to_json())
    assert Store(tmp_path).find("toy", "k") == record()
    assert Store(tmp_path).open(record()).equals(TABLE)


def test_a_param_without_a_json_form_raises() -> None:
    with pytest.raises(TypeError):
        digest_of({"param": {1, 2}})
    with pytest.raises(ValueError):
        digest_of({"param": float("nan")})


def test_publish_raises_where_a_stranger_holds_the_place(tmp_path: Path) -> None:
    final = tmp_path / "place"
    final.mkdir()
    (final / "file").write_text("mine")
    temporary = new_temporary(final)
    write_json(temporary / "record.json", {})
    with pytest.raises(OSError):
        publish(temporary, final)
    assert (final / "file").read_text() == "mine"


def test_only_orphans_are_removed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from medi.publish import new_temporary;"
        f"new_temporary(Path({str(tmp_path)!r}) / 'dead')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    mine = new_temporary(tmp_path / "alive")
    assert len(list(tmp_path.glob(".tmp-*"))) == 2
    assert remove_orphans(tmp_path) == 1
    assert list(tmp_path.glob(".tmp-*")) == [mine] and f"-{os.getpid()}-" in mine.name


def test_a_temporary_of_another_form_or_another_host_stays(tmp_path: Path) -> None:
    names = [".tmp-mine", ".tmp-elsewhere-1-2-3", f".tmp-{socket.gethostname()}-x-2-3"]
    for name in names:
        (tmp_path / "toy" / name).mkdir(parents=True)
    assert remove_orphans(tmp_path) == 0
    assert sorted(path.name for path in (tmp_path / "toy").iterdir()) == sorted(names)


def test_orphans_are_looked_for_while_another_build_renames_its_folders(tmp_path: Path) -> None:
    code = (
        "import shutil, sys; from pathlib import Path; from medi.publish import new_temporary\n"
        f"root = Path({str(tmp_path)!r})\n"
        "while True:\n"
        "    for n in range(40):\n"
        "        temporary = new_temporary(root / 'toy' / str(n)); (temporary / 'inner').mkdir()\n"
        "        temporary.rename(root / 'toy' / str(n)); shutil.rmtree(root / 'toy' / str(n))\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code])
    try:
        until = time.monotonic() + 10
        while not (tmp_path / "toy").exists():
            assert time.monotonic() < until
        assert sum(remove_orphans(tmp_path) for _ in range(3000)) == 0
    finally:
        other.kill()
        other.wait()


def test_digest_sees_values_not_chunks() -> None:
    rows = [{"t": ["a", "b"], "s": None, "x": 1.5}, {"t": [], "s": "é", "x": None}, {"t": [""], "s": "", "x": 0.0}]
    schema = pa.schema([("t", pa.list_(pa.string())), ("s", pa.string()), ("x", pa.float32())])
    whole = pa.Table.from_pylist(rows, schema=schema)
    parts = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 2)])
    assert digest_table(parts) == digest_table(whole)
    assert digest_table(whole.slice(1)) == digest_table(pa.Table.from_pylist(rows[1:], schema=schema))
    changed = [{**rows[0], "t": ["ab", ""]}, *rows[1:]]
    others = [changed, [{**rows[0], "s": ""}, *rows[1:]], [rows[0], {**rows[1], "x": 0.0}, rows[2]], rows[::-1]]
    digests = {digest_table(pa.Table.from_pylist(r, schema=schema)) for r in others}
    assert len(digests | {digest_table(whole)}) == 5
