"""Groups whose files are at a place -> groups whose files are here, and what that will cost, told before it happens.

With `--take first` only the first bytes of a source's files, laid end to end, are read: they grow by a fixed schedule
until enough good rows stand, so the result depends on the files alone, not on what was fetched before.
"""

from collections.abc import Sequence
from dataclasses import replace

from rich.table import Table

from medi import fetch
from medi.errors import MediError
from medi.fetch import Found, LocalFile, NotThere, Remote, Unreachable
from medi.ingest import pool_rows
from medi.plan import Estimate, check_disk, estimate, in_words
from medi.sample import quota_of
from medi.source import Source, Variant
from pipelines.build.context import Context
from pipelines.build.failures import failure_of, one_line
from pipelines.build.keep import EVERYTHING, NOTHING, Missing
from pipelines.build.progress import Reporter
from pipelines.build.steps import ingest_step
from pipelines.build.units import SUPER_NI, TASK_QUOTA_ROWS, Group, Plan, Unit, task_units, unit_of

# The task files of Super-NI are 3.2 GB for 1,616 tasks.
TASK_BYTES = 2_000_000
# An encoder whose size the Hub does not tell: Sentence-T5 large has 670 MB.
_ENCODER_BYTES = 1_000_000_000


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
    source = context.settings.source(group.source)
    variant, _ = fetch.choose_variant(source, context.settings.variants.get(group.source), context.manners)
    with fetch.by_hand(source, variant):
        if context.settings.take == "first":
            return replace(group, units=(_beginnings(context, source, variant, look),))
        return replace(group, units=(unit_of(context, source, fetch.download(source, variant, context.manners)),))


def _beginnings(context: Context, source: Source, variant: Variant, look: bool) -> Unit:
    """Return the unit with as few first bytes of its files as hold 1.2 x quota good rows, or the whole files.

    Raises:
        MediError: the variant needs its whole knowledge source.
    """
    if variant.pages:
        raise MediError(
            f"{source.name}: variant {variant.name} needs its whole knowledge source "
            f"({in_words(variant.pages.size_bytes)}); fetch it and give --raw DIR, or build with --take hash"
        )
    remotes = fetch.remote_files(source, variant, context.manners)
    size_bytes = fetch.prefix_bytes(0)
    while True:
        files = _first_bytes(remotes, size_bytes, context.manners)
        unit = unit_of(context, source, Found(variant, files))
        is_all = len(files) == len(remotes) and not files[-1].prefix
        if is_all or ingest_step(context, unit, EVERYTHING if look else NOTHING).rows >= pool_rows(unit.quota_rows):
            return unit
        size_bytes *= 2


def _first_bytes(remotes: Sequence[Remote], size_bytes: int, manners: fetch.Settings) -> tuple[LocalFile, ...]:
    """Return the files that hold the first bytes of all, laid end to end: whole ones, and the beginning of the last."""
    files: list[LocalFile] = []
    for remote in remotes:
        if size_bytes > 0:
            files.append(fetch.prefix(remote, size_bytes, manners))
            size_bytes -= files[-1].size_bytes
    return tuple(files)


def show_plan(context: Context, plan: Plan, reporter: Reporter) -> None:
    """Print rows, download and disk of the encoder and of each source that is still to be fetched.

    A source that cannot be had is named with the reason; the others are planned, and will be built.

    Raises:
        MediError: a disk is too small, or nothing of the build can be had.
    """
    estimates: list[Estimate] = []
    if context.encoder_files.missing_bytes != 0:
        estimates.append(_encoder_estimate(context))
    lost: list[str] = []
    to_fetch = _to_fetch(plan.groups)
    for name, task_names in to_fetch.items():
        try:
            if context.settings.offline:
                _check_here(context, Group(name, name, task_names=tuple(task_names)))
            else:
                estimates.append(_estimate(context, name, task_names, reporter))
        except (NotThere, Unreachable) as error:
            lost.append(one_line(name, error))
    if len(lost) == len(to_fetch) and not any(group.units for group in plan.groups):
        raise failure_of([*plan.failed, *lost])
    for line in lost:
        reporter.say(f"cannot be had: {line}")
    if estimates and not reporter.quiet:
        reporter.console.print(_table(estimates))
    check_disk(estimates, context.workspace, context.settings.out)


def _check_here(context: Context, group: Group) -> None:
    """Pass where a build without a network may find all files of a group. Raises NotThere where it lacks one."""
    try:
        obtain(context, group, look=True)
    except Missing:
        pass  # the files are here; how much of them is wanted is found out later
    except MediError as error:
        raise NotThere(str(error)) from error


def _to_fetch(groups: Sequence[Group]) -> dict[str, list[str]]:
    """Return the sources whose files are not here, with the names of the tasks of all their groups."""
    names: dict[str, list[str]] = {}
    for group in groups:
        if not group.units:
            names.setdefault(group.source, []).extend(group.task_names)
    return names


def _table(estimates: Sequence[Estimate]) -> Table:
    """Return the plan as a table, with sums below."""
    unknown = " + ?" if any(e.download_bytes is None for e in estimates) else ""
    table = Table(box=None, pad_edge=False, header_style="bold", show_footer=True)
    table.add_column("to fetch", "all", overflow="fold")
    table.add_column("variant", overflow="fold")
    table.add_column("rows", f"{sum(e.rows for e in estimates):,}", justify="right")
    table.add_column("download", in_words(sum(e.download_bytes or 0 for e in estimates)) + unknown, justify="right")
    table.add_column("disk", in_words(sum(e.disk_bytes for e in estimates)), justify="right")
    for e in estimates:
        table.add_row(e.source, e.variant, f"{e.rows:,}", in_words(e.download_bytes), in_words(e.disk_bytes))
    return table


def _encoder_estimate(context: Context) -> Estimate:
    """Return what the encoder's files will take."""
    missing_bytes = context.encoder_files.missing_bytes
    return Estimate("encoder", context.spec.name, 0, missing_bytes, guessed_bytes=_ENCODER_BYTES)


def _estimate(context: Context, name: str, task_names: Sequence[str], reporter: Reporter) -> Estimate:
    """Return what a source will take, and say why a variant is not the first one.

    Raises:
        NotThere: no place has it.
        Unreachable: its place cannot be asked.
    """
    settings = context.settings
    # A plan must not wait long for a network; the fetch will.
    hasty = replace(context.manners, attempts=1, longest_wait_seconds=2.0)
    if name == SUPER_NI:
        fetch.reach_tasks(hasty)
        rows = len(task_names) * quota_of(TASK_QUOTA_ROWS, settings.scale)
        return Estimate(name, "task files", rows, len(task_names) * TASK_BYTES)
    source = settings.source(name)
    named = settings.variants.get(name)
    try:
        variant, refusals = fetch.choose_variant(source, named, hasty)
    except (NotThere, Unreachable):
        raise
    except MediError:
        variant, refusals = (source.variant(named) if named else next(v for v in source.variants if v.place)), []
    if refusals:
        reporter.say(f"{name}: variant {variant.name} is taken; {'; '.join(refusals)}")
    sizes = fetch.remote_sizes(source, variant, hasty)
    return estimate(name, variant, quota_of(source.quota_rows, settings.scale), sizes, settings.take)
