"""A row id becomes the row's whole story: its place, its raw line, its cleaning, its candidates, its instructions.

What a release does not hold is read from the raw files and from the artifacts of the workspace that built it; where
they are gone, a line says so and what to run.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from heapq import nlargest
from os.path import commonprefix
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from medi.errors import UsageError
from medi.mine.why import CHOSEN, Choice
from medi.own import Own
from medi.profiles import Rules
from medi.release import Place, Release, as_written, open_parquet, read_group
from medi.release.accounting import changed_rules, unit_of
from medi.release.manifest import RUN, Json, TaskEntry
from medi.release.verdict import verdict_line
from medi.release.why_mining import Mined, mined_of
from medi.release.why_raw import Raw, raw_of
from medi.stages import VERSIONS
from medi.store import Record


@dataclass(frozen=True)
class Pool:
    """What cleaning left of a row, in the pool of its unit: `drawn` is its place among `rows` in the order of drawing.

    `other_positives` and `given_negatives` count texts; `output` and `references` are those of Super-NI.
    """

    rows: int
    drawn: int
    other_positives: int
    given_negatives: int
    output: str | None
    references: list[str]


@dataclass(frozen=True)
class Story:
    """All that is known of how a row came to be; parts are None where `absent` says why.

    `place` and `place_in_group` count from 0; the row keeps at most `given_wanted` of the negatives that its source
    gives (0 where it gives none), and mined ones up to `negatives_wanted`; `slots` are those of the instructions, by
    side, `sentence` what they were put into; `verdict` says why a Super-NI task is of its kind; `rules` are those that
    differ from profile `paper`.
    """

    row: dict[str, object]
    place: Place
    place_in_group: int
    raw: Raw | None
    pool: Pool | None
    profile: str
    rules: dict[str, object]
    given_wanted: int
    negatives_wanted: int
    choice: Choice | None
    verdict: str
    slots: Json
    sentence: str
    absent: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Places:
    """Where the raw files and the workspace of a release are; None means: where its build had them.

    `own` are sources of a person's own that were given again: what a release names is not run as code.
    """

    raw: Path | None = None
    workspace: Path | None = None
    own: tuple[Own, ...] = ()


def why(release: Release, row_id: str, places: Places = Places()) -> Story:
    """Return the story of a row.

    Raises UsageError where the release has no row of this id, naming those nearest to it; MediError where a shard is
    damaged, or the release is not as medi writes one.
    """
    with as_written(release):
        row, place, place_in_group = _find(release, row_id)
        entry = next(e for e in release.manifest["tasks"] if (e["source"], e["task"]) == (row["source"], row["task"]))
        return _story(release, places, entry, (row, place, place_in_group))


def _story(release: Release, places: Places, entry: TaskEntry, found: tuple[dict[str, object], Place, int]) -> Story:
    """Return the story of a row that was found, which is of the task of this entry."""
    row = found[0]
    unit, evidence = unit_of(entry)
    records = {
        str(record["stage"]): Record(**record)  # type: ignore[arg-type]
        for record in release.manifest["records"]
        if record.get("unit") == unit
    }
    known = _known_places(release, places)
    absent: list[str] = []
    raw = raw_of(release, row, known, absent)
    mined = mined_of(records, row, known.workspace, absent)
    if mined and mined.choice and not _agrees(mined.choice, row):
        absent.append(
            f"candidates: the rules of this medi (mine, version {VERSIONS['mine']}) choose other texts than those of "
            f"version {records['mine'].version} did for this release; what is told here is not how the row came to be"
        )
    pool = None if mined is None else _pool(mined)
    rules = Rules(**records["mine"].params["rules"]) if "mine" in records else Rules()
    return Story(
        *found,
        raw=raw,
        pool=pool,
        profile=str(release.manifest["params"].get("profile", "unknown")),
        rules=changed_rules(rules),
        given_wanted=rules.given_negatives if pool and pool.given_negatives else 0,
        negatives_wanted=rules.negatives,
        choice=None if mined is None else mined.choice,
        verdict=verdict_line(evidence),
        slots=entry["slots"],
        sentence=_sentence(records),
        absent=absent,
    )


def _agrees(choice: Choice, row: dict[str, object]) -> bool:
    """Return whether the texts that were chosen now are those of the row, but for those it was filled up with."""
    negatives, origins = row["negatives"], row["negative_origins"]
    assert isinstance(negatives, list) and isinstance(origins, list)
    kept = [text for text, origin in zip(negatives, origins, strict=True) if origin != "random"]
    positives = [one.text for one in choice.positives if one.fate == CHOSEN]
    negatives = [one.text for one in (*choice.given, *choice.candidates) if one.fate == CHOSEN]
    return negatives == kept and positives == [row["positive"]] * bool(choice.positives)


def _pool(mined: Mined) -> Pool:
    """Return what the pool knows of a row."""
    own = mined.rows.slice(mined.number, 1).to_pylist()[0]
    before = pc.sum(pc.less(mined.rows["rank"], mined.rows["rank"][mined.number])).as_py() or 0
    negatives, others = len(own["negatives"]), len(own["other_positives"])
    return Pool(len(mined.rows), before + 1, others, negatives, own["output"], own["references"])


def _sentence(records: dict[str, Record]) -> str:
    """Return the sentence that the slots were put into, with its ending; "" where none is known or was asked for."""
    record = records.get("instruct")
    style = record.params["instructions"]["style"] if record else {"level": "none"}
    if style["level"] != "detailed":
        return ""
    sentence, ending = style["sentence"], style["ending"].rstrip()
    return sentence if sentence.endswith(ending) else sentence + ending


def _known_places(release: Release, places: Places) -> Places:
    """Return the places with what run.json says of those that are not given."""
    try:
        said = json.loads((release.root / RUN).read_bytes())["paths"]
        raw, workspace = (Path(said[name]) if said.get(name) else None for name in ("raw", "workspace"))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raw = workspace = None
    return Places(places.raw or raw, places.workspace or workspace, places.own)


def _find(release: Release, row_id: str) -> tuple[dict[str, object], Place, int]:
    """Return a row, its row group and its place in there. Raises UsageError where there is none of this id."""
    for file, place in _groups_with(release, row_id, row_id):
        at = pc.index(read_group(file, place.group, ["id"])["id"], row_id).as_py()
        if at >= 0:
            return read_group(file, place.group).slice(at, 1).to_pylist()[0], place, at
    raise UsageError(f"no row {row_id!r} in {release.root}; {_hint(release, row_id)}")


def _groups_with(release: Release, low: str, high: str) -> Iterator[tuple[pq.ParquetFile, Place]]:
    """Yield the row groups that may hold ids between the two, both included; Parquet tells the ends of each."""
    for entry in release.shards():
        with open_parquet(release.root / entry["path"]) as file:
            column = file.schema_arrow.get_field_index("id")
            for group in range(file.num_row_groups):
                told = file.metadata.row_group(group).column(column).statistics
                if told is None or not told.has_min_max or (told.min <= high and low <= told.max):
                    yield file, Place(entry["path"], group, file.metadata.row_group(group).num_rows)


def _hint(release: Release, row_id: str) -> str:
    """Return which ids are nearest to one that is not there, or where ids are shown."""
    source = row_id.partition("/")[0]
    names = [entry["name"] for entry in release.manifest["sources"]]
    if source not in names:
        close = get_close_matches(source, names)
        told = f"an id begins with its source, such as {close[0]}/" if close else "an id is SOURCE/ and 16 hex digits"
        return f"{told}; `medi inspect {release.root} --n 9` shows some"
    ids = (
        name
        for file, place in _groups_with(release, f"{source}/", f"{source}0")
        for name in read_group(file, place.group, ["id"])["id"].to_pylist()
        if name.startswith(f"{source}/")
    )
    nearest = nlargest(3, ids, key=lambda name: (len(commonprefix([name, row_id])), name))
    return f"nearest are {', '.join(nearest)}" if nearest else f"it has no rows of {source}"
