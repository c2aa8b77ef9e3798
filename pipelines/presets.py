"""Turns what a person asks for into one checked Settings: a preset, then every option that was given on top of it.

Every option of `medi build` is checked here and nowhere else; a UsageError names the option and the value.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path

from medi.encoder_names import MINILM, SENTENCE_T5
from medi.errors import UsageError
from medi.licences import allow_list, is_allowed
from medi.own import Spec, load, united
from medi.profiles import PROFILES, Rules, check_rules
from medi.source import Source, named
from medi.sources import ALL

_CHOICES = {
    "profile": tuple(PROFILES),
    "take": ("hash", "first"),
    "dtype": ("float32", "bfloat16"),
    "runner": ("threads", "dask", "ray", "none"),
}
# Options that are fields of Rules by the same name.
MINING = (
    "negatives", "given_negatives", "given_looked_at", "strategy", "skip_top", "window", "min_score", "max_score",
    "absolute_margin", "relative_margin", "sampling", "fill", "rescore", "ivf_from",
)  # fmt: skip
_UNITS_BYTES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LEAST_MEMORY_BYTES = 256 << 20
_MOST_SCALE = 1_000_000
_MOST_WORKERS = 4_096
# More digits are a slip, and Python refuses to read some thousands of them.
_MOST_DIGITS = 18


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """Everything a build is asked for. Where, how fast and how loud (from `out` on) never changes what is built.

    Mining options are None for what the profile says. `raw` is None where files are downloaded; `sources` is empty for
    all; `max_bad_rows` is a number of rows (`12`) or a share of a source's drawn lines (`0.5%`); `memory_bytes` is None
    for what the machine offers.
    """

    preset: str = "sample"
    profile: str = "paper"
    negatives: int | None = None
    given_negatives: int | None = None
    given_looked_at: int | None = None
    strategy: str | None = None
    skip_top: int | None = None
    window: int | None = None
    min_score: float | None = None
    max_score: float | None = None
    absolute_margin: float | None = None
    relative_margin: float | None = None
    sampling: str | None = None
    fill: str | None = None
    rescore: str | None = None
    ivf_from: int | None = None
    raw: Path | None = None
    sources: tuple[str, ...] = ()
    super_ni_tasks: str = "all"
    variants: Mapping[str, str] = field(default_factory=dict)
    take: str = "hash"
    scale: float = 1.0
    seed: int = 0
    encoder: str = MINILM
    revision: str | None = None
    dtype: str = "float32"
    max_bad_rows: str = "0"
    strict: bool = False
    check_all_lines: bool = False
    out: Path = Path()
    workspace: Path = Path()
    workers: int = field(default_factory=usable_cores)
    runner: str = "threads"
    memory_bytes: int | None = None
    offline: bool = False
    show_params: bool = False
    debug: bool = False
    own: tuple[Spec, ...] = ()
    licences: tuple[str, ...] = ()

    @property
    def every_source(self) -> tuple[Source, ...]:
        """Return all sources that may be named: those of Table 5, then a person's own ones by name."""
        return (*ALL, *(load(spec).source for spec in self.own))

    @property
    def is_own_alone(self) -> bool:
        """Return whether only sources of a person's own are built."""
        return bool(self.sources) and all(self.spec(name) for name in self.sources)

    def may_have(self, source: Source) -> bool:
        """Return whether --licences lets a source in; of Super-NI, each task has its own licence."""
        return not self.licences or source.name == "super_ni" or is_allowed(source.licence, self.licences)

    def source(self, name: str) -> Source:
        """Return the source of that name. Raises UsageError, with the names that come close, where there is none."""
        return named(self.every_source, name)

    def spec(self, name: str) -> Spec | None:
        """Return what names a person's own source, None for any other source."""
        return next((spec for spec in self.own if load(spec).source.name == name), None)

    @property
    def rules(self) -> Rules:
        """Return how negatives are chosen: the profile, and what was asked for on top. A wanted number of negatives is
        also that of given ones; `rescore` has no more than the name here, its files say the rest.
        """
        asked = {name: getattr(self, name) for name in MINING if getattr(self, name) is not None}
        if self.negatives is not None:
            asked = {"given_negatives": self.negatives, "given_looked_at": max(8, 2 * self.negatives)} | asked
        if self.rescore is not None:
            asked["rescore"] = {"name": self.rescore}
        return replace(PROFILES[self.profile], seed=self.seed, **asked)


PRESETS = {
    "sample": Settings(preset="sample", offline=True),
    "lite": Settings(preset="lite", super_ni_tasks="listed", take="first", scale=0.02),
    "full": Settings(preset="full", super_ni_tasks="listed", encoder=SENTENCE_T5),
}


def resolve(preset: str = "sample", **given: object) -> Settings:
    """Return the preset with what was given on top; None means not given.

    Paths, numbers and tuples come as the fields of Settings say; `memory_bytes` also as text (`8G`).

    Raises:
        UsageError: an unknown preset, option, source or variant, or a value that cannot be; the message says which.
    """
    if preset not in PRESETS:
        raise UsageError(f"--preset {preset}: there is no such preset; give one of {', '.join(PRESETS)}")
    unknown = sorted(set(given) - {f.name for f in fields(Settings)})
    if unknown:
        raise UsageError(f"{unknown[0]}: no option of a build has this name; see `medi build --help`")
    if isinstance(given.get("memory_bytes"), str):
        given["memory_bytes"] = memory_bytes(str(given["memory_bytes"]))
    if isinstance(given.get("licences"), str):
        given["licences"] = allow_list(str(given["licences"]))
    asked = {name: value for name, value in given.items() if value is not None}
    if asked.keys() & {"raw", "encoder", "rescore", "own"}:
        # The bundled sample needs no network; files and encoders of a person's own may.
        asked = {"offline": False} | asked
    settings = _with_places(_with_own(replace(PRESETS[preset], **asked)))
    _check_values(settings)
    _check_sources(settings)
    _check_places(settings)
    return settings


def sample_raw_dir() -> Path:
    """Return the folder of the bundled sample, in the layout of `--raw`: inside the wheel, else in the checkout.

    Raises:
        UsageError: neither is there.
    """
    package = Path(str(resources.files("medi")))
    for folder in (package / "_sample", package.parent / "data" / "sample"):
        if folder.is_dir():
            return folder
    raise UsageError(f"{package}: the bundled sample is missing; install medi again, or name your own files with --raw")


def memory_bytes(text: str) -> int:
    """Return bytes for `8000000000`, `8G` or `512M`. Raises UsageError for anything else."""
    number, unit = (text[:-1], _UNITS_BYTES[text[-1:].upper()]) if text[-1:].upper() in _UNITS_BYTES else (text, 1)
    if not number.isascii() or not number.isdigit() or len(number) > _MOST_DIGITS:
        raise UsageError(f"--memory {text}: give bytes, or a number with K, M, G or T, such as 8G")
    return int(number) * unit


def _with_own(settings: Settings) -> Settings:
    """Return the settings with their own sources by name. Nothing of the bundled sample, whose rows are invented, is
    mixed with them unless it is named.
    """
    settings = replace(settings, own=united(settings.own))
    if settings.own and settings.preset == "sample" and settings.raw is None and not settings.sources:
        return replace(settings, sources=tuple(load(spec).source.name for spec in settings.own))
    return settings


def _with_places(settings: Settings) -> Settings:
    """Return the settings with raw folder, workspace and release filled in and absolute."""
    workspace = settings.workspace if settings.workspace != Path() else Path(os.environ.get("MEDI_HOME") or "data")
    name = settings.preset if settings.raw is None else f"raw-{settings.raw.absolute().name}"
    own = [load(spec).source.name for spec in settings.own]
    # What others build there must not be written over.
    name = "-".join(own if settings.is_own_alone else [name, *own])
    out = settings.out if settings.out != Path() else workspace / "medi" / name
    is_sample = settings.raw is None and settings.preset == "sample" and not settings.is_own_alone
    raw = sample_raw_dir() if is_sample else settings.raw
    return replace(settings, workspace=_plain(workspace), out=_plain(out), raw=raw and _plain(raw))


def _plain(path: Path) -> Path:
    """Return an absolute path without `..`, as a person would say it."""
    return Path(os.path.abspath(path))


def _check_values(settings: Settings) -> None:
    """Raise UsageError for a value that no build can have."""
    for name, choices in _CHOICES.items():
        if getattr(settings, name) not in choices:
            raise UsageError(f"--{name} {getattr(settings, name)}: give one of {', '.join(choices)}")
    if not (math.isfinite(settings.scale) and settings.scale > 0):
        raise UsageError(f"--scale {settings.scale}: a quota of nothing; give a number above 0, such as 0.02")
    if settings.scale > _MOST_SCALE:
        raise UsageError(f"--scale {settings.scale}: no source has so many rows; give at most {_MOST_SCALE:,}")
    if not 0 <= settings.seed < 2**31:
        raise UsageError(f"--seed {settings.seed}: give a whole number from 0 to {2**31 - 1}")
    if not 1 <= settings.workers <= _MOST_WORKERS:
        raise UsageError(f"--workers {settings.workers}: give at least 1 and at most {_MOST_WORKERS:,}")
    if settings.memory_bytes is not None and settings.memory_bytes < _LEAST_MEMORY_BYTES:
        raise UsageError(f"--memory {settings.memory_bytes}: too little for a build; give at least 256M")
    if not settings.encoder.strip():
        raise UsageError("--encoder: empty; give a folder or a name on the Hub")
    if settings.rescore is not None and not settings.rescore.strip():
        raise UsageError("--rescore: empty; give a folder or a name on the Hub")
    _check_bad_rows(settings.max_bad_rows)
    check_rules(settings.rules)


def _check_bad_rows(text: str) -> None:
    """Raise UsageError unless the text is a number of rows or a percentage up to 100."""
    number = text.removesuffix("%")
    plain = number.isascii() and number.replace(".", "", 1).isdigit() and len(number) <= _MOST_DIGITS
    if not plain or (number == text and "." in number) or (number != text and float(number) > 100):
        raise UsageError(f"--max-bad-rows {text}: give a number of rows (12) or a share of the drawn lines (0.5%)")


def _check_sources(settings: Settings) -> None:
    """Raise UsageError for a source, variant or task list that is not there."""
    from medi.super_ni_choice import choose_tasks

    for name in settings.sources:
        source = settings.source(name)
        if not settings.may_have(source):
            raise UsageError(f"--sources {name}: --licences does not allow {source.licence!r}; leave one of them out")
    for name, variant in settings.variants.items():
        names = [v.name for v in settings.source(name).variants]
        if variant not in names:
            raise UsageError(f"--variant {name}={variant}: {name} has no such variant; give one of {', '.join(names)}")
        if settings.sources and name not in settings.sources:
            told = f"says something of {name}, which is not built; name it in --sources too"
            raise UsageError(f"--variant {name}={variant}: {told}")
    tasks = settings.super_ni_tasks
    if tasks == "all" and settings.raw is None and not settings.is_own_alone:
        choose_tasks(None, tasks)
    if tasks not in ("all", "listed") and not Path(tasks).is_file():
        raise UsageError(f"--super-ni-tasks {tasks}: no such file; give all, listed, or a file with one task a line")


def _check_places(settings: Settings) -> None:
    """Raise UsageError for a raw folder that is not there or a release that would overwrite what it is built from."""
    for option, path in (("raw", settings.raw), ("workspace", settings.workspace), ("out", settings.out)):
        if path is not None and not str(path).isprintable():
            # It is to stand in run.json, on the screen and in Prefect.
            raise UsageError(f"--{option} {os.fsencode(path)!r}: does not print; rename the folder, or name another")
    if settings.raw is not None and not settings.raw.is_dir():
        raise UsageError(f"--raw {settings.raw}: no such folder; name the one that holds embedding_training_data/")
    for option, path in (("workspace", settings.workspace), ("out", settings.out)):
        if path.exists() and not path.is_dir():
            raise UsageError(f"--{option} {path}: is a file; name a folder")
    if settings.raw is not None and settings.raw.resolve() in settings.out.resolve().parents:
        raise UsageError(f"--out {settings.out}: lies in the raw folder {settings.raw}; name a folder elsewhere")
    for name, place in (("the raw folder", settings.raw), ("the workspace", settings.workspace)):
        if place is not None and (settings.out == place or settings.out in place.parents):
            raise UsageError(f"--out {settings.out}: holds {name} {place}; name a folder of its own")
