"""The Hugging Face Hub: a repository at a revision becomes its commit and its files, through huggingface_hub's client.

The endpoint is $HF_ENDPOINT, the token is the client's own default; neither is ever written down.
"""

import os
import re
from dataclasses import dataclass

from medi.errors import MediError
from medi.fetch.http import timeout
from medi.fetch.patience import patiently
from medi.fetch.settings import Settings


@dataclass(frozen=True)
class Listed:
    """A file of a repository: its path, size, and the SHA-256 that the Hub has for large ones (else "")."""

    path: str
    size_bytes: int | None
    sha256: str


def endpoint() -> str:
    """Return the Hub's address, as it is now set."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"


def list_repository(repo: str, kind: str, revision: str, settings: Settings) -> tuple[str, list[Listed]]:
    """Return the commit that a revision stands for and all files of it, sorted by path; `kind` is dataset or model.

    Raises NotThere where the repository or the revision is absent or closed, MediError where the Hub fails.
    """
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint())
    describe = api.dataset_info if kind == "dataset" else api.model_info
    what = f"hub {kind} {repo}"

    def ask() -> tuple[str, list[Listed]]:
        """Return the commit and the listed files, in one request."""
        # One request with a time limit; list_repo_tree would page, wait without limit and retry unseen.
        info = describe(repo, revision=revision, files_metadata=True, timeout=timeout(settings))  # type: ignore[arg-type]
        commit = info.sha or ""
        if not re.fullmatch("[0-9a-f]{40}", commit):
            raise ValueError(f"the commit is {commit!r}")
        files = [Listed(f.rfilename, f.size, f.lfs.sha256 if f.lfs else "") for f in info.siblings or []]
        if not all(isinstance(f.size_bytes, int | None) and isinstance(f.sha256, str) for f in files):
            raise TypeError("a size is no number, or a digest no text")
        return commit, sorted(files, key=lambda file: file.path)

    try:
        return patiently(what, endpoint(), ask, settings)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MediError(f"{what}: this is no answer of a Hub; check HF_ENDPOINT and the proxy") from error


def file_address(repo: str, kind: str, commit: str, path: str) -> str:
    """Return the URL of one file at one commit."""
    from huggingface_hub import hf_hub_url

    return hf_hub_url(repo, path, repo_type=kind, revision=commit, endpoint=endpoint())


def file_headers() -> dict[str, str]:
    """Return the headers of a request for a file: agent, and the person's token where the client finds one."""
    from huggingface_hub.utils import build_hf_headers

    return dict(build_hf_headers(library_name="medi"))
