"""What a person says of Super-NI tasks (`all`, `listed` or a file of names) into the names of the tasks to build.

A name in the person's own file that does not exist is an error; a listed task that is not there is only reported.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from medi.errors import UsageError
from medi.screen import many

_SHOWN = 10


def choose_tasks(
    available: Iterable[str] | None, choice: str, listed: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the chosen tasks and the listed ones that are not available, both sorted.

    `choice` is `all`, `listed` or the path of a file: one name a line, with or without `.json`, `#` before comments.
    `available` is None where tasks are downloaded by name: which there are is then known to the place alone.

    Raises:
        UsageError: the file cannot be read, has no name, or names tasks that are not there; `all` without a folder.
    """
    if choice == "all":
        if available is None:
            raise UsageError(
                "--super-ni-tasks all: only a --raw folder says what all is; give listed, or a file of names"
            )
        return sorted(set(available)), []
    wanted = set(listed) if choice == "listed" else _names(Path(choice))
    absent = wanted - (wanted if available is None else set(available))
    if absent and choice != "listed":
        more = f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else ""
        raise UsageError(
            f"{choice} names {many(len(absent), 'unknown Super-NI task')}: {', '.join(sorted(absent)[:_SHOWN])}{more}; "
            "a task is named as its file, without .json"
        )
    return sorted(wanted - absent), sorted(absent)


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
    strange = [name for name in sorted(names) if not re.fullmatch(r"\w[\w.-]*", name)]
    if strange:
        raise UsageError(f"--super-ni-tasks {file}: {strange[0]!r} cannot be the name of a task; write one a line")
    return names
