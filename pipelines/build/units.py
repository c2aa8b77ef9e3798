"""Which units a build has and where their raw files are: in a raw folder, or downloaded.

A group is what one Prefect task works on: a source, or some dozens of Super-NI tasks, so that 330 tasks of the data do
not mean 330 tasks of Prefect.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from medi import fetch
from medi.errors import MediError, UsageError
from medi.fetch import Found, LocalFile
from medi.own import Own, Spec, load
from medi.sample import quota_of
from medi.source import Source, Variant
from medi.sources import by_name
from medi.super_ni_choice import choose_tasks
from pipelines.build.context import Context
from pipelines.build.failures import one_line

SUPER_NI = "super_ni"
# Paper 2.3 and Table 5: 180,000 rows of 300 tasks.
TASK_QUOTA_ROWS = 600
_TASKS_IN_GROUP = 25

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Unit:
    """A source or a Super-NI task: where its rows come from and how many it may give; `own` is that of a person."""

    source: str
    name: str
    variant: str
    quota_rows: int
    files: tuple[LocalFile, ...] = ()
    pages: tuple[LocalFile, ...] = ()
    own: Spec | None = None

    @property
    def declared(self) -> Source:
        """Return the declaration of the unit's source."""
        return by_name(self.source) if self.own is None else load(self.own).source

    @property
    def declared_by(self) -> dict[str, object]:
        """Return what decides the rows of a person's own source, whatever its file is called; of others nothing."""
        if self.own is None:
            return {}
        told = load(self.own).declared
        return {"declared": {name: value for name, value in told.items() if name not in ("file", "pairs")}}

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
    """The groups of a build, and what has no file in the raw folder: sources, and listed Super-NI tasks.

    `failed` has a line for each source or task whose file is there and cannot be read, `forbidden` the name and the
    licence of each source that --licences keeps out.
    """

    groups: tuple[Group, ...]
    absent: tuple[str, ...] = ()
    absent_tasks: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()


def plan_groups(context: Context) -> Plan:
    """Return the groups of a build: with units where the files are in a raw folder, bare where they are downloaded.

    Raises:
        UsageError: a source that was named has no file in the raw folder, or no source has any.
    """
    settings = context.settings
    named = [source for source in settings.every_source if not settings.sources or source.name in settings.sources]
    wanted = [source for source in named if settings.may_have(source)]
    parts = {source.name: _part(context, source) for source in wanted}
    groups = tuple(group for part in parts.values() for group in part.groups)
    failed = tuple(line for part in parts.values() for line in part.failed)
    absent = tuple(name for name, part in parts.items() if not part.groups and not part.failed)
    missed = [name for name in absent if name in settings.sources]
    if missed:
        raise UsageError(f"--sources {','.join(missed)}: no file in {settings.raw}; {_where(by_name(missed[0]))}")
    if not groups and not failed:
        raise UsageError(f"--raw {settings.raw}: no source has a file there; `medi sources` lists where they belong")
    absent_tasks = parts[SUPER_NI].absent_tasks if SUPER_NI in parts else ()
    forbidden = tuple((source.name, source.licence) for source in named if source not in wanted)
    return Plan(groups, absent, absent_tasks, failed, forbidden)


def _where(source: Source) -> str:
    """Return where the first file of a source belongs."""
    files = source.variants[0].files
    return f"put {files[0].pattern} there" if files else "see `medi sources`"


def _part(context: Context, source: Source) -> Plan:
    """Return what a source adds to the plan; where its files cannot be read, the others go on without it."""
    try:
        return _super_ni_part(context) if source.name == SUPER_NI else _source_part(context, source)
    except UsageError:
        raise
    except MediError as error:
        return Plan((), failed=(one_line(source.name, error),))


def _source_part(context: Context, source: Source) -> Plan:
    """Return the group of an embedding set; none where the raw folder has no file of it."""
    settings = context.settings
    spec = settings.spec(source.name)
    if settings.raw is None and spec is None:
        return Plan((Group(source.name, source.name),))
    folders = [folder for folder in (spec and load(spec).folder, settings.raw) if folder]
    found = next(filter(None, (fetch.find_raw(f, source, settings.variants.get(source.name)) for f in folders)), None)
    if found is None and spec is not None:
        return _own_part(source, load(spec), folders)
    if found is None:
        return Plan(())
    unit = unit_of(context, source, fetch.digested(found, context.manners.memo, context.manners.say))
    return Plan((Group(source.name, source.name, (unit,)),))


def _own_part(source: Source, own: Own, folders: Iterable[Path]) -> Plan:
    """Return the bare group of a person's own source. Raises UsageError where there is no place to fetch it from."""
    if any(variant.place for variant in source.variants):
        return Plan((Group(source.name, source.name),))
    patterns = " or ".join(file.pattern for variant in source.variants for file in variant.files[:1])
    raise UsageError(f"{own.what}: no file {patterns} in {' or in '.join(map(str, folders))}; put it there")


def unit_of(context: Context, source: Source, found: Found) -> Unit:
    """Return the unit of an embedding set with these files."""
    quota_rows, own = quota_of(source.quota_rows, context.settings.scale), context.settings.spec(source.name)
    return Unit(source.name, source.name, found.variant.name, quota_rows, found.files, found.pages, own)


def _super_ni_part(context: Context) -> Plan:
    """Return the groups of the chosen Super-NI tasks, in order of their names, and the listed tasks that have no file.

    Groups are bare where their files are downloaded.
    """
    settings = context.settings
    listed = context.instructions.super_ni_tasks
    if settings.raw is None:
        names, _ = choose_tasks(None, settings.super_ni_tasks, listed)
        return Plan(_numbered([Group("", SUPER_NI, (), tuple(part)) for part in _parts(names)]))
    found = fetch.find_raw(settings.raw, by_name(SUPER_NI))
    files = {task_name(file): file for file in found.files} if found else {}
    if not files:
        return Plan(())
    names, absent = choose_tasks(files, settings.super_ni_tasks, listed)
    if not names:
        raise UsageError(
            f"--super-ni-tasks {settings.super_ni_tasks}: none of these tasks is in {settings.raw}/super_ni/tasks"
        )
    readable: list[LocalFile] = []
    failed: list[str] = []
    for name in names:
        try:
            readable.append(replace(files[name], sha256=fetch.digest_file(files[name].path, context.manners.memo)))
        except MediError as error:
            failed.append(one_line(name, error))
    groups = [Group("", SUPER_NI, task_units(context, part)) for part in _parts(readable)]
    return Plan(_numbered(groups), absent_tasks=tuple(absent), failed=tuple(failed))


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


def _numbered(groups: list[Group]) -> tuple[Group, ...]:
    """Return the groups with the names `super_ni-1`, `super_ni-2`, ..."""
    return tuple(replace(group, name=f"{SUPER_NI}-{number}") for number, group in enumerate(groups, 1))
