"""Groups whose files are at a place -> groups whose files are here, and what that will cost, told before it happens.

With `--take first` only the beginning of each file is read: it grows by a fixed schedule until enough good rows stand,
so the result depends on the files alone, not on what was fetched before.
"""

from collections.abc import Sequence
from dataclasses import replace

from rich.table import Table

from medi import fetch
from medi.errors import MediError
from medi.fetch import Found
from medi.ingest import pool_rows
from medi.plan import Estimate, check_disk, estimate, in_words
from medi.sample import quota_of
from medi.source import Source, Variant
from medi.sources import by_name
from pipelines.build.context import Context
from pipelines.build.progress import Reporter
from pipelines.build.steps import Missing, ingest_step
from pipelines.build.units import SUPER_NI, TASK_QUOTA_ROWS, Group, Unit, task_units, unit_of

_FIRST_BYTES = 4 << 20
# The task files of Super-NI are 3.2 GB for 1,616 tasks.
_TASK_BYTES = 2_000_000


def located(context: Context, group: Group) -> Group:
    """Return the group with its files where an earlier build left all of them here, else as it is. Fetches nothing."""
    try:
        return obtain(replace(context, settings=replace(context.settings, offline=True)), group, look=True)
    except (MediError, Missing):
        return group


def obtain(context: Context, group: Group, look: bool = False) -> Group:
    """Return the group with its files here, downloaded where they are not.

    Raises:
        MediError: a file cannot be had; the message says what to fetch and where to put it.
        Missing: with `look`, where it is not known yet how much of a file is wanted.
    """
    if group.units:
        return group
    if group.task_names:
        return replace(group, units=task_units(context, fetch.fetch_tasks(group.task_names, context.manners)))
    source = by_name(group.source)
    variant = fetch.choose_variant(source, context.settings.variants.get(group.source), context.manners)
    if context.settings.take == "first":
        return replace(group, units=(_beginnings(context, source, variant, look),))
    return replace(group, units=(unit_of(context, source, fetch.download(source, variant, context.manners)),))


def _beginnings(context: Context, source: Source, variant: Variant, look: bool) -> Unit:
    """Return the unit with the shortest beginnings of its files that hold 1.2 x quota good rows, or the whole files.

    Raises:
        MediError: the variant needs its whole knowledge source.
    """
    if variant.pages:
        raise MediError(
            f"{source.name}: variant {variant.name} needs its whole knowledge source "
            f"({in_words(variant.pages.size_bytes)}); fetch it and give --raw DIR, or build with --take hash"
        )
    remotes = fetch.remote_files(source, variant, context.manners)
    size_bytes = _FIRST_BYTES
    while True:
        files = tuple(fetch.prefix(remote, size_bytes, context.manners) for remote in remotes)
        unit = unit_of(context, source, Found(variant, files))
        wanted_rows = pool_rows(unit.quota_rows)
        if not any(file.prefix for file in files) or ingest_step(context, unit, look).rows >= wanted_rows:
            return unit
        size_bytes *= 2


def show_plan(context: Context, groups: Sequence[Group], reporter: Reporter) -> None:
    """Print rows, download and disk of each source that is still to be fetched.

    Raises:
        MediError: the disk is too small.
    """
    estimates = [_estimate(context, group) for group in groups if not group.units]
    if not estimates:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", show_footer=True)
    known = sum(e.download_bytes or 0 for e in estimates)
    table.add_column("to fetch", "all", overflow="fold")
    table.add_column("variant", overflow="fold")
    table.add_column("rows", f"{sum(e.rows for e in estimates):,}", justify="right")
    table.add_column("download", in_words(known), justify="right")
    table.add_column("disk", in_words(sum(e.disk_bytes for e in estimates)), justify="right")
    for e in estimates:
        table.add_row(e.source, e.variant, f"{e.rows:,}", in_words(e.download_bytes), in_words(e.disk_bytes))
    if not reporter.quiet:
        reporter.console.print(table)
    check_disk(estimates, context.workspace)


def _estimate(context: Context, group: Group) -> Estimate:
    """Return what one group will take."""
    settings = context.settings
    if group.source == SUPER_NI:
        tasks = len(group.task_names)
        rows = tasks * quota_of(TASK_QUOTA_ROWS, settings.scale)
        return Estimate(group.name, "task files", rows, tasks * _TASK_BYTES)
    source = by_name(group.source)
    variant = source.variant(settings.variants[source.name]) if source.name in settings.variants else source.variants[0]
    sizes = {file.pattern: file.size_bytes for file in variant.files}
    if not settings.offline:
        variant = fetch.choose_variant(source, settings.variants.get(source.name), context.manners)
        sizes = fetch.remote_sizes(source, variant, context.manners)
    return estimate(source.name, variant, quota_of(source.quota_rows, settings.scale), sizes, settings.take)
