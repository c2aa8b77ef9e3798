"""`medi diff A B`: shows what differs between two releases and what explains it, in 80 columns or to a program.

Exit codes as of diff(1): 0 equal, 1 different, 2 anything else, a damaged or absent release among it.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medi.errors import MediError, UsageError
from medi.screen import many, shown
from pipelines.cli.rows import Line, cut, grid, lines_of

if TYPE_CHECKING:
    from rich.console import JustifyMethod, RenderableType
    from rich.table import Table

    from medi.release.diff import Diff, TaskDiff
    from medi.release.diff_causes import Change

# Of longer lists the rest is counted; --all shows it.
_SHOWN = 12
_SHOWN_CHARACTERS = 200
_NONE = "-"
_HEADS = {
    "positive": "positive",
    "negatives": "negatives",
    "scores": "scores",
    "instructions": "instr.",
    "licence": "licence",
    "origin": "origin",
}


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="A release.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another release.")],
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="Rows of this task or source alone, with examples.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show long lists to their end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One object, for a program.")] = False,
) -> None:
    """Show what differs between two releases.

    Params, versions, sources, tasks; rows that were removed, added or changed, and why. Exit code 0 where both hold the
    same rows, 1 where they do not, 2 where one cannot be read.
    """
    found = _compared(a, b, task)
    if as_json:
        print(json.dumps(asdict(found), indent=1))
    else:
        _show(found, task, len(found.tasks) if everything else _SHOWN, everything)
    if not found.equal:
        raise typer.Exit(1)


def _compared(a: Path, b: Path, task: str | None) -> "Diff":
    """Return what differs. Raises UsageError, whose exit code is 2, for whatever keeps it from being known."""
    from medi.release import open_release
    from medi.release.diff import diff as differences

    try:
        return differences(open_release(a), open_release(b), task)
    except MediError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}; nothing was compared") from error


def _show(found: "Diff", task: str | None, most: int, everything: bool) -> None:
    """Print the parts that say something, with a blank line between them."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(_headline(found, task), style="bold")
    limit = 1 << 30 if everything else _SHOWN
    parts = [
        _sides(found),
        _changes(found, limit),
        _why(found, limit),
        _sources(found, limit),
        _names("tasks", found.tasks_removed, found.tasks_added, limit),
        _tasks(found, limit),
        _moves(found),
        _files(found),
        *(map(_examples, found.tasks) if task else ()),
    ]
    for part in filter(None, parts):
        console.print()
        console.print(part)


def _headline(found: "Diff", task: str | None) -> str:
    """Return in one line whether the releases are equal, and how many rows are not."""
    of_task = f" in {shown(task)}" if task else ""
    if not found.equal:
        rows = sum(part.removed + part.added + part.changed_rows for part in found.tasks)
        return f"different{of_task}: {many(rows, 'row')} of {many(len(found.tasks), 'task')}"
    if found.origin_rows:
        return f"equal{of_task}, but for the origin of {many(found.origin_rows, 'row')}"
    return f"equal{of_task}: the same rows" + ("" if found.files else ", and the same bytes in every file but run.json")


def _table(first: str, *others: str, justify: "JustifyMethod" = "left") -> "Table":
    """Return a bare table whose first column may be cut."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(first, overflow="ellipsis")
    for name in others:
        # Numbers keep their room whatever the name takes; of values, a long one is folded.
        table.add_column(name, justify=justify, overflow="fold", no_wrap=justify == "right")
    return table


def _sides(found: "Diff") -> "RenderableType":
    """Return the table of both releases in numbers."""
    table = _table("", "A", "B")
    for name, left, right in (
        ("folder", shown(found.a.folder), shown(found.b.folder)),
        ("content digest", found.a.content_digest[:16], found.b.content_digest[:16]),
        ("rows", f"{found.a.rows:,}", f"{found.b.rows:,}"),
        ("tasks", f"{found.a.tasks:,}", f"{found.b.tasks:,}"),
        ("sources", f"{found.a.sources:,}", f"{found.b.sources:,}"),
    ):
        table.add_row(name, left, right)
    return table


def _changes(found: "Diff", limit: int) -> "RenderableType | None":
    """Return the table of params, stages and versions that differ, or None."""
    named = [("", change) for change in found.params]
    named += [("stage ", change) for change in found.stages] + [("", change) for change in found.run]
    return _changed_values("params, versions", named, limit)


def _changed_values(head: str, named: "list[tuple[str, Change]]", limit: int) -> "RenderableType | None":
    """Return the table of values that differ, or None where there are none."""
    from rich.text import Text

    if not named:
        return None
    table = _table(head, "A", "B")
    for prefix, change in named[:limit]:
        table.add_row(*map(Text, (shown(f"{prefix}{change.what}"), _value(change.a), _value(change.b))))
    if len(named) > limit:
        table.add_row(f"and {len(named) - limit:,} more: --all")
    return table


def _value(value: object) -> str:
    """Return a value in a few characters: of a list or an object how much it holds, of a digest its beginning."""
    if isinstance(value, list | dict):
        return many(len(value), "value")
    if value is None:
        return _NONE
    text = value if isinstance(value, str) else json.dumps(value)
    return cut(text[:12] + "…" if len(text) == 64 and text.isalnum() else text, 60)


def _sources(found: "Diff", limit: int) -> "RenderableType | None":
    """Return which sources are in one release alone, and what else differs of a source; None where nothing does."""
    from rich.console import Group

    named = [(f"{name} ", change) for name, changed in found.sources.items() for change in changed]
    parts = [
        _names("sources", found.sources_removed, found.sources_added, limit),
        _changed_values("of a source", named, limit),
    ]
    return Group(*present) if (present := [part for part in parts if part]) else None


def _names(what: str, only_a: list[str], only_b: list[str], limit: int) -> "RenderableType | None":
    """Return the names that are in one release alone, or None where there are none."""
    lines = []
    for side, names in (("A", only_a), ("B", only_b)):
        if names:
            rest = f", and {len(names) - limit:,} more: --all" if len(names) > limit else ""
            lines.append(Line(f"{what} in {side} alone", "", ", ".join(names[:limit]) + rest))
    return grid(lines, 1 << 20) if lines else None


def _tasks(found: "Diff", limit: int) -> "RenderableType | None":
    """Return the table of tasks whose rows differ, with the columns that have a count."""
    from rich.text import Text

    if not found.tasks:
        return None
    counts = {"removed": [t.removed for t in found.tasks], "added": [t.added for t in found.tasks]}
    counts |= {head: [t.changed[aspect] for t in found.tasks] for aspect, head in _HEADS.items()}
    counts = {head: column for head, column in counts.items() if any(column)}
    table = _table("rows of task", "of A", *counts, justify="right")
    for place, task in enumerate(found.tasks[:limit]):
        cells = [f"{column[place]:,}" if column[place] else _NONE for column in counts.values()]
        table.add_row(*map(Text, (shown(task.task), f"{task.rows_a:,}", *cells)))
    if len(found.tasks) > limit:
        rest = [f"{sum(column[limit:]):,}" for column in counts.values()]
        rows = sum(task.rows_a for task in found.tasks[limit:])
        table.add_row(f"{len(found.tasks) - limit:,} more: --all", f"{rows:,}", *rest)
    if len(found.tasks) > 1:
        total = [f"{sum(column):,}" for column in counts.values()]
        table.add_row("all", f"{sum(task.rows_a for task in found.tasks):,}", *total, style="bold")
    return table


def _moves(found: "Diff") -> "RenderableType | None":
    """Return how far scores moved, and how many rows only changed their task, or None."""
    lines = []
    if move := max((task.score_move for task in found.tasks), default=0.0):
        lines.append(Line("scores", "", f"of equal texts moved by {move:.2g} at most"))
    for source, count in found.moved.items():
        lines.append(Line("moved", "", f"{many(count, 'row')} of {source} to another task of it"))
    return grid(lines) if lines else None


def _why(found: "Diff", limit: int) -> "RenderableType | None":
    """Return what explains the differences, or None where nothing is said."""
    lines = [Line("why", "", sentence) for sentence in found.explanations[:limit]]
    if len(found.explanations) > limit:
        lines.append(Line("", "", f"and {len(found.explanations) - limit:,} more: --all"))
    return grid(lines, 1 << 20) if lines else None


def _files(found: "Diff") -> "RenderableType | None":
    """Return which files of equal releases have other bytes, or None."""
    return grid([Line("other bytes in", "", ", ".join(found.files))]) if found.equal and found.files else None


def _examples(task: "TaskDiff") -> "RenderableType":
    """Return some rows of a task that differ: `-` as in A, `+` as in B."""
    from rich.console import Group

    return Group(*(grid(lines, _SHOWN_CHARACTERS) for lines in _example_lines(task)))


def _example_lines(task: "TaskDiff") -> Iterator[list[Line]]:
    """Yield the lines of each example."""
    for left, right in task.examples:
        one, other = lines_of(left), lines_of(right)
        lines = [Line("row", "", str(left["id"])), Line("query", "", str(left["query"]))]
        lines += [Line(f"- {line.name}", line.note, line.text) for line in one if line not in other]
        yield lines + [Line(f"+ {line.name}", line.note, line.text) for line in other if line not in one]
    for mark, ids, count in (("-", task.removed_ids, task.removed), ("+", task.added_ids, task.added)):
        if ids:
            more = f", and {count - len(ids):,} more" if count > len(ids) else ""
            yield [Line(f"{mark} rows", "", ", ".join(ids) + more)]
