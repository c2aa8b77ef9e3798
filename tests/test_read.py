"""Files become records whatever they are packed in, and damage is told in words, after what stood before it."""

import gzip
import json
import random
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medi.errors import MediError
from medi.read import raw_batches, read_whole, wanted_pages
from medi.read.blocks import BLOCK_BYTES, blocks
from medi.read.escapes import STAND_IN, whole_escapes
from medi.source import Bad, Mend, RawBatch
from tests.builds import REPO
from tests.unprivileged import as_a_person

LINES = b"".join(b'["q%d","p%d"]\n' % (i, i) for i in range(2_000))
GZ = gzip.compress(LINES, mtime=0)


def read(path: Path, content: bytes, keyed: bool = False, prefix: bool = False) -> RawBatch:
    """Write a file and return all its batches as one."""
    path.write_bytes(content)
    found = list(raw_batches([(path, "raw")], keyed, ["raw"] if prefix else []))
    return RawBatch(
        "raw",
        found[0].by_line if found else True,
        [key for batch in found for key in batch.keys],
        [offset for batch in found for offset in batch.offsets],
        [line for batch in found for line in batch.lines],
        [mend for batch in found for mend in batch.mended],
        "; ".join(batch.fault for batch in found if batch.fault),
    )


def flipped(content: bytes, index: int) -> bytes:
    changed = bytearray(content)
    changed[index] ^= 255
    return bytes(changed)


@pytest.mark.parametrize(
    ("content", "lines", "fault"),
    [
        (GZ, 2_000, ""),
        (LINES, 2_000, ""),
        (GZ + b"\0" * 600_000, 2_000, ""),
        (GZ + GZ, 4_000, ""),
        (GZ + b"\0" * 9 + GZ, 4_000, ""),
        (GZ[:-8], 2_000, rf"the gz is cut: it ends after {len(GZ) - 8:,} bytes \({len(LINES):,} unpacked\)"),
        (GZ[:-4], 2_000, rf"the gz is cut: it ends after {len(GZ) - 4:,} bytes \({len(LINES):,} unpacked\)"),
        (GZ[:5], 0, "the gz is cut: it ends after 5 bytes"),
        (flipped(GZ, -6), 2_000, rf"the gz's checksum is wrong \({len(LINES):,} unpacked bytes\)"),
        (flipped(GZ, -2), 2_000, "the gz's checksum is wrong"),
        (GZ + b"junk", 2_000, f"bytes that are no gz follow after {len(LINES):,} unpacked bytes"),
        (flipped(GZ, 2), 0, "the gz is packed by the unknown method 247"),
        (b"", 0, r"the file is empty \(0 bytes\)"),
        (gzip.compress(b"", mtime=0), 0, "the file holds no record"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", 0, r"a Git-LFS pointer in place of data \(56 "),
        (b"\n<!DOCTYPE html><html>", 0, r"an HTML page in place of data \(22 bytes\)"),
    ],
)
def test_gz_faults_are_named_after_the_lines_before_them(
    tmp_path: Path, content: bytes, lines: int, fault: str
) -> None:
    found = read(tmp_path / "x.jsonl.gz", content)
    assert len(found.lines) == lines and found.lines[:1] in ([], [b'["q0","p0"]'])
    assert re.match(fault, found.fault) and bool(fault) == bool(found.fault)


def test_a_gz_cut_in_half_gives_its_complete_lines_and_a_fault(tmp_path: Path) -> None:
    found = read(tmp_path / "x.gz", GZ[: len(GZ) // 2])
    assert 900 < len(found.lines) < 1_100
    assert found.lines == LINES.split(b"\n")[: len(found.lines)]
    assert found.fault.startswith(f"the gz is cut: it ends after {len(GZ) // 2:,} bytes")


def test_the_beginning_of_a_longer_file_has_no_fault(tmp_path: Path) -> None:
    whole = read(tmp_path / "x.gz", GZ[: len(GZ) // 2])
    begun = read(tmp_path / "x.gz", GZ[: len(GZ) // 2], prefix=True)
    assert begun == whole._replace(fault="")
    assert read(tmp_path / "x", b'["a"]\n["b', prefix=True).lines == [b'["a"]']
    assert read(tmp_path / "x", b'[{"a":1},{"b"', prefix=True).lines == [b'{"a":1}']


def test_beside_a_beginning_a_whole_file_keeps_its_last_line_and_its_fault(tmp_path: Path) -> None:
    for name, content in (("begun", b'["a"]\n["b'), ("whole", b'["c"]\n["d"]'), ("cut.gz", GZ[:-8])):
        (tmp_path / name).write_bytes(content)
    found = list(raw_batches([(path, path.name) for path in sorted(tmp_path.iterdir())], prefixes={"begun"}))
    lines = {name: [line for b in found if b.file == name for line in b.lines] for name in ("begun", "whole", "cut.gz")}
    assert (lines["begun"], lines["whole"], len(lines["cut.gz"])) == ([b'["a"]'], [b'["c"]', b'["d"]'], 2_000)
    assert [batch.fault[:14] for batch in found if batch.fault] == ["the gz is cut:"]


def test_a_folder_and_an_absent_file_are_faults(tmp_path: Path) -> None:
    faults = [batch.fault for batch in raw_batches([(tmp_path, "a"), (tmp_path / "no", "b")])]
    assert faults == [
        "cannot be read (Is a directory); put the file in its place",
        "cannot be read (No such file or directory); fetch or make it again",
    ]


def test_an_unreadable_file_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(LINES)
    (tmp_path / "x").chmod(0)
    code = (
        "import sys; from pathlib import Path; from medi.read import raw_batches\n"
        "print(*(batch.fault for batch in raw_batches([(Path(sys.argv[1]), 'x')])))"
    )
    call = as_a_person([sys.executable, "-c", code, str(tmp_path / "x")])
    said = subprocess.run(call, capture_output=True, text=True, check=True, cwd=REPO).stdout
    assert said == "cannot be read (Permission denied); give yourself the right to read it\n"


def test_lines_are_split_on_0x0a_only(tmp_path: Path) -> None:
    line = '{"q":"a\u2028b\u0085c\u2029d\x0b\x0c"}'.encode()
    assert read(tmp_path / "x", line + b"\n" + line + b"\n").lines == [line, line]


def test_bom_crlf_blank_lines_and_a_missing_end_are_mended_and_counted(tmp_path: Path) -> None:
    found = read(tmp_path / "x", b'\xef\xbb\xbf["a"]\r\n\r\n  \n["b"]\n\n["c"]')
    assert (found.lines, found.keys, list(found.offsets)) == ([b'["a"]', b'["b"]', b'["c"]'], [1, 4, 6], [0, 15, 22])
    assert sorted(found.mended) == [
        Mend("blank_line", 2, 10),
        Mend("blank_line", 3, 12),
        Mend("blank_line", 5, 21),
        Mend("bom", 1, 0),
        Mend("crlf", 1, 0),
        Mend("crlf", 2, 10),
        Mend("no_final_newline", 6, 22),
    ]


def test_a_carriage_return_inside_a_line_is_no_line_end(tmp_path: Path) -> None:
    found = read(tmp_path / "x", b'["a",\r"b"]\n')
    assert (found.lines, found.mended) == ([b'["a",\r"b"]'], [])


def test_lines_that_cross_blocks_are_whole(tmp_path: Path) -> None:
    lines = [b"[%d,%s]" % (i, b"x" * (BLOCK_BYTES // 3)) for i in range(10)]
    found = read(tmp_path / "x", b"\n".join(lines) + b"\n")
    assert found.lines == lines and found.offsets[9] == sum(map(len, lines[:9])) + 9


def test_a_large_file_is_read_in_larger_blocks_and_as_a_small_one_is(tmp_path: Path) -> None:
    text = b"".join(b'["%d","%s"]\n' % (i, b"p" * (i % 700)) for i in range(110_000))
    assert len(text) > 33_554_432
    for name, content in (("x", text), ("x.gz", gzip.compress(text, 0))):
        (tmp_path / name).write_bytes(content)
        sizes = {len(block) for block in blocks(tmp_path / name)}
        assert max(sizes) > BLOCK_BYTES and max(sizes) <= 16 * BLOCK_BYTES
        batches = list(raw_batches([(tmp_path / name, name)]))
        assert [line for batch in batches for line in batch.lines] == text.splitlines()
        offsets = [offset for batch in batches for offset in batch.offsets]
        assert [offsets[0], offsets[100], offsets[-1]] == [0, text.index(b'["100",'), text.index(b'["109999",')]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    rng = random.Random(0)
    text = b"".join(b'["%d","%s"]\n' % (i, b"p" * rng.randrange(200, 400)) for i in range(20_000))
    (tmp_path / "x.gz").write_bytes(gzip.compress(text * 5, 1))
    tracemalloc.start()
    lines = sum(len(batch.lines) for batch in raw_batches([(tmp_path / "x.gz", "x")]))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == 100_000 and len(text) * 5 > 30_000_000 and peak_bytes < 12_000_000


def test_an_array_gives_its_elements_as_canonical_json(tmp_path: Path) -> None:
    content = '[ {"b": 1.10, "a": ["é", 12345678901234567890123]},\n {"c": null} ]'.encode()
    found = read(tmp_path / "x.json", content)
    assert found.lines == ['{"a":["é",12345678901234567890123],"b":1.1}'.encode(), b'{"c":null}']
    assert (found.by_line, found.keys, found.offsets) == (False, [0, 1], [])
    assert read(tmp_path / "x.json.gz", gzip.compress(content)) == found


def test_an_object_by_key_gives_its_values(tmp_path: Path) -> None:
    found = read(tmp_path / "x", b'{"12": {"QUESTION": "a"}, "9": {"QUESTION": "b"}}', keyed=True)
    assert (found.keys, found.lines) == (["12", "9"], [b'{"QUESTION":"a"}', b'{"QUESTION":"b"}'])


def test_a_key_that_stands_twice_in_a_keyed_file_stays_visible(tmp_path: Path) -> None:
    found = read(tmp_path / "x", b'{"1": {"a": 1}, "2": {"a": 2}, "1": {"a": 3}}', keyed=True)
    assert found.keys == ["1", "2", "1"]
    assert found.lines == [b'{"a":1}', b'{"a":2}', b'{"1":null,"1":null,"record":{"a":3}}']


def test_a_bom_before_an_array_is_mended(tmp_path: Path) -> None:
    found = read(tmp_path / "x", b'\xef\xbb\xbf[{"a":1}]')
    assert (found.lines, found.mended) == ([b'{"a":1}'], [Mend("bom", 1, 0)])


def test_what_json_cannot_say_twice_stays_visible_in_an_element(tmp_path: Path) -> None:
    found = read(tmp_path / "x", b'[{"x": {"k": 1, "k": 2}}, {"a": [1e999]}]')
    assert found.lines == [b'{"k":null,"k":null,"record":{"x":{"k":2}}}', b'{"a":[Infinity]}']


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b'[{"a":1},{"b":2},', "not JSON after 2 records (parse error: premature EOF)"),
        (b'[{"a":1},{"b":2}] x', "not JSON after 2 records (parse error: trailing garbage)"),
        (b'[{"a":1},{"b":NaN}]', "not JSON after 1 record (lexical error: invalid char in json text.)"),
    ],
)
def test_a_damaged_array_gives_the_elements_before_the_damage(tmp_path: Path, content: bytes, fault: str) -> None:
    found = read(tmp_path / "x", content)
    assert found.fault == f"{fault}; fetch or make it again"
    assert found.lines == [b'{"a":1}', b'{"b":2}'][: int(fault.split()[3])]


@pytest.mark.parametrize("block_bytes", [1, 2, 5, 11, 12, 13, 100])
def test_lone_surrogates_of_arrays_are_marked_wherever_blocks_are_cut(block_bytes: int) -> None:
    text = rb'[{"a":"\ud800 x \\ud800 \\\ud800\ud83d\ude00 \udc00\ud800\ud800\udc00"}]'
    cut = [text[i : i + block_bytes] for i in range(0, len(text), block_bytes)]
    marked = json.loads(b"".join(whole_escapes(cut)))[0]["a"]
    assert marked.replace(STAND_IN, "?") == "? x \\ud800 \\?\U0001f600 ??\U00010000"


def test_a_lone_surrogate_of_an_array_stays_for_ingest_to_mend(tmp_path: Path) -> None:
    found = read(tmp_path / "x", rb'[{"a":"x\ud800"},{"a":"y"}]')
    assert found.lines == [b'{"a":"x\xed\xa0\x80"}', b'{"a":"y"}'] and found.mended == []


def test_parquet_rows_come_as_json(tmp_path: Path) -> None:
    table = pa.table({"query": ["a", "b"], "pos": [["p", None], []], "idx": [1, 2]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    found = read(tmp_path / "x", (tmp_path / "t.parquet").read_bytes())
    assert found.lines == [b'{"idx":1,"pos":["p",null],"query":"a"}', b'{"idx":2,"pos":[],"query":"b"}']
    assert (found.by_line, found.keys) == (False, [0, 1])
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "twice.parquet")
    twice = read(tmp_path / "x", (tmp_path / "twice.parquet").read_bytes())
    assert (twice.lines, twice.fault) == ([], "a column stands twice among a, a; fetch or make it again")
    damaged = read(tmp_path / "x", b"PAR1" + b"x" * 100)
    assert damaged.fault.startswith("damaged Parquet after 0 rows") and not damaged.lines


def test_a_small_file_is_read_whole_or_said_to_be_damaged(tmp_path: Path) -> None:
    (tmp_path / "task.json").write_bytes(gzip.compress(b"{}"))
    assert read_whole(tmp_path / "task.json") == b"{}"
    (tmp_path / "task.json").write_bytes(b"")
    damage = read_whole(tmp_path / "task.json")
    assert isinstance(damage, Bad) and str(damage) == "the file is empty (0 bytes); fetch or make it again"


def test_only_wanted_pages_are_given(tmp_path: Path) -> None:
    pages = [
        {"_id": "1", "wikipedia_id": "1", "wikipedia_title": "One", "text": ["One\n", "It is one.\n"]},
        {"_id": 2, "wikipedia_id": 2, "wikipedia_title": "Two", "text": ["Two\n"]},
        {"history": "x" * 300, "_id": "3", "wikipedia_id": "3", "wikipedia_title": "Three", "text": []},
    ]
    path = tmp_path / "knowledge.json"
    path.write_text("".join(json.dumps(page) + "\n" for page in pages), encoding="utf-8")
    found = list(wanted_pages([(path, "k")], {"2", "3"}))
    assert [(page.page_id, page.title, page.paragraphs) for page in found] == [
        ("2", "Two", ("Two\n",)),
        ("3", "Three", ()),
    ]
    path.write_text('{"_id": "2", "text": []}\n', encoding="utf-8")
    with pytest.raises(MediError, match="k:1 is not a page of the KILT knowledge source"):
        list(wanted_pages([(path, "k")], {"2"}))
    path.write_bytes(GZ[:40])
    with pytest.raises(MediError, match="k: the gz is cut"):
        list(wanted_pages([(path, "k")], {"2"}))


def test_a_nul_in_a_page_is_a_blank_so_that_what_follows_keeps_its_place(tmp_path: Path) -> None:
    (tmp_path / "pages.jsonl").write_text(
        json.dumps({"wikipedia_id": "7", "wikipedia_title": "Tea", "text": ["Tea", "a\0b"]})
    )
    (page,) = wanted_pages([(tmp_path / "pages.jsonl", "pages.jsonl")], {"7"})
    assert page.paragraphs == ("Tea", "a b")
