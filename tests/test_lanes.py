"""Lanes have their own number of threads, and leave torch as it was, whoever ends last."""

import threading
from collections.abc import Callable, Iterator

import pytest
import torch

from medi.lanes import lanes, torch_threads


@pytest.fixture(params=[2, 3], autouse=True)
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Let torch have so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def in_a_new_thread(work: Callable[[], int]) -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_a_lane_has_its_own_threads_and_leaves_none_behind(threads: int) -> None:
    # Both lanes are there at once, or one would wait without end.
    both = threading.Barrier(2, timeout=60)
    with lanes(2, 1) as pool:
        assert list(pool.map(lambda _: (both.wait(), torch.get_num_threads())[1], range(2))) == [1, 1]
        assert (torch_threads(), in_a_new_thread(torch_threads)) == (threads, threads)
    assert (torch.get_num_threads(), in_a_new_thread(torch.get_num_threads)) == (threads, threads)


def test_lanes_that_begin_and_end_among_others_change_nothing(threads: int) -> None:
    """Whoever asks meanwhile hears what was before, and does not take one lane's thread for all there are."""

    def others() -> int:
        with lanes(1, 1) as pool:
            return pool.submit(torch.get_num_threads).result() + 10 * torch_threads()

    with lanes(1, 1) as pool:
        pool.submit(torch.get_num_threads).result()
        assert in_a_new_thread(others) == 1 + 10 * threads
        assert in_a_new_thread(torch_threads) == threads
    assert in_a_new_thread(torch.get_num_threads) == threads


def test_an_error_in_a_lane_leaves_torch_as_it_was(threads: int) -> None:
    with pytest.raises(ZeroDivisionError), lanes(1, 1) as pool:
        pool.submit(lambda: 1 // 0).result()
    assert (torch_threads(), in_a_new_thread(torch.get_num_threads)) == (threads, threads)
