"""Where a variant's files are: declared places and globs become Remotes, one for each file, with commit and size.

What a glob stood for is in the lock file, so that a build without a network knows whether something is missing.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

from medi.errors import MediError, UsageError
from medi.fetch.http import address, head, plain
from medi.fetch.hub import Listed, file_address, file_headers, list_repository
from medi.fetch.lock import Entry, Place, read_lock
from medi.fetch.patience import NotThere
from medi.fetch.settings import Settings
from medi.source import File, Source, Variant

HUB, HUB_MODEL = "hub:", "hub-model:"
_COMMIT = re.compile(r"/([0-9a-f]{40})(?:/|$)")


@dataclass(frozen=True)
class Remote:
    """One file at a place; `key` is the place's name in the lock, `name` the file's path in a raw folder.

    A Hub file has a commit, a plain address a tag (what its server calls this version of it). `siblings` are all paths
    that the declared `pattern` stands for. `locked`: this is from the lock file, nobody asked the place yet.
    """

    key: str
    path: str
    name: str
    commit: str = ""
    tag: str = ""
    size_bytes: int | None = None
    sha256: str = ""
    pattern: str = ""
    siblings: tuple[str, ...] = ()
    locked: bool = False

    @property
    def what(self) -> str:
        """Return the file as a person knows it."""
        return f"{self.key} {self.path}"

    def entry(self) -> Entry:
        """Return what the lock file says of it before its bytes are here."""
        return Entry(self.commit, self.tag, self.size_bytes)

    def target(self, settings: Settings) -> Path:
        """Return where it lies in the workspace. Raises MediError where its name would lead out of the folder."""
        kind, _, rest = self.key.partition(":")
        tagged = hashlib.sha256(self.tag.encode()).hexdigest()[:16] if self.tag else "untagged"
        return inside(settings.hub, f"{kind}/{_folder(rest)}/{_folder(self.commit) or tagged}", self.path)


def _folder(text: str) -> str:
    """Return a text as the name of one folder: a place, or the commit that a Hub or a lock file names."""
    return re.sub(r"[^A-Za-z0-9._@-]+", "--", text).strip("-.")


def inside(root: Path, place: str, name: str) -> Path:
    """Return root/place/name. Raises MediError where a name or a link would lead out of the root."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise MediError(f"the file name {name!r} leads out of {root}; nothing was written, tell the owner of the place")
    path = root.joinpath(place, *parts)
    if not path.resolve().is_relative_to(root.resolve()):
        raise MediError(f"{path} leads out of {root} through a link; remove the link and run again")
    return path


def remote_files(source: Source, variant: Variant, settings: Settings) -> list[Remote]:
    """Return the variant's remote files, from the lock where it lists them, else from the place.

    Raises NotThere where the place lacks one, or the lock does when offline; MediError where the place fails.
    """
    return _resolve(source, variant, variant.files, settings)


def remote_pages(source: Source, variant: Variant, settings: Settings) -> list[Remote]:
    """Return the remote files of the variant's knowledge source, none where it has none. Raises as remote_files."""
    return _resolve(source, variant, (variant.pages,), settings) if variant.pages else []


def _resolve(source: Source, variant: Variant, files: Iterable[File], settings: Settings) -> list[Remote]:
    """Return the Remotes of these files of a variant, in order of the files, then of their paths."""
    if not variant.place:
        raise NotThere(f"{source.name}: {variant.how or 'a person must fetch it and name its folder with --raw'}")
    lock = read_lock(settings.lock)
    known = [_known(variant, file, lock) for file in files]
    if all(remotes is not None for remotes in known):
        return [remote for remotes in known for remote in remotes or []]
    if settings.offline:
        paths = ", ".join(remote_path(file) for file in files)
        raise NotThere(
            f"{source.name}: offline, and {paths} of {variant.place} is not in {settings.hub}; "
            "run the same command once without --offline"
        )
    if variant.place.startswith(HUB):
        return _hub_remotes(variant, files, lock, settings)
    return [ask(_plain_remote(variant, file), settings) for file in files]


def remote_path(file: File) -> str:
    """Return the path of a file in its place; one that is not declared is named as in the raw folder."""
    return file.remote or PurePosixPath(file.pattern).name


def hub_key(place: str, revision: str) -> str:
    """Return the lock's name of a Hub repository at a revision."""
    return f"{place}@{revision}"


def _known(variant: Variant, file: File, lock: dict[str, Place]) -> list[Remote] | None:
    """Return the Remotes that the lock lists for a declared file, None where it does not know all of them."""
    if not variant.place.startswith(HUB):
        remote = _plain_remote(variant, file)
        entry = lock.get(remote.key, Place()).files.get(remote.path)
        return [from_entry(remote, entry)] if entry else None
    key = hub_key(variant.place, variant.revision)
    place = lock.get(key, Place())
    paths = place.listed.get(remote_path(file))
    if not paths or any(path not in place.files for path in paths):
        return None
    return [from_entry(Remote(key, path, raw_name(file, path)), place.files[path]) for path in paths]


def from_entry(remote: Remote, entry: Entry) -> Remote:
    """Return a Remote as the lock file knows it."""
    return replace(remote, commit=entry.commit, tag=entry.tag, size_bytes=entry.size_bytes, locked=True)


def _hub_remotes(variant: Variant, files: Iterable[File], lock: dict[str, Place], settings: Settings) -> list[Remote]:
    """Ask the Hub for a variant's files. Raises NotThere where a declared file matches nothing."""
    key = hub_key(variant.place, variant.revision)
    commit, listed = list_pinned(key, lock.get(key, Place()).commit, settings)
    remotes: list[Remote] = []
    for file in files:
        pattern = remote_path(file)
        found = [entry for entry in listed if _matches(entry.path, pattern)]
        if not found:
            raise NotThere(f"{variant.place} has no file {pattern} at {commit}; choose another --variant")
        remotes += listed_remotes(key, commit, pattern, [(entry, raw_name(file, entry.path)) for entry in found])
    return remotes


def listed_remotes(key: str, commit: str, pattern: str, found: list[tuple[Listed, str]]) -> list[Remote]:
    """Return the Remotes of the listed files (each with its name in a raw folder) that a pattern stands for."""
    paths = tuple(entry.path for entry, _ in found)
    return [
        Remote(key, entry.path, name, commit, "", entry.size_bytes, entry.sha256, pattern, paths)
        for entry, name in found
    ]


def list_pinned(key: str, commit: str, settings: Settings) -> tuple[str, list[Listed]]:
    """Return commit and files of a Hub place: at the locked commit while the Hub still has it, else at the revision."""
    place, _, revision = key.rpartition("@")
    kind = "dataset" if place.startswith(HUB) else "model"
    repo = place.partition(":")[2]
    if commit:
        try:
            return list_repository(repo, kind, commit, settings)
        except NotThere:
            settings.say(f"{place}: commit {commit} of the lock file is gone; asking for {revision}")
    return list_repository(repo, kind, revision, settings)


def ask(remote: Remote, settings: Settings) -> Remote:
    """Return the Remote as its place knows it now: the Hub's listing, or the head of a plain address."""
    if remote.key.startswith((HUB, HUB_MODEL)):
        commit, listed = list_pinned(remote.key, remote.commit, settings)
        for entry in listed:
            if entry.path == remote.path:
                size_bytes, sha256 = entry.size_bytes, entry.sha256
                return replace(remote, commit=commit, size_bytes=size_bytes, sha256=sha256, locked=False)
        raise NotThere(f"{remote.what} is gone at {commit}; choose another --variant, or use --raw")
    pinned = _COMMIT.search(remote.key)
    if pinned:
        return replace(remote, commit=pinned[1], locked=False)
    told = head(remote.what, url_of(remote), settings)
    return replace(remote, tag=told.tag, size_bytes=told.size_bytes, locked=False)


def url_of(remote: Remote) -> str:
    """Return the address of a file's bytes."""
    place, _, _ = remote.key.rpartition("@")
    if remote.key.startswith((HUB, HUB_MODEL)):
        kind = "dataset" if remote.key.startswith(HUB) else "model"
        return file_address(place.partition(":")[2], kind, remote.commit, remote.path)
    return address(f"{remote.key}/{quote(remote.path)}")


def headers_of(remote: Remote) -> dict[str, str]:
    """Return the headers of a request; a token goes to the Hub only."""
    return file_headers() if remote.key.startswith((HUB, HUB_MODEL)) else {}


def _plain_remote(variant: Variant, file: File) -> Remote:
    """Return the Remote of a file at a plain address, which its place begins or the file names whole."""
    path = remote_path(file)
    whole = path if path.startswith(("http://", "https://")) else f"{variant.place.rstrip('/')}/{path}"
    parts = urlsplit(whole)
    if parts.username or parts.password or parts.query:
        raise UsageError(f"the address {plain(whole)} carries a password or a query, which would be seen; use ~/.netrc")
    if set(path) & set("*?["):
        raise MediError(f"{whole}: a plain address lists no files; name each file (tasks are fetched by their names)")
    name = raw_name(file, path)
    if whole == path:
        return Remote(f"{parts.scheme}://{parts.netloc}", parts.path.lstrip("/"), name)
    return Remote(variant.place.rstrip("/"), path, name)


def raw_name(file: File, path: str) -> str:
    """Return a remote file's name in a raw folder: the pattern, with what the place's globs stand for in its own."""
    ours, theirs = _before_globs(file.pattern), _before_globs(remote_path(file))
    if ours == PurePosixPath(file.pattern).parts:
        return file.pattern
    parts = PurePosixPath(path).parts
    # Without a glob at the place, theirs are all parts: the file's own name remains.
    return str(PurePosixPath(*ours, *(parts[len(theirs) :] or parts[-1:])))


def _before_globs(pattern: str) -> tuple[str, ...]:
    """Return the leading parts of a pattern that stand for themselves."""
    return tuple(takewhile(lambda part: not set(part) & set("*?["), PurePosixPath(pattern).parts))


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path fits a glob, where * stays inside one folder."""
    names, globs = path.split("/"), pattern.split("/")
    return len(names) == len(globs) and all(fnmatchcase(name, glob) for name, glob in zip(names, globs, strict=True))
