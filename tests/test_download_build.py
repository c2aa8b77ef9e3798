"""All 31 sources from their true places: a loopback server stands for the Hub, the client is the real one."""

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medi.fetch import find_raw
from medi.instruct import load_instructions
from medi.release import open_release
from medi.source import Source, Variant
from medi.sources import ALL, by_name
from pipelines.build.context import prepare
from pipelines.build.fetching import obtain
from pipelines.build.units import plan_groups
from pipelines.presets import resolve
from tests.builds import REPO, manifest_of, medi_build
from tests.hub_server import Hub, Repository, environment, publish, publish_task, serving

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


def asked_places(asked: list[tuple[str, str]]) -> set[str]:
    """Return the places that were asked what they have: repositories, and files at plain addresses."""
    heads = {path for method, path in asked if method == "HEAD"}
    return heads | {path.partition("/revision/")[0] for _, path in asked if path.startswith("/api/datasets/")}


@pytest.fixture
def hub(tiny_encoder: Path) -> Iterator[Hub]:
    """A server with every source at its real path, two of the listed tasks, and an encoder."""
    files = {p.relative_to(tiny_encoder).as_posix(): p.read_bytes() for p in tiny_encoder.rglob("*") if p.is_file()}
    hub = Hub(models={"o/tiny": Repository(files)})
    for source in ALL:
        if source.name != "super_ni":
            variant = served_variant(source)
            for file, content in zip(variant.files, content_of(source, variant), strict=True):
                publish(hub, variant, file, [content])
    for name, listed in zip(TASKS, sorted(load_instructions().super_ni_tasks), strict=False):
        publish_task(hub, listed, (SAMPLE / "super_ni" / "tasks" / f"{name}.json").read_bytes())
    with serving(hub):
        yield hub


@pytest.mark.slow
@pytest.mark.parametrize("take", ["hash", pytest.param("first", marks=pytest.mark.slow)])
def test_all_sources_are_fetched_built_locked_and_built_again_offline(hub: Hub, tmp_path: Path, take: str) -> None:
    names = sorted(load_instructions().super_ni_tasks)[: len(TASKS)]
    tasks = tmp_path / "tasks.txt"
    tasks.write_text("\n".join(names))
    places = ["--workspace", tmp_path, "--out", tmp_path / "out", "--encoder", "o/tiny", "--runner", "none"]
    options = ["--preset", "full", "--scale", "0.0004", "--take", take, "--super-ni-tasks", tasks, *places]
    online = {"HF_ENDPOINT": hub.address, "MEDI_MIRROR": hub.address, "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = medi_build(*options, environment=online)
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
    # Rows, download and disk of the encoder and of each source are told first; each has its line in the plan.
    lines = [line.split() for line in done.stderr.splitlines()]
    begin, end = (next(n for n, line in enumerate(lines) if line[:1] == [word]) for word in ("to", "all"))
    planned = [line[0] for line in lines[begin + 1 : end]]
    assert planned == ["encoder", *(source.name for source in ALL)]
    assert end < next(n for n, line in enumerate(lines) if line[:1] == ["ingest"])
    # Every place was asked before the first byte of a data file or of the encoder's weights came.
    is_setting = ("/config.json", "/modules.json", "_config.json")
    asked = [call[:2] for call in hub.asked if "/o/tiny/" not in call[1] or not call[1].endswith(is_setting)]
    first = next(n for n, (method, path) in enumerate(asked) if method == "GET" and not path.startswith("/api/"))
    assert asked_places(asked[:first]) == asked_places(asked)
    digest = open_release(tmp_path / "out").manifest["content_digest"]
    requests = len(hub.asked)
    again = medi_build(
        *options, "--offline", environment={"HF_ENDPOINT": "http://127.0.0.1:9", "MEDI_MIRROR": "http://127.0.0.1:9"}
    )
    assert again.returncode == 0, again.stderr
    assert open_release(tmp_path / "out").manifest["content_digest"] == digest
    assert len(hub.asked) == requests


def test_take_first_fetches_no_shard_behind_the_one_that_suffices(hub: Hub, tmp_path: Path) -> None:
    source = by_name("fever")
    variant = source.variant("multi_train")
    # A shard is larger than the first step of the schedule, and its text cannot be packed.
    noise = random.Random(0)
    texts = [[noise.randbytes(400_000).hex() for _ in range(8)] for _ in range(3)]
    shards = [
        parquet([{"query": f"q {n} {m}", "pos": text, "neg": f"n {n} {m}", "idx": m} for m, text in enumerate(part)])
        for n, part in enumerate(texts)
    ]
    assert min(map(len, shards)) > 4 << 20
    hub.datasets[variant.place.removeprefix("hub:")].files.clear()
    paths = publish(hub, variant, variant.files[0], shards)
    fetched = {}
    for rows in (5, 10):
        options = {"take": "first", "scale": rows / source.quota_rows, "encoder": "o/tiny", "sources": ("fever",)}
        workspace = tmp_path / str(rows)
        with environment(HF_ENDPOINT=hub.address, MEDI_MIRROR=hub.address):
            context = prepare(resolve("full", workspace=workspace, out=workspace / "out", **options))
            (group,) = plan_groups(context).groups
            (unit,) = obtain(context, group).units
        fetched[rows] = [file.name.rpartition("/")[2] for file in unit.files]
    names = [path.rpartition("/")[2] for path in paths]
    # A pool of 6 is in the first shard, one of 12 needs the second.
    assert fetched == {5: names[:1], 10: names[:2]}
    assert not any(path.endswith(paths[2]) for path in hub.paths())


def test_without_a_network_every_source_says_one_line_at_once(tiny_encoder: Path, tmp_path: Path) -> None:
    nobody = {"HF_ENDPOINT": "http://127.0.0.1:9", "MEDI_MIRROR": "http://127.0.0.1:9", "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = medi_build("--preset", "lite", "--workspace", tmp_path, "--encoder", tiny_encoder, environment=nobody)
    # The one host that all places lead to here is waited for twice, 3 s in all.
    waits = [line.rpartition(" in ")[2] for line in done.stderr.splitlines() if "; attempt " in line]
    assert (done.returncode, waits) == (1, ["1 s", "2 s"])
    *lines, last = [line.removeprefix("medi: ") for line in done.stderr.splitlines() if line.startswith("medi: ")]
    assert [line.split(": ")[0] for line in lines] == [source.name for source in ALL]
    assert all(" of https://" in line or " of hub:" in line for line in lines)
    assert all("127.0.0.1:9 cannot be reached (Connection refused); run again" in line for line in lines)
    assert all("DIR/" in line and line.endswith(" and give --raw DIR") for line in lines)
    assert last.startswith("31 sources or tasks failed, nothing is published; put right what the lines above say")
    # Nothing can be had: Prefect is not even started.
    assert not {"prefect", "store", "hub", "medi"} & {path.name for path in tmp_path.iterdir()}


def test_offline_names_what_is_missing(tiny_encoder: Path, tmp_path: Path) -> None:
    places = ["--workspace", tmp_path, "--encoder", tiny_encoder, "--runner", "none"]
    done = medi_build("--preset", "full", "--offline", "--sources", "gooaq_pairs", *places)
    assert done.returncode == 1 and "gooaq_pairs" in done.stderr.splitlines()[-1] and "offline" in done.stderr
    assert not (tmp_path / "medi").exists()
