"""What a person says of Super-NI tasks (`all`, `listed` or a file of names) into the names of the tasks to build.

A name in the person's own file that does not exist is an error; a listed task that is not there is only reported.
"""

from collections.abc import Iterable
from pathlib import Path

from medi.errors import UsageError

_SHOWN = 10


def choose_tasks(available: Iterable[str], choice: str, listed: Iterable[str] = ()) -> tuple[list[str], list[str]]:
    """Return the chosen tasks and the listed ones that are not available, both sorted.

    `choice` is `all`, `listed` or the path of a file: one name a line, with or without `.json`, `#` before comments.

    Raises:
        UsageError: the file cannot be read, has no name, or has names that are not available.
    """
    there = set(available)
    if choice == "all":
        return sorted(there), []
    if choice == "listed":
        wanted = set(listed)
        return sorted(wanted & there), sorted(wanted - there)
    wanted = _names(Path(choice))
    unknown = sorted(wanted - there)
    if unknown:
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        raise UsageError(
            f"{choice} names {len(unknown)} unknown Super-NI tasks: {', '.join(unknown[:_SHOWN])}{more}; "
            "a task is named as its file, without .json"
        )
    return sorted(wanted), []


def _names(file: Path) -> set[str]:
    """Return the task names of a file."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as wrong:
        raise UsageError(
            f"--super-ni-tasks {file} cannot be read ({wrong}): give all, listed, or a file with one task name a line"
        ) from None
    names = {line.partition("#")[0].strip().removesuffix(".json") for line in lines} - {""}
    if not names:
        raise UsageError(f"--super-ni-tasks {file} names no task: write one task name a line")
    return names
