"""Reading ahead: the same values in the same order, errors in their place, and an end that lets go."""

import threading
from collections.abc import Iterator

import pytest

from medi.ahead import ahead


def test_values_come_in_order_and_are_made_in_another_thread() -> None:
    makers = []

    def values() -> Iterator[int]:
        for value in range(10):
            makers.append(threading.current_thread())
            yield value

    assert list(ahead(values())) == list(range(10))
    assert len(makers) == 10 and threading.current_thread() not in makers


def test_an_error_comes_behind_the_values_before_it() -> None:
    def values() -> Iterator[int]:
        yield 1
        raise ValueError("cut")

    found = ahead(values())
    assert next(found) == 1
    with pytest.raises(ValueError, match="cut"):
        next(found)


def test_a_caller_that_stops_early_ends_the_thread_and_has_made_few_more() -> None:
    made = []
    before = threading.active_count()
    found = ahead(made.append(value) or value for value in range(1_000))
    assert next(found) == 0
    found.close()
    assert len(made) <= 5
    assert threading.active_count() == before
