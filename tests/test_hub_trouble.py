"""A Hub at its worst, with its real client: a failure is waited for a bounded time and said in a line; it ends with the
right bytes, or with an error that a later run gets over.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest

from medi.errors import MediError
from medi.fetch import Settings, Unreachable, download, forget_hosts
from medi.source import File, Source, Variant, pair
from medi.sources import by_name
from tests.builds import REPO, files_of, medi_build
from tests.hub_server import Fault, Hub, Repository, environment, publish, serving

ROWS = b"".join(b'["question %d", "answer %d"]\n' % (n, n) for n in range(40_000))
HUB_PATH, LISTING = f"/datasets/o/n/resolve/{'a' * 40}/x.jsonl", "/api/datasets/o/n/revision/main"
PLAIN_PATH = "/dpr/nq.json"


def source(place: str, file: File) -> Source:
    """A source of one file at a place."""
    return Source("agnews", 45_000, False, "", "", (Variant("pairs", "pairs", {}, pair, "", place, (file,)),))


ON_HUB = source("hub:o/n", File("embedding_training_data/x.jsonl", "x.jsonl"))
PLAIN = source("https://data.example/dpr", File("dpr_format/nq.json", "nq.json"))


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A Hub, to which the environment points, with one file in a repository and one at a plain address."""
    forget_hosts()
    hub = Hub(datasets={"o/n": Repository({"x.jsonl": ROWS})}, plain={PLAIN_PATH: ROWS})
    with serving(hub), environment(HF_ENDPOINT=hub.address, MEDI_MIRROR=hub.address):
        yield hub


@pytest.fixture
def settings(tmp_path: Path, said: list[str]) -> Settings:
    """Downloads that hardly wait."""
    return Settings(tmp_path / "ws", backoff_seconds=0.001, timeout_seconds=0.5, say=said.append)


def fetch(of: Source, settings: Settings) -> bytes:
    """The bytes of the source's file."""
    (file,) = download(of, of.variants[0], settings).files
    return file.path.read_bytes()


@pytest.mark.parametrize("path", [LISTING, HUB_PATH])
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(2, status=500), "answer 500; attempt 3 of 6"),
        (Fault(1, status=502), "answer 502; attempt 2 of 6"),
        (Fault(1, status=429), "answer 429; attempt 2 of 6 in 0.001 s"),
        (Fault(1, silent_seconds=1.0), "no answer in time; attempt 2 of 6"),
    ],
)
def test_the_listing_and_the_file_are_asked_for_again(
    hub: Hub, settings: Settings, said: list[str], path: str, fault: Fault, words: str
) -> None:
    hub.faults[path] = replace(fault)
    assert fetch(ON_HUB, settings) == ROWS
    what = "hub dataset o/n" if path == LISTING else "hub:o/n@main x.jsonl"
    assert said[-1].startswith(f"{what}: {words}") and len(said) == fault.times


@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        (lambda: {"Retry-After": "1"}, [1]),
        (lambda: {"Retry-After": "86400"}, [2]),
        (lambda: {"Retry-After": formatdate(time.time() + 3_600, usegmt=True)}, [2]),
        (lambda: {"Retry-After": formatdate(time.time() - 60, usegmt=True)}, [0]),
        (lambda: {"RateLimit": '"api";r=0;t=1'}, [1]),
        (lambda: {"Retry-After": "soon"}, [0.001]),
        (lambda: {"Retry-After": "\u00b2"}, [0.001]),
    ],
    ids=["seconds", "a day", "a date", "a date gone by", "RateLimit", "no number", "no digit"],
)
def test_the_wait_that_a_server_asks_for_is_honoured_within_bounds(
    hub: Hub, settings: Settings, said: list[str], headers: Callable[[], dict[str, str]], waits: list[float]
) -> None:
    hub.faults[HUB_PATH] = Fault(1, status=429, headers=headers())
    began = time.monotonic()
    assert fetch(ON_HUB, replace(settings, longest_wait_seconds=2)) == ROWS
    assert [float(line.rpartition(" in ")[2].removesuffix(" s")) for line in said] == waits
    assert time.monotonic() - began >= sum(waits)


def test_a_server_that_always_asks_to_wait_is_left_in_the_end(hub: Hub, settings: Settings, said: list[str]) -> None:
    hub.faults[LISTING] = Fault(100, status=429, headers={"Retry-After": "0"})
    with pytest.raises(MediError, match=r"^hub dataset o/n: answer 429 \(attempt 6 of 6\); run the same command again"):
        fetch(ON_HUB, settings)
    assert hub.faults[LISTING].times == 94 and len(said) == 5


@pytest.mark.parametrize("sent", [ROWS[:-7], ROWS + b"more"])
def test_a_body_of_another_size_than_the_listing_says_is_refused(
    hub: Hub, settings: Settings, said: list[str], sent: bytes
) -> None:
    hub.faults[HUB_PATH] = Fault(100, instead=sent)
    with pytest.raises(MediError, match=rf"sent other bytes than asked for \(from 0, of {len(sent)}\).*attempt 6 of 6"):
        fetch(ON_HUB, settings)
    assert not settings.lock.exists() and list(settings.hub.rglob("x.jsonl")) == []
    hub.faults.clear()
    assert fetch(ON_HUB, settings) == ROWS


def test_bytes_that_are_never_the_hubs_are_refused(hub: Hub, settings: Settings, said: list[str]) -> None:
    hub.datasets["o/n"].large.add("x.jsonl")
    hub.faults[HUB_PATH] = Fault(100, instead=ROWS[::-1])
    with pytest.raises(MediError, match="x.jsonl: arrived damaged twice; check the disk and the proxy, then run again"):
        fetch(ON_HUB, settings)
    assert [line.partition(": ")[2] for line in said] == ["the bytes here are not the Hub's; fetching them again"] * 2
    assert not settings.lock.exists()
    hub.faults.clear()
    assert fetch(ON_HUB, settings) == ROWS


def test_a_plain_file_that_changes_between_two_requests_is_no_mixture(
    hub: Hub, settings: Settings, said: list[str]
) -> None:
    """The same size, so that nothing but its tag tells."""
    hub.faults[PLAIN_PATH] = Fault(1, cut_after_bytes=200_000)

    def change(line: str) -> None:
        said.append(line)
        hub.plain[PLAIN_PATH] = ROWS[::-1]

    assert fetch(PLAIN, replace(settings, say=change)) == ROWS[::-1]
    assert ["the connection was cut" in said[0], "is another one than at the beginning" in said[1]] == [True, True]


def test_a_host_that_dies_in_the_middle_is_waited_for_and_a_later_run_goes_on(
    hub: Hub, settings: Settings, said: list[str]
) -> None:
    hub.datasets["o/n"].large.add("x.jsonl")
    with serving(Hub(plain={"/cdn/x.jsonl": ROWS})) as cdn:
        hub.cdn = alive = cdn.address
        cdn.faults["/cdn/x.jsonl"] = Fault(1, cut_after_bytes=300_000)

        def die(line: str) -> None:
            said.append(line)
            hub.cdn = "http://127.0.0.1:9"

        with pytest.raises(Unreachable, match="127.0.0.1:9 cannot be reached .Connection refused"):
            fetch(ON_HUB, replace(settings, say=die))
        assert "the connection was cut" in said[0] and all("127.0.0.1:9 cannot be" in line for line in said[1:])
        assert len(said) <= 6
        forget_hosts()
        hub.cdn = alive
        assert fetch(ON_HUB, settings) == ROWS
        assert cdn.sent_bytes["/cdn/x.jsonl"] == len(ROWS)


@pytest.mark.parametrize(("to", "why"), [("HUB", "TooManyRedirects"), ("file:///etc/passwd", "UnsupportedProtocol")])
def test_a_redirect_that_leads_nowhere_is_one_line(hub: Hub, settings: Settings, to: str, why: str) -> None:
    hub.plain.clear()
    loop = {"Location": f"{hub.address}{PLAIN_PATH}" if to == "HUB" else to}
    hub.faults[HUB_PATH] = Fault(100, status=302, headers=loop)
    hub.faults[PLAIN_PATH] = Fault(100, status=302, headers=loop)
    with pytest.raises(MediError, match=rf"^hub:o/n@main x.jsonl: .*({why})") as refused:
        fetch(ON_HUB, settings)
    assert "\n" not in str(refused.value) and "root:" not in str(refused.value)


def of_two_sources(hub: Hub) -> tuple[str, str]:
    """Put two of the sample's sources where a build looks for them; returns the paths of their files."""
    hub.datasets.clear()
    paths = []
    for name in ("gooaq_pairs", "AllNLI"):
        variant = by_name(name).variants[0]
        content = (REPO / "data" / "sample" / variant.files[0].pattern).read_bytes()
        (path,) = publish(hub, variant, variant.files[0], [content])
        paths.append(f"/datasets/{variant.place.removeprefix('hub:')}/resolve/{'a' * 40}/{path}")
    return paths[0], paths[1]


def build(hub: Hub, encoder: Path, workspace: Path, *more: str | Path) -> subprocess.CompletedProcess[str]:
    """Build the two sources from the Hub."""
    places = ["--encoder", encoder, "--workspace", workspace, "--out", workspace / "out"]
    online = {"HF_ENDPOINT": hub.address, "MEDI_MIRROR": hub.address, "HF_HUB_DISABLE_TELEMETRY": "1"}
    named = ["--preset", "full", "--scale", "0.001", "--sources", "gooaq_pairs,AllNLI", "--runner", "none"]
    return medi_build(*named, *places, *more, environment=online)


@pytest.mark.slow
def test_a_build_gets_over_trouble_and_is_repeated_without_a_network(
    hub: Hub, tiny_encoder: Path, tmp_path: Path
) -> None:
    first, second = of_two_sources(hub)
    hub.faults[first] = Fault(1, status=500)
    hub.faults[second] = Fault(20, status=503, headers={"Retry-After": "0"})
    # One source fails in the end: the other one's file is here and noted, nothing is published.
    failed = build(hub, tiny_encoder, tmp_path / "w")
    lines = [line for line in failed.stderr.splitlines() if "attempt" in line and not line.startswith("medi: ")]
    assert [line.partition(": ")[2] for line in lines] == [
        "answer 500; attempt 2 of 6 in 1 s", *(f"answer 503; attempt {n} of 6 in 0 s" for n in range(2, 7)),
    ]  # fmt: skip
    (line,) = [line for line in failed.stderr.splitlines() if line.startswith("medi: ")]
    assert failed.returncode == 1 and "AllNLI" in line and "answer 503 (attempt 6 of 6); run the same command" in line
    assert not (tmp_path / "w" / "out").exists()
    (place,) = json.loads((tmp_path / "w" / "medi.lock.json").read_bytes())["places"].values()
    assert len(place["files"]) == 1 and first.endswith(next(iter(place["files"])))

    hub.faults.clear()
    sent = hub.sent_bytes[first]
    done = build(hub, tiny_encoder, tmp_path / "w")
    assert done.returncode == 0 and hub.sent_bytes[first] == sent, done.stderr
    calm = build(hub, tiny_encoder, tmp_path / "calm")
    assert calm.returncode == 0 and files_of(tmp_path / "w" / "out") == files_of(tmp_path / "calm" / "out")

    # In a network of its own, which has no other machine, not even this one.
    alone = ["unshare", "-n"] if subprocess.run(["unshare", "-n", "true"], check=False).returncode == 0 else None
    if shutil.which("unshare") is None or alone is None:
        pytest.skip("this machine lets nobody have a network of their own")
    shutil.rmtree(tmp_path / "w" / "out")
    shutil.rmtree(tmp_path / "w" / "store" / "ingest")
    named = ["--preset", "full", "--scale", "0.001", "--sources", "gooaq_pairs,AllNLI", "--runner", "none", "--offline"]
    places = ["--encoder", tiny_encoder, "--workspace", tmp_path / "w", "--out", tmp_path / "w" / "out"]
    call = [*alone, sys.executable, "-m", "pipelines.build", *named, *map(str, places)]
    offline = subprocess.run(call, capture_output=True, text=True, check=False, cwd=REPO)
    assert offline.returncode == 0 and "attempt" not in offline.stderr, offline.stderr
    assert files_of(tmp_path / "w" / "out") == files_of(tmp_path / "calm" / "out")


@pytest.mark.slow
def test_a_file_that_changed_under_its_name_fails_its_source_and_says_what_changed(
    hub: Hub, tiny_encoder: Path, tmp_path: Path
) -> None:
    first, _ = of_two_sources(hub)
    assert build(hub, tiny_encoder, tmp_path).returncode == 0
    kept = files_of(tmp_path / "out")
    name = first.rpartition("/")[2]
    (here,) = (tmp_path / "hub").rglob(name)
    here.unlink()
    (repository,) = hub.datasets.values()
    repository.files[name] += (REPO / "data/sample/embedding_training_data/AllNLI.jsonl.gz").read_bytes()
    repository.commit = "b" * 40
    failed = build(hub, tiny_encoder, tmp_path)
    (line,) = [line for line in failed.stderr.splitlines() if line.startswith("medi: ")]
    assert failed.returncode == 1 and f"{name} changed: commit {'a' * 40} -> {'b' * 40}, size_bytes" in line
    assert f"delete its entry in {tmp_path}/medi.lock.json to accept the new file" in line
    assert files_of(tmp_path / "out") == kept
