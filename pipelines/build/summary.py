"""A build on a screen: at its beginning what is left out, at its end what each source was to give and gave, what is
short of negatives, where the release is, and how to cite it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from medi.errors import MediError
from medi.own import Pairs
from medi.profiles import Rules
from medi.release import open_release
from medi.release.accounting import mining_of, rules_of, searched_in_lists, short_of, shortages, total_of
from medi.report.card import cell
from medi.screen import many, shown
from pipelines.build.contents import Finished
from pipelines.build.progress import Reporter
from pipelines.build.units import SUPER_NI, Plan
from pipelines.presets import Settings

_SHOWN_SKIPPED = 8
_SHOWN_SHORT = 3


def show_left_out(reporter: Reporter, settings: Settings, plan: Plan) -> None:
    """Say what has no file in the raw folder, and which sources are read in another variant than their first."""
    if plan.forbidden:
        reporter.say(f"left out by --licences: {'; '.join(f'{name} ({licence})' for name, licence in plan.forbidden)}")
    if plan.absent:
        reporter.say(f"no file in {settings.raw}, left out: {', '.join(plan.absent)}")
    if plan.absent_tasks:
        named = _few(plan.absent_tasks)
        reporter.say(
            f"{SUPER_NI}: no file in {settings.raw} of {many(len(plan.absent_tasks), 'listed task')}, left out: {named}"
        )
    units = [unit for group in plan.groups for unit in group.units]
    others = [f"{unit.name}={unit.variant}" for unit in units if unit.variant != unit.declared.variants[0].name]
    if settings.raw and others:
        reporter.say(f"variants by the files in {settings.raw}: {', '.join(others)}")


def _few(names: Sequence[str]) -> str:
    """Return the first three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def show_result(
    reporter: Reporter, out: Path, digest: str, units: Sequence[Finished], seconds: dict[str, float]
) -> None:
    """Print the final table and the lines below it to the reporter's console."""
    if reporter.quiet:
        return
    _show_account(reporter, units, seconds)
    _show_shortages(reporter, units)
    for unit, how in searched_in_lists(f.chain.mined.candidates.to_json() for f in units if f.chain):
        reporter.say(f"{unit}: {how}")
    reporter.say(f"content digest {digest}")
    reporter.say(f"cite as: MEDI, rebuilt with medi, content digest {digest[:12]}; Su et al., arXiv 2212.09741")
    reporter.say(f"release: {out}")


@contextmanager
def replacing_aloud(reporter: Reporter, out: Path) -> Iterator[None]:
    """Say which release was in `out` before, where the block puts another one there."""
    before, digest = _standing(out)
    yield
    if before and _standing(out)[1] != digest:
        reporter.say(f"{out}: this took the place of {before}")


def _standing(out: Path) -> tuple[str, str]:
    """Return what to say of the release in a folder, and its digest; "" where there is none that can be read."""
    try:
        manifest = open_release(out).manifest
    except (MediError, OSError):
        return "", ""
    rows, digest = sum(entry["got"] for entry in manifest["tasks"]), manifest["content_digest"]
    return f"a release of {many(rows, 'row')}, content digest {digest}", digest


def refuse_nothing(
    reporter: Reporter, settings: Settings, units: Sequence[Finished], seconds: dict[str, float]
) -> None:
    """Pass where a unit gave a row. Raises MediError, below the table that counts the reasons, where none did."""
    if any(unit.got_rows for unit in units):
        return
    if not reporter.quiet:
        _show_account(reporter, units, seconds)
    dropped = sum((Counter(unit.dropped) for unit in units), Counter[str]())
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in dropped.most_common())
    told = f"no task gave a row, so nothing is released{f' (dropped: {reasons})' if reasons else ''}"
    raise MediError(f"{told}; {_advice(settings, units)}")


def _advice(settings: Settings, units: Sequence[Finished]) -> str:
    """Return what may give rows where none came: of files that were read whole, a larger --scale gives no more."""
    if settings.is_own_alone:
        is_pairs = all(isinstance(unit.unit.own, Pairs) for unit in units)
        return f"mend the file, or {'name other fields of it' if is_pairs else 'what reads it'}"
    has_more = any(int(str(f.facts.get("lines_read", 0))) > int(str(f.facts.get("lines_drawn", 0))) for f in units)
    others = "name more --sources" if settings.sources else "see which files are there"
    return others + (" or a larger --scale" if has_more else "")


def _show_account(reporter: Reporter, units: Sequence[Finished], seconds: dict[str, float]) -> None:
    """Print the final table, what was left out, and what gave no rows."""
    reporter.console.print(result_table(units, seconds))
    skipped = [(f.unit.name, str(f.facts["skipped"])) for f in units if f.facts.get("skipped")]
    for reason, _ in Counter(reason for _, reason in skipped).most_common(_SHOWN_SKIPPED):
        reporter.say(f"left out ({reason}): {_few([name for name, why in skipped if why == reason])}")
    for unit in units:
        if not unit.got_rows and not unit.facts.get("skipped"):
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in unit.dropped.items())
            reporter.say(f"no rows of {unit.unit.name}: {reasons or 'the file has none'}")


def _show_shortages(reporter: Reporter, units: Sequence[Finished]) -> None:
    """Say how many rows are short, and of the tasks with most missing negatives what to change."""
    records = [f.chain.mined.pairs for f in units if f.chain]
    parts = [mining_of(record.unit, record.counts["facts"]) for record in records]
    if not any(part.queries_short for part in parts):
        return
    lines = shortages(parts, rules_of({"mining": records[0].params["rules"]}) or Rules())
    reporter.say(f"before the quotas, {short_of(total_of(parts))}, in {len(lines):,} of {many(len(parts), 'task')}:")
    more = [f"{len(lines) - _SHOWN_SHORT:,} more; `medi inspect DIR --task NAME` tells why"]
    for line in [*lines[:_SHOWN_SHORT], *(more if len(lines) > _SHOWN_SHORT else [])]:
        reporter.console.print(Padding(Text(shown(line)), (0, 0, 0, 2), expand=False))


def result_lines(units: Sequence[Finished], seconds: dict[str, float]) -> list[tuple[str, int, int, str, str]]:
    """Return a line a source: name, planned rows, got rows, dropped rows by reason, seconds."""
    lines = []
    for source in dict.fromkeys(f.unit.source for f in units):
        parts = [f for f in units if f.unit.source == source]
        dropped: Counter[str] = Counter()
        for part in parts:
            dropped.update(part.dropped)
        name = f"{source} ({many(len(parts), 'task')})" if source == SUPER_NI else source
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in dropped.most_common())
        took = f"{seconds[source]:.1f}" if source in seconds else "kept"
        planned, got = sum(p.unit.quota_rows for p in parts), sum(p.got_rows for p in parts)
        lines.append((name, planned, got, reasons, took))
    return lines


def result_table(units: Sequence[Finished], seconds: dict[str, float]) -> Table:
    """Return the final table, made for 80 columns."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_footer=True)
    lines = result_lines(units, seconds)
    table.add_column("source", "all", overflow="fold")
    table.add_column("planned", f"{sum(line[1] for line in lines):,}", justify="right")
    table.add_column("got", f"{sum(line[2] for line in lines):,}", justify="right")
    table.add_column("dropped by reason", "", overflow="fold")
    table.add_column("s", f"{sum(seconds.values()):.1f}", justify="right")
    for name, planned, got, reasons, took in lines:
        # A line each: broken anywhere else, a reason would stand apart from its number.
        table.add_row(name, f"{planned:,}", f"{got:,}", reasons.replace(", ", ",\n"), took)
    return table


def result_markdown(units: Sequence[Finished], seconds: dict[str, float]) -> str:
    """Return the final table as Markdown, for the flow's artifact in Prefect's UI."""
    head = "| source | planned | got | dropped by reason | s |\n|---|---:|---:|---|---:|\n"
    rows = (f"| {cell(n)} | {p:,} | {g:,} | {cell(r)} | {s} |" for n, p, g, r, s in result_lines(units, seconds))
    return head + "\n".join(rows) + "\n"
