"""`medi push` against a loopback Hub that takes uploads; the client is the real one."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from medi.push import restricted
from medi.release import open_release
from medi.release.verify import verify
from pipelines.cli.app import main
from tests.builds import REPO
from tests.hub_server import Hub, Repository, serving

TOKEN = "hf_secretsecretsecretsecretsecretsecr"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub()) as hub:
        yield hub


@pytest.fixture(scope="module")
def open_texts(cut: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of one source that may be handed on."""
    work = tmp_path_factory.mktemp("open")
    places = ["--raw", str(cut), "--encoder", str(tiny_encoder), "--workspace", str(work), "--runner", "none"]
    assert main(["build", *places, "--sources", "NQ", "--out", str(work / "out")]) == 0
    return work / "out"


def push(hub: Hub, *args: str | Path, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    """Run `medi push` in a process of its own."""
    call = [sys.executable, "-m", "pipelines.cli.app", "push", *map(str, args)]
    variables = {"HF_ENDPOINT": hub.address, "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": token, "HF_HOME": "/nonexistent",
                 "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}  # fmt: skip
    return subprocess.run(call, capture_output=True, text=True, check=False, env=os.environ | variables, cwd=REPO)


def test_a_release_arrives_whole_private_and_without_this_machine(hub: Hub, open_texts: Path, tmp_path: Path) -> None:
    done = push(hub, open_texts, "me/medi")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{hub.address}/datasets/me/medi\n" and done.stderr == ""
    there = hub.datasets["me/medi"]
    assert there.private
    for name, content in there.files.items():
        (tmp_path / "back" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "back" / name).write_bytes(content)
    assert list(verify(tmp_path / "back")) == []
    run = json.loads(there.files["run.json"])
    assert "started" in run and not {"paths", "options"} & set(run)
    here = {p.relative_to(open_texts).as_posix(): p.read_bytes() for p in open_texts.rglob("*") if p.is_file()}
    assert here.keys() == there.files.keys()
    assert all(there.files[name] == content for name, content in here.items() if name != "run.json")
    digest = open_release(open_texts).manifest["content_digest"]
    assert [title for title, _ in hub.commits] == [f"Release {digest[:12]}"]
    # The token goes to the Hub and nowhere else.
    assert all(TOKEN in headers["authorization"] for _, path, headers in hub.asked if path.startswith("/api/"))
    assert TOKEN not in done.stdout + done.stderr + str(there.files)


def test_what_arrived_is_not_sent_again_and_old_rows_go(hub: Hub, open_texts: Path) -> None:
    old = {
        "data/train-00000-of-00002.parquet": b"old",
        "data/train-00001-of-00002.parquet": b"old",
        "notes.txt": b"mine",
    }
    hub.datasets["me/medi"] = Repository(old, private=True)
    hub.lost_uploads = 1
    done = push(hub, open_texts, "me/medi")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("medi: me/medi: the Hub answers 403 (the upload was stopped); the token must be")
    assert hub.commits == [] and hub.datasets["me/medi"].files == old
    arrived = set(hub.large_files)
    assert push(hub, open_texts, "me/medi").returncode == 0
    sent = [path.removeprefix("/lfs/") for path in hub.paths("PUT")]
    assert all(sent.count(name) == 1 for name in arrived)
    files = hub.datasets["me/medi"].files
    assert files["notes.txt"] == b"mine"
    assert [name for name in files if name.startswith("data/")] == ["data/train-00000-of-00001.parquet"]
    before = len(hub.paths("PUT"))
    assert push(hub, open_texts, "me/medi").returncode == 0
    assert len(hub.paths("PUT")) == before and len(hub.commits) == 1


def test_a_release_that_does_not_verify_is_refused(hub: Hub, open_texts: Path, tmp_path: Path) -> None:
    shutil.copytree(open_texts, tmp_path / "out")
    (tmp_path / "out" / "README.md").write_text("changed")
    done = push(hub, tmp_path / "out", "me/medi")
    assert done.returncode == 1 and hub.asked == []
    assert "does not verify, nothing was pushed: README.md: has 7 bytes" in done.stderr


def test_texts_that_no_licence_lets_be_handed_on_are_named_and_not_made_public(hub: Hub, built: Path) -> None:
    named = [name for name, _ in restricted(open_release(built / "out").manifest)]
    assert named == ["gooaq_pairs", "WikiAnswers", "AllNLI", "msmarco"]
    done = push(hub, built / "out", "me/medi", "--public")
    assert done.returncode == 2 and hub.asked == [] and done.stderr.count("\n") == 1
    assert "--public: no licence lets these be handed on: gooaq_pairs (Apache-2.0 (code); Google's" in done.stderr
    assert "--licences open" in done.stderr
    private = push(hub, built / "out", "me/medi")
    assert private.returncode == 0 and hub.datasets["me/medi"].private
    assert private.stderr.startswith("no licence lets these be handed on: gooaq_pairs")
    assert push(hub, built / "out", "me/open", "--public", "--allow-restricted").returncode == 0
    assert not hub.datasets["me/open"].private


@pytest.mark.parametrize(
    ("repo", "token", "said"),
    [
        ("medi", TOKEN, "medi: medi: is no name of a data set on the Hub; give OWNER/NAME\n"),
        (
            "me/medi",
            "",
            "medi: there is no token for the Hub, nothing was pushed; set HF_TOKEN to one that may write\n",
        ),
        ("me/seen", TOKEN, "medi: me/seen is public there; push to another name, or give --public\n"),
    ],
)
def test_a_wrong_call_is_one_line(hub: Hub, open_texts: Path, repo: str, token: str, said: str) -> None:
    hub.datasets["me/seen"] = Repository({}, private=False)
    done = push(hub, open_texts, repo, token=token)
    assert done.returncode in (1, 2) and (done.stdout, done.stderr) == ("", said)
    assert hub.commits == []


def test_a_hub_that_is_not_there_is_one_line(open_texts: Path) -> None:
    done = push(Hub(address="http://127.0.0.1:9"), open_texts, "me/medi")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("medi: me/medi: the Hub cannot be reached (")
