"""`medi verify DIR`: reads a release again, prints a line for each violation, and exits with 1 where there is one."""

from pathlib import Path
from typing import Annotated

import typer

from medi.screen import shown


def verify(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release.")]) -> None:
    """Check that a release is whole and right.

    Its files are hashed again and every promise about its rows is tested: one line a violation; exit code 0 where there
    is none, 1 where there are some, 2 where the folder is no release.
    """
    from medi.release.verify import verify as violations

    count = 0
    for count, line in enumerate(violations(folder), 1):  # noqa: B007 (the last number is the answer)
        print(shown(line), flush=True)
    if count:
        raise typer.Exit(1)
    print(f"{shown(str(folder))}: clean")
