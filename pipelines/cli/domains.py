"""`medi domains [DIR]`: MSMARCO's clusters, for a person who wants to name them (80 columns) or for a program."""

import json
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medi.screen import many, shown

if TYPE_CHECKING:
    from medi.release.domains import Domain

_COLUMNS = 80
_INDENT = 12
_QUERY_LINES = 2


def domains(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="A release.  [default: that of `medi build`]")
    ] = None,
    n: Annotated[int, typer.Option(min=0, max=10, metavar="N", help="Queries to show of each cluster.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects, for a program.")] = False,
) -> None:
    """Show the clusters of MSMARCO.

    Of each: number, rows, domain word, and what speaks for the word.

    near: the nearest words of the vocabulary, with cosines. terms: what the cluster's queries say and others do not.
    Another word: write it into msmarco_domains.toml by the cluster's number, and build again.
    """
    from medi.release import open_release
    from medi.release.domains import domains_of
    from pipelines.presets import resolve

    found = domains_of(open_release(folder or resolve().out), n)
    if as_json:
        print(json.dumps([asdict(cluster) for cluster in found.clusters], indent=1))
    else:
        print("\n\n".join(_block(cluster) for cluster in found.clusters))
    if found.unused:
        words = ", ".join(f"{number} ({word})" for number, word in found.unused.items())
        print(shown(f"msmarco_domains.toml names clusters that are not here: {words}"), file=sys.stderr)


def _block(cluster: "Domain") -> str:
    """Return the lines of a cluster."""

    override = " (set in msmarco_domains.toml)" if cluster.overridden else ""
    near = ", ".join(f"{word} {cosine:.2f}" for word, cosine in cluster.nearest)
    lines = [
        f"{cluster.number}  {shown(cluster.word)}{override}, {many(cluster.rows, 'row')}",
        *_field("near", shown(near)),
        *_field("terms", shown(", ".join(cluster.terms))),
    ]
    for place, query in enumerate(cluster.queries):
        lines += _field("" if place else "queries", shown(query), _QUERY_LINES)
    return "\n".join(lines)


def _field(name: str, text: str, most_lines: int | None = None) -> list[str]:
    """Return a name and its text, wrapped behind it."""
    return textwrap.wrap(
        text,
        _COLUMNS,
        initial_indent=f"    {name:<{_INDENT - 4}}",
        subsequent_indent=" " * _INDENT,
        max_lines=most_lines,
        placeholder=" …",
    )
