"""Work -> several pieces at a time, each in a thread that lets torch use so many cores: a lane.

What torch calls the number of threads is a thread's own, and a new thread begins with what any thread asked for last.
So the number from before the first lane is noted, and the last one leaves it behind.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

# More lanes than these wait for each other's Python.
MOST_LANES = 16


@dataclass
class _Before:
    """How many threads torch had before lanes began, and how many executors of lanes are at work."""

    threads: int = 0
    at_work: int = 0
    lock: Lock = field(default_factory=Lock)

    def look(self) -> int:
        """Return the threads that a new thread has, or had before lanes began."""
        import torch

        if not self.at_work:
            with ThreadPoolExecutor(1) as new:
                self.threads = new.submit(torch.get_num_threads).result()
        return self.threads


_BEFORE = _Before()


def torch_threads() -> int:
    """Return how many threads torch has outside of lanes."""
    with _BEFORE.lock:
        return _BEFORE.look()


@contextmanager
def lanes(count: int, threads: int = 1) -> Iterator[ThreadPoolExecutor]:
    """Give an executor of so many lanes, in each of which torch has so many threads."""
    import torch

    with _BEFORE.lock:
        _BEFORE.look()
        _BEFORE.at_work += 1
    try:
        with ThreadPoolExecutor(count, "medi-lane", torch.set_num_threads, (threads,)) as pool:
            yield pool
    finally:
        with _BEFORE.lock:
            _BEFORE.at_work -= 1
            if not _BEFORE.at_work:
                torch.set_num_threads(_BEFORE.threads)
