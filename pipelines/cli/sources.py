"""`medi sources`: the 31 sources as a table for a person (two lines each, 80 columns) or as JSON for a program; with
names, all that is declared of these: where each variant lives, its files, its fields, a raw record, whom to cite.
"""

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from medi.screen import shown
from medi.source import Source, Variant

_COLUMNS = 80
_YES_NO = {True: "yes", False: "-"}


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
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Show all about these.")] = None,
    raw: Annotated[Path | None, typer.Option(metavar="DIR", help="Look for the files in this raw folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects, for a program.")] = False,
) -> None:
    """List the 31 sources, or show some.

    A line each: quota, symmetric, brings its own negatives, licence; below it, the place. With names: their
    whole declarations, variant by variant.
    """
    from medi.sources import ALL, by_name

    chosen = [by_name(name) for name in names or ()]
    entries = [_entry(source, raw) for source in chosen or ALL]
    if as_json:
        print(json.dumps(entries, indent=1))
    elif chosen:
        for source, entry in zip(chosen, entries, strict=True):
            print("\n".join(_declaration(source, entry)))
    else:
        print(f"{'name':<27}{'quota':>9}  {'sym':<4}{'neg':<4} licence")
        for source, entry in zip(ALL, entries, strict=True):
            print("\n".join(_lines(source, entry)))
        rows = sum(source.quota_rows for source in ALL)
        print(f"{len(ALL)} sources, {rows:,} rows; `medi sources NAME` shows all about one")


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


def _lines(source: Source, entry: SourceEntry) -> Iterator[str]:
    """Yield the lines of a source in the table: its numbers and licence, then where it is. Nothing is cut."""
    begin = f"{entry['name']:<27}{entry['quota']:>9,}  {_YES_NO[entry['symmetric']]:<4}"
    yield from _wrapped(f"{begin}{_YES_NO[entry['given_negatives']]:<4} ", entry["licence"])
    place = _place(source.variant(entry["variant"]))
    where = {True: f"{entry['file']} is here", False: f"{entry['file']} is missing", None: place}[entry["present"]]
    yield from _wrapped("    ", f"{entry['variant']}: {where}")


def _declaration(source: Source, entry: SourceEntry) -> Iterator[str]:
    """Yield the lines of all that is declared of a source."""
    yield f"{source.name}: {source.quota_rows:,} rows"
    yield from _wrapped("  licence      ", source.licence)
    yield from _wrapped("  cite         ", source.citation)
    kinds = ["symmetric" if source.symmetric else "not symmetric", *(["clusters"] if source.clusters else [])]
    yield from _wrapped("  pairs        ", ", ".join(kinds))
    for number, variant in enumerate(source.variants):
        is_here = entry["present"] and variant.name == entry["variant"]
        note = f" (here: {entry['file']})" if is_here else " (the default)" if number == 0 else ""
        yield from _wrapped("  variant      ", f"{variant.name}{note}")
        for name, text in _facts(variant):
            yield from _wrapped(f"    {name:<10} ", text)


def _facts(variant: Variant) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of what is declared of a variant."""
    yield "place", _place(variant)
    for file in (*variant.files, *([variant.pages] if variant.pages else [])):
        yield "file", f"DIR/{file.pattern}" + (f" from {file.remote}" if file.remote and variant.place else "")
    yield "layout", variant.layout + ("" if variant.lines is None else f", {variant.lines:,} lines")
    yield "fields", ", ".join(f"{ours} = {theirs}" for ours, theirs in variant.fields.items())
    yield "negatives", "given" if variant.given_negatives else "none, all are mined"
    yield "record", variant.sample


def _place(variant: Variant) -> str:
    """Return where a variant lives, or what a person must do to have it."""
    return variant.place or variant.how or "no place: put the files into DIR and give --raw DIR"


def _wrapped(begin: str, text: str) -> list[str]:
    """Return the text behind its beginning, in lines of at most 80 columns; names of files may be anyone's."""
    lines = textwrap.wrap(shown(text), _COLUMNS - len(begin), break_on_hyphens=False)
    return [f"{begin if n == 0 else ' ' * len(begin)}{line}" for n, line in enumerate(lines or [""])]
