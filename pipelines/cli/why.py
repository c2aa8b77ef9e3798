"""The story of one row -> what a person reads of it in 80 columns: record, cleaning, instructions, candidates."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from medi.screen import many, shown
from pipelines.cli.rows import Line, cut, draw, grid, label_of, score_of, texts_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from medi.mine.why import Judged
    from medi.release.why import Story

# Candidates that are shown line by line; the rest is counted by what became of it.
_SHOWN = 10


def tell(folder: Path, row_id: str, places: tuple[Path | None, Path | None], own: list[Path], as_json: bool) -> None:
    """Print the story of a row; `places` are raw folder and workspace where given, `own` files with its source."""
    from rich.console import Console

    from medi.own import load, source_file
    from medi.release import open_release
    from medi.release.why import Places, why

    sources = tuple(load(source_file(path)) for path in own)
    story = why(open_release(folder), row_id, Places(*places, sources))
    if as_json:
        print(json.dumps(asdict(story), indent=1))
        return
    console = Console(highlight=False, markup=False, emoji=False)
    for number, part in enumerate(_drawn(story)):
        if number:
            console.print()
        console.print(part)


def _drawn(story: "Story") -> "Iterator[RenderableType]":
    """Yield the parts of a story, each under a title."""
    row = story.row
    yield draw(str(row["id"]), [*_place(story), *texts_of(row)])
    yield draw("raw record", _raw(story))
    yield draw("instructions", _instructions(story))
    yield from _mining(story)
    for line in story.absent:
        yield grid([Line("not known", "", line)])


def _place(story: "Story") -> list[Line]:
    """Return where the row stands in the release."""
    place, row = story.place, story.row
    where = f"{place.shard}, row group {place.group}, row {story.place_in_group} of its {place.rows:,} (from 0)"
    return [Line("task", "", f"{row['task']} (kind {row['kind']})"), Line("shard", "", where)]


def _raw(story: "Story") -> list[Line]:
    """Return the raw record and what became of it on its way into the pool."""
    raw, pool = story.raw, story.pool
    lines = [Line("from", "", f"{story.row['origin']} ({story.row['licence']})")]
    if raw is not None:
        lines.append(Line("file", "", f"{raw.path}, {raw.size_bytes:,} bytes, sha256 {raw.sha256[:16]}…"))
        lines.append(Line("record", "", raw.text))
        lines.append(Line("read as", "", raw.layout))
        if raw.places:
            lines.append(Line("passages", "", "; ".join(raw.places)))
        lines.append(Line("mended", "", ", ".join(raw.mended) or "nothing"))
        taken = ", ".join(f"{reason} {count:,}" for reason, count in raw.taken_out.items())
        lines.append(Line("taken out", "", taken or "nothing"))
    if pool is not None:
        lines += _pool_lines(story)
    return lines


def _pool_lines(story: "Story") -> Iterator[Line]:
    """Yield what the pool knows of the row."""
    pool = story.pool
    assert pool is not None
    if pool.output is None:
        told = f"number {pool.drawn:,} of {pool.rows:,} in the order of drawing"
        others = f"{many(pool.given_negatives, 'given negative')}, {many(pool.other_positives, 'further positive')}"
        yield Line("pool", "", f"{told}; {others}")
        return
    yield Line("pool", "", f"one of {pool.rows:,} examples")
    more = f" (of {many(len(pool.references), 'reference')} the first)" if len(pool.references) > 1 else ""
    yield Line("output", "", pool.output + more)
    if story.verdict:
        yield Line("judged", "", story.verdict)


def _instructions(story: "Story") -> list[Line]:
    """Return the instructions with the slots that they were made of."""
    row, slots = story.row, story.slots if isinstance(story.slots, dict) else {}
    lines = [Line("sentence", "", story.sentence)] if story.sentence else []
    sides = ("query", "document")
    if row["query_instruction"] == row["document_instruction"] and slots.get(sides[0]) == slots.get(sides[1]):
        sides = ("query",)
    for side in sides:
        name = f"for {'queries' if side == 'query' else 'documents'}" if len(sides) > 1 else "both sides"
        lines.append(Line(name, "", str(row[f"{side}_instruction"])))
        found = slots.get(side)
        said = found.items() if isinstance(found, dict) else ()
        lines += [Line(f"  {slot.replace('_', ' ')}", "", str(text)) for slot, text in said if text]
    return lines


def _mining(story: "Story") -> "Iterator[RenderableType]":
    """Yield how the negatives were chosen, and for Super-NI the positive."""
    choice = story.choice
    if choice is None:
        return
    rules = ", ".join(name if value is True else f"{name} {value}" for name, value in story.rules.items())
    lines = [Line("profile", "", story.profile + (f": {rules}" if rules else ""))]
    if choice.lowest is not None and {"absolute_margin", "relative_margin"} & set(story.rules):
        lines.append(Line("margins", "", f"are taken from {choice.lowest:.3f}, the lowest positive of this query"))
    if choice.known:
        lines.append(Line("passed", "", f"{many(choice.known, 'known positive')} that stood among the nearest"))
    for fate, count in choice.draws.items():
        lines.append(Line("filled up", "", f"{fate} {count:,} of the seeded draws"))
    yield draw(f"mining: {_wanted(story)}", lines)
    for title, judged in (
        ("candidates for the positive", choice.positives),
        ("negatives that the source gives", choice.given),
        ("candidates for negatives, nearest first", choice.candidates),
    ):
        if judged:
            yield _table(title, judged)


def _wanted(story: "Story") -> str:
    """Return how many negatives the rules want for a row of its unit."""
    wanted = story.negatives_wanted
    if not story.given_wanted:
        return f"{many(wanted, 'negative')} wanted"
    few = "there is none" if wanted == 1 else f"they are fewer than {wanted}"
    return f"up to {many(story.given_wanted, 'given negative')} wanted, mined ones where {few}"


def _table(title: str, judged: "list[Judged]") -> "RenderableType":
    """Return the first texts of a list, and every chosen one, with what became of them; of the rest the counts."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, expand=True)
    has_score = any(one.score is not None for one in judged)
    compares = any(one.compared not in (None, one.score) for one in judged)
    for name in ("", *["score"] * has_score, *["compared"] * compares):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("became", no_wrap=True)
    table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for place, one in enumerate(judged):
        if place < _SHOWN or one.fate == "chosen":
            label = f"[{label_of(one.label)}] " if one.label is not None else ""
            cells = [str(place + 1)] + [score_of(one.score)] * has_score + [score_of(one.compared)] * compares
            style = "bold" if one.fate == "chosen" else ""
            table.add_row(*map(Text, (*cells, shown(one.fate), cut(label + one.text, 200))), style=style)
    counts = Counter(one.fate for one in judged)
    told = ", ".join(f"{fate} {count:,}" for fate, count in counts.most_common())
    return Group(Text(f"{title}: {len(judged):,}", style="bold"), table, Text(f"in all: {shown(told)}"))
