"""All 31 sources from their true places: a loopback server stands for the Hub, the client is the real one."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medi.fetch import find_raw
from medi.instruct import load_instructions
from medi.release import open_release
from medi.source import Source, Variant
from medi.sources import ALL
from tests.builds import REPO, manifest_of, medi_build
from tests.hub_server import Hub, publish, publish_task, serving

SAMPLE = REPO / "data" / "sample"
TASKS = ("task9001_medi_sentiment_classification", "task9009_medi_news_summarization")


def parquet(rows: list[dict[str, object]]) -> bytes:
    """Return the rows as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def content_of(source: Source, variant: Variant) -> list[bytes]:
    """Return a file for each that the variant declares: the sample's own where it has one, else made in its layout."""
    found = find_raw(SAMPLE, source, variant.name)
    if found:
        return [file.path.read_bytes() for file in found.files]
    if variant.layout == "query, pos, neg":
        lines = [{"query": f"{source.name} {n}", "pos": f"page {n}", "neg": f"page {n + 1}"} for n in range(9)]
        return [parquet([{**line, "idx": n, "task_name": source.name} for n, line in enumerate(lines)])]
    record = json.loads(variant.sample)
    return [parquet([record])] * len(variant.files)


def served_variant(source: Source) -> Variant:
    """Return the variant that a download takes: the first with a place."""
    return next(variant for variant in source.variants if variant.place)


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A server with every source at its real path, and two of the listed tasks."""
    hub = Hub()
    for source in ALL:
        if source.name != "super_ni":
            variant = served_variant(source)
            for file, content in zip(variant.files, content_of(source, variant), strict=True):
                publish(hub, variant, file, [content])
    for name, listed in zip(TASKS, sorted(load_instructions().super_ni_tasks), strict=False):
        publish_task(hub, listed, (SAMPLE / "super_ni" / "tasks" / f"{name}.json").read_bytes())
    with serving(hub):
        yield hub


@pytest.mark.parametrize("take", ["hash", "first"])
def test_all_sources_are_fetched_built_locked_and_built_again_offline(
    hub: Hub, tiny_encoder: Path, tmp_path: Path, take: str
) -> None:
    names = sorted(load_instructions().super_ni_tasks)[: len(TASKS)]
    tasks = tmp_path / "tasks.txt"
    tasks.write_text("\n".join(names))
    places = ["--workspace", tmp_path, "--out", tmp_path / "out", "--encoder", tiny_encoder, "--runner", "none"]
    call = ["--preset", "full", "--scale", "0.0004", "--take", take, "--super-ni-tasks", tasks, *places]
    online = {"HF_ENDPOINT": hub.address, "MEDI_MIRROR": hub.address, "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = medi_build(*call, environment=online)
    assert done.returncode == 0, done.stderr
    manifest = manifest_of(tmp_path / "out")
    assert [source["name"] for source in manifest["sources"]] == [source.name for source in ALL]
    assert [source["variant"] for source in manifest["sources"]] == [
        "tasks" if source.name == "super_ni" else served_variant(source).name for source in ALL
    ]
    assert all(source["got"] for source in manifest["sources"])
    assert all(
        file["sha256"] and file["commit"] for s in manifest["sources"] for file in s["files"] if "NQ" != s["name"]
    )  # type: ignore[index, attr-defined]
    # Rows, download and disk of each source are told before anything is fetched.
    head = done.stderr[: done.stderr.index("ingest")]
    assert all(source.name in head for source in ALL) and "download" in head
    digest = open_release(tmp_path / "out").manifest["content_digest"]
    requests = len(hub.asked)
    again = medi_build(
        *call, "--offline", environment={"HF_ENDPOINT": "http://127.0.0.1:9", "MEDI_MIRROR": "http://127.0.0.1:9"}
    )
    assert again.returncode == 0, again.stderr
    assert open_release(tmp_path / "out").manifest["content_digest"] == digest
    assert len(hub.asked) == requests


def test_offline_names_what_is_missing(tiny_encoder: Path, tmp_path: Path) -> None:
    places = ["--workspace", tmp_path, "--encoder", tiny_encoder, "--runner", "none"]
    done = medi_build("--preset", "full", "--offline", "--sources", "gooaq_pairs", *places)
    assert done.returncode == 1 and "gooaq_pairs" in done.stderr.splitlines()[-1] and "offline" in done.stderr
    assert not (tmp_path / "medi").exists()
