"""Attempts over a network: a call becomes its result, with retries that are bounded and seen, or an error of one line.

What the client raises is told apart here: a place that lacks a file, a failure that may pass, a host that is dead.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

from medi.errors import MediError
from medi.fetch import hosts
from medi.fetch.settings import Settings

if TYPE_CHECKING:
    from httpx2 import Response

T = TypeVar("T")
_RETRIED_STATUS = (408, 425, 429, 500, 502, 503, 504)
_ABSENT_STATUS = (401, 403, 404, 410)
# A connection that brought this much was worth having: failures are counted anew after it.
_WORTHWHILE_BYTES = 8 << 20


class NotThere(MediError):
    """A place says that it does not have a file, or not for us; another place may."""


class Failed(Exception):
    """One attempt failed for a reason that may pass; carries the reason and how long the server asks to wait.

    `host` is the one that could not be reached, "" where one answered.
    """

    def __init__(self, reason: str, wait_seconds: float | None = None, host: str = "") -> None:
        """Take the reason, and what is known beside it."""
        super().__init__(reason)
        self.wait_seconds, self.host = wait_seconds, host


def patiently(what: str, url: str, call: Callable[[], T], settings: Settings, done: Callable[[], int] = lambda: 0) -> T:
    """Return call(), called again after failures that may pass, at most `settings.attempts` times in a row.

    `done` gives the bytes at hand; where they grew well, the count begins anew. Raises NotThere where the place does
    not have it, Unreachable where the host of `url` cannot be reached, MediError where it failed too often.
    """
    host, began = hosts.host_of(url), time.monotonic()
    hosts.refuse_unreachable(what, host)
    failures, mark = 0, done()
    while True:
        try:
            with _failures_named(what):
                found = call()
            hosts.note_answer(host)
            return found
        except Failed as failed:
            grown = done() - mark >= _WORTHWHILE_BYTES
            failures, mark = (1, done()) if grown else (failures + 1, mark)
            if not failed.host:
                hosts.note_answer(host)
            attempts = hosts.attempts_at(failed.host, settings.attempts, time.monotonic() - began)
            if failures >= attempts and failed.host:
                raise hosts.give_up(what, failed.host, str(failed)) from failed
            if failures >= attempts:
                raise MediError(
                    f"{what}: {failed} (attempt {failures} of {attempts}); "
                    "run the same command again later, what has arrived is kept"
                ) from failed
            wait = failed.wait_seconds
            if wait is None:
                wait = settings.backoff_seconds * 2 ** (failures - 1)
            wait = min(wait, settings.longest_wait_seconds)
            settings.say(f"{what}: {failed}; attempt {failures + 1} of {attempts} in {wait:g} s")
            time.sleep(wait)


@contextmanager
def _failures_named(what: str) -> Iterator[None]:
    """Turn what the client raises into Failed, NotThere or MediError; no message carries a header or a query."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
    except OfflineModeIsEnabled as error:
        raise MediError(f"{what}: HF_HUB_OFFLINE forbids the network; unset it, or use --offline") from error
    except HfHubHTTPError as error:
        if error.response is None:
            raise Failed("no answer") from error
        check_status(what, error.response)
        raise MediError(f"{what}: the answer {error.response.status_code} has an unknown form") from error
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        host = hosts.host_of(str(error.request.url))
        reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or "no connection"
        raise Failed(f"{host} cannot be reached ({reason})", host=host) from error
    except httpx2.TimeoutException as error:
        raise Failed("no answer in time") from error
    except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
        raise Failed("the connection was cut") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise MediError(f"{what}: {type(error).__name__}; check the address and the proxy settings") from error


def check_status(what: str, response: "Response") -> None:
    """Raise for an answer that is not the file: NotThere, Failed where it may pass, else MediError."""
    status = response.status_code
    if status in _RETRIED_STATUS:
        raise Failed(f"answer {status}", _asked_wait_seconds(response))
    if status in (401, 403):
        raise NotThere(f"{what}: answer {status}, it is not there or not public; accept its terms and set HF_TOKEN")
    if status in _ABSENT_STATUS:
        raise NotThere(f"{what}: answer {status}, it is not there; choose another --variant or fetch it for --raw")
    if status >= 400:
        raise MediError(f"{what}: answer {status}; open the address in a browser to see what it wants")


def _asked_wait_seconds(response: "Response") -> float | None:
    """Return how long the server asks to wait: Retry-After as seconds or a date, or the Hub's RateLimit; else None."""
    asked = response.headers.get("Retry-After", "").strip()
    if asked.isdecimal():
        return float(asked)
    if asked:
        try:
            return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
        except ValueError:
            return None
    window = re.search(r"\bt\s*=\s*(\d+)", response.headers.get("RateLimit", ""))
    return float(window[1]) if window else None
