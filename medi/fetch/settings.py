"""How downloads behave: where they go, whether they may happen, how long they wait; the same for every place.

Nothing here is part of a build's identity: two builds with other settings and the same files are the same build.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def silent(message: str) -> None:
    """Say nothing."""


def _unwatched(name: str, done_bytes: int, total_bytes: int | None) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Settings:
    """One build's manners with the network; `say` gets a line for a person, `progress` (name, done, total bytes)."""

    workspace: Path
    offline: bool = False
    attempts: int = 6
    backoff_seconds: float = 1.0
    longest_wait_seconds: float = 300.0
    timeout_seconds: float = 60.0
    threads: int = 8
    say: Callable[[str], None] = silent
    progress: Callable[[str, int, int | None], None] = _unwatched

    @property
    def hub(self) -> Path:
        """Return the folder of everything that was downloaded."""
        return self.workspace / "hub"

    @property
    def memo(self) -> Path:
        """Return the folder where digests of files are remembered."""
        return self.workspace / "digests"

    @property
    def lock(self) -> Path:
        """Return the path of the lock file."""
        return self.workspace / "medi.lock.json"
