"""What a person sees while a build runs: one line a stage with rows, rows/s and the time left, all on stderr.

On a terminal the lines are live; elsewhere a plain line comes every 30 s and at the end.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.text import Text

from medi.screen import shown

# Files that are fetched end one by one: not each is worth a line.
_FETCHED_EVERY_SECONDS = 5.0
_STOPPED_SHORT = "the rest not done"
# The stage whose steps are texts; those of others are units, which have rows.
_TEXTS = "embed"


class _RowsPerSecond(ProgressColumn):
    """Shows a stage's rows and its speed."""

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        rows = int(task.fields.get("rows", 0))
        seconds = task.finished_time or task.elapsed or 0.0
        if task.fields.get("in_bytes"):
            return Text(f"{'MB':>14} {task.completed / max(seconds, 0.05):>4,.1f} MB/s")
        speed = f"{rows / seconds:,.0f}/s" if seconds > 0.05 else ""
        return Text(f"{rows:>9,} {'texts' if task.description == _TEXTS else 'rows'} {speed:>9}")


class _TimeLeft(ProgressColumn):
    """Shows the time that a stage still needs, as long as it runs."""

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        if task.stop_time is not None and not task.finished:
            return Text(_STOPPED_SHORT)
        if task.fields.get("waits"):
            return Text("waits")
        left_seconds = None if task.finished else task.time_remaining
        return Text("" if left_seconds is None else f"{timedelta(seconds=int(left_seconds))} left")


@dataclass
class _Stage:
    """How far a stage is: `done` of `total` steps, the rows seen so far, and when it began, spoke and moved last.

    The steps of a stage `in_bytes` are bytes, and it has no rows. `waits` says for whom it waits, "" while it does not.
    """

    total: int = 0
    done: int = 0
    rows: int = 0
    began_seconds: float | None = None
    said_seconds: float = 0.0
    last_seconds: float = 0.0
    said_done: int = 0
    bar: int = -1
    in_bytes: bool = False
    waits: str = ""

    def begin(self, now_seconds: float) -> None:
        """Note when the first step began, however early the stage was expected."""
        if self.began_seconds is None:
            self.began_seconds = self.said_seconds = self.last_seconds = now_seconds

    def move(self, rows: int, steps: int, now_seconds: float) -> None:
        """Count rows and steps."""
        self.begin(now_seconds)
        self.done += steps
        self.rows += rows
        self.last_seconds = now_seconds

    def line(self, name: str, is_over: bool = False) -> str:
        """Return the plain line: steps, rows, speed, and the time left; once it is over, the time taken."""
        seconds = max(self.last_seconds - (self.began_seconds or 0.0), 1e-3)
        undone = max(self.total - self.done, 0)
        ending = f"about {seconds / self.done * undone:.0f} s left" if self.done else f"at work for {seconds:.0f} s"
        if self.waits:
            ending = self.waits
        if is_over or not undone:
            ending = f"in {seconds:.0f} s" + (f", {_STOPPED_SHORT}" if undone else "")
        if self.in_bytes:
            done, total = self.done / 1e6, self.total / 1e6
            return f"{name:<8} {done:,.0f}/{total:,.0f} MB  {done / seconds:,.1f} MB/s  {ending}"
        if name == _TEXTS:
            return f"{name:<8} {self.done:,}/{self.total:,} texts  {self.done / seconds:,.0f} texts/s  {ending}"
        speed = f"{self.rows:,} rows  {self.rows / seconds:,.0f} rows/s"
        return f"{name:<8} {self.done:,}/{self.total:,}  {speed}  {ending}"


@dataclass
class Reporter:
    """Takes steps and rows of stages from any thread. `quiet` shows nothing; without a terminal a line comes seldom."""

    console: Console
    quiet: bool = False
    every_seconds: float = 30.0
    _stages: dict[str, _Stage] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _live: Progress | None = None
    _over: threading.Event = field(default_factory=threading.Event)
    _files: dict[str, tuple[int, int]] = field(default_factory=dict)
    _loaded: frozenset[str] = frozenset()
    _waited: frozenset[str] = frozenset()
    _texts: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __enter__(self) -> "Reporter":
        if not self.console.is_terminal and not self.quiet:
            threading.Thread(target=self._speak_up, daemon=True).start()
        if self.console.is_terminal and not self.quiet:
            columns = (TextColumn("{task.description:<8}"), BarColumn(bar_width=14), MofNCompleteColumn())
            self._live = Progress(*columns, _RowsPerSecond(), _TimeLeft(), console=self.console)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._live:
            for bar in self._live.task_ids:
                self._live.stop_task(bar)
            self._live.stop()
            return
        for stage, state in self._stages.items():
            # The few kB of an encoder's settings are not worth a line.
            is_news = state.done - state.said_done >= (10**6 if state.in_bytes else 1)
            if is_news or 0 < state.said_done < state.total:
                self._say(stage, state, is_over=True)

    def _speak_up(self) -> None:
        """Say the line of what runs where nothing was said for long: one chunk of long texts can take minutes."""
        while not self._over.wait(self.every_seconds / 4):
            now = time.monotonic()
            with self._lock:
                for name, state in self._stages.items():
                    is_running = state.began_seconds is not None and state.done < state.total and not state.waits
                    if is_running and now - state.said_seconds >= self.every_seconds:
                        state.last_seconds = now
                        self._say(name, state)

    def begin(self, stage: str) -> None:
        """Note that a stage's first step begins now; later calls change nothing."""
        with self._lock:
            if stage in self._stages:
                self._stages[stage].begin(time.monotonic())

    def expect(self, stage: str, steps: int) -> None:
        """Add `steps` to what a stage has to do."""
        with self._lock:
            state = self._stages.setdefault(stage, _Stage())
            state.total += steps
            if self._live:
                state.bar = state.bar if state.bar >= 0 else self._live.add_task(stage, total=0, rows=0)
                self._live.update(TaskID(state.bar), total=state.total)

    def expect_texts(self, stage: str, texts: Iterable[str]) -> None:
        """Add those of the texts to what a stage has to do that were not added before: units may share texts."""
        hashes = np.fromiter(map(hash, texts), dtype=np.int64)
        with self._lock:
            new = np.setdiff1d(hashes, self._texts)
            self._texts = np.concatenate([self._texts, new])
        self.expect(stage, len(new))

    def advance(self, stage: str, rows: int = 0, steps: int = 1) -> None:
        """Count finished steps and rows of a stage; one that was never expected is not shown."""
        with self._lock:
            state = self._stages.get(stage)
            if state is None:
                return
            state.move(rows, steps, time.monotonic())
            if self._live:
                self._live.update(TaskID(state.bar), advance=steps, rows=state.rows)
            elif state.done >= state.total or state.last_seconds - state.said_seconds >= self.every_seconds:
                self._say(stage, state)

    @contextmanager
    def waiting(self, stage: str, told: str) -> Iterator[None]:
        """Show that a stage waits for somebody else while the block runs: on its bar, and once in words, `told`."""
        with self._lock:
            state, began = self._stages.get(stage, _Stage()), time.monotonic()
            done, state.waits = state.done, told
            self._mark(state)
            is_news, self._waited = stage not in self._waited, self._waited | {stage}
        if is_news:
            self.say(f"{stage:<8} {told}")
        try:
            yield
        finally:
            with self._lock:
                state.waits, now = "", time.monotonic()
                # What nobody worked in is no part of the speed, and the next line is not yet due.
                if state.done == done and state.began_seconds is not None:
                    state.began_seconds += now - began
                state.last_seconds = state.said_seconds = now
                self._mark(state)

    def _mark(self, state: _Stage) -> None:
        """Let the bar of a stage show whether it waits."""
        if self._live and state.bar >= 0:
            self._live.update(TaskID(state.bar), waits=bool(state.waits))

    def fetched(self, name: str, done_bytes: int, total_bytes: int | None) -> None:
        """Note how much of a file is here, in the stage `fetch`; what was here at the first call does not count."""
        with self._lock:
            state = self._stages.setdefault("fetch", _Stage(in_bytes=True))
            done_before, total_before = self._files.get(name, (done_bytes, done_bytes))
            self._files[name] = (done_bytes, max(total_bytes or 0, done_bytes))
            state.total += self._files[name][1] - total_before
            state.move(0, done_bytes - done_before, time.monotonic())
            if self._live:
                state.bar = state.bar if state.bar >= 0 else self._live.add_task("fetch", total=0, in_bytes=True)
                self._live.update(TaskID(state.bar), total=state.total // 10**6, completed=state.done // 10**6)
                return
            waited_seconds = state.last_seconds - state.said_seconds
            if waited_seconds >= (_FETCHED_EVERY_SECONDS if state.done >= state.total else self.every_seconds):
                self._say("fetch", state)

    def shares(self) -> dict[str, tuple[float, str]]:
        """Return for each stage that has something to do how many percent are done, and its plain line."""
        with self._lock:
            return {
                name: (min(100.0, 100 * state.done / state.total), shown(state.line(name)))
                for name, state in self._stages.items()
                if state.total
            }

    def say(self, message: str) -> None:
        """Show one line for a person; names in it may be anyone's."""
        if not self.quiet:
            # A terminal gets whole words on its lines; a log gets whole lines.
            is_log = not self.console.is_terminal
            self.console.print(shown(message), markup=False, highlight=False, soft_wrap=is_log)

    def loaded(self, name: str, seconds: float) -> None:
        """Say once how long an encoder took to load: no part of a source's time, nor of a stage's that stood still."""
        with self._lock:
            is_news, self._loaded = name not in self._loaded, self._loaded | {name}
            now = time.monotonic()
            for state in self._stages.values():
                if is_news and state.began_seconds is not None and state.last_seconds <= now - seconds:
                    state.began_seconds = min(state.began_seconds + seconds, now)
        if is_news:
            self.say(f"{'load':<8} {name}  in {seconds:.0f} s")

    def _say(self, stage: str, state: _Stage, is_over: bool = False) -> None:
        """Print a stage's plain line."""
        state.said_seconds, state.said_done = state.last_seconds, state.done
        self.say(state.line(stage, is_over))


# The reporter of this process. Workers in other processes have a quiet one: their steps are counted when they end.
_current = Reporter(Console(stderr=True), quiet=True)


def reporter() -> Reporter:
    """Return the reporter of this process."""
    return _current


@contextmanager
def showing(new: Reporter) -> Iterator[None]:
    """Make `new` the reporter of this process for a while."""
    global _current
    before, _current = _current, new
    try:
        with new:
            yield
    finally:
        _current = before
