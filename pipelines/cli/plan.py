"""`medi plan`: shows what `medi build` would take with the same options, as tables for 80 columns or as JSON."""

import inspect
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from medi.screen import many, shown
from pipelines.cli.build import build, settings_of

if TYPE_CHECKING:
    from medi.plan.figures import Figure
    from medi.plan.work import Part, Stage
    from pipelines.build.planning import Forecast

_COLUMNS = 80
Device = Annotated[
    str | None,
    typer.Option(metavar="cpu|a100|h100", help="Where the encoder would run.  [default: what this machine has]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="One object, for a program.")]


def _like_build(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `medi build`, whichever these are, before its own."""
    own = [p for p in inspect.signature(command).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    of_build = [p for name, p in inspect.signature(build).parameters.items() if name != "show_params"]
    command.__signature__ = inspect.Signature([*of_build, *own])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*of_build, *own)}
    return command


@_like_build
def plan(device: Device = None, as_json: AsJson = False, **options: object) -> None:
    """Show what a build will take before it runs.

    It takes the options of `medi build` and shows rows, texts, tokens, bytes, memory and time by source and stage, and
    what is already in place. Nothing is built or fetched.
    """
    settings = settings_of(**options)  # type: ignore[arg-type]
    from pipelines.build.planning import plan as look_ahead

    found = look_ahead(settings, device)
    if as_json:
        print(json.dumps(_as_json(found), indent=1))
        return
    console = Console(width=min(Console().width, 100) if Console().is_terminal else _COLUMNS, highlight=False)
    console.print(_sources_table(found))
    console.print()
    console.print(_stages_table(found))
    console.print()
    for line in _closing_lines(found):
        console.print(shown(line), markup=False)


def _sources_table(found: "Forecast") -> Table:
    """Return the table of sources, made for 80 columns."""
    from medi.plan.figures import total

    columns = ("lines", "rows", "texts", "tokens")
    table = Table(box=None, pad_edge=False, header_style="bold", show_footer=True)
    table.add_column("source", "all", overflow="fold")
    for name in columns:
        table.add_column(name, _count(total(getattr(p, name) for p in found.parts)), justify="right")
    table.add_column("download", _size(total(p.download_bytes for p in found.parts)), justify="right")
    table.add_column("in place", justify="right")
    for part in found.parts:
        name = f"{part.source} ({many(part.units, 'task')})" if part.source == "super_ni" else part.source
        figures = [_count(getattr(part, column)) for column in columns]
        table.add_row(shown(name), *figures, _size(part.download_bytes), _in_place(part))
    return table


def _in_place(part: "Part") -> str:
    """Return how far a source is: the last stage that all its units have behind them, or the vectors that are kept."""
    from medi.plan.work import STAGES

    whole = [name for name in STAGES if part.done.count(name) == part.units]
    if "mine" in whole:
        return "all"
    if part.kept_vectors:
        return f"{in_short(part.kept_vectors)} vectors"
    return whole[-1] if whole else "-"


def _stages_table(found: "Forecast") -> Table:
    """Return the table of stages, made for 80 columns."""
    from medi.plan.figures import total

    most = max((stage.memory_bytes for stage in found.stages), key=lambda figure: figure.value)
    table = Table(box=None, pad_edge=False, header_style="bold", show_footer=True)
    table.add_column("stage", "all")
    table.add_column("to do", "")
    table.add_column("memory", _size(most), justify="right")
    table.add_column("disk", _size(total(s.disk_bytes for s in found.stages)), justify="right")
    table.add_column("time", _time(total(s.seconds for s in found.stages)), justify="right")
    for stage in found.stages:
        table.add_row(
            stage.name, _to_do(stage), _size(stage.memory_bytes), _size(stage.disk_bytes), _time(stage.seconds)
        )
    return table


def _to_do(stage: "Stage") -> str:
    """Return of how much a stage has something to do, `-` for nothing."""
    if stage.of == "bytes":
        return _size(stage.amount)
    return f"{_count(stage.amount)} {stage.of}" if stage.amount.value else stage.of or "-"


def _guessed(found: "Forecast") -> str:
    """Return where the speed of the encoder is from, if it is guessed."""
    if found.spec.arithmetic.startswith("cuda"):
        return "a guess for it with nothing else to do"
    return "a guess by how fast this machine multiplies, if it has nothing else to do"


def _closing_lines(found: "Forecast") -> Iterator[str]:
    """Yield what stands below the tables: the machine, what is missing, what the marks mean."""
    from medi.plan import in_words

    spec, rate, (tokens, flops) = found.spec, found.machine.rate, found.encoding
    known = "as earlier builds here had" if rate.is_counted else _guessed(found)
    if flops:
        yield f"embed: {in_short(tokens)} tokens with padding, {in_flop(flops)}"
    yield f"encoder: {spec.name}, {spec.dtype}, {spec.arithmetic}, {found.cores} cores"
    if flops:
        yield f"speed: {in_flop(rate.flops)}/s, {known}"
    yield from found.notes
    if found.short_bytes:
        yield f"the disk is too small: {in_words(found.short_bytes)} more are needed"
    if found.release:
        yield f"in place: {found.release}"
    yield "no mark: exact   ' counted before   ~ guessed"


def in_short(value: float) -> str:
    """Return a number in at most five characters: `691`, `3,873`, `12.3k`, `1.26M`, `473M`."""
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale and value >= 10_000:
            number = value / scale
            return f"{number:.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f}{letter}"
    return f"{value:,.0f}"


def in_flop(operations: float) -> str:
    """Return operations as a person says them: `184 GFLOP`, `8.2 TFLOP`, `366 PFLOP`."""
    scale, letter = next((s for s in ((1e18, "E"), (1e15, "P"), (1e12, "T")) if operations >= s[0]), (1e9, "G"))
    value = operations / scale
    return f"{value:.1f} {letter}FLOP" if value < 9.95 else f"{value:,.0f} {letter}FLOP"


def _count(figure: "Figure") -> str:
    return figure.shown(in_short(figure.value))


def _size(figure: "Figure") -> str:
    from medi.plan import in_words

    return figure.shown(in_words(figure.value)) if figure.value else "-"


def _time(figure: "Figure") -> str:
    return figure.shown(in_time(figure.value)) if figure.value else "-"


def in_time(seconds: float) -> str:
    """Return a time as a person says it: `45 s`, `16 min`, `5.2 h`, `21 days`."""
    for unit, length, least in (("days", 86_400, 3 * 86_400), ("h", 3_600, 5_400), ("min", 60, 90)):
        if seconds >= least:
            value = seconds / length
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def _as_json(found: "Forecast") -> dict[str, object]:
    """Return the plan for a program: every figure as {value, basis}; times in seconds, sizes in bytes."""
    from medi.plan.figures import total

    figures = ("lines", "pool_rows", "rows", "texts", "tokens", "download_bytes")
    (tokens, flops), machine = found.encoding, found.machine
    columns = ("seconds", "memory_bytes", "disk_bytes")
    return {
        "machine": {"arithmetic": found.spec.arithmetic, "cores": found.cores, "flops_of_second": machine.rate.flops,
                    "rate": "counted" if machine.rate.is_counted else "guessed", "pace": round(machine.pace, 2)},
        "encoder": {"name": found.spec.name, "dtype": found.spec.dtype, "parameters": machine.model.parameters,
                    "max_length_tokens": found.spec.max_length_tokens, "padded_tokens": round(tokens), "flops": flops},
        "sources": [
            {"source": p.source, "variant": p.variant, "units": p.units, "kept_vectors": p.kept_vectors,
             "in_place": {name: p.done.count(name) for name in dict.fromkeys(p.done)}}
            | {name: getattr(p, name).to_json() for name in figures}
            for p in found.parts
        ],
        "stages": [
            {"stage": s.name, "units": s.units, "in_place": s.in_place, "of": s.of, "amount": s.amount.to_json()}
            | {name: getattr(s, name).to_json() for name in columns}
            for s in found.stages
        ],
        "total": {"seconds": total(s.seconds for s in found.stages).to_json(),
                  "disk_bytes": total(s.disk_bytes for s in found.stages).to_json()},
        "release": None if found.release is None else str(found.release),
        "notes": found.notes,
    }  # fmt: skip
