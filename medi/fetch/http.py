"""Bytes over HTTP: a URL becomes a file, with bodies that are resumed and retries that are bounded and seen.

The session is huggingface_hub's. Its own downloads throw a partial file away when they fail, so bodies are read here.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from medi.errors import MediError
from medi.fetch.settings import Settings

if TYPE_CHECKING:
    from httpx2 import Response

T = TypeVar("T")
MIRROR = "MEDI_MIRROR"
_RETRIED_STATUS = (408, 425, 429, 500, 502, 503, 504)
_ABSENT_STATUS = (401, 403, 404, 410)
# A connection that brought this much was worth having: failures are counted anew after it.
_WORTHWHILE_BYTES = 8 << 20


class NotThere(MediError):
    """A place says that it does not have a file, or not for us; another place may."""


class _Failed(Exception):
    """One attempt failed for a reason that may pass; carries the reason and how long the server asks to wait."""

    def __init__(self, reason: str, wait_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds


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


def patiently(what: str, call: Callable[[], T], settings: Settings, done: Callable[[], int] = lambda: 0) -> T:
    """Return call(), called again after failures that may pass, at most `settings.attempts` times in a row.

    `done` gives the bytes at hand; where they grew well, the count begins anew. Raises NotThere where the place does
    not have it, MediError where it failed too often.
    """
    failures, mark = 0, done()
    while True:
        try:
            with _failures_named(what):
                return call()
        except _Failed as failed:
            grown = done() - mark >= _WORTHWHILE_BYTES
            failures, mark = (1, done()) if grown else (failures + 1, mark)
            if failures >= settings.attempts:
                raise MediError(
                    f"{what}: {failed} (attempt {failures} of {settings.attempts}); "
                    "run the same command again later, what has arrived is kept"
                ) from failed
            wait = failed.wait_seconds
            if wait is None:
                wait = settings.backoff_seconds * 2 ** (failures - 1)
            wait = min(wait, settings.longest_wait_seconds)
            settings.say(f"{what}: {failed}; attempt {failures + 1} of {settings.attempts} in {wait:g} s")
            time.sleep(wait)


@contextmanager
def _failures_named(what: str) -> Iterator[None]:
    """Turn what the client raises into _Failed, NotThere or MediError; no message carries a header or a query."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
    except OfflineModeIsEnabled as error:
        raise MediError(f"{what}: HF_HUB_OFFLINE forbids the network; unset it, or use --offline") from error
    except HfHubHTTPError as error:
        if error.response is None:
            raise _Failed("no answer") from error
        _check_status(what, error.response)
        raise MediError(f"{what}: the answer {error.response.status_code} has an unknown form") from error
    except httpx2.TimeoutException as error:
        raise _Failed("no answer in time") from error
    except httpx2.ConnectError as error:
        raise _Failed("no connection") from error
    except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
        raise _Failed("the connection was cut") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise MediError(f"{what}: {type(error).__name__}; check the address and the proxy settings") from error
    except OSError as error:
        raise MediError(f"{what}: {error.strerror or error}; make room, or choose another --workspace") from error


def _check_status(what: str, response: "Response") -> None:
    """Raise for an answer that is not the file: NotThere, _Failed where it may pass, else MediError."""
    status = response.status_code
    if status in _RETRIED_STATUS:
        raise _Failed(f"answer {status}", _asked_wait_seconds(response))
    if status in (401, 403):
        raise NotThere(f"{what}: answer {status}, it is not there or not public; accept its terms and set HF_TOKEN")
    if status in _ABSENT_STATUS:
        raise NotThere(f"{what}: answer {status}, it is not there; choose another --variant or fetch it for --raw")
    if status >= 400:
        raise MediError(f"{what}: answer {status}; open the address in a browser to see what it wants")


def _asked_wait_seconds(response: "Response") -> float | None:
    """Return how long the server asks to wait: Retry-After as seconds or a date, or the Hub's RateLimit; else None."""
    asked = response.headers.get("Retry-After", "").strip()
    if asked.isdigit():
        return float(asked)
    if asked:
        try:
            return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
        except ValueError:
            return None
    window = re.search(r"\bt\s*=\s*(\d+)", response.headers.get("RateLimit", ""))
    return float(window[1]) if window else None


def head(what: str, url: str, settings: Settings) -> Head:
    """Return size and tag of a file at a plain address; both may be unknown. Raises NotThere or MediError."""
    from huggingface_hub import get_session

    def ask() -> Head:
        headers = {"Accept-Encoding": "identity"}
        answer = get_session().head(url, headers=headers, timeout=settings.timeout_seconds)
        if answer.status_code in (405, 501):
            return Head(None, "")
        _check_status(what, answer)
        size = answer.headers.get("Content-Length", "")
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        return Head(int(size) if size.isdigit() else None, tag)

    return patiently(what, ask, settings)


@dataclass(frozen=True)
class Body:
    """A remote body to be read: the address, what a person calls it, the size if known, and headers (a Hub token)."""

    what: str
    url: str
    size_bytes: int | None
    headers: dict[str, str]


def read_body(body: Body, part: Path, upto_bytes: int | None, settings: Settings) -> int | None:
    """Append to `part` until it holds the first `upto_bytes` of the body (all where None); what it holds is kept.

    Returns the size of the whole body where the server told it. Raises NotThere or MediError; `part` then stays.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    part.touch()
    total = body.size_bytes

    def attempt() -> int | None:
        nonlocal total
        here = part.stat().st_size
        goal = _lesser(upto_bytes, total)
        if goal is not None and here >= goal:
            os.truncate(part, goal)
            return total
        total = _read_once(body, part, upto_bytes, settings) or total
        goal = _lesser(upto_bytes, total)
        if goal is not None and part.stat().st_size < goal:
            raise _Failed(f"the body ended after {part.stat().st_size} of {goal} bytes")
        return total

    return patiently(body.what, attempt, settings, lambda: part.stat().st_size)


def _read_once(body: Body, part: Path, upto_bytes: int | None, settings: Settings) -> int | None:
    """Append what one request brings; returns the whole body's size where the answer tells it."""
    from huggingface_hub import get_session

    here = part.stat().st_size
    last = "" if upto_bytes is None else str(upto_bytes - 1)
    headers = body.headers | {"Accept-Encoding": "identity"}
    if here or last:
        headers["Range"] = f"bytes={here}-{last}"
    with get_session().stream("GET", body.url, headers=headers, timeout=settings.timeout_seconds) as answer:
        if answer.status_code == 416:
            os.truncate(part, 0)
            raise _Failed(f"the server has no byte {here}; starting anew")
        _check_status(body.what, answer)
        start, total = _span(answer)
        if start not in (0, here) or (body.size_bytes is not None and total not in (None, body.size_bytes)):
            os.truncate(part, 0)
            raise _Failed(f"the server sent other bytes than asked for (from {start}, of {total}); starting anew")
        room = None if upto_bytes is None else upto_bytes - here
        # The first call says what was here before, so that nobody takes it for fast.
        settings.progress(body.what, here, _lesser(upto_bytes, total))
        with part.open("ab") as file:
            for chunk in _window(answer.iter_raw(), here - start, room):
                file.write(chunk)
                settings.progress(body.what, file.tell(), _lesser(upto_bytes, total))
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
    return 0, int(length) if length.isdigit() else None


def _lesser(one: int | None, other: int | None) -> int | None:
    """Return the lesser of two sizes, where None is unknown or without limit."""
    known = [size for size in (one, other) if size is not None]
    return min(known) if known else None
