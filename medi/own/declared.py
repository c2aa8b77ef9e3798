"""What a source of a person's own comes to, however it was declared, and what is asked of its name."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medi.errors import UsageError
from medi.source import Json, Source
from medi.sources import ALL

if TYPE_CHECKING:
    from medi.instruct import Sides

# A name begins every id and is a folder of exports; tasks of Super-NI are named by their files.
_NAME = re.compile(r"(?!task\d)[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BUILT_IN = {source.name.lower(): source.name for source in ALL}


@dataclass(frozen=True)
class Own:
    """A source of a person's own with its instruction slots. Its files are looked for in `folder`, where there is one.

    `what` names it on the command line (`--source cooking.py`); `declared` is what the manifest says of it: the
    Python file with its SHA-256, or the fields of a file of pairs. All of it decides what is built.
    """

    source: Source
    sides: "Sides"
    folder: Path | None
    what: str
    declared: dict[str, Json]


def check_name(name: str, what: str) -> str:
    """Return a name that a source of one's own may have. Raises UsageError for any other."""
    if name.lower() in _BUILT_IN:
        raise UsageError(f"{what}: medi has a source {_BUILT_IN[name.lower()]!r} itself; choose another name")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{what}: the name {name!r} cannot begin an id; write up to 64 letters, digits, dots, - and _, such as "
            "cooking_qa (and not task1, as tasks of Super-NI are named)"
        )
    return name
