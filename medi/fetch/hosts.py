"""Which hosts answer: a host that cannot be reached is found out once a build, not once a file.

One that has answered before gets the patience of the settings, one that never did a few quick attempts. What is known
here is known to this process: a build begins by forgetting it, a worker in another process finds out for itself.
"""

from urllib.parse import urlsplit

from medi.errors import MediError

_ATTEMPTS = 3
# Where each attempt is slow (a resolver that is silent), one is enough.
_PATIENCE_SECONDS = 4.0

_answered: set[str] = set()
_unreachable: dict[str, str] = {}


class Unreachable(MediError):
    """A host cannot be reached: `what` is not to be had in this build, `why` names host and reason.

    `otherwise` is what a person can do who has no network.
    """

    def __init__(self, what: str, why: str, otherwise: str = "") -> None:
        """Take only texts, so that the error can travel between processes."""
        super().__init__(what, why, otherwise)
        self.why = why

    def __str__(self) -> str:
        """Return the line for a person."""
        what, why, otherwise = self.args
        return f"{what}: {why}; run again with a network{f', or {otherwise}' if otherwise else ''}"


def host_of(url: str) -> str:
    """Return the host of an address, with its port where it names one."""
    return urlsplit(url).netloc.rpartition("@")[2]


def forget_hosts() -> None:
    """Forget which hosts answer: the network may have changed since the last build."""
    _answered.clear()
    _unreachable.clear()


def note_answer(host: str) -> None:
    """Note that a host has answered, whatever it said."""
    _answered.add(host)
    _unreachable.pop(host, None)


def has_answered(host: str) -> bool:
    """Return whether the host has answered in this build."""
    return host in _answered


def refuse_unreachable(what: str, host: str) -> None:
    """Pass where nothing is known against a host. Raises Unreachable where it was found out to be dead."""
    if host in _unreachable:
        raise Unreachable(what, _unreachable[host])


def attempts_at(host: str, attempts: int, seconds: float) -> int:
    """Return how many failures in a row are borne after so many seconds; `host` could not be reached, "" where it was.

    A host that has answered before is granted the `attempts`; of one that is known as dead none more is wanted.
    """
    if not host:
        return attempts
    if host in _answered:
        return max(attempts, _ATTEMPTS)
    return 0 if host in _unreachable or seconds >= _PATIENCE_SECONDS else _ATTEMPTS


def give_up(what: str, host: str, why: str) -> Unreachable:
    """Note that a host is dead and why, and return the error that says so of one thing that lives there."""
    _answered.discard(host)
    _unreachable[host] = why
    return Unreachable(what, why)
