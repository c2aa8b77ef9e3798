"""A release becomes a data set on the Hub: verified, private unless asked otherwise, all in one commit.

A push that was stopped is run again: large files that arrived stay with the Hub, and are not sent twice. What run.json
says of this machine (folders, the options with their paths) stays here.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from medi.errors import MediError, UsageError
from medi.fetch.hub import endpoint
from medi.licences import may_be_handed_on
from medi.release import Release, open_release
from medi.release.manifest import MANIFEST, RUN, Manifest, task_licence
from medi.release.verify import verify

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
# What a release before may have left there and this one does not have: rows that nobody should read with these.
_OURS = ("data/", "audit/", "report.html")
_OF_THIS_MACHINE = ("paths", "options")
_SHOWN = 5


def push(folder: Path, repo: str, public: bool, allow_restricted: bool, say: Callable[[str], None]) -> str:
    """Upload a release to the data set `repo` (OWNER/NAME), which is made where it is not there; return its address.

    `say` gets a line for what a person should know.
    Raises:
        UsageError: the name is none, or a public push holds texts that nobody says may be handed on.
        MediError: the release does not verify, there is no token, or the Hub refuses.
    """
    if not _REPO.fullmatch(repo):
        raise UsageError(f"{repo}: is no name of a data set on the Hub; give OWNER/NAME")
    release = open_release(folder)
    if wrong := list(islice(verify(folder), 2)):
        more = "; `medi verify` lists more" if len(wrong) > 1 else ""
        raise MediError(f"{folder} does not verify, nothing was pushed: {wrong[0]}{more}")
    _check_licences(release.manifest, public and not allow_restricted, say)
    from huggingface_hub import HfApi, get_token

    if not get_token():
        raise MediError("there is no token for the Hub, nothing was pushed; set HF_TOKEN to one that may write")
    return _sent(HfApi(endpoint=endpoint()), release, repo, public)


def restricted(manifest: Manifest) -> list[tuple[str, str]]:
    """Return (source or Super-NI task, licence) of rows that nobody says may be handed on, in the release's order."""
    sources = {entry["name"]: entry["licence"] for entry in manifest["sources"]}
    stated = [
        (entry["source"], sources.get(entry["source"], "")) if (licence := task_licence(entry)) is None
        else (entry["task"], licence)
        for entry in manifest["tasks"] if entry["got"]
    ]  # fmt: skip
    return [(name, licence) for name, licence in dict.fromkeys(stated) if not may_be_handed_on(licence)]


def _check_licences(manifest: Manifest, refuse: bool, say: Callable[[str], None]) -> None:
    """Name what nobody says may be handed on. Raises UsageError where that is to be refused."""
    found = restricted(manifest)
    if not found:
        return
    named = "; ".join(f"{name} ({licence or 'none stated'})" for name, licence in found[:_SHOWN])
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    told = f"no licence lets these be handed on: {named}{more}"
    if refuse:
        raise UsageError(
            f"--public: {told}; build without them (--licences open), push privately, or --allow-restricted where you "
            "have their leave"
        )
    say(told)


def _sent(api: "HfApi", release: Release, repo: str, public: bool) -> str:
    """Make the data set where it is not there, and send the release in one commit. Raises MediError."""
    with _refusals_named(repo):
        api.create_repo(repo, repo_type="dataset", private=not public, exist_ok=True)
        if not public and not api.dataset_info(repo).private:
            raise MediError(f"{repo} is public there; push to another name, or give --public")
        there = api.list_repo_files(repo, repo_type="dataset")
        digest = release.manifest["content_digest"]
        api.create_commit(
            repo,
            [*_additions(release), *_deletions(release, there)],
            repo_type="dataset",
            commit_message=f"Release {digest[:12]}",
            commit_description=f"content digest {digest}",
        )
    return f"{api.endpoint}/datasets/{repo}"


@contextmanager
def _refusals_named(repo: str) -> Iterator[None]:
    """Turn what the client raises into MediError, without a header or a query of a request."""
    from httpx2 import HTTPError
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except (HTTPError, RuntimeError, ValueError) as error:
        # A large file that does not arrive is a RuntimeError of the client, with the reason below it.
        cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ else error
        if isinstance(cause, HfHubHTTPError) and cause.response is not None:
            status = cause.response.status_code
            helps = "the token must be allowed to write there" if status in (401, 403, 404) else "run it again later"
            told = f"the Hub answers {status} ({_words(cause.server_message)}); {helps}"
        elif isinstance(cause, HTTPError):
            told = f"the Hub cannot be reached ({_words(str(cause))}); run it again, what has arrived is kept"
        else:
            told = f"the Hub refuses the release ({_words(str(cause))})"
        raise MediError(f"{repo}: {told}") from error


def _words(text: str | None) -> str:
    return " ".join((text or "no reason").split())


def _additions(release: Release) -> "list[CommitOperationAdd]":
    """Return what is sent: the files of the manifest, itself, and what of run.json is no secret of this machine."""
    from huggingface_hub import CommitOperationAdd

    names = [entry["path"] for entry in release.manifest["files"]]
    run = json.loads((release.root / RUN).read_bytes())
    told = {name: value for name, value in run.items() if name not in _OF_THIS_MACHINE}
    files = [CommitOperationAdd(name, release.root / name) for name in (*names, MANIFEST)]
    return [*files, CommitOperationAdd(RUN, json.dumps(told, indent=1).encode())]


def _deletions(release: Release, there: list[str]) -> "list[CommitOperationDelete]":
    """Return what goes: files of an earlier release that this one does not have. Anything else there stays."""
    from huggingface_hub import CommitOperationDelete

    names = {entry["path"] for entry in release.manifest["files"]}
    return [CommitOperationDelete(name) for name in sorted(there) if name.startswith(_OURS) and name not in names]
