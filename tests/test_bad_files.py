"""Every kind of bad input in every layout: mended and kept, one record bad, or the whole file; never anything else."""

import gzip
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medi.errors import MediError
from medi.ingest import IngestParams
from medi.read import raw_batches
from tests.builds import REPO
from tests.layouts import ANY_NUMBER, LAYOUTS, RECORDS, content_of, query_of, read_file, read_rows

BRACKETS = 100_000
ALL = list(LAYOUTS)
JSON = [name for name, layout in LAYOUTS.items() if layout.kind != "parquet"]
LINES = [name for name, layout in LAYOUTS.items() if layout.kind == "lines"]


def first_bad(counts: object) -> str:
    return counts.facts["quarantine"][0]["reason"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ALL)
def test_a_good_file_gives_all_its_rows(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS[name]
    rows, counts = read_rows(tmp_path / "x", layout, content_of(layout))
    assert (len(rows), counts.dropped, counts.mended) == (RECORDS, {}, {})
    if layout.kind != "parquet":
        assert read_rows(tmp_path / "x", layout, gzip.compress(content_of(layout)))[0] == rows


# In place of data: nothing is kept, and the one line says what it is and what helps.
STAND_INS = {
    "nothing": (b"", r"the file is empty \(0 bytes\); fetch or make it again"),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "a Git-LFS pointer in place of data"),
    "a page": (b"\xef\xbb\xbf\n<!DOCTYPE html>", "an HTML page in place of data .*; fetch the file itself"),
    "a packed page": (gzip.compress(b"<html>not found</html>", mtime=0), "an HTML page in place of data"),
    "a zip": (b"PK\x03\x04" + b"x" * 99, "a zip archive in place of data .*; unpack it"),
    "a bz2": (b"BZh91AY&SY", "a bz2 file in place of data"),
    "an xz": (b"\xfd7zXZ\0\0", "an xz file in place of data"),
    "a zstd": (b"(\xb5/\xfd$", "a zstd file in place of data"),
    "UTF-16": ('["a", "b"]\n'.encode("utf-16"), "UTF-16 text in place of data .*; save it as UTF-8"),
    "a gz twice": (gzip.compress(gzip.compress(b'["a","b"]\n')), "a gz packed twice in place of data"),
    "a packed Parquet": (gzip.compress(b"PAR1xxxx"), "Parquet inside a gz in place of data"),
    "half a Parquet": (b"PAR1" + b"\0" * 99, "damaged Parquet after 0 rows|not JSON"),
    "brackets": (b"[" * BRACKETS, "nested too deep"),
    "closed brackets": (b"[" * BRACKETS + b"]" * BRACKETS, "nested too deep"),
    "objects": (b'{"a":' * BRACKETS + b"1" + b"}" * BRACKETS, "nested too deep"),
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", list(STAND_INS))
def test_what_is_no_data_is_named(tmp_path: Path, name: str, kind: str) -> None:
    content, reason = STAND_INS[kind]
    rows, counts = read_rows(tmp_path / "x", LAYOUTS[name], content)
    assert rows == [] and counts.dropped == {"bad": 1} and re.match(reason, first_bad(counts))
    with pytest.raises(MediError, match=re.escape(first_bad(counts))) as failed:
        read_file(tmp_path / "x", LAYOUTS[name], IngestParams(10))
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", ["folder", "pipe", "absent", "loop"])
def test_what_is_no_file_is_named_and_never_waited_for(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / "x"
    make: dict[str, Callable[[], None]] = {
        "folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "loop": lambda: path.symlink_to(path),
    }  # fmt: skip
    make.get(kind, lambda: None)()
    _, counts = read_file(path, LAYOUTS[name], IngestParams(10, max_bad_rows=ANY_NUMBER))
    assert counts.dropped == {"bad": 1} and first_bad(counts) == {
        "folder": "cannot be read (Is a directory); put the file in its place",
        "pipe": "a pipe or a device in place of a file; put the file in its place",
        "absent": "cannot be read (No such file or directory); fetch or make it again",
        "loop": "cannot be read (Too many levels of symbolic links); fetch or make it again",
    }[kind]  # fmt: skip


# A gz with a fault: lines and elements before it are kept, a task needs its whole file.
GZ_FAULTS = {
    "cut": (lambda gz: gz[:-20], "the gz is cut"),
    "no checksum": (lambda gz: gz[:-8], "the gz is cut"),
    "a wrong checksum": (lambda gz: gz[:-5] + bytes([gz[-5] ^ 1]) + gz[-4:], "the gz's checksum is wrong"),
    "junk behind": (lambda gz: gz + b"junk", "bytes that are no gz follow"),
}


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("kind", list(GZ_FAULTS))
def test_a_faulty_gz_keeps_what_stands_before_the_fault(tmp_path: Path, name: str, kind: str) -> None:
    spoil, reason = GZ_FAULTS[kind]
    layout = LAYOUTS[name]
    whole, _ = read_rows(tmp_path / "x", layout, content_of(layout))
    rows, counts = read_rows(tmp_path / "x", layout, spoil(gzip.compress(content_of(layout))))
    assert counts.dropped == {"bad": 1} and first_bad(counts).startswith(reason)
    assert all(row in whole for row in rows)
    kept = 0 if layout.kind == "task" else len(rows) if kind == "cut" else RECORDS
    assert len(rows) == kept and (kept > 0 or layout.kind == "task")


# Put in place of the third record's query; rows that are left of lines, of elements, of a task.
NOT_JSON, ONE_BAD = (4, 2, 0), (4, 4, 4)
BAD_TEXTS = {
    "NaN": (b"NaN", NOT_JSON),
    "Infinity": (b"-Infinity", NOT_JSON),
    "a number that is none": (b"1e99999999999999999999", (4, 2, 4)),
    "a number too large": (b"1e999", ONE_BAD),
    "an endless number": (b"9" * 6_000, NOT_JSON),
    "an endless fraction": (b"0." + b"9" * 6_000, (5, 2, 5)),
    "not UTF-8": (b'"\xff"', NOT_JSON),
    "a control": (b'"a\x00b"', NOT_JSON),
    "a bad escape": (rb'"\x"', NOT_JSON),
    "half an escape": (rb'"\ud8"', NOT_JSON),
    "a word": (b"nul", NOT_JSON),
    "nested": (b"[" * BRACKETS + b"]" * BRACKETS, NOT_JSON),
    "nested a little": (b"[" * 400 + b"]" * 400, NOT_JSON),
    "nested objects": (b'{"a":' * BRACKETS + b"1" + b"}" * BRACKETS, NOT_JSON),
    "a key twice": (b'{"a":1,"a":2}', (4, 4, 0)),
    "an object": (b'{"a":1}', ONE_BAD),
    "an array": (b"[[1]]", ONE_BAD),
}


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("kind", list(BAD_TEXTS))
def test_a_bad_text_costs_its_record_or_what_follows_where_the_file_is_one_value(
    tmp_path: Path, name: str, kind: str
) -> None:
    layout = LAYOUTS[name]
    value, left = BAD_TEXTS[kind]
    good = json.dumps(query_of(layout, 2)).encode()
    content = content_of(layout)
    assert content.count(good) == 1
    rows, counts = read_rows(tmp_path / "x", layout, content.replace(good, value))
    assert len(rows) == left[["lines", "elements", "task"].index(layout.kind)]
    assert counts.dropped["bad"] == (len(rows) < RECORDS)
    if counts.dropped["bad"]:
        with pytest.raises(MediError, match=re.escape(first_bad(counts))):
            read_file(tmp_path / "x", layout, IngestParams(10))


# What is mended is kept, as many rows as before; the same file is bad in strict mode.
MENDS = {
    "bom": (lambda content, query: b"\xef\xbb\xbf" + content, {"bom": 1}),
    "lone_surrogate": (lambda content, query: content.replace(query, query[:-1] + rb'\ud800"'), {"lone_surrogate": 1}),
    "number_as_text": (lambda content, query: content.replace(query, b"7"), {"number_as_text": 1}),
}


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("kind", list(MENDS))
def test_what_can_be_mended_is_kept_and_counted_and_bad_when_strict(tmp_path: Path, name: str, kind: str) -> None:
    layout = LAYOUTS[name]
    mend, counted = MENDS[kind]
    content = mend(content_of(layout), json.dumps(query_of(layout, 2)).encode())
    rows, counts = read_rows(tmp_path / "x", layout, content)
    assert (len(rows), counts.mended, counts.dropped) == (RECORDS, counted, {})
    with pytest.raises(MediError, match=f"needs mending .*{kind}"):
        read_file(tmp_path / "x", layout, IngestParams(10, strict=True))


@pytest.mark.parametrize("name", LINES)
def test_line_ends_of_every_kind_are_mended(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS[name]
    content = content_of(layout)
    clean, _ = read_rows(tmp_path / "x", layout, content)
    dirty, counts = read_rows(tmp_path / "x", layout, content.replace(b"\n", b"\r\n \n")[:-4])
    assert dirty != clean and [row["id"] for row in dirty] == [row["id"] for row in clean]
    assert counts.mended == {"crlf": RECORDS - 1, "blank_line": RECORDS - 1, "no_final_newline": 1}


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("mark", ["\u2028", "\u0085", "\u202e", "\x7f"])
def test_marks_of_unicode_inside_a_text_are_no_line_ends(tmp_path: Path, name: str, mark: str) -> None:
    layout = LAYOUTS[name]
    query = query_of(layout, 2)
    changed = f"{query} {mark}x"
    content = content_of(layout).replace(json.dumps(query).encode(), f'"{changed}"'.encode())
    rows, counts = read_rows(tmp_path / "x", layout, content)
    assert len(rows) == RECORDS and changed in {row["query"] for row in rows} and not counts.mended


@pytest.mark.parametrize("name", ["array of two", pytest.param("DPR", marks=pytest.mark.slow)])
def test_a_record_of_50_mb_is_read_and_one_beyond_64_is_bad(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS[name]
    good = json.dumps(query_of(layout, 4)).encode()
    # A little less than 2^26 bytes and a little more: the limit is that of a record, whatever blocks it is read in.
    for megabytes, kept in ((50, RECORDS), (67, RECORDS), (68, RECORDS - 1), (70, RECORDS - 1)):
        content = content_of(layout).replace(good, b'"' + b"word " * (megabytes * 200_000) + b'"')
        rows, counts = read_rows(tmp_path / "x", layout, content)
        assert len(rows) == kept
    assert re.search("(line 5|record 4) is longer than 67,108,864 bytes; see what is in it", first_bad(counts))


def bomb(unit: bytes, megabytes: int, before: bytes = b"") -> bytes:
    """Return a gz of this many megabytes of one repeated unit."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = unit * (10**6 // len(unit))
    parts = [packer.compress(before), *(packer.compress(block) for _ in range(megabytes)), packer.flush()]
    return b"".join(parts)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("array of two", b"\0"),
        pytest.param("array of two", b'["q","' + b"p" * 190 + b'"]\n', marks=pytest.mark.slow),
        pytest.param("DPR", b"\\", marks=pytest.mark.slow),
        ("DPR", b"["),
        ("PubMedQA", b" "),
        ("Super-NI", b"\0"),
    ],
)
def test_a_bomb_is_refused(tmp_path: Path, name: str, unit: bytes) -> None:
    begin = {"DPR": b'[{"question":"', "PubMedQA": b'{"1":{"QUESTION":"'}.get(name, b"")
    content = bomb(unit, 75, begin if unit in (b"\\", b"[", b" ") else b"")
    assert len(content) < 300_000
    _, counts = read_rows(tmp_path / "x", LAYOUTS[name], content)
    assert counts.dropped["bad"] == 1
    assert re.search("more than 250 times its size|longer than 67,108,864 bytes", first_bad(counts))


def test_a_bomb_takes_little_memory(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bomb(b"\0", 1_000))
    code = (
        "import sys; from pathlib import Path; from medi.read import raw_batches, read_whole\n"
        "print(read_whole(Path(sys.argv[1])), *(b.fault for b in raw_batches([(Path(sys.argv[1]), 'x')])))\n"
        # Not the kernel's ru_maxrss: a child inherits that of the process that started it.
        "print(next(x for x in open('/proc/self/status') if x.startswith('VmHWM')).split()[1])"
    )
    call = [sys.executable, "-c", code, str(tmp_path / "x")]
    told = subprocess.run(call, capture_output=True, text=True, check=True, cwd=REPO).stdout
    assert told.count("the gz unpacks to more than 250 times its size") == 2 and int(told.split()[-1]) < 400_000


@pytest.mark.slow
def test_a_run_of_backslashes_takes_no_more_time_than_other_text(tmp_path: Path) -> None:
    """Sixteen megabytes of escapes, which were once held back and looked at again with every block."""
    text = rb"\\" * 8_000_000
    (tmp_path / "x").write_bytes(b'[{"a":"' + text + b'"}]')
    lines = [line for batch in raw_batches([(tmp_path / "x", "x")]) for line in batch.lines]
    assert [len(line) for line in lines] == [len(text) + len('{"a":""}')]


def parquet(path: Path, table: pa.Table) -> bytes:
    pq.write_table(table, path)
    return path.read_bytes()


def test_parquet_text_that_is_no_utf8_costs_its_row_and_text_without_a_type_is_text(tmp_path: Path) -> None:
    layout = LAYOUTS["Parquet"]
    rows = [[b"q0", b"q1 \xc3\xa9", b"q2 \xff"], [b"p0", b"p1", b"p2"]]
    table = pa.table([pa.array(column, pa.binary()) for column in rows], names=["query", "pos"])
    for typed in (table, table.cast(pa.schema([("query", pa.string()), ("pos", pa.string())]), safe=False)):
        found, counts = read_rows(tmp_path / "x", layout, parquet(tmp_path / "t", typed))
        assert {row["query"] for row in found} == {"q0", "q1 é"}
        assert counts.dropped == {"bad": 1} and first_bad(counts) == "not UTF-8 (byte 3 of the line)"


def test_parquet_that_json_cannot_say_is_bad_row_by_row(tmp_path: Path) -> None:
    layout = LAYOUTS["Parquet"]
    year_12000 = pa.array([0, 316_500_000_000_000_000], pa.timestamp("us"))
    table = pa.table({"query": ["a", "b"], "pos": ["c", "d"], "when": year_12000})
    found, counts = read_rows(tmp_path / "x", layout, parquet(tmp_path / "t", table))
    assert [row["query"] for row in found] == ["a"] and counts.dropped == {"bad": 1}
    table = pa.table({"query": ["a", "b"], "pos": ["c", "d"], "score": [0.5, float("nan")]})
    found, counts = read_rows(tmp_path / "x", layout, parquet(tmp_path / "t", table))
    assert [row["query"] for row in found] == ["a"] and first_bad(counts) == "not JSON (NaN is no number)"


def test_a_column_whose_name_is_no_utf8_is_damage(tmp_path: Path) -> None:
    content = content_of(LAYOUTS["Parquet"]).replace(b"\x18\x03neg", b"\x18\x03\xffeg")
    rows, counts = read_rows(tmp_path / "x", LAYOUTS["Parquet"], content)
    assert rows == [] and "after 0 rows (the name of a column is not UTF-8)" in first_bad(counts)


def test_a_parquet_bomb_is_refused_by_what_it_says_of_itself(tmp_path: Path) -> None:
    table = pa.table({"query": ["x" * 20_000_000], "pos": ["p"]})
    _, counts = read_rows(tmp_path / "x", LAYOUTS["Parquet"], parquet(tmp_path / "t", table.combine_chunks()))
    pq.write_table(table, tmp_path / "t", compression="zstd")
    _, counts = read_rows(tmp_path / "x", LAYOUTS["Parquet"], (tmp_path / "t").read_bytes())
    assert first_bad(counts) == "the Parquet unpacks to more than 250 times its size; see what is in it"


PAGES = {
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\n", "a Git-LFS pointer in place of data"),
    "nested": (b'{"wikipedia_id": "12", "x": ' + b"[" * BRACKETS, "is not a page of the KILT knowledge source"),
    "a text for paragraphs": (b'{"wikipedia_id": "12", "wikipedia_title": "T", "text": "abc"}\n', "'text' is no array"),
    "a number for a title": (b'{"wikipedia_id": "12", "wikipedia_title": 5, "text": []}\n', "is not a page"),
    "no object": (b"[1]\n", "is not a page"),
}


@pytest.mark.parametrize("kind", list(PAGES))
def test_a_bad_knowledge_source_fails_its_source(tmp_path: Path, kind: str) -> None:
    layout = LAYOUTS["KILT"]
    pages, reason = PAGES[kind]
    (tmp_path / "x").write_bytes(content_of(layout))
    with pytest.raises(MediError, match=f"^pages.*{reason}"):
        read_file(tmp_path / "x", layout, IngestParams(10, max_bad_rows=ANY_NUMBER), pages)
