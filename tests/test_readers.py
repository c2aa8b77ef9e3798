"""What people read releases with gives all rows, in order and with their types: pandas, DuckDB, polars, `datasets`."""

from pathlib import Path

import pyarrow as pa
import pytest

from medi.release import open_release
from tests.release_builder import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve shards; no score in the first shard's rows (C26), one in the others."""
    builder = tiny(2500)
    for row in builder.rows["asks", "asks"]:
        row["positive_score"], row["negative_scores"] = None, [None, None]
    folder = tmp_path_factory.mktemp("readers") / "x"
    builder.write(folder, shard_bytes=1)
    return folder


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, object]]:
    return pa.concat_tables(open_release(folder).tables()).to_pylist()


def test_datasets_reads_the_folder_by_its_card(folder: Path, rows: list, tmp_path: Path) -> None:
    import datasets

    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path))
    assert list(loaded) == ["train"]
    assert loaded["train"].features["negative_scores"] == datasets.List(datasets.Value("float32"))
    assert loaded["train"].to_list() == rows


def test_datasets_streams_the_folder(folder: Path, rows: list, tmp_path: Path) -> None:
    import datasets

    stream = datasets.load_dataset(str(folder), split="train", streaming=True, cache_dir=str(tmp_path))
    found = [row["id"] for row in stream]
    assert found == [row["id"] for row in rows]


def test_pandas_reads_the_shards(folder: Path, rows: list) -> None:
    import pandas

    frame = pandas.read_parquet(folder / "data")
    assert list(frame.columns) == list(rows[0])
    assert frame["id"].tolist() == [row["id"] for row in rows]
    assert frame["negatives"].iloc[0].tolist() == rows[0]["negatives"]
    assert frame["positive_score"].isna().sum() == 2500 and frame["positive_score"].dtype == "float32"


def test_duckdb_reads_the_shards(folder: Path, rows: list) -> None:
    import duckdb

    shards = str(folder / "data" / "*.parquet")
    query = (
        "SELECT task, count(*), count(positive_score), max(len(negatives)) FROM read_parquet(?) GROUP BY 1 ORDER BY 1"
    )
    assert duckdb.execute(query, [shards]).fetchall() == [
        ("asks", 2500, 0, 2),
        ("task001_yes_or_no", 2500, 2500, 1),
        ("task002_rewrite", 2500, 2500, 1),
        ("twins", 2500, 2500, 2),
    ]
    columns = duckdb.execute("DESCRIBE SELECT * FROM read_parquet(?)", [shards]).fetchall()
    assert {name: kind for name, kind, *_ in columns}["negative_scores"] == "FLOAT[]"


def test_polars_reads_the_shards(folder: Path, rows: list) -> None:
    import polars

    frame = polars.read_parquet(folder / "data" / "*.parquet")
    assert frame.to_dicts() == rows
    assert frame.schema["negative_scores"] == polars.List(polars.Float32)
