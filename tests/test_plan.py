"""What a build will take is told, and the disk is asked, before anything but names, sizes and settings is fetched."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from medi.errors import MediError
from medi.fetch import forget_hosts
from medi.ingest import pool_rows
from medi.plan import Estimate, check_disk, estimate, in_words, needed_bytes
from medi.source import File, Variant, pair
from medi.sources import by_name
from pipelines.build.context import Context, prepare
from pipelines.build.fetching import show_plan
from pipelines.build.progress import Reporter, showing
from pipelines.build.units import plan_groups
from pipelines.presets import resolve
from tests.hub_server import Fault, Hub, Repository, environment, publish, serving

MIB = 1 << 20
FILE = File("a.jsonl", "a.jsonl")


def variant(lines: int | None, given_negatives: bool = False) -> Variant:
    """A variant of so many lines."""
    return Variant("v", "pairs", {}, pair, "", "hub:o/n", (FILE,), lines, given_negatives)


@pytest.mark.parametrize(
    ("sizes", "lines", "take", "download_bytes"),
    [
        ({"a.jsonl": 50 * MIB}, 1_000, "hash", 50 * MIB),
        # 1.5 x 100 of 1,000 lines are 7.5 MiB: the next size of the schedule is 8.
        ({"a.jsonl": 50 * MIB}, 1_000, "first", 8 * MIB),
        ({"a.jsonl": 2 * MIB}, 1_000, "first", 2 * MIB),
        ({"a.jsonl": 3 * MIB, "b.jsonl": 47 * MIB}, 1_000, "first", (3 + 8) * MIB),
        # The first shards are whole, those behind them are not fetched.
        ({f"{n}.parquet": 5 * MIB for n in range(10)}, 1_000, "first", 10 * MIB),
        ({"a.jsonl": 50 * MIB}, None, "first", 4 * MIB),
        ({"a.jsonl": None}, 1_000, "hash", None),
        ({"a.jsonl": 5 * MIB, "b.jsonl": None}, 1_000, "hash", None),
    ],
)
def test_what_is_fetched(
    sizes: dict[str, int | None], lines: int | None, take: str, download_bytes: int | None
) -> None:
    assert estimate("s", variant(lines), 100, sizes, take).download_bytes == download_bytes


def test_an_unknown_size_is_a_guess_on_the_disk_never_nothing() -> None:
    known, unknown = (estimate("s", variant(1_000), 100, {"a.jsonl": size}, "hash") for size in (0, None))
    assert unknown.workspace_bytes - known.workspace_bytes == 1_000 * 1_000
    assert in_words(unknown.download_bytes) == "?"


def test_rows_are_counted_as_they_are_kept() -> None:
    two, six = (estimate("s", variant(9_999, given), 1_000, {"a.jsonl": 0}, "hash") for given in (False, True))
    assert (two.rows, two.texts, six.texts) == (1_000, 2, 6)
    # The workspace holds the pool, 1.2 x the quota, with a vector of 768 numbers for each text; the release the quota.
    assert pool_rows(1_000) == 1_200
    assert six.workspace_bytes == 3 * two.workspace_bytes > 1_200 * 6 * 768 * 4
    assert six.release_bytes == 3 * two.release_bytes > 0
    assert estimate("s", variant(30), 1_000, {"a.jsonl": 0}, "hash").rows == 30


def test_workspace_and_release_may_lie_on_two_disks(tmp_path: Path) -> None:
    sources = [Estimate("a", "v", 10, 1_000), Estimate("b", "v", 20, None, guessed_bytes=500)]
    kept = sum(e.workspace_bytes for e in sources)
    released = sum(e.release_bytes for e in sources)
    assert needed_bytes(sources, tmp_path / "not" / "yet", tmp_path) == {tmp_path / "not" / "yet": kept + released}
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second disk at /dev/shm")
    assert needed_bytes(sources, tmp_path, memory / "out") == {tmp_path: kept, memory / "out": released}


def test_a_disk_that_is_too_small_is_named(tmp_path: Path) -> None:
    check_disk([Estimate("a", "v", 10, 1_000)], tmp_path, tmp_path / "out")
    with pytest.raises(MediError, match=rf"^{tmp_path}: .* free, about 1,000,000 TB needed; name another --workspace"):
        check_disk([Estimate("a", "v", 0, 10**18)], tmp_path, tmp_path / "out")


@pytest.fixture
def hub(tiny_encoder: Path) -> Iterator[Hub]:
    """A Hub with a small encoder and the files of two sources."""
    files = {p.relative_to(tiny_encoder).as_posix(): p.read_bytes() for p in tiny_encoder.rglob("*") if p.is_file()}
    with serving(Hub(models={"o/tiny": Repository(files)})) as hub:
        for name in ("gooaq_pairs", "AllNLI"):
            source = by_name(name).variants[0]
            publish(hub, source, source.files[0], [b'["a question", "an answer"]\n' * 1_000])
        with environment(HF_ENDPOINT=hub.address, MEDI_MIRROR=hub.address):
            yield hub


def planned(workspace: Path, *sources: str, **options: object) -> tuple[Context, str]:
    """Prepare a build with the Hub's encoder and show its plan; returns also what a person has seen."""
    places = {"workspace": workspace, "out": workspace / "out", "encoder": "o/tiny"}
    settings = resolve("full", sources=sources, **places, **options)
    seen = Reporter(Console(file=io.StringIO(), width=120))
    with showing(seen):
        context = prepare(settings)
        show_plan(context, plan_groups(context), seen)
    return context, seen.console.file.getvalue()  # type: ignore[attr-defined]


def fetched(hub: Hub) -> list[str]:
    """The names of the files whose bytes were asked for."""
    return [path.rpartition("/")[2] for path in hub.paths() if "/api/" not in path]


def test_the_plan_names_encoder_and_sources_before_their_files_come(hub: Hub, tmp_path: Path) -> None:
    context, text = planned(tmp_path, "gooaq_pairs", "AllNLI")
    settings = {"config.json", "modules.json", "sentence_bert_config.json", "tokenizer_config.json"}
    assert set(fetched(hub)) <= settings and context.spec.max_length_tokens == 128
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["to", "fetch", "variant", "rows", "download", "disk"]
    missing = sum(len(c) for n, c in hub.models["o/tiny"].files.items() if n not in {*settings, "README.md"})
    assert context.encoder_files.missing_bytes == missing
    assert lines[1][:5] == ["encoder", "o/tiny", "0", *in_words(missing).split()]
    assert [line[0] for line in lines[2:]] == ["gooaq_pairs", "AllNLI", "all"]
    assert context.encoder().encoder.encode([[1, 2, 3]]).shape == (1, 32)
    assert "model.safetensors" in fetched(hub)
    # What is here is in no plan, and nobody is asked for it again.
    asked = len(hub.asked)
    again = prepare(resolve("full", workspace=tmp_path, encoder="o/tiny", offline=True))
    assert (again.encoder_files.missing_bytes, again.spec, len(hub.asked)) == (0, context.spec, asked)


def test_offline_a_build_of_which_nothing_is_here_ends_with_its_plan(hub: Hub, tmp_path: Path) -> None:
    prepared = prepare(resolve("full", workspace=tmp_path, encoder="o/tiny"))
    assert prepared.encoder().encoder
    asked = len(hub.asked)
    told = "^gooaq_pairs: offline, and its files are not in .*once without --offline"
    with pytest.raises(MediError, match=told) as one:
        planned(tmp_path, "gooaq_pairs", offline=True)
    # Said once, however many places the source has.
    assert str(one.value).count("offline, and") == 1 and len(hub.asked) == asked


def test_a_source_that_cannot_be_had_does_not_hide_the_others(hub: Hub, tmp_path: Path) -> None:
    _, text = planned(tmp_path, "gooaq_pairs", "squad_pairs", "yahoo_answers_title_answer")
    told = [line for line in text.splitlines() if line.startswith("cannot be had: ")]
    assert [line.split(": ")[1] for line in told] == ["yahoo_answers_title_answer", "squad_pairs"]
    assert all("has no file" in line and "--raw DIR" in line for line in told)
    assert "gooaq_pairs" in text.split("to fetch")[1]


def test_all_tasks_are_one_line_of_the_plan(hub: Hub, tmp_path: Path) -> None:
    _, text = planned(tmp_path, "super_ni", "gooaq_pairs", scale=0.01)
    lines = [line.split() for line in text.split("to fetch")[1].splitlines()]
    assert [line[0] for line in lines[1:]] == ["encoder", "gooaq_pairs", "super_ni", "all"]
    # 300 tasks of 6 rows, and what 300 files of 2 MB take.
    assert lines[3][1:6] == ["task", "files", "1,800", "600", "MB"]


NOBODY = "http://127.0.0.1:9"


def test_what_lives_at_a_dead_host_is_named_and_the_rest_is_planned(hub: Hub, tmp_path: Path) -> None:
    forget_hosts()
    with environment(MEDI_MIRROR=NOBODY):
        _, text = planned(tmp_path, "gooaq_pairs", "NQ", "super_ni")
    told = [line for line in text.splitlines() if line.startswith("cannot be had: ")]
    assert [line.split(": ")[1] for line in told] == ["NQ", "super_ni"]
    assert all("127.0.0.1:9 cannot be reached (Connection refused)" in line and "--raw DIR" in line for line in told)
    assert [line.split()[0] for line in text.split("to fetch")[1].splitlines()[1:]] == ["encoder", "gooaq_pairs", "all"]


def test_a_build_of_which_nothing_can_be_had_ends_with_its_plan(hub: Hub, tmp_path: Path) -> None:
    forget_hosts()
    with environment(MEDI_MIRROR=NOBODY), pytest.raises(MediError, match="^2 sources or tasks failed, nothing") as lost:
        planned(tmp_path, "NQ", "super_ni")
    assert [note.split(": ")[0] for note in lost.value.__notes__] == ["NQ", "super_ni"]


def test_a_place_that_fails_now_is_planned_as_declared(hub: Hub, tmp_path: Path) -> None:
    source = by_name("gooaq_pairs").variants[0]
    repository = source.place.removeprefix("hub:")
    hub.faults[f"/api/datasets/{repository}/revision/main"] = Fault(100, status=503)
    _, text = planned(tmp_path, "gooaq_pairs")
    (line,) = [line.split() for line in text.splitlines() if line.startswith("gooaq_pairs ")]
    assert line[1] == source.name and " ".join(line[3:5]) == in_words(source.files[0].size_bytes)


def test_a_full_disk_stops_before_anything_is_fetched(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(MediError, match="free, about .* TB needed; name another --workspace, fewer --sources"):
        planned(tmp_path, "super_ni", scale=1e6)
    assert not any(name.endswith((".safetensors", ".gz")) or name.startswith("task") for name in fetched(hub))


def test_another_spelling_is_the_same_encoder(tmp_path: Path) -> None:
    one, other = (
        prepare(resolve("sample", workspace=tmp_path, encoder=name, offline=True))
        for name in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
    )
    assert one.encoder_params == other.encoder_params
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "m").symlink_to(one.encoder_files.folder)
    with environment(HOME=str(tmp_path / "home")):
        tilde = prepare(resolve("sample", workspace=tmp_path, encoder="~/m", offline=True))
    assert tilde.encoder_params == {**one.encoder_params, "name": "local"}


def test_what_arrives_is_said_with_its_speed(tmp_path: Path) -> None:
    text = io.StringIO()
    with Reporter(Console(file=text, width=120)) as reporter:
        # 4 MB were here before: they are neither fetched now nor part of the speed.
        reporter.fetched("a", 4 * 10**6, 9 * 10**6)
        reporter.fetched("b", 0, 3 * 10**6)
        reporter.fetched("a", 9 * 10**6, 9 * 10**6)
        assert text.getvalue() == ""
    assert text.getvalue().startswith("fetch    5/8 MB  ") and text.getvalue().endswith("the rest not done\n")
