"""Examples in any order -> a file for each task and pair of instructions; memory does not grow with their number."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from medi.errors import MediError
from medi.imported.records import Example

_HELD_BYTES = 1 << 26
_MOST_TASKS = 10_000


@dataclass
class Spilled:
    """Where the examples of a task are: all of them have these instructions.

    `base` is the name that the records give; `task` is another one where they give it to several pairs of instructions,
    as a training batch holds one.
    """

    base: str
    task: str
    query_instruction: str
    document_instruction: str
    path: Path

    def rows(self) -> Iterator[tuple[int, str, str, str | None]]:
        """Yield number, query, positive and negative (or None) of each example, in the order of the file."""
        with self.path.open("rb") as file:
            yield from map(orjson.loads, file)


class Spill:
    """Takes examples and writes those of each task to a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.tasks: dict[tuple[str, str, str], Spilled] = {}
        self._folder = folder
        self._pairs = Counter[str]()
        self._held: defaultdict[Path, list[bytes]] = defaultdict(list)
        self._held_bytes = 0

    def add(self, number: int, example: Example) -> None:
        """Take the example of record `number`. Raises MediError where there are too many pairs of instructions."""
        key = example.task, example.query_instruction, example.document_instruction
        spilled = self.tasks.get(key) or self._new_task(*key)
        line = orjson.dumps([number, example.query, example.positive, example.negative]) + b"\n"
        self._held[spilled.path].append(line)
        self._held_bytes += len(line)
        if self._held_bytes > _HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        for path, lines in self._held.items():
            with path.open("ab") as file:
                file.writelines(lines)
        self._held.clear()
        self._held_bytes = 0

    def _new_task(self, base: str, query_instruction: str, document_instruction: str) -> Spilled:
        if len(self.tasks) == _MOST_TASKS:
            raise MediError(
                f"more than {_MOST_TASKS:,} pairs of instructions, of which {self._pairs[base]:,} in task {base}; a "
                "batch holds one, so rows with instructions of their own cannot be imported"
            )
        self._pairs[base] += 1
        task = base if self._pairs[base] == 1 else f"{base}#{self._pairs[base]}"
        path = self._folder / str(len(self.tasks))
        spilled = Spilled(base, task, query_instruction, document_instruction, path)
        self.tasks[base, query_instruction, document_instruction] = spilled
        return spilled
