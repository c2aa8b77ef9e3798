"""`medi export DIR --to FORMAT --out PATH`: hands a release on to another trainer and prints where it is."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from medi.errors import UsageError
from medi.screen import many, shown


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release.")],
    to: Annotated[
        str, typer.Option(metavar="FORMAT", help="medi-json, sentence-transformers, flagembedding, tevatron or jsonl.")
    ],
    out: Annotated[Path, typer.Option(metavar="PATH", help="The file or folder to write.")],
    batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="B",
            help="Of medi-json: rows of a step of the original script, for which each task is cut to whole steps.",
        ),
    ] = None,
) -> None:
    """Write a release in the format of another trainer.

    medi-json (the file that was released with InstructOR), tevatron and jsonl are one file; sentence-transformers (a
    DatasetDict and its prompts) and flagembedding are folders. An earlier export at PATH is replaced; anything else
    there is refused. What a format cannot hold is left out, counted by reason, and said.
    """
    from medi.export import export as write

    tally = write(folder, to, out, _block_rows(to, batch_size))
    print(f"{many(tally.rows, 'row')} of {many(tally.tasks, 'task')}", file=sys.stderr)
    for reason, rows in sorted(tally.left_out.items()):
        print(f"left out: {many(rows, 'row')}, {reason}{_meaning(reason, batch_size)}", file=sys.stderr)
    if tally.negatives_left_out:
        print(f"left out: {many(tally.negatives_left_out, 'negative')} beyond the first of a row", file=sys.stderr)
    print(shown(str(out)))


def _block_rows(to: str, batch_size: int | None) -> int:
    """Return the rows of a block. Raises UsageError where the number makes none, or the format has none."""
    from medi.export import MEDI_JSON

    if batch_size is not None and (to != MEDI_JSON or batch_size < 1):
        raise UsageError(f"--batch-size {batch_size}: give a number from 1, and only with --to {MEDI_JSON}")
    return batch_size or 1


def _meaning(reason: str, batch_size: int | None) -> str:
    """Return what a reason says in words."""
    return {
        "no_negative": " (the format needs one)",
        "remainder": f" (too few of their task for another {batch_size})",
        "instruction": ' (the original script takes "Represent ..." or none)',
    }.get(reason, "")
