"""What went wrong in a build -> what a person reads of it: a line for each source or task, and one error at the end."""

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

from medi.errors import MediError
from medi.fetch import Unreachable


def one_line(name: str, error: MediError) -> str:
    """Return the error in one line that names its unit or source; a host that is dead is so for all of them."""
    line = " ".join(str(error).split())
    # A path that holds the name does not say whose it is.
    is_named = re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", line)
    return line if is_named or isinstance(error, Unreachable) else f"{name}: {line}"


def failure_of(lines: Iterable[str]) -> MediError:
    """Return the error that a build ends with: the only line, or one that counts them and has each as a note."""
    lines = list(dict.fromkeys(lines))
    if len(lines) == 1:
        return MediError(lines[0])
    failure = MediError(
        f"{len(lines)} sources or tasks failed, nothing is published; put right what the lines above say and run "
        "the same command again: what the others made is kept"
    )
    for line in lines:
        failure.add_note(line)
    return failure


def check_writable(folder: Path, option: str) -> None:
    """Pass where a folder can be made or written. Raises MediError: better before a build of hours than after it."""
    here = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(here, os.W_OK | os.X_OK, effective_ids=True):
        is_mounted_so = os.statvfs(here).f_flag & os.ST_RDONLY
        why = os.strerror(errno.EROFS if is_mounted_so else errno.EACCES).lower()
        raise MediError(f"{option} {folder}: {here} cannot be written ({why}); mend that, or name another {option}")
