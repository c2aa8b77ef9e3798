"""A medi-data.json as it was released with InstructOR -> a release folder, as if medi had built it.

The file is parsed piece by piece and sorted into its tasks on disk, so memory does not grow with it: the largest task
must fit. Scores, labels and slots are not in it, so they are not in the release.
"""

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from medi.errors import MediError, UsageError
from medi.imported.records import example_of
from medi.imported.spill import Spill, Spilled
from medi.imported.tasks import Imported, import_source, read, source_of
from medi.ingest.draw import reason_of
from medi.ingest.parse import parse
from medi.publish import new_temporary, remove_orphans, writing
from medi.read import raw_batches
from medi.release.digests import sha256_of
from medi.release.manifest import Json, RawFile
from medi.release.swap import refuse_strangers
from medi.release.verify import verify
from medi.screen import many
from medi.shards import Contents, write_release
from medi.source import Bad, Drop
from medi.sources import ALL

Say = Callable[[str], None]
_SHAPE = 'an array of {"query": [instruction, text], "pos": [...], "neg": [...], "task_name": text}'
_MOST_REASONS, _LONGEST_REASON = 20, 200
_PACE_SECONDS = 30.0
_RANKS = {source.name: rank for rank, source in enumerate(ALL)}


@dataclass
class Reading:
    """What came of the records of a file: records = those of the tasks + sum(bad); `mended` is by source."""

    records: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    mended: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def count_bad(self, reason: str) -> None:
        """Count a record that cannot be read; past 20 reasons the others are one, for they hold words of the file."""
        reason = reason[:_LONGEST_REASON]
        self.bad[reason if reason in self.bad or len(self.bad) < _MOST_REASONS else "another reason"] += 1


@dataclass(frozen=True)
class Summary:
    """What an import came to: records = rows + sum(left_out), whose keys are reasons."""

    digest: str
    rows: int
    tasks: int
    left_out: dict[str, int]


def import_file(path: Path, out: Path, say: Say = lambda line: None) -> Summary:
    """Write the release of a medi-data.json (or of its records a line each) to `out`.

    Raises:
        UsageError: there is no such file.
        MediError: it has another shape, is damaged, or no row of it is good; or `out` is no release of ours.
    """
    if not path.is_file():
        raise UsageError(f"{path} is not a file; name a medi-data.json, {_SHAPE}")
    refuse_strangers(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_orphans(out.parent, deep=False)
    scratch = new_temporary(out)
    try:
        with writing(out):
            spill = Spill(scratch)
            say(f"reading {path}")
            file = _raw_file(path)
            reading = _read(path, spill, _now_and_then(say))
            say(f"sorting {many(reading.records, 'record')} into {many(len(spill.tasks), 'task')}")
            sources = _sources(spill.tasks.values(), file, reading, _now_and_then(say))
            left_out = sum((Counter(source.entry["dropped"]) for source in sources), reading.bad)
            rows = sum(source.entry["got"] for source in sources)
            if not rows:
                raise MediError(f"{path}: none of its records can be a row of a release ({_listed(left_out)})")
            say("writing and verifying the release")
            digest = write_release(out, _contents(sources, file, reading), check=verify)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Summary(digest, rows, sum(len(source.tasks) for source in sources), dict(sorted(left_out.items())))


def _listed(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason}: {rows:,}" for reason, rows in sorted(reasons.items()))


def _raw_file(path: Path) -> RawFile:
    return {"name": path.name, "size": path.stat().st_size, "sha256": sha256_of(path)}


def _now_and_then(say: Say) -> Say:
    """Return a `say` that passes on a line every 30 seconds, and the others not."""
    last_seconds = monotonic()

    def say_if_time(line: str) -> None:
        """Say the line where it is time."""
        nonlocal last_seconds
        if monotonic() - last_seconds >= _PACE_SECONDS:
            last_seconds = monotonic()
            say(line)

    return say_if_time


def _read(path: Path, spill: Spill, say: Say) -> Reading:
    """Spill the examples of the file. Raises MediError where it is damaged, or its first record is of another shape."""
    reading = Reading()
    for batch in raw_batches([(path, path.name)]):
        if batch.fault:
            raise MediError(f"{path}: {batch.fault}")
        for key, line in zip(batch.keys, batch.lines, strict=True):
            _take(f"{path}{':' if batch.by_line else '#'}{key}", line, spill, reading)
        say(f"{many(reading.records, 'record')} read")
    spill.flush()
    return reading


def _take(origin: str, line: bytes, spill: Spill, reading: Reading) -> None:
    """Spill the example of a record, or count why there is none. Raises MediError where the first has another shape."""
    try:
        value, mends = parse(line)
        example = example_of(value, mends)
    except (Bad, Drop) as error:
        if not reading.records and isinstance(error, Bad):
            raise MediError(f"{origin} is no record of a medi-data.json ({error}); give {_SHAPE}") from None
        reading.count_bad(str(error))
    else:
        spill.add(reading.records, example)
        if mends:
            reading.mended[source_of(example.task)].update(map(reason_of, mends))
    reading.records += 1


def _sources(parts: Iterable[Spilled], file: RawFile, reading: Reading, say: Say) -> list[Imported]:
    """Return the sources: those of Table 5 in its order, then others by name."""
    by_source: defaultdict[str, list[Spilled]] = defaultdict(list)
    for part in parts:
        by_source[source_of(part.base)].append(part)
    names = sorted(by_source, key=lambda name: (_RANKS.get(name, len(_RANKS)), name))
    sources = []
    for name in names:
        sources.append(import_source(name, by_source[name], file, reading.mended[name]))
        say(f"{len(sources):,} of {many(len(names), 'source')} sorted")
    return sources


def _contents(sources: list[Imported], file: RawFile, reading: Reading) -> Contents:
    """Return what `write_release` needs; the params say that nothing here was built."""
    told: dict[str, Json] = {**file, "records": reading.records, "bad": dict(sorted(reading.bad.items()))}  # type: ignore[dict-item]
    return Contents(
        params={"imported": told},
        sources=[source.entry for source in sources],
        tasks=[task for source in sources for task in source.tasks],
        records=[],
        examples=lambda: (read(path) for source in sources for path in source.rows),
        positives=lambda: (read(path) for source in sources for path in source.positives),
        run={},
    )
