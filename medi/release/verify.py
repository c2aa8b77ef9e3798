"""A release folder becomes a list of violations, one line each; none means that every invariant holds.

Files are hashed again, and the shards are read one row group at a time, so memory does not grow with the release.
"""

import os
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from medi.errors import MediError
from medi.release import Release, open_parquet, open_release, read_group
from medi.release.accounting import unit_of
from medi.release.content import ContentDigest
from medi.release.digests import sha256_of
from medi.release.known import SUPER_NI, Known, check_positives, known_positives, uncompressed
from medi.release.manifest import GROUP_ROWS, MANIFEST, POSITIVES_FILE, RUN, FileEntry, Manifest, task_licence
from medi.release.rules import ORIGINS, RULES, Portion
from medi.schema import EXAMPLES
from medi.sources import ALL


def verify(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the release in a folder, a line at a time. Raises MediError where it is no release."""
    release = open_release(folder)
    yield from _check_files(release)
    yield from _check_order(release.manifest)
    yield from _check_counts(release.manifest)
    yield from check_positives(release)
    walk = _Walk(release)
    for entry in release.shards():
        yield from walk.shard(entry)
    yield from walk.end()


def _files_in(root: Path) -> dict[str, Path]:
    """Return the files of a folder by their names in it. Raises OSError where a folder in it may not be read."""

    def refuse(error: OSError) -> None:
        """Let what a walk passes over be an error."""
        raise error

    paths = [Path(folder, name) for folder, _, names in os.walk(root, onerror=refuse) for name in names]
    return {path.relative_to(root).as_posix(): path for path in paths}


def _check_files(release: Release) -> Iterator[str]:
    """Compare the folder with the manifest's list; run.json and the manifest itself are not in it."""
    listed = {entry["path"]: entry for entry in release.manifest["files"]}
    present = _files_in(release.root)
    for name in sorted(set(present) - set(listed) - {MANIFEST, RUN}):
        yield f"{name}: is not in the manifest"
    for name, entry in sorted(listed.items()):
        if name not in present:
            yield f"{name}: is missing"
        elif present[name].stat().st_size != entry["size"]:
            yield f"{name}: has {present[name].stat().st_size} bytes, the manifest says {entry['size']}"
        elif (found := sha256_of(present[name])) != entry["sha256"]:
            yield f"{name}: has SHA-256 {found}, the manifest says {entry['sha256']}"
    shards = [entry["path"] for entry in release.shards()]
    right = [f"data/train-{index:05d}-of-{len(shards):05d}.parquet" for index in range(len(shards))]
    yield from (f"{name}: should be named {other}" for name, other in zip(shards, right, strict=True) if name != other)
    yield from (f"{name}: is not in the manifest's files" for name in {POSITIVES_FILE} - set(listed))
    yield from (f"{name}: is missing" for name in {RUN} - set(present))


def _check_order(manifest: Manifest) -> Iterator[str]:
    """The manifest's sources, and so the rows, stand as in Table 5; a source of a person's own stands anywhere."""
    ranks = {source.name: rank for rank, source in enumerate(ALL)}
    names = [entry["name"] for entry in manifest["sources"] if entry["name"] in ranks]
    for before, name in pairwise(names):
        if ranks[name] <= ranks[before]:
            yield f"{MANIFEST}: source {name} stands after {before}, against the order of Table 5"


def _check_counts(manifest: Manifest) -> Iterator[str]:
    """The manifest's numbers agree with each other: nothing above its quota, no row without a reason."""
    got = Counter[str]()
    for entry in manifest["tasks"]:
        got[entry["source"]] += entry["got"]
    units = [(f"source {entry['name']}", entry) for entry in manifest["sources"]]
    units += [(f"task {entry['task']}", entry) for entry in manifest["tasks"]]
    for name, entry in units:
        if entry["got"] > entry["planned"]:
            yield f"{MANIFEST}: {name}: got {entry['got']} rows, planned {entry['planned']}"
        dropped = sum(entry["dropped"].values())
        if entry.get("drawn", entry["got"] + dropped) != entry["got"] + dropped:
            yield f"{MANIFEST}: {name}: drew {entry.get('drawn')} rows, got {entry['got']} and dropped {dropped}"
    for entry in manifest["sources"]:
        if entry["got"] != got.pop(entry["name"], 0):
            yield f"{MANIFEST}: source {entry['name']}: got {entry['got']} rows, its tasks got another number"
    yield from (f"{MANIFEST}: source {name} has tasks and no entry" for name in got)


class _Walk:
    """The way through all rows in reading order, and what must be remembered on it."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._sources = {entry["name"]: entry for entry in release.manifest["sources"]}
        self._ranks = {name: rank for rank, name in enumerate(self._sources)}
        self._tasks = {(entry["source"], entry["task"]): entry for entry in release.manifest["tasks"]}
        self._rows = Counter[tuple[str, str]]()
        self._negatives = Counter[tuple[str, str, str]]()
        self._digest = ContentDigest()
        self._whole = True
        self._last = (-1, "", "")
        self._source = ""
        self._source_ids: set[str] = set()
        self._known: Known | None = None
        self._audited = (release.root / POSITIVES_FILE).is_file()
        self._instructions: set[str] = set()
        self._ending = ""

    def shard(self, entry: FileEntry) -> Iterator[str]:
        """Yield the violations of one shard; one that cannot be read leaves the totals unproven."""
        name = entry["path"]
        path = self._release.root / name
        if not path.is_file():  # reported with the files
            self._whole = False
            return
        try:
            with open_parquet(path) as file:
                if not file.schema_arrow.equals(EXAMPLES):
                    self._whole = False
                    yield f"{name}: has the columns {_columns(file.schema_arrow)}, not those of a release"
                    return
                if b"pandas" in (file.metadata.metadata or {}):
                    yield f"{name}: has pandas metadata"
                yield from uncompressed(name, file)
                if file.metadata.num_rows == 0:
                    yield f"{name}: has no rows"
                elif file.metadata.num_rows != entry.get("rows"):
                    yield f"{name}: has {file.metadata.num_rows} rows, the manifest says {entry.get('rows')}"
                for index in range(file.num_row_groups):
                    yield from self._group(f"{name}: row group {index}", name, read_group(file, index))
        except MediError as error:
            self._whole = False
            yield str(error)

    def end(self) -> Iterator[str]:
        """Yield the violations that only the whole can show: rows by task, and the content digest."""
        if not self._whole:
            return
        for entry in self._release.manifest["tasks"]:
            rows = self._rows.pop((entry["source"], entry["task"]), 0)
            if rows != entry["got"]:
                yield f"{MANIFEST}: task {entry['task']}: got {entry['got']} rows, the shards have {rows}"
        yield from (f"{MANIFEST}: task {task} of {source} has rows and no entry" for source, task in self._rows)
        yield from self._evidence()
        found, stated = self._digest.hexdigest(), self._release.manifest["content_digest"]
        if found != stated:
            yield f"{MANIFEST}: the content digest is {found}, the manifest says {stated}"

    def _evidence(self) -> Iterator[str]:
        """Compare the negatives by origin with the account of the pool: not more than there, and where no row of the
        pool was over the quota, as many.
        """
        units = {(entry["source"], unit_of(entry)[0]): entry for entry in self._release.manifest["tasks"]}
        for (source, unit), entry in units.items():
            evidence = unit_of(entry)[1]
            mine = evidence.get("mine")
            stated = mine.get("negatives") if isinstance(mine, dict) else None
            if not isinstance(stated, dict):
                continue
            is_whole = evidence.get("pool_rows") == evidence.get("got", entry["got"])
            for origin in ORIGINS:
                found, there = self._negatives[source, unit, origin], stated.get(origin, 0)
                if not isinstance(there, int) or found > there or (is_whole and found != there):
                    said = f"says that mining gave {there} {origin} negatives, the shards have {found}"
                    yield f"{MANIFEST}: the evidence of {unit} {said}"

    def _group(self, place: str, shard: str, table: pa.Table) -> Iterator[str]:
        self._digest.update(table)
        portions = list(_by_task(table))
        if len(portions) > 1:
            yield f"{place}: mixes {len(portions)} tasks"
        if not 0 < len(table) <= GROUP_ROWS:
            yield f"{place}: has {len(table)} rows, not 1 to {GROUP_ROWS}"
        for rows in portions:
            source, task = rows.column("source")[0].as_py(), rows.column("task")[0].as_py()
            if source != self._source:
                yield from self._enter(source)
            yield from (f"{shard}: {line}" for line in self._portion(source, task, rows))

    def _portion(self, source: str, task: str, rows: pa.Table) -> Iterator[str]:
        self._rows[source, task] += len(rows)
        yield from self._order(source, task, rows)
        yield from self._instruction(rows)
        entry = self._tasks.get((source, task))
        if entry:
            for found in pc.value_counts(pc.list_flatten(rows.column("negative_origins"))).to_pylist():
                self._negatives[source, unit_of(entry)[0], found["values"]] += found["counts"]
        licence = task_licence(entry) if source == SUPER_NI else self._sources.get(source, {}).get("licence")
        portion = Portion(rows, source, task, entry, licence, self._known)
        for rule in RULES:
            yield from rule(portion)

    def _enter(self, source: str) -> Iterator[str]:
        """Forget the ids and the positives of the last source, and load those of the next."""
        self._source, self._source_ids, self._known = source, set(), None
        if source not in self._sources or not self._audited:
            return
        try:
            self._known = known_positives(self._release.root, self._sources[source])
        except MediError as error:
            self._audited = False
            yield str(error)

    def _order(self, source: str, task: str, rows: pa.Table) -> Iterator[str]:
        """Rows stand by source, task and id, and no id comes twice (within a source: an id begins with its name)."""
        rank = self._ranks.get(source, len(self._ranks))
        for found in rows.column("id").to_pylist():
            if found in self._source_ids:
                yield f"{found}: the id is not unique"
            elif (rank, task, found) < self._last:
                yield f"{found}: stands after {self._last[2]}, against the order by source, task and id"
            self._source_ids.add(found)
            self._last = (rank, task, found)

    def _instruction(self, rows: pa.Table) -> Iterator[str]:
        """Instructions end in one and the same mark in the whole release, and have no two blanks in a row.

        Imported ones are other people's words.
        """
        if "imported" in self._release.manifest["params"]:
            return
        for name in ("query_instruction", "document_instruction"):
            for text in pc.unique(rows.column(name)).to_pylist():
                if text in self._instructions or not text:
                    continue
                self._instructions.add(text)
                self._ending = self._ending or text[-1]
                where = f"{rows.column('id')[rows.column(name).index(text).as_py()]}: the {name} {text[-40:]!r}"
                if "  " in text:
                    yield f"{where} has two blanks in a row"
                if text[-1].isspace():
                    yield f"{where} ends in a blank"
                elif text[-1] != self._ending:
                    yield f"{where} ends in {text[-1]!r}, others in {self._ending!r}"


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _by_task(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the runs of rows of one source and task."""
    names = list(zip(table.column("source").to_pylist(), table.column("task").to_pylist(), strict=True))
    start = 0
    for stop in range(1, len(names) + 1):
        if stop == len(names) or names[stop] != names[start]:
            yield table.slice(start, stop - start)
            start = stop
