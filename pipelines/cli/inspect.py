"""`medi inspect DIR`: shows a release (tasks, lengths, scores, rows) to a person in 80 columns, or to a program."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medi.errors import UsageError
from medi.report.words import percent
from medi.screen import many, shown
from pipelines.cli.rows import draw, lines_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from medi.release.accounting import Mining
    from medi.release.inspect import Spread, Summary, TaskSummary

OwnFiles = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="With --why: the Python file of a source of your own.")
]
_SHOWN_ROWS = 3
_QUANTILES = ("least", "5%", "25%", "50%", "75%", "95%", "most")


def inspect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release.")],
    task: Annotated[str | None, typer.Option(metavar="NAME", help="Only this task, or all tasks of a source.")] = None,
    n: Annotated[int | None, typer.Option(min=0, metavar="N", help="Random rows to show.  [default: 3]")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Which random rows.  [default: 0]")] = None,
    why: Annotated[str | None, typer.Option(metavar="ID", help="The whole story of this row.")] = None,
    raw: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --why: the raw files.  [default: those of the build]")
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --why: the artifacts.  [default: those of the build]")
    ] = None,
    source: OwnFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object, for a program.")] = False,
) -> None:
    """Show what is in a release.

    Tasks, rows, lengths, scores, how negatives were mined, and random rows. With --why one row: its raw record, what
    cleaning did, its candidates and which rule dropped which, its instruction's slots, its shard.
    """
    _check_together(why, {"--task": task, "--n": n, "--seed": seed}, (raw, workspace, *(source or ())))
    if why is not None:
        from pipelines.cli.why import tell

        return tell(folder, why, (raw, workspace), source or [], as_json)
    from medi.release import open_release
    from medi.release.inspect import QUANTILES, random_rows, summarise

    release = open_release(folder)
    summary = summarise(release, task)
    rows = random_rows(release, _SHOWN_ROWS if n is None else n, seed or 0, task)
    if as_json:
        print(json.dumps(asdict(summary) | {"quantiles": QUANTILES, "sample": rows}, indent=1))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    silent = sum(not task.rows for task in summary.tasks)
    told = many(len(summary.tasks) - silent, "task") + (f", none of {silent:,} more" if silent else "")
    console.print(f"{many(summary.rows, 'row')} of {told}")
    console.print(f"content digest {shown(summary.content_digest)}", soft_wrap=True)
    for part in (_tasks(summary.tasks), _spreads(summary), _mining(summary, task is None), *map(_row, rows)):
        console.print()
        console.print(part)


def _check_together(why: str | None, others: Mapping[str, object], places: tuple[Path | None, ...]) -> None:
    """Raise UsageError for options that say nothing together."""
    other = next((f"{option} {value}" for option, value in others.items() if value is not None), "")
    if why is not None and other:
        what = "a task" if other.startswith("--task") else "random rows"
        raise UsageError(f"--why {why} and {other}: the one shows a row, the other {what}; give one of them")
    options = ("--raw", "--workspace", *["--source"] * (len(places) - 2))
    for option, place in zip(options, places, strict=True):
        if why is None and place is not None:
            raise UsageError(f"{option} {place}: says where --why finds what a release does not hold; give --why ID")


def _row(row: dict[str, object]) -> "RenderableType":
    """Return one row under its id."""
    return draw(str(row["id"]), lines_of(row))


def _tasks(tasks: "list[TaskSummary]") -> "RenderableType":
    """Return the table of tasks: rows, negatives a row, and the shares of the origins that occur."""
    from rich.table import Table
    from rich.text import Text

    origins = sorted({origin for task in tasks for origin in task.origins})
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    # The only column that may shrink: names of Super-NI tasks are longer than a line has room for.
    table.add_column("task", overflow="ellipsis")
    table.add_column("kind", no_wrap=True)
    for name in ("rows", "neg/row", *map(shown, origins)):
        table.add_column(name, justify="right", no_wrap=True)
    for task in tasks:
        shares = [_share(task.origins.get(origin, 0), task.negatives) for origin in origins]
        each = f"{task.negatives / task.rows:.2f}" if task.rows else "-"
        table.add_row(*map(Text, (shown(task.task), shown(task.kind), f"{task.rows:,}", each, *shares)))
    return table


def _share(part: int, whole: int) -> str:
    return percent(part, whole) if part else "-"


def _spreads(summary: "Summary") -> "RenderableType":
    """Return the table of quantiles: text lengths in characters, and scores by kind."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("spread", no_wrap=True)
    for name in ("values", *_QUANTILES):
        table.add_column(name, justify="right", no_wrap=True)
    for spread in summary.spreads:
        table.add_row(spread.measure.replace("_", " "), f"{spread.count:,}", *_numbers(spread))
    return table


def _numbers(spread: "Spread") -> list[str]:
    form = "{:.2f}" if spread.measure.endswith("_score") else "{:.0f}"
    return [form.format(value) for value in spread.quantiles]


def _mining(summary: "Summary", is_whole: bool) -> "RenderableType":
    """Return how negatives were chosen and what became of the candidates; of the whole release the totals alone."""
    from rich.console import Group
    from rich.text import Text

    from medi.release.accounting import short_of

    mining, choices = summary.mining, [_choice(name, value) for name, value in summary.rules.items()]
    lines = [] if is_whole else [f"{task.task}: {task.verdict}" for task in summary.tasks if task.verdict]
    lines += [f"mining in the whole pool of {_units(mining)}" if mining and mining.units else "mining"]
    lines += [f"profile {summary.profile}" + (f": {', '.join(choices)}" if choices else "")]
    if mining is None or not mining.units:
        lines += ["no account: " + ("built by an earlier version of medi" if mining is None else "nothing was mined")]
        return Group(*map(Text, map(shown, lines)))
    short = summary.shortages
    if is_whole and short:
        short = [f"{short_of(mining)}, in {len(short):,} of {_units(mining)}; why: --task NAME"]
    lines += summary.searched
    parts: list[RenderableType] = [*map(Text, map(shown, lines)), _tallies(mining), *map(Text, map(shown, short))]
    return Group(*parts, *(["", _scores(mining)] if mining.positive_scores and not is_whole else []))


def _units(mining: "Mining") -> str:
    return mining.units[0] if len(mining.units) == 1 else f"{len(mining.units):,} tasks"


def _choice(name: str, value: object) -> str:
    return name if value is True else f"{name} {value}"


def _tallies(mining: "Mining") -> "RenderableType":
    """Return the table of what was listed and chosen and why the rest was not."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("negatives", no_wrap=True)
    for name in ("listed", "chosen"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("dropped by rule", overflow="fold")
    whole = sum(mining.negatives.values())
    for name, tally in (("given", mining.given), ("mined", mining.candidates), ("random", mining.draws)):
        if not tally.listed:
            continue
        most_first = sorted(tally.dropped.items(), key=lambda item: (-item[1], item[0]))
        reasons = ", ".join(f"{shown(reason)} {count:,}" for reason, count in most_first)
        share = _share(mining.negatives.get(name, 0), whole)
        table.add_row(*map(Text, (name, f"{tally.listed:,}", f"{tally.chosen:,}", share, reasons)))
    return table


def _scores(mining: "Mining") -> "RenderableType":
    """Return the table of quantiles of the pool's scores."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("score", no_wrap=True)
    for name in _QUANTILES:
        table.add_column(name, justify="right", no_wrap=True)
    for name, scores in (("positive", mining.positive_scores), ("negative", mining.negative_scores)):
        table.add_row(name, *(f"{score:.2f}" for score in scores))
    return table
