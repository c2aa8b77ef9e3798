"""The command `medi`: reads the command line, runs one command, and turns what went wrong into one line and a code.

Exit codes: 0 done, 1 the run failed, 2 the call was wrong, 130 and 143 stopped. Nothing heavy is imported up here:
`medi --help` must answer at once, so each command imports the library inside itself.
"""

import errno
import os
import re
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from types import FrameType, TracebackType
from typing import Annotated

import typer
from typer.main import get_command

from medi import __version__
from medi.errors import MediError, UsageError
from medi.screen import shown
from pipelines.cli.build import build
from pipelines.cli.diff import diff
from pipelines.cli.domains import domains
from pipelines.cli.export import export
from pipelines.cli.import_ import import_
from pipelines.cli.inspect import inspect
from pipelines.cli.plan import plan
from pipelines.cli.push import push
from pipelines.cli.report import report
from pipelines.cli.reselect import reselect
from pipelines.cli.sources import sources
from pipelines.cli.train import train
from pipelines.cli.verify import verify
from pipelines.stopping import STOPPED, leave, stopped_line, stops_as_such

app = typer.Typer(
    help="Rebuild MEDI, the training set of the InstructOR text-embedding models, or your own variant of it.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 100},
)
for command in (build, plan, reselect, sources, domains, inspect, diff, verify, report, export, push, train):
    app.command()(command)
# `import` is a word of Python's own.
app.command("import")(import_)


def _print_version(asked: bool) -> None:
    """Print the version and stop, where it was asked for."""
    if asked:
        print(f"medi {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if context.invoked_subcommand is None:
        raise UsageError("no command given; `medi --help` lists them")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code; an error has then been written to stderr, as one line."""
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args
    # A person adds --debug at the end of the call that failed; typer wants it before the command.
    args = ["--debug"] * debug + [arg for arg in args if arg != "--debug"]
    signal.signal(signal.SIGTERM, _on_sigterm)
    if not debug:
        sys.excepthook = _say_fault
    if isinstance(sys.stdout, TextIOWrapper):
        # Names and texts come from anywhere; a locale that lacks their letters must not end the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with stops_as_such():
            code = get_command(app).main(args, prog_name="medi", standalone_mode=False) or 0
    except SystemExit as stop:
        code = stop.code
    except (MediError, typer.TyperException, OSError) as error:
        if debug:
            raise
        code = 2 if isinstance(error, UsageError) else getattr(error, "exit_code", 1)
        # A build in which several units failed has a note for each.
        for note in getattr(error, "__notes__", ()):
            _say(note)
        _say(line_of(error))
    if code in STOPPED:
        _say(stopped_line(code))
    return leave(code if isinstance(code, int) else 1)


_QUOTED = re.compile(r"'(/[^']*)'")
_MAKE_ROOM = "make room there, or name another folder"
_HELPS = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: "raise the limit of a file's size (`ulimit -f`) and run again",
    errno.EACCES: "check the path and its permissions",
    errno.EROFS: "name another folder, or mount it for writing",
}


def line_of(error: Exception) -> str:
    """Return what a person reads about an error: what happened, with which value, what to do next."""
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        return f"{error.format_message().rstrip('.')}; see `{context.command_path if context else 'medi'} --help`"
    if isinstance(error, OSError) and error.strerror:
        where, reason = _place_and_reason(error)
        return f"{where}{reason.lower()}; {_HELPS.get(error.errno or 0, 'put that right and run again')}"
    return str(error)


def _place_and_reason(error: OSError) -> tuple[str, str]:
    """Return "PATH: " or "", and what the system said; Arrow tells both in one sentence."""
    from medi.publish import final_path

    path, reason = error.filename, error.strerror or ""
    if error.errno and "Detail: [errno" in reason:
        named = _QUOTED.search(reason)
        path, reason = path or (named and named[1]), os.strerror(error.errno)
    return f"{final_path(os.fsdecode(path))}: " if isinstance(path, str | bytes) else "", reason


def _say(message: str) -> None:
    """Write one line to stderr, whatever the message holds."""
    # Of the processes of one training run the first speaks for all.
    if os.environ.get("RANK", "0") == "0":
        print(f"medi: {shown(' '.join(message.split()))}", file=sys.stderr)


def _say_fault(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say one line about an error that nobody foresaw; Python calls this last of all and exits with 1."""
    _say(f"{kind.__name__}: {error}; this is a fault of medi: run it again with --debug and report what it shows")


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    """Unwind the program, so that half-written files are removed, and exit with 143."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
