"""`medi plan`: settings -> what their build would take, and what of it is in place. Builds, fetches and asks nobody.

It looks into the store with the steps of the build itself, so that what it finds is what the build will find.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medi import fetch
from medi.encoder import EncoderSpec, arithmetic_of, read_settings, slowness_of
from medi.errors import MediError, UsageError
from medi.fetch.local import is_remembered
from medi.fixed_shapes import GPU_SHAPES, SHAPES, shapes_for
from medi.plan.counted import chunk_work
from medi.plan.disk import free_bytes, in_words
from medi.plan.lengths import counter_of
from medi.plan.model import KNOWN, UNKNOWN, Model, model_of
from medi.plan.rates import DEVICES, Rate, counted_rate, pace, search_rate, table_rate
from medi.plan.work import Machine, Part, Stage, encoding, merged, stages
from medi.release import open_release
from medi.screen import many
from medi.source import Source
from pipelines.build.context import Context, prepare
from pipelines.build.failures import failure_of
from pipelines.build.fetching import located
from pipelines.build.forecast import declared_part, unit_part
from pipelines.build.keep import EVERYTHING, Missing
from pipelines.build.steps import finish
from pipelines.build.units import SUPER_NI, Group, Unit, plan_groups, task_units, unit_of
from pipelines.presets import Settings, usable_cores

# A file that no build has read is read for its digest only where those of its source are smaller than this.
_READ_BYTES = 256 << 20


@dataclass(frozen=True)
class Forecast:
    """The sources, the stages, the machine, and what a person should know of how this was reckoned.

    `encoding`: the tokens still to encode, padding included, and their operations. `release` is the folder of the
    finished release, None where it is still to be written. `short_bytes` is what the workspace's disk lacks.
    """

    parts: list[Part]
    stages: list[Stage]
    machine: Machine
    spec: EncoderSpec
    encoding: tuple[float, float]
    notes: list[str]
    release: Path | None
    cores: int
    short_bytes: float


def plan(settings: Settings, device: str | None = None) -> Forecast:
    """Return what a build with these settings would take, on this machine or a `device` (cpu, a100, h100).

    Raises:
        UsageError: the call of the build would be wrong, or there is no such device.
        MediError: nothing that it names is there.
    """
    if device not in (None, "cpu", *DEVICES):
        raise UsageError(f"--device {device}: give cpu, {' or '.join(DEVICES)}, or leave it out for this machine")
    notes: list[str] = []
    context, model = _context(settings, device, notes)
    groups = _groups(context, notes)
    parts = [part for group in groups for part in _parts(context, model, group)]
    by_source = [[p for p in parts if p.source == name] for name in dict.fromkeys(p.source for p in parts)]
    sources = [merged(of_source) for of_source in by_source]
    whole = all(part.done.count("mine") == part.units for part in sources)
    release = _release_in_place(context, groups) if whole else None
    if release:
        sources = [replace(part, left=replace(part.left, release_rows=0.0)) for part in sources]
    notes += _limits(settings, context.spec)
    is_encoding = any(part.left.texts.value for part in sources)
    machine = _machine(context, model, is_encoding, device)
    tokens, flops = encoding(sources, machine)
    found = stages(sources, machine)
    short = sum(stage.disk_bytes.value for stage in found) - free_bytes(context.workspace)
    return Forecast(
        sources, found, machine, context.spec, (tokens, flops), notes, release, usable_cores(), max(short, 0.0)
    )


def _limits(settings: Settings, spec: EncoderSpec) -> Iterator[str]:
    """Yield what of a build this plan does not hold, and what makes it slow."""
    if slowness := slowness_of(spec.dtype, spec.arithmetic):
        yield slowness
    if settings.ivf_from is not None:
        yield f"--ivf-from {settings.ivf_from}: this plan is that of a search of all documents"
    if settings.rescore is not None:
        yield f"--rescore {settings.rescore}: the time of a cross-encoder is not in this plan"


def _context(settings: Settings, device: str | None, notes: list[str]) -> tuple[Context, Model]:
    """Return the context of the build without asking anybody, and the shape of its encoder: guessed where it is not
    here.
    """
    offline = replace(settings, offline=True, rescore=None)
    known, longest = KNOWN.get(settings.encoder, UNKNOWN)
    try:
        context = prepare(offline)
        known = model_of(read_settings(context.encoder_files.folder / "config.json")) or known
    except UsageError:
        raise
    except MediError:
        if "/" not in settings.encoder or Path(settings.encoder).exists():
            raise
        if settings.encoder not in KNOWN:
            notes.append(f"{settings.encoder} is not here yet: taken to be as large as BERT base")
        spec = EncoderSpec(settings.encoder, "", settings.dtype, longest, (), arithmetic_of(settings.dtype))
        files = fetch.EncoderFiles(settings.encoder, Path(), "", missing_bytes=known.weight_bytes)
        context = Context(offline, spec, files)
    return replace(context, spec=_on_device(context.spec, device)), known


def _on_device(spec: EncoderSpec, device: str | None) -> EncoderSpec:
    """Return the encoder as it would be on that device: its vectors are others than those of another arithmetic."""
    if device == "cpu":
        arithmetic = arithmetic_of(spec.dtype, with_gpu=False)
    else:
        arithmetic = DEVICES[device] if device else spec.arithmetic
    shapes = GPU_SHAPES if arithmetic.startswith("cuda") else SHAPES
    return replace(spec, arithmetic=arithmetic, shapes=shapes_for(spec.max_length_tokens, shapes))


def _groups(context: Context, notes: list[str]) -> list[Group]:
    """Return the groups of the build: with units where their files are here, else bare.

    Large files that no build has read are not read for their digests: what of them is in place is not found.
    Raises MediError where no file can be read.
    """
    settings = context.settings
    here = {source.name: _here(settings, source) for source in settings.every_source}
    wanted = [name for name in here if not settings.sources or name in settings.sources]
    large = {name: found for name in wanted if (found := here[name]) and _unread_bytes(context, found) > _READ_BYTES}
    groups = [Group(name, name, _undigested(context, name, found)) for name, found in large.items()]
    for name, found in large.items():
        size = in_words(_unread_bytes(context, found))
        notes.append(f"{name}: {size} that no build has read here; what of it is in place is not known")
    others = [n for n in wanted if n not in large and (here[n] or n in settings.sources or settings.spec(n))]
    if large:
        settings = replace(settings, sources=tuple(others))
    if large and not others:
        return groups
    planned = plan_groups(replace(context, settings=settings))
    if planned.failed and not (planned.groups or groups):
        raise failure_of(planned.failed)
    if absent := [n for n in wanted if n in planned.absent or (n not in large and n not in others and large)]:
        notes.append(f"no file in {settings.raw}: {', '.join(absent)}")
    if planned.absent_tasks:
        notes.append(f"no file in {settings.raw} of {many(len(planned.absent_tasks), 'listed Super-NI task')}")
    notes += [f"cannot be read: {line}" for line in planned.failed]
    return [*(located(context, group) for group in planned.groups), *groups]


def _here(settings: Settings, source: Source) -> fetch.Found | None:
    """Return the files of a source in the raw folder, None where there are none or they cannot be looked at."""
    try:
        variant = settings.variants.get(source.name)
        return None if settings.raw is None else fetch.find_raw(settings.raw, source, variant)
    except MediError:
        return None


def _unread_bytes(context: Context, found: fetch.Found) -> int:
    """Return the bytes of the files whose digest is not known without reading them."""
    files = (*found.files, *found.pages)
    return sum(f.size_bytes for f in files if not is_remembered(f.path, context.manners.memo))


def _undigested(context: Context, name: str, found: fetch.Found) -> tuple[Unit, ...]:
    """Return the units of files without digests."""
    if name != SUPER_NI:
        return (unit_of(context, context.settings.source(name), found),)
    return task_units(context, found.files)


def _parts(context: Context, model: Model, group: Group) -> Sequence[Part]:
    """Return what is known of each unit of a group; of a bare one, what its sources declare."""
    if group.units:
        count = counter_of(context.encoder_files.folder)
        return [unit_part(context, unit, model.width, count) for unit in group.units]
    return [declared_part(context, group, model.width)]


def _machine(context: Context, model: Model, is_encoding: bool, device: str | None) -> Machine:
    """Return what the build will run on: of another machine than this one nothing but its device is known."""
    here = 1.0 if device in DEVICES else pace(usable_cores())
    # FAISS for the CPU is the one that medi installs, also beside a GPU.
    search_flops = search_rate(arithmetic_of("bfloat16", with_gpu=False), usable_cores()) / here
    missing_bytes = context.encoder_files.missing_bytes or 0.0
    rate = _rate(context, model, is_encoding, here)
    return Machine(rate, model, context.spec.shapes, missing_bytes, context.settings.runner, search_flops, here)


def _rate(context: Context, model: Model, is_encoding: bool, here: float) -> Rate:
    """Return the encoder's rate: as counted in this workspace, else by the tables, as where nothing is encoded."""
    spec = context.spec
    table = table_rate(spec.arithmetic, spec.dtype, model.width, usable_cores())
    if not spec.arithmetic.startswith("cuda"):
        table = Rate(table.flops / here)
    if not is_encoding:
        return table
    return counted_rate(chunk_work(context.store.root, context.vectors.root, model, spec), table)


def _release_in_place(context: Context, groups: Sequence[Group]) -> Path | None:
    """Return the release's folder where it is made of just the artifacts that the build would publish."""
    out = context.settings.out
    try:
        units = [unit for group in groups for unit in group.units]
        chains = {unit.name: finish(context, unit, look=EVERYTHING) for unit in units}
        keys = {record.key for chain in chains.values() if chain for record in chain.records()}
        written = {str(record["key"]) for record in open_release(out).manifest["records"]}
    except (Missing, MediError):
        return None
    return out if keys and keys <= written and all(group.units for group in groups) else None
