"""An iterator -> the same values, made in a thread while the caller works on those before.

Unpacking needs no Python, so a second core does it beside the splitting and hashing of lines.
"""

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Value = TypeVar("_Value")
# How many values wait at most: enough that neither side stands still where the other is slow for a moment.
_WAITING = 3


def ahead(values: Iterator[_Value]) -> Generator[_Value]:
    """Yield the values in their order; an error that making one raises is raised here in its place."""
    end = object()
    with ThreadPoolExecutor(1, "medi-read") as thread:
        waiting = deque(thread.submit(next, values, end) for _ in range(_WAITING))
        while (value := waiting.popleft().result()) is not end:
            waiting.append(thread.submit(next, values, end))
            yield value  # pyright: ignore[reportReturnType]
