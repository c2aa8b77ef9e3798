"""Bytes over HTTP: a URL becomes a file, with bodies that are resumed.

The session is huggingface_hub's. Its own downloads throw a partial file away when they fail, so bodies are read here.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from medi.fetch import hosts
from medi.fetch.local import writing
from medi.fetch.patience import Failed, check_status, patiently
from medi.fetch.settings import Settings

if TYPE_CHECKING:
    from httpx2 import Response, Timeout

MIRROR = "MEDI_MIRROR"
# A host has several addresses, each of which is tried so long.
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True)
class Head:
    """What a server says of a file before it sends it: size, and a tag that changes when the file does."""

    size_bytes: int | None
    tag: str


def address(url: str) -> str:
    """Return where a URL is fetched that is not the Hub's: $MEDI_MIRROR, if set, replaces its scheme and host."""
    mirror = os.environ.get(MIRROR, "").rstrip("/")
    parts = urlsplit(url)
    return f"{mirror}{parts.path}" if mirror else url


def plain(url: str) -> str:
    """Return a URL as a person may see it: without user, password, query and fragment, where secrets travel."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


def timeout(settings: Settings) -> "Timeout":
    """Return how long a request may take: little to find the host, `settings.timeout_seconds` for each answer."""
    from httpx2 import Timeout

    return Timeout(settings.timeout_seconds, connect=min(settings.timeout_seconds, _CONNECT_SECONDS))


def head(what: str, url: str, settings: Settings) -> Head:
    """Return size and tag of a file at a plain address; both may be unknown. Raises NotThere or MediError."""
    from huggingface_hub import get_session

    def ask() -> Head:
        """Return what the server says of the file, in one request."""
        headers = {"Accept-Encoding": "identity"}
        answer = get_session().head(url, headers=headers, timeout=timeout(settings))
        if answer.status_code in (405, 501):
            return Head(None, "")
        check_status(what, answer)
        size = answer.headers.get("Content-Length", "")
        return Head(int(size) if size.isdecimal() else None, _tag(answer))

    return patiently(what, url, ask, settings)


def reach(what: str, url: str, settings: Settings) -> None:
    """Pass where the host of a URL answers, whatever it says; one that has answered is not asked. Raises MediError."""
    from huggingface_hub import get_session

    if not hosts.has_answered(hosts.host_of(url)):
        patiently(what, url, lambda: get_session().head(url, timeout=timeout(settings)), settings)


@dataclass(frozen=True)
class Body:
    """A remote body to be read: the address, what a person calls it, the size if known, and headers (a Hub token).

    `tag` is what a plain server called this version of it, "" where a commit names it or nobody knows.
    """

    what: str
    url: str
    size_bytes: int | None
    headers: dict[str, str]
    tag: str = ""


def read_body(body: Body, part: Path, upto_bytes: int | None, settings: Settings) -> int | None:
    """Append to `part` until it holds the first `upto_bytes` of the body (all where None); what it holds is kept.

    Returns the size of the whole body where the server told it. Raises NotThere or MediError; `part` then stays.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    part.touch()
    total = body.size_bytes

    def attempt() -> int | None:
        """Fetch what is missing behind the part that is here; return the size of the whole file, where it is told."""
        nonlocal total
        here = part.stat().st_size
        goal = _lesser(upto_bytes, total)
        if goal is not None and here >= goal:
            os.truncate(part, goal)
            return total
        total = _read_once(body, part, upto_bytes, settings) or total
        goal = _lesser(upto_bytes, total)
        if goal is not None and part.stat().st_size < goal:
            raise Failed(f"the body ended after {part.stat().st_size} of {goal} bytes")
        return total

    with writing(part):
        return patiently(body.what, body.url, attempt, settings, lambda: part.stat().st_size)


def _read_once(body: Body, part: Path, upto_bytes: int | None, settings: Settings) -> int | None:
    """Append what one request brings; returns the whole body's size where the answer tells it."""
    from huggingface_hub import get_session

    here = part.stat().st_size
    last = "" if upto_bytes is None else str(upto_bytes - 1)
    headers = body.headers | {"Accept-Encoding": "identity"}
    if here or last:
        headers["Range"] = f"bytes={here}-{last}"
    with get_session().stream("GET", body.url, headers=headers, timeout=timeout(settings)) as answer:
        if answer.status_code == 416:
            os.truncate(part, 0)
            raise Failed(f"the server has no byte {here}; starting anew")
        check_status(body.what, answer)
        start, total = _span(answer)
        if here and body.tag and _tag(answer) not in ("", body.tag):
            os.truncate(part, 0)
            raise Failed("the file is another one than at the beginning; starting anew")
        if start not in (0, here) or (body.size_bytes is not None and total not in (None, body.size_bytes)):
            os.truncate(part, 0)
            raise Failed(f"the server sent other bytes than asked for (from {start}, of {total}); starting anew")
        # No more than was told, whatever comes.
        goal = _lesser(_lesser(upto_bytes, total), body.size_bytes)
        room = None if goal is None else goal - here
        # The first call says what was here before, so that nobody takes it for fast.
        settings.progress(body.what, here, goal)
        with part.open("ab") as file:
            for chunk in _window(answer.iter_raw(), here - start, room):
                file.write(chunk)
                settings.progress(body.what, file.tell(), goal)
            file.flush()
            os.fsync(file.fileno())
    return total


def _window(chunks: Iterator[bytes], skip_bytes: int, room_bytes: int | None) -> Iterator[bytes]:
    """Yield the stream without its first bytes (a server may ignore Range) and no more than there is room for."""
    for chunk in chunks:
        chunk, skip_bytes = chunk[skip_bytes:], max(0, skip_bytes - len(chunk))
        chunk = chunk[:room_bytes]
        yield chunk
        if room_bytes is not None:
            room_bytes -= len(chunk)
            if room_bytes <= 0:
                return


def _span(answer: "Response") -> tuple[int, int | None]:
    """Return the first byte's place in the whole body and the whole body's size (None where it is not told)."""
    if answer.status_code == 206:
        told = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
        return (int(told[1]), int(told[2]) if told[2] != "*" else None) if told else (-1, None)
    length = answer.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None


def _tag(answer: "Response") -> str:
    """Return what the server calls this version of the file, "" where it does not."""
    return answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""


def _lesser(one: int | None, other: int | None) -> int | None:
    """Return the lesser of two sizes, where None is unknown or without limit."""
    known = [size for size in (one, other) if size is not None]
    return min(known) if known else None
