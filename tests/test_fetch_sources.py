"""Every declared source comes from its true place: a loopback Hub serves each at its real path to the real client."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from medi.errors import MediError
from medi.fetch import Settings, choose_variant, download, fetch_tasks, find_raw
from medi.source import Source, Variant
from medi.sources import ALL, by_name
from tests.hub_server import Hub, environment, publish, publish_task, serving

EMBEDDING = [source for source in ALL if source.name != "super_ni"]
PLACED = [(source, variant) for source in EMBEDDING for variant in source.variants if variant.place]


@pytest.fixture
def hub() -> Iterator[Hub]:
    """An empty Hub, to which the environment points."""
    with serving(Hub()) as hub, environment(HF_ENDPOINT=hub.address, MEDI_MIRROR=hub.address):
        yield hub


def content_of(variant: Variant, number: int) -> bytes:
    """Some bytes that no other file has."""
    return f"{number} {variant.sample}\n".encode()


@pytest.mark.parametrize(("source", "variant"), PLACED, ids=lambda value: value.name)
def test_each_variant_is_fetched_from_its_place(hub: Hub, tmp_path: Path, source: Source, variant: Variant) -> None:
    declared = [*variant.files, *([variant.pages] if variant.pages else [])]
    expected = []
    for file in declared:
        contents = [content_of(variant, n) for n in range(3 if "*" in file.remote else 1)]
        publish(hub, variant, file, contents)
        expected += contents
    found = download(source, variant, Settings(tmp_path))
    assert [file.path.read_bytes() for file in (*found.files, *found.pages)] == expected
    # What is fetched has the names it would have in a raw folder, where the same variant is found by them.
    for file in (*found.files, *found.pages):
        (tmp_path / "raw" / file.name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "raw" / file.name).write_bytes(file.path.read_bytes())
    raw = find_raw(tmp_path / "raw", source, variant.name)
    assert raw is not None
    assert [file.name for file in raw.files] == [file.name for file in found.files]
    assert [file.name for file in raw.pages] == [file.name for file in found.pages]


@pytest.mark.parametrize("source", EMBEDDING, ids=lambda source: source.name)
def test_without_any_place_each_source_says_what_to_put_where(hub: Hub, tmp_path: Path, source: Source) -> None:
    with pytest.raises(MediError) as nowhere:
        choose_variant(source, None, Settings(tmp_path))
    for words in (f"{source.name}: ", *(f"DIR/{file.pattern}" for v in source.variants for file in v.files), "--raw"):
        assert words in str(nowhere.value)
    assert "\n" not in str(nowhere.value)


@pytest.mark.parametrize("name", ["hotpotqa", "fever", "trex", "wow", "zero_shot_re", "triviaqa"])
def test_multi_train_is_taken_where_it_answers_else_kilt(hub: Hub, tmp_path: Path, name: str) -> None:
    source, settings = by_name(name), Settings(tmp_path)
    kilt = source.variant("kilt")
    assert kilt.pages is not None
    publish(hub, kilt, kilt.files[0], [b"{}\n"])
    publish(hub, kilt, kilt.pages, [b"{}\n"])
    assert choose_variant(source, None, settings)[0] == kilt
    multi_train = source.variant("multi_train")
    publish(hub, multi_train, multi_train.files[0], [b"PAR1"])
    assert choose_variant(source, None, settings)[0] == multi_train


def test_tasks_come_from_the_pinned_commit(hub: Hub, tmp_path: Path) -> None:
    publish_task(hub, "task001_a", b"{}")
    (file,) = fetch_tasks(["task001_a"], Settings(tmp_path))
    assert (file.name, file.path.read_bytes()) == ("super_ni/tasks/task001_a.json", b"{}")
    super_ni = by_name("super_ni")
    with pytest.raises(MediError, match="lists no files; name each file"):
        download(super_ni, super_ni.variants[0], Settings(tmp_path))


def test_real_files_are_found_by_their_sources(shared_raw: Path) -> None:
    found = {source.name: find_raw(shared_raw, source) for source in ALL}
    variants = {name: (f.variant.name, len(f.files), len(f.pages)) for name, f in found.items() if f}
    assert variants["super_ni"] == ("tasks", 134, 0)
    assert variants["hotpotqa"][0] in ("dpr", "kilt") and variants["pubmed"][0] == "files"
    assert variants["wow"] == ("kilt", 1, 1)
