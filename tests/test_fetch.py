"""Downloads from a loopback Hub with the real client: what arrives, is asked for, is said, and is locked."""

import hashlib
import json
import pickle
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import close_session

from medi.errors import MediError, UsageError
from medi.fetch import (
    SUPER_NI_COMMIT,
    NotThere,
    Settings,
    Unreachable,
    choose_variant,
    download,
    fetch_all,
    fetch_encoder,
    fetch_tasks,
    find_encoder,
    forget_hosts,
    prefix,
    prefix_bytes,
    remote_files,
    remote_sizes,
)
from medi.fetch.local import alone
from medi.source import File, Source, Variant, pair
from tests.hub_server import Fault, Hub, Repository, environment, serving

REPO = "sentence-transformers/embedding-training-data"
ROWS = b"".join(b'["question %d", "answer %d"]\n' % (n, n) for n in range(40000))
FILE_PATH = f"/datasets/{REPO}/resolve/{'a' * 40}/agnews.jsonl.gz"


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A Hub with one data set, to which the environment points."""
    files = {"agnews.jsonl.gz": ROWS, "agnews.jsonl.gz2": b"other", "README.md": b"card"}
    with serving(Hub(datasets={REPO: Repository(files)})) as hub:
        with environment(HF_ENDPOINT=hub.address, MEDI_MIRROR=hub.address, HF_TOKEN="hf_secret"):
            yield hub


@pytest.fixture
def settings(tmp_path: Path, said: list[str]) -> Settings:
    """Downloads that hardly wait."""
    return Settings(tmp_path / "ws", backoff_seconds=0.001, timeout_seconds=5, say=said.append)


@pytest.fixture(autouse=True)
def _a_new_build() -> None:
    """Ports are used again: what another test found out about them does not count."""
    forget_hosts()


def variant(name: str, place: str, *files: File, how: str = "") -> Variant:
    """A variant of pairs at a place."""
    return Variant(name, "pairs", {}, pair, '["q", "p"]', place, files, how=how)


def source(*variants: Variant) -> Source:
    """A source with these variants."""
    return Source("agnews", 45000, False, "unstated", "Zhang 2015", variants)


AGNEWS = source(variant("pairs", f"hub:{REPO}", File("embedding_training_data/agnews.jsonl.gz", "agnews.jsonl.gz", 7)))
PLAIN = source(variant("dpr", "https://data.example/dpr", File("dpr_format/nq-*.json", "nq-train.json", 9)))


def fetch(of: Source, settings: Settings) -> list[bytes]:
    """The bytes of the files of a source's first variant."""
    return [file.path.read_bytes() for file in download(of, of.variants[0], settings).files]


def locked(settings: Settings, key: str) -> dict[str, dict[str, str | int | dict[str, str]]]:
    """The files of a place, as the lock file has them."""
    return json.loads(settings.lock.read_bytes())["places"][key]["files"]


def test_a_hub_file_arrives_pinned_and_a_second_build_asks_nothing(hub: Hub, settings: Settings) -> None:
    (file,) = download(AGNEWS, AGNEWS.variants[0], settings).files
    assert (file.name, file.size_bytes, file.commit, file.prefix) == (
        "embedding_training_data/agnews.jsonl.gz", len(ROWS), "a" * 40, False,
    )
    assert file.sha256 == hashlib.sha256(ROWS).hexdigest() and file.path.read_bytes() == ROWS
    assert locked(settings, f"hub:{REPO}@main")["agnews.jsonl.gz"] == {
        "commit": "a" * 40, "tag": "", "size_bytes": len(ROWS), "sha256": file.sha256, "prefixes": {},
    }
    hub.asked.clear()
    assert download(AGNEWS, AGNEWS.variants[0], settings).files == (file,)
    assert hub.asked == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(2, status=500), "answer 500; attempt 3 of 6"),
        (Fault(1, status=429, retry_after="1"), "answer 429; attempt 2 of 6 in 1 s"),
        (Fault(2, cut_after_bytes=100_000), "the connection was cut; attempt 3 of 6"),
        (Fault(1, cut_after_bytes=100_000, stall_seconds=1.5), "no answer in time; attempt 2 of 6"),
    ],
)
def test_failures_that_pass_are_waited_for_and_said(
    hub: Hub, tmp_path: Path, said: list[str], fault: Fault, words: str
) -> None:
    hub.faults[FILE_PATH] = fault
    settings = Settings(tmp_path, backoff_seconds=0.001, timeout_seconds=0.5, say=said.append)
    assert fetch(AGNEWS, settings) == [ROWS]
    assert any(words in line for line in said), said
    # What had arrived was not sent again.
    assert hub.sent_bytes[FILE_PATH] == len(ROWS)


def test_a_file_that_another_build_fetches_is_waited_for_and_that_is_said(
    hub: Hub, settings: Settings, said: list[str]
) -> None:
    fetch(AGNEWS, settings)
    (there,) = settings.hub.rglob("agnews.jsonl.gz")
    waiting = threading.Event()

    def hear(line: str) -> None:
        said.append(line)
        waiting.set()

    said.clear()
    with ThreadPoolExecutor(1) as other:
        with alone(there):
            fetched = other.submit(fetch, AGNEWS, replace(settings, say=hear))
            assert waiting.wait(30) and not fetched.done()
        assert fetched.result(30) == [ROWS]
    assert said == [f"hub:{REPO}@main agnews.jsonl.gz: waiting for another build that fetches it"]


def test_progress_begins_with_what_is_here(hub: Hub, settings: Settings) -> None:
    hub.faults[FILE_PATH] = Fault(1, cut_after_bytes=100_000)
    told: list[tuple[str, int, int | None]] = []
    fetch(AGNEWS, replace(settings, progress=lambda *step: told.append(step)))
    assert {(name, total) for name, _, total in told} == {(f"hub:{REPO}@main agnews.jsonl.gz", len(ROWS))}
    done = [done_bytes for _, done_bytes, _ in told]
    assert (done[0], done[-1]) == (0, len(ROWS)) and done.count(100_000) == 2 and done == sorted(done)


def test_attempts_are_bounded_and_the_next_run_goes_on(hub: Hub, settings: Settings) -> None:
    hub.faults[FILE_PATH] = Fault(6, cut_after_bytes=50_000)
    with pytest.raises(MediError, match=r"agnews.jsonl.gz: the connection was cut \(attempt 6 of 6\); run the same"):
        fetch(AGNEWS, settings)
    assert not settings.lock.exists()
    assert fetch(AGNEWS, settings) == [ROWS]
    assert hub.sent_bytes[FILE_PATH] == len(ROWS)


def test_a_connection_that_brings_much_is_not_a_failure(hub: Hub, tmp_path: Path) -> None:
    content = hub.datasets[REPO].files["agnews.jsonl.gz"] = ROWS * 30
    hub.faults[FILE_PATH] = Fault(4, cut_after_bytes=9 << 20)
    assert fetch(AGNEWS, Settings(tmp_path, attempts=2, backoff_seconds=0.001)) == [content]
    assert hub.faults[FILE_PATH].times == 0


def test_a_full_or_closed_disk_is_one_line(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MediError, match="medi.lock.json cannot be read: Not a directory; choose another"):
        fetch(AGNEWS, Settings(tmp_path / "file"))
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/hub").write_text("")
    with pytest.raises(MediError, match="cannot be written: (Not a directory|File exists); choose another --workspace"):
        fetch(AGNEWS, Settings(tmp_path / "ws"))
    (remote,) = remote_files(AGNEWS, AGNEWS.variants[0], Settings(tmp_path))
    for room in (tmp_path / "a", tmp_path / "b"):
        target = remote.target(Settings(room))
        target.parent.mkdir(parents=True)
        part = target.with_name(f"{target.name}.part")
        part.symlink_to("/dev/full")
        # What arrives, and in the second place what is copied from a beginning that is here, has no room.
        target.with_name(f"{target.name}.first-9").write_bytes(ROWS[:9] if room.name == "b" else b"")
        with pytest.raises(MediError, match=rf"^{part} cannot be written: No space left on device; make room, or "):
            fetch(AGNEWS, Settings(room))


def test_large_files_come_from_another_host_without_the_token(hub: Hub, settings: Settings) -> None:
    with serving(Hub(plain={"/cdn/agnews.jsonl.gz": ROWS})) as cdn:
        hub.cdn = cdn.address.replace("127.0.0.1", "localhost")
        hub.datasets[REPO].large.add("agnews.jsonl.gz")
        assert fetch(AGNEWS, settings) == [ROWS]
        assert [headers.get("authorization") for _, _, headers in cdn.asked] == [None]
    assert {headers["authorization"] for _, _, headers in hub.asked} == {"Bearer hf_secret"}
    assert "secret" not in settings.lock.read_text()


def test_damaged_bytes_are_fetched_again(hub: Hub, settings: Settings, said: list[str]) -> None:
    repository = hub.datasets[REPO]
    repository.large.add("agnews.jsonl.gz")
    (remote,) = remote_files(AGNEWS, AGNEWS.variants[0], settings)
    target = remote.target(settings)
    target.parent.mkdir(parents=True)
    target.write_bytes(ROWS[:-1] + b" ")
    assert fetch(AGNEWS, settings) == [ROWS]
    assert any("fetching them again" in line for line in said)


def test_a_changed_file_is_refused_and_accepted_when_its_entry_is_deleted(hub: Hub, settings: Settings) -> None:
    (old,) = download(AGNEWS, AGNEWS.variants[0], settings).files
    old.path.unlink()
    hub.datasets[REPO] = Repository({"agnews.jsonl.gz": b"new"}, commit="b" * 40)
    new_sha256 = hashlib.sha256(b"new").hexdigest()
    with pytest.raises(MediError) as refused:
        fetch(AGNEWS, settings)
    for words in (f"commit {'a' * 40} -> {'b' * 40}", f"size_bytes {len(ROWS)} -> 3", f"{old.sha256} -> {new_sha256}"):
        assert words in str(refused.value)
    assert f"delete its entry in {settings.lock}" in str(refused.value)
    data = json.loads(settings.lock.read_bytes())
    del data["places"][f"hub:{REPO}@main"]["files"]["agnews.jsonl.gz"]
    settings.lock.write_text(json.dumps(data))
    assert fetch(AGNEWS, settings) == [b"new"]
    assert locked(settings, f"hub:{REPO}@main")["agnews.jsonl.gz"]["commit"] == "b" * 40


def test_a_handed_on_lock_asks_for_its_commit_and_equal_bytes_of_a_newer_one_are_the_same_file(
    hub: Hub, settings: Settings, tmp_path: Path
) -> None:
    fetch(AGNEWS, settings)
    other = Settings(tmp_path / "other")
    other.workspace.mkdir()
    other.lock.write_bytes(settings.lock.read_bytes())
    hub.asked.clear()
    assert fetch(AGNEWS, other) == [ROWS]
    assert hub.paths()[0] == f"/api/datasets/{REPO}/revision/{'a' * 40}"
    hub.datasets[REPO].commit = "b" * 40
    third = Settings(tmp_path / "third")
    third.workspace.mkdir()
    third.lock.write_bytes(settings.lock.read_bytes())
    assert fetch(AGNEWS, third) == [ROWS]


def test_a_file_altered_on_disk_is_refused(hub: Hub, settings: Settings) -> None:
    (file,) = download(AGNEWS, AGNEWS.variants[0], settings).files
    file.path.write_bytes(b"altered")
    with pytest.raises(MediError, match=rf"size_bytes {len(ROWS)} -> 7.*delete {file.path} to fetch it again"):
        fetch(AGNEWS, settings)


def test_globs_stand_for_what_the_repository_lists(hub: Hub, settings: Settings) -> None:
    parts = {f"data/train-{n}.parquet": b"PAR1%d" % n for n in range(3)}
    hub.datasets["multi-train/emb-fever-train"] = Repository(parts | {"data/deep/x.parquet": b"no", "README.md": b"no"})
    glob = File("multi_train/emb-fever-train/*", "data/*.parquet")
    fever = source(variant("multi-train", "hub:multi-train/emb-fever-train", glob))
    files = download(fever, fever.variants[0], settings).files
    assert [file.name for file in files] == [f"multi_train/emb-fever-train/train-{n}.parquet" for n in range(3)]
    assert [file.path.read_bytes() for file in files] == list(parts.values())
    # Two of three files are not the glob: an offline build must see that one is missing.
    data = json.loads(settings.lock.read_bytes())
    del data["places"]["hub:multi-train/emb-fever-train@main"]["files"]["data/train-1.parquet"]
    settings.lock.write_text(json.dumps(data))
    with pytest.raises(MediError, match=r"agnews: offline, and data/\*\.parquet of hub:multi-train/emb-fever-train"):
        download(fever, fever.variants[0], Settings(settings.workspace, offline=True))


def test_a_plain_file_is_tagged_resumed_and_noticed_when_it_changes(hub: Hub, settings: Settings) -> None:
    hub.plain["/dpr/nq-train.json"] = ROWS
    hub.faults["/dpr/nq-train.json"] = Fault(1, cut_after_bytes=200_000)
    (file,) = download(PLAIN, PLAIN.variants[0], settings).files
    assert (file.name, file.commit, file.path.read_bytes()) == ("dpr_format/nq-train.json", "", ROWS)
    assert hub.sent_bytes["/dpr/nq-train.json"] == len(ROWS)
    assert "authorization" not in {name for _, _, headers in hub.asked for name in headers}
    hub.plain["/dpr/nq-train.json"] = ROWS + b"more"
    assert fetch(PLAIN, settings) == [ROWS]
    file.path.unlink()
    with pytest.raises(MediError, match=rf"https://data.example/dpr nq-train.json changed: size_bytes {len(ROWS)} -> "):
        fetch(PLAIN, settings)


def test_without_tags_a_beginning_is_not_continued_by_a_later_run(hub: Hub, settings: Settings) -> None:
    hub.gives_tags = False
    hub.plain["/dpr/nq-train.json"] = ROWS
    hub.faults["/dpr/nq-train.json"] = Fault(6, cut_after_bytes=50_000)
    with pytest.raises(MediError):
        fetch(PLAIN, settings)
    hub.plain["/dpr/nq-train.json"] = ROWS[::-1]
    assert fetch(PLAIN, settings) == [ROWS[::-1]]


def test_the_first_place_that_answers_is_taken_and_named(hub: Hub, settings: Settings, said: list[str]) -> None:
    by_hand = variant("dpr", "", File("dpr_format/fever-*.json*"), how="make it with the multi-task DPR scripts")
    absent = variant("multi-train", "hub:multi-train/emb-fever-train", File("multi_train/x/*", "*.parquet"))
    kilt = variant("kilt", "https://data.example/kilt", File("kilt/fever-train-kilt.jsonl", "fever-train-kilt.jsonl"))
    hub.plain["/kilt/fever-train-kilt.jsonl"] = b"{}\n"
    fever = source(by_hand, absent, kilt)
    taken, refusals = choose_variant(fever, None, settings)
    assert (taken.name, download(fever, taken, settings).files[0].path.read_bytes()) == ("kilt", b"{}\n")
    assert refusals[0] == "agnews: make it with the multi-task DPR scripts" and len(refusals) == 2
    assert "multi-train/emb-fever-train: answer 401" in refusals[1]
    hub.plain.clear()
    with pytest.raises(NotThere) as nowhere:
        choose_variant(fever, None, Settings(settings.workspace / "empty"))
    for words in ("make it with the multi-task DPR scripts", "answer 404", "DIR/dpr_format/fever-*.json*", "--raw DIR"):
        assert words in str(nowhere.value)
    with pytest.raises(UsageError, match="no variant 'x'; choose one of dpr, multi-train, kilt"):
        choose_variant(fever, "x", settings)


def test_a_place_that_fails_is_not_a_place_without_the_file(hub: Hub, settings: Settings) -> None:
    hub.faults[f"/api/datasets/{REPO}/revision/main"] = Fault(100, status=503)
    second = variant("other", "https://data.example", File("x.json", "x.json"))
    with pytest.raises(MediError, match="answer 503 .attempt 6 of 6") as failed:
        choose_variant(source(*AGNEWS.variants, second), None, settings)
    assert not isinstance(failed.value, NotThere)


def nobody() -> str:
    """An address of this machine at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def test_a_dead_host_is_found_out_once_and_every_source_there_says_one_line(
    settings: Settings, said: list[str]
) -> None:
    host = nobody()
    names = ("agnews", "npr", "xsum")
    sources = [replace(AGNEWS, name=name) for name in names]
    with environment(HF_ENDPOINT=f"http://{host}", MEDI_MIRROR=f"http://{host}"):
        for of in sources:
            with pytest.raises(Unreachable) as dead:
                choose_variant(of, None, settings)
            assert str(dead.value) == (
                f"{of.name}: agnews.jsonl.gz of hub:{REPO}: {host} cannot be reached (Connection refused); run again "
                "with a network, or put it at DIR/embedding_training_data/agnews.jsonl.gz and give --raw DIR"
            )
        tried = [f"hub dataset {REPO}: {host} cannot be reached (Connection refused); attempt {n} of 3" for n in (2, 3)]
        assert [line.rpartition(" in ")[0] for line in said] == tried
        assert str(pickle.loads(pickle.dumps(dead.value))) == str(dead.value)
        with pytest.raises(Unreachable, match=rf"^super_ni: tasks of https.*: {host} cannot .* DIR/super_ni/tasks and"):
            fetch_tasks(["task001_a", "task002_b"], settings)
        with pytest.raises(Unreachable, match=rf"^model o/t5: {host} cannot be reached .* elsewhere and name that$"):
            find_encoder("o/t5", None, settings)
        assert len(said) == 2
        forget_hosts()
        with pytest.raises(Unreachable):
            choose_variant(sources[0], None, settings)
        assert len(said) == 4


def test_a_host_that_has_answered_is_waited_for(settings: Settings, said: list[str]) -> None:
    hub = Hub(datasets={REPO: Repository({"agnews.jsonl.gz": ROWS})})
    with serving(hub), environment(HF_ENDPOINT=hub.address):
        remotes = remote_files(AGNEWS, AGNEWS.variants[0], settings)
    # The connection that is open would go on after its server.
    close_session()
    with environment(HF_ENDPOINT=hub.address):
        for _ in range(2):
            with pytest.raises(Unreachable, match="agnews.jsonl.gz: 127.0.0.1:.* cannot be reached .Connection refus"):
                fetch_all(remotes, settings)
    assert [line.partition("; ")[2].partition(" in ")[0] for line in said] == [f"attempt {n} of 6" for n in range(2, 7)]


def test_the_dead_host_is_the_one_that_a_place_leads_to(hub: Hub, settings: Settings, said: list[str]) -> None:
    host = nobody()
    hub.cdn = f"http://{host}"
    hub.datasets[REPO].large |= {"agnews.jsonl.gz", "agnews.jsonl.gz2"}
    second = source(variant("pairs", f"hub:{REPO}", File("x/agnews.jsonl.gz2", "agnews.jsonl.gz2")))
    for of in (AGNEWS, second):
        with pytest.raises(Unreachable, match=f": {host} cannot be reached"):
            fetch(of, settings)
    assert len(said) == 2 and len([path for path in hub.paths() if path.endswith("gz2")]) == 1
    hub.cdn = ""
    hub.datasets[REPO].large.clear()
    assert fetch(AGNEWS, settings) == [ROWS]


def test_beginnings_grow_in_fixed_steps_and_keep_what_is_here(hub: Hub, settings: Settings) -> None:
    assert [prefix_bytes(n) for n in (0, 4 << 20, (4 << 20) + 1, 33 << 20)] == [4 << 20, 4 << 20, 8 << 20, 64 << 20]
    content = hub.datasets[REPO].files["agnews.jsonl.gz"] = ROWS * 9
    assert 8 << 20 < len(content) < 16 << 20
    (remote,) = remote_files(AGNEWS, AGNEWS.variants[0], settings)
    for mib, sent in ((4, 4 << 20), (8, 8 << 20), (4, 8 << 20)):
        file = prefix(remote, mib << 20, settings)
        assert (file.size_bytes, file.prefix, hub.sent_bytes[FILE_PATH]) == (mib << 20, True, sent)
        assert file.path.read_bytes() == content[: mib << 20]
        assert file.sha256 == hashlib.sha256(content[: mib << 20]).hexdigest()
    prefixes = locked(settings, f"hub:{REPO}@main")["agnews.jsonl.gz"]["prefixes"]
    assert isinstance(prefixes, dict) and sorted(prefixes) == ["4194304", "8388608"]
    whole = prefix(remote, 16 << 20, settings)
    assert (whole.size_bytes, whole.prefix, whole.path.read_bytes()) == (len(content), False, content)
    assert hub.sent_bytes[FILE_PATH] == len(content)


def test_a_server_that_ignores_range_sends_hardly_more_than_the_beginning(hub: Hub, settings: Settings) -> None:
    hub.ignores_range = True
    content = hub.plain["/dpr/nq-train.json"] = ROWS * 40
    (remote,) = remote_files(PLAIN, PLAIN.variants[0], settings)
    for mib in (4, 8):
        assert prefix(remote, mib << 20, settings).path.read_bytes() == content[: mib << 20]
    assert hub.sent_bytes["/dpr/nq-train.json"] < 28 << 20 < len(content)


def test_a_changed_beginning_is_refused(hub: Hub, settings: Settings) -> None:
    hub.datasets[REPO].files["agnews.jsonl.gz"] = ROWS * 9
    (remote,) = remote_files(AGNEWS, AGNEWS.variants[0], settings)
    prefix(remote, 1, settings).path.unlink()
    hub.datasets[REPO] = Repository({"agnews.jsonl.gz": ROWS[::-1] * 9}, commit="b" * 40)
    (remote,) = remote_files(AGNEWS, AGNEWS.variants[0], settings)
    with pytest.raises(MediError, match=f"commit {'a' * 40} -> {'b' * 40}, sha256 of the first 4194304 bytes"):
        prefix(remote, 1, settings)


def test_parquet_has_no_beginning(hub: Hub, settings: Settings) -> None:
    content = hub.datasets["o/n"] = Repository({"data/train.parquet": b"x" * (5 << 20)})
    of = source(variant("v", "hub:o/n", File("o/*", "data/*.parquet")))
    (remote,) = remote_files(of, of.variants[0], settings)
    assert prefix(remote, 1, settings).size_bytes == len(content.files["data/train.parquet"])


def test_sizes_come_from_the_place_or_from_the_declaration(hub: Hub, settings: Settings) -> None:
    assert remote_sizes(AGNEWS, AGNEWS.variants[0], settings) == {"embedding_training_data/agnews.jsonl.gz": len(ROWS)}
    hub.faults[f"/api/datasets/{REPO}/revision/main"] = Fault(100, status=500)
    assert remote_sizes(AGNEWS, AGNEWS.variants[0], settings) == {"embedding_training_data/agnews.jsonl.gz": 7}
    hub.plain["/dpr/nq-train.json"] = b"12345"
    assert remote_sizes(PLAIN, PLAIN.variants[0], settings) == {"dpr_format/nq-train.json": 5}


def test_chosen_tasks_come_at_the_pinned_commit_and_no_other_file(hub: Hub, settings: Settings) -> None:
    names = [f"task{n:03}_x1.1_classification" for n in range(30)]
    base = f"/allenai/natural-instructions/{SUPER_NI_COMMIT}/tasks"
    hub.plain |= {f"{base}/{name}.json": name.encode() for name in [*names, "task999_other"]}
    hub.faults[f"{base}/{names[7]}.json"] = Fault(1, status=500)
    files = fetch_tasks(reversed(names), settings)
    assert [file.name for file in files] == [f"super_ni/tasks/{name}.json" for name in names]
    assert [file.path.read_bytes().decode() for file in files] == names
    assert {file.commit for file in files} == {SUPER_NI_COMMIT}
    assert sorted(set(hub.paths())) == [f"{base}/{name}.json" for name in names]
    assert hub.paths("HEAD") == []
    with pytest.raises(NotThere, match="tasks/task1000_absent.json: answer 404"):
        fetch_tasks([*names, "task1000_absent"], settings)


@pytest.mark.parametrize("name", ["../../up.jsonl", "/etc/up.jsonl", "a/../../up.jsonl", "..\\up.jsonl"])
def test_no_name_leads_out_of_the_workspace(hub: Hub, settings: Settings, name: str) -> None:
    hub.datasets["o/n"] = Repository({name: b"evil"})
    of = source(variant("v", "hub:o/n", File("o/up.jsonl", name)))
    with pytest.raises(MediError, match="leads out of"):
        fetch(of, settings)
    assert [path for path in settings.workspace.parent.rglob("up.jsonl")] == []


@pytest.mark.parametrize("place", ["https://me:secret@data.example", "https://data.example/x?token=secret"])
def test_no_password_is_seen(hub: Hub, settings: Settings, place: str) -> None:
    with pytest.raises(UsageError, match="carries a password or a query") as refused:
        fetch(source(variant("v", place, File("a.jsonl", "a.jsonl"))), settings)
    assert "secret" not in str(refused.value)


def test_no_link_leads_out_of_the_workspace(hub: Hub, settings: Settings, tmp_path: Path) -> None:
    (remote,) = remote_files(AGNEWS, AGNEWS.variants[0], settings)
    remote.target(settings).parent.parent.mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    remote.target(settings).parent.symlink_to(tmp_path / "outside")
    with pytest.raises(MediError, match="through a link"):
        fetch(AGNEWS, settings)
    assert list((tmp_path / "outside").iterdir()) == []


def test_builds_at_the_same_time_fetch_a_file_once_and_lose_no_entry(hub: Hub, settings: Settings) -> None:
    names = [f"f{n}.jsonl" for n in range(6)]
    hub.datasets["o/n"] = Repository({name: ROWS for name in names})
    sources = [source(variant("v", "hub:o/n", File(name, name))) for name in names] * 2
    threads = [threading.Thread(target=fetch, args=(of, settings)) for of in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(locked(settings, "hub:o/n@main")) == names
    assert [hub.sent_bytes[f"/datasets/o/n/resolve/{'a' * 40}/{name}"] for name in names] == [len(ROWS)] * 6


@pytest.mark.parametrize("damage", ["", "[]", '{"format":"medi.lock/9","places":{}}', '{"format":"medi.lock/1"}'])
def test_a_damaged_lock_file_is_one_line(settings: Settings, damage: str) -> None:
    settings.workspace.mkdir()
    settings.lock.write_text(damage)
    with pytest.raises(MediError, match=rf"^{settings.lock} (is not a lock file|has format)") as refused:
        fetch(AGNEWS, settings)
    assert "\n" not in str(refused.value)


def test_a_hub_encoder_is_found_by_its_settings_and_fetched_when_needed(hub: Hub, settings: Settings) -> None:
    wanted = ["1_Pooling/config.json", "2_Dense/pytorch_model.bin", "config.json", "model.safetensors", "spiece.model"]
    unwanted = ["pytorch_model.bin", "modeling.py", "onnx/model.json", "README.md", "training_args.bin"]
    hub.models["o/t5"] = Repository({name: name.encode() for name in wanted + unwanted})
    found = find_encoder("o/t5", None, settings)
    assert (found.name, found.revision) == ("o/t5", "a" * 40) and found.folder.is_relative_to(settings.hub)
    # Only what its identity needs is here, and what the rest will take is known; code and pickles never come.
    assert [path.rpartition("/")[2] for path in hub.paths() if "/resolve/" in path] == ["config.json"]
    assert found.missing_bytes == sum(len(name) for name in wanted if name != "config.json")
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(MediError, match="offline, and model o/t5 is not in"):
        find_encoder("o/t5", None, replace(settings, offline=True))
    folder = fetch_encoder(found, settings)
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if ".lock" not in p.name) == sorted(
        [*wanted, "1_Pooling", "2_Dense"]
    )
    hub.asked.clear()
    again = find_encoder("o/t5", None, replace(settings, offline=True))
    assert (again.revision, again.missing_bytes, fetch_encoder(again, settings)) == ("a" * 40, 0, folder)
    assert hub.asked == []
    (folder / "model.safetensors").write_bytes(b"altered")
    with pytest.raises(MediError, match="model.safetensors changed: size_bytes 17 -> 7"):
        fetch_encoder(again, settings)
    with pytest.raises(NotThere, match="hub model o/absent: answer 401"):
        find_encoder("o/absent", None, settings)
