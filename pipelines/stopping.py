"""Ctrl-C and SIGTERM: the one line a person reads, and an end that does not wait for threads.

Every file is written under a temporary name first, so a process may end anywhere; the next build removes what it left.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

STOPPED = {130: "Ctrl-C", 143: "SIGTERM"}


def stopped_line(code: int) -> str:
    """Return what a person reads who stopped a command with this exit code."""
    return f"stopped by {STOPPED[code]}; what is finished is kept: run the same command again to go on"


@contextmanager
def stops_as_such() -> Iterator[None]:
    """Let an error that came of stopping be the stop, SystemExit with 130 or 143.

    A library that is stopped in the middle of a file may fail to close it, and what it raises hides the Ctrl-C.
    """
    try:
        yield
    finally:
        error = sys.exception()
        if not isinstance(error, SystemExit | KeyboardInterrupt) and (code := _stop_behind(error)):
            raise SystemExit(code)


def _stop_behind(error: BaseException | None) -> int:
    """Return the exit code of the stop that an error came of while it was handled, 0 where there is none."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return 130
        if isinstance(error, SystemExit) and error.code in STOPPED:
            return int(str(error.code))
        error = error.__context__
    return 0


@contextmanager
def ending_at_once(tell: Callable[[str], None] | None = None) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the process within the block at once, with its children, exit code 130 or 143.

    `tell` is given the line that a person reads, and must be quick.

    Prefect waits for its worker threads, and one that embeds cannot be interrupted for minutes. Only the main thread
    may set this; elsewhere (a deployment's own process) nothing changes.

    Children are started deaf to Ctrl-C, which a terminal sends to them too: Prefect's server would say "Aborted!".
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        """Tell who wants to know, and end; another signal meanwhile changes nothing."""
        if not _ending.acquire(blocking=False):
            return
        if tell is not None:
            tell(stopped_line(128 + number))
        _end(number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    # A child inherits which signals its parent's thread holds back, so another thread waits for this one.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    is_over = threading.Event()
    waiter = threading.Thread(target=_wait_for_ctrl_c, args=(is_over, end), daemon=True)
    waiter.start()
    try:
        yield
    finally:
        is_over.set()
        signal.pthread_kill(waiter.ident or 0, signal.SIGINT)
        waiter.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_for_ctrl_c(is_over: threading.Event, end: Callable[[int, None], None]) -> None:
    """End the process at Ctrl-C, unless the signal only says that nobody needs to wait for it any more."""
    signal.sigwait({signal.SIGINT})
    if not is_over.is_set():
        end(signal.SIGINT, None)


def wait_for_nobody() -> None:
    """Let `leave` end this process at once: at its exit, Prefect would wait some seconds for each of hundreds of events
    that a server which has gone does not take.
    """
    _deserted.set()


def leave(code: int) -> int:
    """Return a command's exit code; where nobody is to be waited for, end the process with it instead."""
    if _deserted.is_set():
        sys.stdout.flush()
        sys.stderr.flush()
        _end_children(signal.SIGKILL)
        os._exit(code)
    return code


_deserted = threading.Event()
_ending = threading.Lock()


def _end(number: int) -> None:
    """Say the line, end the children, and leave without unwinding."""
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    os.write(2, f"{show_cursor}medi: {stopped_line(128 + number)}\n".encode())
    _end_children(signal.SIGTERM)
    os._exit(128 + number)


def _end_children(number: int) -> None:
    """Send a signal to this process's children."""
    for child in _children():
        try:
            os.kill(child, number)
        except ProcessLookupError:
            continue


def _children() -> list[int]:
    """Return the process ids of this process's children: Prefect's temporary server, and workers."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.append(int(stat.parent.name))
    if found or Path("/proc/self").exists():
        return found
    listed = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=False)
    return [int(line) for line in listed.stdout.split()]
