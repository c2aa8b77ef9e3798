"""Records of finished units -> the contents of a release: its manifest entries, and its tables in final order."""

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

import medi
from medi.own import load
from medi.release.manifest import Json, SourceEntry, TaskEntry
from medi.schema import digest_of
from medi.shards import Contents
from medi.source import Source
from medi.sources import ALL
from medi.store import Record
from pipelines.build.context import Context
from pipelines.build.keep import EVERYTHING
from pipelines.build.steps import Chain, ingest_step
from pipelines.build.units import SUPER_NI, Plan, Unit


@dataclass(frozen=True)
class Finished:
    """A unit and what its stages made of it; `chain` is None where it gives no rows, `rows` then says why."""

    unit: Unit
    rows: Record
    chain: Chain | None

    @property
    def dropped(self) -> dict[str, int]:
        """Return reason -> rows over all stages: drawn rows = got rows + their sum."""
        records = [self.rows] + ([self.chain.mined.pairs, self.chain.sampled] if self.chain else [])
        total: Counter[str] = Counter()
        for record in records:
            total.update(record.counts["dropped"])
        return {reason: count for reason, count in sorted(total.items()) if count}

    @property
    def got_rows(self) -> int:
        """Return the rows that the unit gives to the release."""
        return self.chain.instructed.rows if self.chain else 0

    @property
    def facts(self) -> dict[str, object]:
        """Return what ingest found out about the unit."""
        return self.rows.counts["facts"]


def finished(context: Context, units: Iterable[Unit], chains: dict[str, Chain | None]) -> list[Finished]:
    """Return the units with their records, in the order of the release: Table 5, then own sources; tasks by name."""
    place = {source.name: number for number, source in enumerate(ALL)}
    ordered = sorted(units, key=lambda u: (place.get(u.source, len(ALL)), u.source, u.name))
    return [Finished(u, ingest_step(context, u, look=EVERYTHING), chains[u.name]) for u in ordered]


def contents_of(context: Context, plan: Plan, done: Sequence[Finished], run: dict[str, object]) -> Contents:
    """Return what `write_release` needs; `run` holds what may differ between equal builds."""
    sources = list(dict.fromkeys(f.unit.source for f in done))
    by_source = {name: [f for f in done if f.unit.source == name] for name in sources}
    records = {r.key: r.to_json() for f in done for r in ([f.rows] if f.chain is None else f.chain.records())}
    absent = {"sources": list(plan.absent), "super_ni_tasks": list(plan.absent_tasks)}
    if allowed := context.settings.licences:
        absent |= {"licences": {"allowed": list(allowed), "left_out": dict(plan.forbidden)}}
    return Contents(
        params=cast(dict[str, Json], params_of(context, done) | {"absent": absent}),
        sources=[_source_entry(by_source[name]) for name in sources],
        tasks=[entry for f in done for entry in _task_entries(context, f)],
        records=[records[key] for key in sorted(records, key=lambda k: (records[k]["stage"], records[k]["unit"], k))],
        examples=lambda: _examples(context, done),
        positives=lambda: (context.store.open(f.chain.mined.audit) for f in done if f.chain),
        run={**run, "versions": _versions(), "machine": {"arithmetic": context.spec.arithmetic}},  # type: ignore[dict-item]
    )


def params_of(context: Context, done: Sequence[Finished] = ()) -> dict[str, object]:
    """Return what decides the bytes of a build, with a JSON form."""
    settings = context.settings
    params: dict[str, object] = {
        name: getattr(settings, name)
        for name in ("profile", "scale", "seed", "take", "strict", "max_bad_rows", "check_all_lines")
    }
    tasks = [f.unit.name for f in done if f.unit.source == SUPER_NI]
    words = context.instructions
    params |= {
        "mining": context.rules.to_json(),
        "encoder": context.encoder_params,
        "super_ni_tasks": {"choice": _choice(settings.super_ni_tasks), "names": tasks},
        "instructions": digest_of([words.style.__dict__, sorted(words.msmarco_domains.items()), words.vocabulary]),
    }
    own = [load(spec) for spec in settings.own]
    if told := {o.source.name: o.declared for o in own if not settings.sources or o.source.name in settings.sources}:
        params["own_sources"] = told
    return params


def _choice(super_ni_tasks: str) -> str:
    """Return how the tasks were chosen, without a path of the machine."""
    return super_ni_tasks if super_ni_tasks in ("all", "listed") else "file"


def _examples(context: Context, done: Sequence[Finished]) -> Iterator[pa.Table]:
    """Yield the EXAMPLES of each task, in final order."""
    for unit in done:
        if unit.chain is None:
            continue
        table = context.store.open(unit.chain.instructed)
        for task in sorted(pc.unique(table["task"]).to_pylist()):
            yield table.filter(pc.equal(table["task"], task))


def _source_entry(parts: Sequence[Finished]) -> SourceEntry:
    """Return a source's entry in the manifest, summed over its units."""
    source: Source = parts[0].unit.declared
    files = {file.name: file for f in parts for file in (*f.unit.files, *f.unit.pages)}
    dropped: Counter[str] = Counter()
    mended: Counter[str] = Counter()
    for part in parts:
        dropped.update(part.dropped)
        mended.update(part.rows.counts["mended"])
    return {
        "name": source.name,
        "licence": source.licence,
        "symmetric": source.symmetric,
        "clusters": source.clusters,
        "given_negatives": parts[0].unit.origin.given_negatives,
        "variant": parts[0].unit.variant,
        "citation": source.citation,
        "files": [
            {"name": f.name, "size": f.size_bytes, "sha256": f.sha256, "commit": f.commit}
            for f in (files[name] for name in sorted(files))
        ],
        "planned": sum(part.unit.quota_rows for part in parts),
        "got": sum(part.got_rows for part in parts),
        "drawn": sum(part.rows.counts["rows_in"] for part in parts),
        "dropped": dict(sorted(dropped.items())),
        "mended": dict(sorted(mended.items())),
    }


def _task_entries(context: Context, done: Finished) -> list[TaskEntry]:
    """Return the manifest's entries of a unit's tasks: one, or one for each cluster of msmarco."""
    facts = {} if done.chain is None else done.chain.instructed.counts["facts"]
    entry: TaskEntry = {
        "task": done.unit.name,
        "source": done.unit.source,
        "kind": str(done.facts.get("kind", "pair")),
        "symmetric": done.unit.declared.symmetric,
        "planned": done.unit.quota_rows,
        "got": done.got_rows,
        "drawn": done.rows.counts["rows_in"],
        "dropped": done.dropped,
        "slots": facts.get("slots", {}),
        "evidence": _evidence(done),  # type: ignore[typeddict-item]
    }
    of_task = facts.get("slots_of_task")
    if not of_task or done.chain is None:
        return [entry]
    tasks = Counter(context.store.open(done.chain.instructed)["task"].to_pylist())
    # The clusters are mined together: which rows one would have had of those that were dropped, nobody knows.
    evidence = {"cluster_of": {**{name: entry.get(name) for name in _COUNTED}, **_evidence(done)}}
    domains = facts.get("domain_of_task", {})
    parts = {name: {"task": name, "planned": n, "got": n, "drawn": n, "dropped": {}} for name, n in tasks.items()}
    return [
        {**entry, **parts[name], "slots": of_task[name], "evidence": {**evidence, "domain": domains.get(name)}}  # type: ignore[typeddict-item]
        for name in sorted(parts)
    ]


_COUNTED = ("task", "planned", "drawn", "got", "dropped")


def _evidence(done: Finished) -> dict[str, object]:
    """Return what is known of a unit: the facts of its stages by stage, but not the texts that are elsewhere.

    Those of `mine` are of the whole pool, `pool_rows`, of which the release has the rows within the quota.
    """
    evidence: dict[str, object] = {"ingest": {k: v for k, v in done.facts.items() if k != "definition"}}
    if done.chain:
        evidence["tokens"] = done.chain.tokens.counts["facts"]
        evidence["pool_rows"] = done.chain.mined.pairs.rows
        evidence["mine"] = done.chain.mined.pairs.counts["facts"]
    return evidence


def _versions() -> dict[str, str]:
    """Return the versions of what computed the build."""
    packages = ("faiss-cpu", "numpy", "pyarrow", "sentence-transformers", "torch", "transformers", "xxhash")
    found = {d.metadata["Name"]: d.version for d in metadata.distributions() if d.metadata["Name"] in packages}
    return {"medi": medi.__version__, "python": platform.python_version(), **dict(sorted(found.items()))}
