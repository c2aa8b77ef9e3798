"""A release -> what is known of MSMARCO's clusters: domain word, nearest words, terms, and the queries in the middle.

Everything is read from the release's folder; texts come from other people, so `shown` must make them harmless.
"""

from dataclasses import dataclass
from typing import TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc

from medi.errors import MediError
from medi.release import Release, as_written
from medi.release.manifest import Json, TaskEntry

SOURCE = "msmarco"


class _Evidence(TypedDict):
    """What the build wrote of a cluster into `evidence.domain` of its task."""

    word: str
    overridden: bool
    nearest: list[tuple[str, float]]
    terms: list[str]
    central: list[str]


@dataclass(frozen=True)
class Domain:
    """A cluster of MSMARCO: its number ("00" is the largest), its rows, its word, and what speaks for the word.

    `overridden` says that the word is from msmarco_domains.toml; `nearest` are the nearest words of the vocabulary with
    their cosines, `terms` those of highest c-TF-IDF, `queries` the examples nearest to the centre; all best first.
    """

    number: str
    task: str
    rows: int
    word: str
    overridden: bool
    nearest: list[tuple[str, float]]
    terms: list[str]
    queries: list[str]


@dataclass(frozen=True)
class Domains:
    """The clusters of a release by number, and the overrides whose number no cluster has."""

    clusters: list[Domain]
    unused: dict[str, str]


def domains_of(release: Release, n: int) -> Domains:
    """Return what is known of each cluster, with n example queries (at most the ten that the build kept).

    Raises:
        MediError: the release has no rows of MSMARCO, or was built without this evidence; a shard cannot be read.
    """
    found = {entry["task"]: _evidence(entry) for entry in release.manifest["tasks"] if entry["source"] == SOURCE}
    known = {task: evidence for task, evidence in found.items() if evidence}
    if not known:
        what = "says nothing of its domains" if found else f"has no rows of {SOURCE}"
        raise MediError(f"{release.root} {what}; build it again with {SOURCE} among its sources")
    with as_written(release):
        return _domains(release, known, n)


def _domains(release: Release, known: dict[str, _Evidence], n: int) -> Domains:
    """Return the domains of the tasks whose evidence is known."""
    texts = _queries(release, [row for evidence in known.values() for row in evidence["central"][:n]])
    clusters = [
        Domain(
            number=entry["task"].partition("/")[2],
            task=entry["task"],
            rows=entry["got"],
            word=evidence["word"],
            overridden=evidence["overridden"],
            nearest=[(word, cosine) for word, cosine in evidence["nearest"]],
            terms=evidence["terms"],
            queries=[texts[row] for row in evidence["central"][:n] if row in texts],
        )
        for entry in release.manifest["tasks"]
        if (evidence := known.get(entry["task"]))
    ]
    fixed = _overrides(release.manifest["records"])
    return Domains(clusters, {n: word for n, word in fixed.items() if n not in {c.number for c in clusters}})


def _evidence(entry: TaskEntry) -> _Evidence | None:
    domain = entry["evidence"].get("domain") if isinstance(entry["evidence"], dict) else None
    return cast(_Evidence, domain) if isinstance(domain, dict) else None


def _queries(release: Release, ids: list[str]) -> dict[str, str]:
    """Return id -> query of these rows, in one pass over the source."""
    found: dict[str, str] = {}
    wanted = pa.array(ids, pa.string())
    for table in release.tables(SOURCE) if ids else ():
        rows = table.select(["id", "query"]).filter(pc.is_in(table["id"], wanted))
        found.update(zip(rows["id"].to_pylist(), rows["query"].to_pylist(), strict=True))
    return found


def _overrides(records: list[dict[str, Json]]) -> dict[str, str]:
    """Return the words of msmarco_domains.toml that the build was given, by cluster number."""
    for record in records:
        params = record.get("params")
        if (record.get("stage"), record.get("unit")) == ("instruct", SOURCE) and isinstance(params, dict):
            domains = params.get("domains")
            return {number: str(word) for number, word in domains.items()} if isinstance(domains, dict) else {}
    return {}
