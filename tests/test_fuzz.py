"""Good files of every layout, damaged at random: whatever comes, ingest gives right rows or one line, none is lost.

MEDI_FUZZ_EXAMPLES is the number of damaged files a layout; above the few of an ordinary run they differ each time.
"""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from medi.errors import MediError
from medi.ingest import IngestParams
from tests.layouts import LAYOUTS, RECORDS, TABLES, Layout, content_of, read_file, read_rows

_ORDINARY = 60
EXAMPLES = int(os.environ.get("MEDI_FUZZ_EXAMPLES", _ORDINARY))

# What has broken readers before, and what has a meaning in JSON, gz or Parquet.
TOKENS = [
    b"\xef\xbb\xbf", b"\r\n", b"\n\n", b"\r", b"\0", b"\xff", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xc3", b"\\", rb"\\",
    rb"\ud800", rb"\udc00\ud83d", rb"\u0000", rb"\u200b", b'"', b'""', b'" "', b'","', b"[", b"]", b"{", b"}", b"{}",
    b"[]", b"[" * 70, b"]" * 70, b":", b",", b"null", b"true", b"NaN", b"-Infinity", b"0", b"-0.0", b"1e999", b"1e-999",
    b"9" * 30, b"9" * 5_000, b"1e" + b"9" * 30, b'"a":1,"a":2', b'"Query":"x",', b'"query":null,', b'"pos":"x",',
    b'"neg":[5],', b'"Instances":[],', b'"output":"x",', b'"id":"\x1b[31m",', b'["a","b"]\n', b'["a","b","c"]\n',
    b'{"set":["a"]}\n', b"PAR1", b"\x1f\x8b\x08\0", b"<html>", b"version https://git-lfs", b"\xfe\xff", b" " * 300,
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Flip, cut, move and repeat pieces of the content and put junk in, one to four times."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + draw(st.sampled_from([1, 3, 40, 10**6])))))
        piece = content[start:end]
        put = draw(
            st.one_of(
                st.just(b""),
                st.sampled_from(TOKENS),
                st.binary(max_size=4),
                st.just(piece * 2),
                st.just(piece[::-1]),
                st.just(bytes(byte ^ draw(st.integers(1, 255)) for byte in piece[:1]) + piece[1:]),
            )
        )
        content = content[:start] + put + content[end:]
    return content


def hold(folder: Path, layout: Layout, content: bytes) -> None:
    """Read a file with every bad row allowed and with none: the same rows, or one line that says what is wrong."""
    rows, counts = read_rows(folder / "x", layout, content)
    for params in (IngestParams(1_000), IngestParams(1_000, strict=True), IngestParams(2, take="first")):
        try:
            again, recount = read_file(folder / "x", layout, params)
        except MediError as error:
            assert "\n" not in str(error) and str(error).startswith((layout.source_name, "task9001_x", "pages"))
            assert params.strict or params.take == "first" or counts.dropped["bad"]
        else:
            recount.check("reading")
            assert not recount.dropped["bad"]
            assert params.take == "first" or again == rows


@pytest.mark.parametrize("name", [*LAYOUTS, *TABLES])
def test_damage_is_counted_or_said_in_one_line(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    layout, folder = (LAYOUTS | TABLES)[name], tmp_path_factory.mktemp("fuzz")
    good = content_of(layout)
    assert len(read_rows(folder / "x", layout, good)[0]) == RECORDS

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=EXAMPLES <= _ORDINARY,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.data())
    def try_one(data: st.DataObject) -> None:
        packing = data.draw(st.sampled_from(["plain", "plain", "then packed", "packed"]))
        content = data.draw(damaged(gzip.compress(good, mtime=0) if packing == "packed" else good))
        hold(folder, layout, gzip.compress(content, 1) if packing == "then packed" else content)

    try_one()


@pytest.mark.parametrize("name", ["KILT"])
def test_a_damaged_knowledge_source_is_said_in_one_line(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    layout, folder = LAYOUTS[name], tmp_path_factory.mktemp("fuzz")
    (folder / "x").write_bytes(content_of(layout))
    page = b'{"_id": "12", "wikipedia_id": "12", "wikipedia_title": "T", "text": ["T", "It is there.\\n"], "n": 1}\n'

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES <= _ORDINARY, database=None)
    @given(damaged(page * 2))
    def try_one(pages: bytes) -> None:
        try:
            rows, counts = read_file(folder / "x", layout, IngestParams(10), pages)
        except MediError as error:
            assert str(error).startswith("pages") and "\n" not in str(error)
        else:
            counts.check("reading")
            assert len(rows) + counts.dropped["no_page"] + counts.dropped["empty_text"] == counts.rows_in

    try_one()
