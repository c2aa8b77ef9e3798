"""`medi plan` beside `medi build`: the same options; it says before what the build counts then, and builds nothing."""

import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from medi.encoder import arithmetic_of, slowness_of
from medi.instruct import load_instructions
from pipelines.cli.app import main
from pipelines.cli.build import build
from pipelines.cli.plan import in_flop, in_short, in_time, plan
from tests.builds import REPO, artifacts, manifest_of, options, undone, vector_ids

Json = dict[str, dict[str, float | str]]
HEAVY = ("torch", "prefect", "pandas", "faiss", "transformers", "sentence_transformers", "datasets")
RUN = (
    "import sys; from pipelines.cli.app import main; code = main(sys.argv[1:]);"
    f"sys.stderr.write(' '.join(sorted(set(sys.modules) & set({HEAVY!r})))); sys.exit(code)"
)


def medi_plan(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `medi plan`; of a run that ends well, stderr holds the heavy packages that it imported."""
    call = [sys.executable, "-c", RUN, "plan", *map(str, args)]
    return subprocess.run(call, capture_output=True, text=True, check=False, cwd=REPO)


def planned(*args: str | Path) -> dict[str, list[Json]]:
    """The plan as JSON; it has imported nothing heavy."""
    done = medi_plan(*args, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def stage(found: dict[str, list[Json]], name: str) -> Json:
    """One stage of a plan."""
    return next(s for s in found["stages"] if s["stage"] == name)  # type: ignore[comparison-overlap]


def test_the_options_are_those_of_build() -> None:
    of_build = set(inspect.signature(build).parameters) - {"show_params"}
    assert set(inspect.signature(plan).parameters) == of_build | {"device", "as_json"}


def test_what_is_planned_is_what_the_build_then_counts(
    cut: Path, built: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    found = planned(*options(cut, tmp_path / "w", tiny_encoder))
    assert artifacts(tmp_path / "w") == {} and found["release"] is None
    sources = {str(source["source"]): source for source in found["sources"]}
    manifest = manifest_of(built / "out")
    assert list(sources) == [str(source["name"]) for source in manifest["sources"]]
    facts = [r["counts"] for r in manifest["records"] if r["stage"] == "tokens"]  # type: ignore[index]
    counted = {name: sum(f["facts"][name] for f in facts) for name in ("texts", "tokens")}  # type: ignore[index]
    for name, truth in counted.items():
        guess = sum(float(source[name]["value"]) for source in sources.values())
        assert truth / 1.5 < guess < truth * 1.5
        assert sources["AllNLI"][name]["basis"] == "guessed"
    got = sum(int(str(source["got"])) for source in manifest["sources"])
    assert got <= sum(float(source["rows"]["value"]) for source in sources.values()) <= 1.2 * got
    lines = {r["unit"]: r["counts"]["facts"]["lines_read"] for r in manifest["records"] if r["stage"] == "ingest"}  # type: ignore[index]
    assert sources["AllNLI"]["lines"] == {"value": lines["AllNLI"], "basis": "exact"}
    assert 0 < float(stage(found, "embed")["seconds"]["value"]) < 10
    assert [stage(found, name)["in_place"] for name in ("ingest", "embed", "mine")] == [0, 0, 0]


def test_of_a_finished_build_all_is_in_place_and_exact(cut: Path, built: Path, tiny_encoder: Path) -> None:
    call = options(cut, built, tiny_encoder)
    found = planned(*call)
    assert found["release"] == str(built / "out")
    assert found["total"]["seconds"] == {"value": 0, "basis": "exact"}  # type: ignore[call-overload]
    units = len(artifacts(built)) and len({unit for kind, unit in artifacts(built) if kind == "ingest"})
    assert [stage(found, name)["in_place"] for name in ("ingest", "tokens", "embed", "mine")] == [units] * 4
    text = medi_plan(*call).stdout
    assert "~" not in text.removesuffix("~ guessed\n") and f"in place: {built / 'out'}" in text


def test_a_release_that_is_gone_is_all_that_is_left(cut: Path, built: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    undone(built, tmp_path / "w")
    found = planned(*options(cut, tmp_path / "w", tiny_encoder))
    busy = [s["stage"] for s in found["stages"] if float(s["seconds"]["value"])]
    assert busy == ["release"] and found["release"] is None
    got = sum(int(str(source["got"])) for source in manifest_of(built / "out")["sources"])
    assert stage(found, "release")["amount"] == {"value": got, "basis": "exact"}


def test_chunks_of_vectors_that_are_kept_are_not_encoded_again(
    cut: Path, built: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    workspace = tmp_path / "w"
    undone(built, workspace, "candidates", "mine", "audit", "sample", "instruct")
    call = options(cut, workspace, tiny_encoder)
    whole = planned(*call)
    # Of given negatives it is known how many may be encoded at most: one of msmarco's rows has a negative too few.
    assert float(stage(whole, "embed")["amount"]["value"]) <= 1
    chunks = sorted((workspace / "store" / "vectors").glob("*/[!.]*"))
    before = len(vector_ids(workspace))
    shutil.rmtree(chunks[0])
    gone = before - len(vector_ids(workspace))
    found = planned(*call)
    embed = stage(found, "embed")
    # A text of two sources is a text of each.
    assert gone <= float(embed["amount"]["value"]) <= 1.2 * gone
    assert float(stage(found, "tokens")["seconds"]["value"]) == 0
    words = len(load_instructions().vocabulary)
    assert sum(int(str(source["kept_vectors"])) for source in found["sources"]) == before - gone - words


@pytest.mark.parametrize("args", [(), ("--preset", "full", "--dtype", "bfloat16", "--device", "h100")])
def test_tables_fit_80_columns_and_import_nothing_heavy(args: tuple[str, ...], tmp_path: Path) -> None:
    done = medi_plan(*args, "--workspace", tmp_path / "w", "--offline")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    heads = [line.split() for line in done.stdout.splitlines()]
    assert ["source", "lines", "rows", "texts", "tokens", "download", "in", "place"] in heads
    assert ["stage", "to", "do", "memory", "disk", "time"] in heads
    assert done.stdout.splitlines()[-1] == "no mark: exact   ' counted before   ~ guessed"


def test_full_on_a_gpu_is_days_less(tmp_path: Path) -> None:
    call = ("--preset", "full", "--dtype", "bfloat16", "--workspace", tmp_path / "w", "--device")
    cpu, a100, h100 = (planned(*call, name) for name in ("cpu", "a100", "h100"))
    hours = [float(stage(found, "embed")["seconds"]["value"]) / 3600 for found in (cpu, a100, h100)]
    assert hours[0] > 24 > 3 > hours[1] > hours[2] > 0.1
    rows = sum(float(source["rows"]["value"]) for source in h100["sources"])
    assert 1_400_000 < rows <= 1_435_000
    assert h100["machine"]["arithmetic"] == "cuda-sm90"  # type: ignore[call-overload]
    gooaq = h100["sources"][0]
    assert gooaq["lines"] == {"value": 3_012_496, "basis": "counted"}
    assert gooaq["download_bytes"] == {"value": 362_000_000, "basis": "counted"}


def test_an_encoder_that_is_not_here_is_not_asked_for(tmp_path: Path) -> None:
    found = planned("--preset", "sample", "--encoder", "some/thing", "--workspace", tmp_path / "w")
    assert found["notes"] == ["some/thing is not here yet: taken to be as large as BERT base"]
    assert found["encoder"]["parameters"] == 12 * 12 * 768**2  # type: ignore[call-overload]
    # Its weights are to be fetched, 32,000 words of 768 numbers among them.
    assert stage(found, "fetch")["amount"] == {"value": 4 * (12 * 12 * 768**2 + 32_000 * 768), "basis": "guessed"}


def test_what_a_plan_cannot_hold_is_a_note_and_so_is_a_dtype_that_slows_down(
    cut: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    asked = ("--ivf-from", "90000", "--dtype", "bfloat16", "--device", "cpu")
    found = planned(*options(cut, tmp_path, tiny_encoder), *asked)
    slow = slowness_of("bfloat16", arithmetic_of("bfloat16", with_gpu=False))
    not_held = "--ivf-from 90000: this plan is that of a search of all documents"
    notes: list[str] = [str(note) for note in found["notes"]]
    assert not_held in notes and [note for note in notes if note.startswith("--dtype")] == ([slow] if slow else [])


def test_large_files_that_nobody_has_read_are_not_read(tmp_path: Path, tiny_encoder: Path) -> None:
    folder = tmp_path / "raw" / "embedding_training_data"
    folder.mkdir(parents=True)
    with (folder / "gooaq_pairs.jsonl.gz").open("wb") as file:
        file.write(b'["a question", "the answer to it"]\n' * 100_000)
        file.truncate(2 << 30)
    found = planned(*options(tmp_path / "raw", tmp_path / "w", tiny_encoder))
    assert found["notes"][0] == "gooaq_pairs: 2.1 GB that no build has read here; what of it is in place is not known"
    lines = found["sources"][0]["lines"]
    assert lines["basis"] == "guessed" and lines["value"] == pytest.approx((2 << 30) / 35, rel=0.02)
    assert found["sources"][0]["rows"]["value"] == 25_000


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--device", "tpu"), "medi: --device tpu: give cpu, a100 or h100, or leave it out for this machine\n"),
        (("--preset", "large"), "medi: --preset large: there is no such preset; give one of sample, lite, full\n"),
        (("--sources", "nq"), "medi: there is no source 'nq'"),
    ],
)
def test_a_wrong_call_is_one_line(args: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = medi_plan(*args, "--workspace", tmp_path / "w")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines(keepends=True)[0].startswith(said)


def test_the_real_files_are_guessed_as_they_were_built(shared_raw: Path, tmp_path: Path) -> None:
    """A build of them had 76,820 rows of 76,849 drawn, 137,372 texts with 5.44 million tokens, and on two cores with
    AVX-512 its chunks of vectors came at 174 GFLOP/s, in 954 s.
    """
    found = planned("--raw", shared_raw, "--super-ni-tasks", "all", "--workspace", tmp_path / "w")
    sums = {n: sum(float(s[n]["value"]) for s in found["sources"]) for n in ("rows", "texts", "tokens")}
    assert sums == pytest.approx({"rows": 76_820, "texts": 137_372, "tokens": 5_440_000}, rel=0.1)
    # As computed from that build's tables of tokens, but for blanks: 5,577,492 for 5,120,558 of its texts.
    padded = found["encoder"]["padded_tokens"]  # type: ignore[call-overload]
    assert padded / sums["tokens"] == pytest.approx(5_577_492 / 5_120_558, rel=0.05)


@pytest.mark.parametrize(
    ("say", "value", "text"),
    [
        (in_short, 691, "691"), (in_short, 3_873.4, "3,873"), (in_short, 12_345, "12.3k"), (in_short, 99_960, "100k"),
        (in_short, 1_262_000, "1.26M"), (in_short, 473e6, "473M"), (in_short, 2e9, "2.00G"),
        (in_time, 0.2, "1 s"), (in_time, 89, "89 s"), (in_time, 950, "16 min"), (in_time, 90, "1.5 min"),
        (in_time, 20_000, "5.6 h"), (in_time, 1.8e6, "21 days"),
        (in_flop, 8.24e12, "8.2 TFLOP"), (in_flop, 1.84e11, "184 GFLOP"), (in_flop, 3.65e17, "365 PFLOP"),
    ],
)  # fmt: skip
def test_numbers_as_a_person_says_them(say: Callable[[float], str], value: float, text: str) -> None:
    assert say(value) == text


def test_a_plan_of_which_no_file_can_be_read_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "raw" / "embedding_training_data" / "xsum.jsonl.gz"
    place.mkdir(parents=True)
    assert main(["plan", "--raw", str(tmp_path / "raw"), "--workspace", str(tmp_path / "w"), "--sources", "xsum"]) == 1
    assert capsys.readouterr().err == f"medi: xsum: {place} is a folder; put the file in its place\n"
