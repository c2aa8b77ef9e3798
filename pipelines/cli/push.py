"""`medi push DIR REPO`: uploads a release to the Hugging Face Hub and prints the address of the data set."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from medi.errors import UsageError
from medi.screen import shown


def push(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release.")],
    repo: Annotated[str, typer.Argument(metavar="REPO", help="The data set on the Hub: OWNER/NAME.")],
    public: Annotated[bool, typer.Option("--public", help="For everyone to see.  [default: private]")] = False,
    allow_restricted: Annotated[
        bool, typer.Option("--allow-restricted", help="With --public: also texts that no licence lets be handed on.")
    ] = False,
) -> None:
    """Upload a release to the Hub as a data set.

    It is verified first, and sent in one commit; run again after a stop, it sends what is not there yet. The token is
    taken from HF_TOKEN, or from `hf auth login`.
    """
    _check_together(public, allow_restricted)
    from medi.push import push as send

    print(shown(send(folder, repo, public, allow_restricted, lambda line: print(shown(line), file=sys.stderr))))


def _check_together(public: bool, allow_restricted: bool) -> None:
    """Raise UsageError for an option that says nothing without the other."""
    if allow_restricted and not public:
        raise UsageError("--allow-restricted: says something of --public, which is not given; give both or neither")
