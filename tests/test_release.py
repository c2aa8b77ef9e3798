"""Opening a release, the content digest beside a second definition of it, and the dataset card."""

import hashlib
import json
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from huggingface_hub import DatasetCard

from medi.errors import MediError
from medi.release import open_release
from medi.release.content import ContentDigest
from medi.report.card import dataset_card
from medi.schema import EXAMPLES, table_of
from medi.shards import manifest_head
from tests.release_builder import pair_row, task_row, tiny


def test_a_release_opens_with_its_rows_in_order(tmp_path: Path) -> None:
    digest = tiny(1500).write(tmp_path / "x", shard_bytes=1)
    release = open_release(tmp_path / "x")
    assert release.manifest["content_digest"] == digest
    assert release.rows() == 6000
    table = pa.concat_tables(release.tables())
    assert table.schema.equals(EXAMPLES)
    assert [len(rows) for rows in release.tables("twins")] == [1000, 500]
    assert {row["source"] for rows in release.tables("super_ni") for row in rows.to_pylist()} == {"super_ni"}
    place = list(release.places("task002_rewrite"))[1]
    assert (place.shard, place.group, place.rows) == ("data/train-00007-of-00008.parquet", 0, 500)
    assert release.read(place).equals(table.slice(5500))


def spoilt(tmp_path: Path, text: str | None) -> str:
    """Return the error of opening a release whose manifest has this text."""
    tiny().write(tmp_path / "x")
    path = tmp_path / "x" / "manifest.json"
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(MediError) as error:
        open_release(tmp_path / "x")
    assert "\n" not in str(error.value)
    return str(error.value).replace(str(tmp_path), "")


def without(key: str) -> str:
    head = {"format": "medi-release/1", "params": {}, "content_digest": "", "sources": [], "tasks": [], "records": []}
    return json.dumps({name: value for name, value in (head | {"files": []}).items() if name != key})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "/x has no manifest.json, so it is not a release; name the folder `medi build` printed"),
        ("{", "/x/manifest.json is damaged (Expecting property name"),
        ("[1]", "/x/manifest.json has format None, this medi reads 'medi-release/1'; use the medi that built it"),
        ('{"format": "medi-release/2"}', "/x/manifest.json has format 'medi-release/2', this medi reads"),
        (without("tasks"), "/x/manifest.json is damaged (tasks is absent); build the release again"),
        (without("").replace('"files": []', '"files": 3'), "/x/manifest.json is damaged (files is not a list)"),
        (without("").replace('"files": []', '"files": [3]'), "/x/manifest.json is damaged (files[0] is not an object)"),
        (
            without("").replace('"files": []', '"files": [{"path": "a", "size": true, "sha256": ""}]'),
            "/x/manifest.json is damaged (files[0].size is not a whole number)",
        ),
        (without("").replace('"params": {}', '"params": []'), "/x/manifest.json is damaged (params is not an object)"),
    ],
)
def test_what_cannot_be_opened_says_why_in_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    assert spoilt(tmp_path, text).startswith(message)


def test_no_folder_and_no_shard_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(MediError, match="x is not a folder; name the folder that `medi build` printed"):
        open_release(tmp_path / "x")
    tiny().write(tmp_path / "x")
    (tmp_path / "x" / "data" / "train-00000-of-00001.parquet").unlink()
    with pytest.raises(MediError, match=r"00001.parquet cannot be read \(no such file or directory\); build "):
        list(open_release(tmp_path / "x").tables())


ROWS = [
    pair_row("asks", 0)
    | {"query": "Grüße, \u2028 Welt", "negatives": [], "negative_scores": [], "negative_origins": []},
    pair_row("asks", 1) | {"positive_score": None, "negatives": [None, ""], "negative_scores": [None, -0.5]},
    task_row("task001", "label", 2),
    task_row("task001", "label", 3) | {"label": ""},
]


def digest_of(*tables: pa.Table) -> str:
    digest = ContentDigest()
    for table in tables:
        digest.update(table)
    return digest.hexdigest()


def second_definition(rows: list[dict]) -> str:
    """The digest as the docstring of ContentDigest says it, value by value."""
    streams: dict[str, bytes] = {}

    def feed(stream: str, data: bytes) -> None:
        streams[stream] = streams.get(stream, b"") + data

    def value(name: str, found: object, kind: pa.DataType) -> None:
        feed(f"{name}/present", bytes([found is not None]))
        if pa.types.is_list(kind):
            feed(f"{name}/count", struct.pack("<q", len(found or [])))
            streams.setdefault(f"{name}/item/present", b"")
            for part in ("number",) if pa.types.is_floating(kind.value_type) else ("length", "bytes"):
                streams.setdefault(f"{name}/item/{part}", b"")
            for item in found or []:
                value(f"{name}/item", item, kind.value_type)
        elif pa.types.is_floating(kind):
            feed(f"{name}/number", struct.pack("<f", found or 0.0))
        else:
            feed(f"{name}/length", struct.pack("<q", len((found or "").encode())))
            feed(f"{name}/bytes", (found or "").encode())

    for row in rows:
        for field in EXAMPLES:
            if field.name != "origin":
                value(field.name, row[field.name], field.type)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in streams.items()}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_the_content_digest_is_what_its_definition_says() -> None:
    assert digest_of(table_of(ROWS, EXAMPLES)) == second_definition(ROWS)


def test_the_content_digest_sees_rows_and_not_how_they_are_cut() -> None:
    table = table_of(ROWS, EXAMPLES)
    whole = digest_of(table)
    assert digest_of(table.slice(0, 1), table.slice(1, 0), table.slice(1, 3)) == whole
    assert digest_of(pa.concat_tables([table.slice(0, 2), table.slice(2)])) == whole
    assert digest_of(table_of([row | {"origin": "elsewhere"} for row in ROWS], EXAMPLES)) == whole


@pytest.mark.parametrize("name", [name for name in EXAMPLES.names if name != "origin"])
def test_the_content_digest_sees_every_other_column(name: str) -> None:
    field = EXAMPLES.field(name)
    other = [0.125] if pa.types.is_list(field.type) and pa.types.is_floating(field.type.value_type) else ["other"]
    value = other if pa.types.is_list(field.type) else 0.125 if pa.types.is_floating(field.type) else "other"
    changed = [ROWS[0] | {name: value}, *ROWS[1:]]
    assert digest_of(table_of(changed, EXAMPLES)) != digest_of(table_of(ROWS, EXAMPLES))


def test_the_content_digest_sees_order_null_and_the_border_between_texts() -> None:
    base = digest_of(table_of(ROWS, EXAMPLES))
    assert digest_of(table_of([ROWS[1], ROWS[0], *ROWS[2:]], EXAMPLES)) != base
    assert digest_of(table_of([*ROWS[:3], ROWS[3] | {"label": None}], EXAMPLES)) != base
    one = [ROWS[2] | {"negatives": ["ab", "c"]}]
    assert digest_of(table_of(one, EXAMPLES)) != digest_of(table_of([ROWS[2] | {"negatives": ["a", "bc"]}], EXAMPLES))


def card_of(tmp_path: Path) -> tuple[DatasetCard, str]:
    builder = tiny()
    builder.sources[0]["citation"] = "A | B\n# <script>"
    builder.sources[0]["licence"] = "CC BY-SA 4.0"
    builder.sources[1]["licence"] = "the users' own\n---\nlicense: mit"
    builder.sources[2]["licence"] = "ODC-By 1.0"
    builder.write(tmp_path / "x")
    text = (tmp_path / "x" / "README.md").read_text()
    return DatasetCard(text), text


def test_the_card_has_front_matter_that_the_hub_reads(tmp_path: Path) -> None:
    card, _ = card_of(tmp_path)
    assert card.data.to_dict() == {
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "data/train-*.parquet"}]}],
        "language": ["en"],
        "license": ["cc-by-sa-4.0", "odc-by", "other"],
        "pretty_name": "MEDI, rebuilt",
        "size_categories": ["n<1K"],
        "tags": ["medi", "instructor", "text-embeddings", "hard-negatives"],
        "task_categories": ["sentence-similarity", "feature-extraction", "text-retrieval"],
    }


def test_the_card_says_what_is_inside_and_quotes_what_others_wrote(tmp_path: Path) -> None:
    _, text = card_of(tmp_path)
    digest = open_release(tmp_path / "x").manifest["content_digest"]
    assert f"Content digest: `{digest}`" in text
    assert "16 rows of 4 tasks\nfrom 3 sources" in text
    assert "| super_ni | ODC-By 1.0 | jsonl | 8 | 8 | " in text
    assert "| asks | CC BY-SA 4.0 | jsonl | 4 | 4 | A \\| B \\# \\<script\\> |\n" in text
    assert "| twins | the users' own --- license: mit | jsonl | 4 | 4 | " in text
    assert "is stated for:\n  twins." in text
    assert "embedded without any instruction by\nstub, given hard negatives" in text
    assert '| `encoder` | `"stub"` |' in text
    assert [line for line in text.splitlines() if line.startswith("| `")][: len(EXAMPLES)] == [
        line for line in text.splitlines() if line.startswith(tuple(f"| `{name}` |" for name in EXAMPLES.names))
    ]


def test_the_card_of_an_import_claims_nothing_that_was_not_done() -> None:
    manifest = manifest_head(tiny().contents())
    manifest["params"] = {"imported": {"name": "medi-data.json"}}
    text = dataset_card(manifest)
    assert "Imported by `medi` from " in text and "has no scores and no labels" in text
    assert not any(word in text for word in ("drawn from each", "embedded without", "paired by cosine", "quota"))


def test_the_card_counts_licences_of_tasks_and_states_no_language_of_own_sources() -> None:
    manifest = manifest_head(tiny().contents())
    for entry in manifest["tasks"]:
        if entry["source"] == "super_ni":
            entry["evidence"] = {"ingest": {"licence": "CC BY-NC-ND 4.0"}}
    tasks = sum(entry["source"] == "super_ni" and entry["got"] > 0 for entry in manifest["tasks"])
    text = dataset_card(manifest)
    assert f"super_ni ({tasks} tasks)" in text and "cc-by-nc-nd-4.0" in DatasetCard(text).data.license
    assert DatasetCard(text).data.language == ["en"]
    manifest["params"]["own_sources"] = {entry["name"]: {} for entry in manifest["sources"]}
    text = dataset_card(manifest)
    assert DatasetCard(text).data.language is None and "- No language is stated.\n" in text


@pytest.mark.parametrize(
    ("rows", "category"),
    [(999, "n<1K"), (1000, "1K<n<10K"), (99_999, "10K<n<100K"), (1_435_000, "1M<n<10M")],
)
def test_the_card_names_the_size_as_the_hub_does(rows: int, category: str) -> None:
    builder = tiny()
    for entry in (*builder.sources, *builder.tasks):
        entry["got"] = 0
    builder.tasks[0]["got"] = builder.sources[0]["got"] = rows
    card = DatasetCard(dataset_card(manifest_head(builder.contents())))
    assert card.data.to_dict()["size_categories"] == [category]
