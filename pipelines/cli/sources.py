"""`medi sources`: the 31 sources as a table for a person (two lines each, 80 columns) or as JSON for a program."""

import json
import textwrap
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from medi.source import Source, Variant


class SourceEntry(TypedDict):
    """One source as `--json` gives it; `present` is null where no raw folder was named."""

    name: str
    quota: int
    symmetric: bool
    licence: str
    layout: str
    given_negatives: bool
    variant: str
    file: str
    present: bool | None


def sources(
    raw: Annotated[Path | None, typer.Option(metavar="DIR", help="Look for the files in this raw folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects, for a program.")] = False,
) -> None:
    """List the 31 sources and their files.

    Columns: name, quota, symmetric, brings its own negatives, layout, licence; below, variant and file.
    """
    from medi.sources import ALL

    entries = [_entry(source, raw) for source in ALL]
    if as_json:
        print(json.dumps(entries, indent=1))
        return
    print(f"{'name':<27}{'quota':>9}  {'sym':<4}{'neg':<4}{'layout':<16}licence")
    for entry in entries:
        print(_lines(entry))
    print(f"{len(entries)} sources, {sum(entry['quota'] for entry in entries):,} rows")


def _entry(source: Source, raw: Path | None) -> SourceEntry:
    """Return one source; its variant is the one found in the raw folder, else the default."""
    variant, files, present = source.variants[0], [file.pattern for file in source.variants[0].files], None
    if raw is not None:
        variant, files, present = _found(source, raw)
    return {
        "name": source.name,
        "quota": source.quota_rows,
        "symmetric": source.symmetric,
        "licence": source.licence,
        "layout": variant.layout,
        "given_negatives": variant.given_negatives,
        "variant": variant.name,
        "file": ", ".join(files),
        "present": present,
    }


def _found(source: Source, raw: Path) -> tuple[Variant, list[str], bool]:
    """Return the variant whose files are in the raw folder, their names, and whether there is one."""
    from medi.fetch import find_raw

    found = find_raw(raw, source)
    if found is None:
        return source.variants[0], [file.pattern for file in source.variants[0].files], False
    return found.variant, [file.name for file in found.files], True


def _lines(entry: SourceEntry) -> str:
    """Return the two lines of a source, at most 80 columns wide."""
    yes_no = {True: "yes", False: "-"}
    place = {True: "here", False: "missing", None: "from"}[entry["present"]]
    first = (
        f"{entry['name']:<27}{entry['quota']:>9,}  {yes_no[entry['symmetric']]:<4}{yes_no[entry['given_negatives']]:<4}"
        f"{entry['layout']:<16}{textwrap.shorten(entry['licence'], 18, placeholder='…')}"
    )
    second = f"    {place:<8}{entry['variant']}: {entry['file']}".rstrip()
    return f"{first}\n{second if len(second) <= 80 else second[:79] + '…'}"
