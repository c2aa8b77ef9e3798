"""Which units a build has and where their raw files are: in a raw folder, or downloaded.

A group is what one Prefect task works on: a source, or some dozens of Super-NI tasks, so that 330 tasks of the data do
not mean 330 tasks of Prefect.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from medi import fetch
from medi.errors import UsageError
from medi.fetch import Found, LocalFile
from medi.sample import quota_of
from medi.source import Source, Variant
from medi.sources import ALL, by_name
from medi.super_ni_choice import choose_tasks
from pipelines.build.context import Context

SUPER_NI = "super_ni"
# Paper 2.3 and Table 5: 180,000 rows of 300 tasks.
TASK_QUOTA_ROWS = 600
_TASKS_IN_GROUP = 25

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Unit:
    """A source or a Super-NI task: where its rows come from and how many it may give."""

    source: str
    name: str
    variant: str
    quota_rows: int
    files: tuple[LocalFile, ...] = ()
    pages: tuple[LocalFile, ...] = ()

    @property
    def declared(self) -> Source:
        """Return the declaration of the unit's source."""
        return by_name(self.source)

    @property
    def origin(self) -> Variant:
        """Return the variant that is read."""
        return self.declared.variant(self.variant)


@dataclass(frozen=True)
class Group:
    """What one task of the flow works on; `units` is empty until the files are here."""

    name: str
    source: str
    units: tuple[Unit, ...] = ()
    task_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The groups of a build, and what has no file in the raw folder: sources, and listed Super-NI tasks."""

    groups: tuple[Group, ...]
    absent: tuple[str, ...] = ()
    absent_tasks: tuple[str, ...] = ()


def plan_groups(context: Context) -> Plan:
    """Return the groups of a build: with units where the files are in a raw folder, bare where they are downloaded.

    Raises:
        UsageError: a source that was named has no file in the raw folder, or no source has any.
    """
    settings = context.settings
    groups: list[Group] = []
    absent: list[str] = []
    absent_tasks: list[str] = []
    for source in ALL:
        if settings.sources and source.name not in settings.sources:
            continue
        if source.name == SUPER_NI:
            found, absent_tasks = _super_ni_groups(context)
        else:
            found = _source_group(context, source)
        groups.extend(found)
        if not found:
            absent.append(source.name)
    named = [name for name in absent if name in settings.sources]
    if named:
        raise UsageError(f"--sources {','.join(named)}: no file in {settings.raw}; {_where(by_name(named[0]))}")
    if not groups:
        raise UsageError(f"--raw {settings.raw}: no source has a file there; `medi sources` lists where they belong")
    return Plan(tuple(groups), tuple(absent), tuple(absent_tasks))


def _where(source: Source) -> str:
    """Return where the first file of a source belongs."""
    files = source.variants[0].files
    return f"put {files[0].pattern} there" if files else "see `medi sources`"


def _source_group(context: Context, source: Source) -> list[Group]:
    """Return the group of an embedding set; none where the raw folder has no file of it."""
    settings = context.settings
    if settings.raw is None:
        return [Group(source.name, source.name)]
    found = fetch.find_raw(settings.raw, source, settings.variants.get(source.name))
    if found is None:
        return []
    unit = unit_of(context, source, fetch.digested(found, context.manners.memo, context.manners.say))
    return [Group(source.name, source.name, (unit,))]


def unit_of(context: Context, source: Source, found: Found) -> Unit:
    """Return the unit of an embedding set with these files."""
    quota_rows = quota_of(source.quota_rows, context.settings.scale)
    return Unit(source.name, source.name, found.variant.name, quota_rows, found.files, found.pages)


def _super_ni_groups(context: Context) -> tuple[list[Group], list[str]]:
    """Return the groups of the chosen Super-NI tasks, in order of their names, and the listed tasks that have no file.

    Groups are bare where their files are downloaded.
    """
    settings = context.settings
    listed = context.instructions.super_ni_tasks
    if settings.raw is None:
        names, _ = choose_tasks(None, settings.super_ni_tasks, listed)
        return _numbered([Group("", SUPER_NI, (), tuple(part)) for part in _parts(names)]), []
    found = fetch.find_raw(settings.raw, by_name(SUPER_NI))
    files = {task_name(file): file for file in found.files} if found else {}
    if not files:
        return [], []
    names, absent = choose_tasks(files, settings.super_ni_tasks, listed)
    if not names:
        raise UsageError(
            f"--super-ni-tasks {settings.super_ni_tasks}: none of these tasks is in {settings.raw}/super_ni/tasks"
        )
    memo = context.manners.memo
    digested = [replace(files[n], sha256=fetch.digest_file(files[n].path, memo)) for n in names]
    return _numbered([Group("", SUPER_NI, task_units(context, part)) for part in _parts(digested)]), absent


def task_units(context: Context, files: Iterable[LocalFile]) -> tuple[Unit, ...]:
    """Return the units of Super-NI task files."""
    quota_rows = quota_of(TASK_QUOTA_ROWS, context.settings.scale)
    variant = by_name(SUPER_NI).variants[0].name
    return tuple(Unit(SUPER_NI, task_name(file), variant, quota_rows, (file,)) for file in files)


def task_name(file: LocalFile) -> str:
    """Return a Super-NI task's name: its file name without `.json`."""
    return file.name.rsplit("/", 1)[-1].removesuffix(".json")


def _parts(items: list[_Item]) -> list[list[_Item]]:
    """Return the items in parts of equal size, none larger than a group may be."""
    count = -(-len(items) // _TASKS_IN_GROUP)
    return [items[i * len(items) // count : (i + 1) * len(items) // count] for i in range(count)]


def _numbered(groups: list[Group]) -> list[Group]:
    """Return the groups with the names `super_ni-1`, `super_ni-2`, ..."""
    return [replace(group, name=f"{SUPER_NI}-{number}") for number, group in enumerate(groups, 1)]
