"""`medi import FILE --out DIR`: makes a release of a medi-data.json and prints the folder."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from medi.screen import many, shown


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A medi-data.json, plain or gz.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The new release.")],
) -> None:
    """Turn the medi-data.json of InstructOR into a release.

    The other commands then work on it as on one that medi built. A task that is named as one of `medi sources` gets
    that source and its licence; any other is a source of its own, whose licence is unknown. One that has several
    instructions becomes several tasks (NAME, NAME#2). Scores and labels are not in such a file. Rows that cannot be in
    a release are counted by reason. As with a build, an earlier release at DIR is replaced, its report too; where
    anything else stands there, or a file that no manifest names, nothing is touched.
    """
    from medi.imported import import_file

    summary = import_file(file, out, lambda line: print(shown(line), file=sys.stderr, flush=True))
    print(f"{many(summary.rows, 'row')} of {many(summary.tasks, 'task')}", file=sys.stderr)
    for reason, rows in summary.left_out.items():
        print(f"left out: {many(rows, 'row')}, {shown(reason)}", file=sys.stderr)
    print(f"content digest: {summary.digest}", file=sys.stderr)
    print(shown(str(out)))
