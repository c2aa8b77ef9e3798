"""What went wrong in a build -> what a person reads of it: a line for each source or task, and one error at the end."""

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from medi.errors import MediError
from medi.fetch import Unreachable

_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM}


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


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Let an error of the disk name the folder that is written: not a temporary name in it, which says nothing to a
    person, and not nothing (a write knows only its handle).

    Raises OSError with the folder's name.
    """
    try:
        yield
    except OSError as error:
        # numpy has no number for a write that fell short, only words.
        number = errno.ENOSPC if str(error).endswith(" written") else error.errno
        if number in _DISK and str(error.filename or folder).startswith(str(folder)):
            raise OSError(number, os.strerror(number), str(folder)) from error
        raise


def check_writable(folder: Path, option: str) -> None:
    """Pass where a folder can be made or written. Raises MediError: better before a build of hours than after it."""
    here = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(here, os.W_OK | os.X_OK, effective_ids=True):
        is_mounted_so = os.statvfs(here).f_flag & os.ST_RDONLY
        why = os.strerror(errno.EROFS if is_mounted_so else errno.EACCES).lower()
        raise MediError(f"{option} {folder}: {here} cannot be written ({why}); mend that, or name another {option}")
