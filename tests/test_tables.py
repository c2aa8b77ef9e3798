"""CSV and TSV as raw files: rows by the line where they begin, and what is no table said in one line."""

import gzip
from pathlib import Path

import pytest

from medi.ingest import IngestParams, ingest
from medi.read import raw_batches
from medi.source import Mend, RawBatch
from medi.sources import by_name


def read(folder: Path, name: str, content: bytes, prefix: bool = False) -> list[RawBatch]:
    """Return the batches of a file with this content."""
    (folder / name).write_bytes(content)
    return list(raw_batches([(folder / name, name)], prefixes=(name,) if prefix else ()))


def test_cells_keep_their_line_breaks_and_rows_their_line(tmp_path: Path) -> None:
    (batch,) = read(tmp_path, "a.csv", b'\xef\xbb\xbfq,p\r\n"a\nb","c ""d"""\r\ne,f')
    assert (list(batch.keys), batch.by_line, batch.fault) == ([2, 4], True, "")
    assert batch.lines == [b'{"q":"a\\nb","p":"c \\"d\\""}', b'{"q":"e","p":"f"}']
    assert batch.mended == [Mend("bom", 1, 0)]


def test_a_tsv_has_no_quotes(tmp_path: Path) -> None:
    (batch,) = read(tmp_path, "a.TSV", b'q\tp\n"a" b\tc, d\n')
    assert batch.lines == [b'{"q":"\\"a\\" b","p":"c, d"}']


def test_gz_is_unpacked_and_many_rows_come_in_batches(tmp_path: Path) -> None:
    content = b"q,p\n" + b"".join(b"a%d,b\n" % n for n in range(2_500))
    batches = read(tmp_path, "a.csv.gz", gzip.compress(content))
    assert [len(batch.lines) for batch in batches] == [1_000, 1_000, 500]
    assert [batch.keys[0] for batch in batches] == [2, 1_002, 2_002]
    assert batches[2].lines[-1] == b'{"q":"a2499","p":"b"}'


def test_a_row_of_another_width_is_left_for_ingest_and_a_blank_one_is_mended(tmp_path: Path) -> None:
    (batch,) = read(tmp_path, "a.csv", b"q,p\na\nb,c,d\n\ne,f\n")
    assert batch.lines == [b"\0bad: 1 of 2 columns", b"\0bad: 3 cells for 2 columns", b'{"q":"e","p":"f"}']
    assert (list(batch.keys), batch.mended) == ([2, 3, 5], [Mend("blank_line", 4, None)])


def test_the_beginning_of_a_table_ends_before_its_last_row(tmp_path: Path) -> None:
    for cut in (b'c,"d', b"c,d", b"c"):
        (batch,) = read(tmp_path, "a.csv", b"q,p\na,b\n" + cut, prefix=True)
        assert batch.lines == [b'{"q":"a","p":"b"}'], cut


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            b"q,q\na,b\n",
            "its first row does not name the columns, each once (it says 'q', 'q'); write their names there",
        ),
        (b"q,\na,b\n", "its first row does not name the columns, each once (it says 'q', ''); write their names there"),
        (b'q,p\na,b\n"c,d\n', "no table after line 3 (unexpected end of data); save it as UTF-8 CSV, quotes doubled"),
        (b"q,p\ncaf\xe9,b\n", "no table after line 1 (not UTF-8); save it as UTF-8 CSV, quotes doubled"),
        (b"q,p\n", "the file holds no record; fetch or make it again"),
        (b"\xff\xfeq\0", "UTF-16 text in place of data (4 bytes); save it as UTF-8"),
    ],
)
def test_what_is_no_table_is_one_line(tmp_path: Path, content: bytes, fault: str) -> None:
    batches = read(tmp_path, "a.csv", content)
    assert batches[-1].fault == fault


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz"])
def test_a_blank_line_is_mended_and_in_strict_mode_bad(tmp_path: Path, name: str) -> None:
    content = "query,pos\na,b\n\nc,d\n".replace(",", "," if "csv" in name else "\t").encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)

    def read_as(strict: bool) -> tuple[int, int, list[str]]:
        source, params = by_name("amazon-qa"), IngestParams(10, strict=strict, max_bad_rows=10)
        table, counts = ingest(params, source, source.variants[0], lambda: raw_batches([(tmp_path / name, name)]))
        bad = counts.facts.get("quarantine", [])
        assert isinstance(bad, list)
        return len(table), counts.mended["blank_line"], [f"{row['origin']} {row['reason']}" for row in bad]

    assert read_as(strict=False) == (2, 1, [])
    # Each cell is a text where this layout has a list, which strict forbids too.
    found = {2: "text_for_list in pos", 3: "blank_line", 4: "text_for_list in pos"}
    told = [f"{name}:{line} needs mending ({reason}), which --strict forbids" for line, reason in found.items()]
    assert read_as(strict=True) == (0, 0, told)
