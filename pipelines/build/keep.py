"""One step of a unit: a look into the store first, else the stage runs and its result is kept."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from medi.schema import Counts, digest_of, digest_table
from medi.stages import VERSIONS
from medi.store import Record
from pipelines.build.context import Context

# Stages whose results must be in the store; any other one may run.
Look = frozenset[str]
NOTHING: Look = frozenset()
EVERYTHING: Look = frozenset(VERSIONS)
# What reads raw files, tokenizes, encodes or searches.
SEARCHED: Look = frozenset({"ingest", "tokens", "candidates"})

What = tuple[str, str, Mapping[str, object], dict[str, str]]


class Missing(Exception):
    """A step's result is not in the store, and the caller only looks."""


def step(context: Context, what: What, look: Look, run: Callable[[], tuple[pa.Table, Counts]]) -> Record:
    """Return the record for (stage, unit, params, inputs), running the stage where there is none.

    Raises:
        Missing: there is none, and the stage is one of `look`.
    """
    stage, unit, params, inputs = what
    version = VERSIONS[stage]
    identity = {"stage": stage, "version": version, "unit": unit, "params": params, "inputs": inputs}
    key = digest_of(identity)[:32]
    found = context.store.find(stage, key)
    if found:
        return found
    if stage in look:
        raise Missing(f"{stage} of {unit}")
    table, counts = run()
    counts.check(f"{stage} of {unit}")
    record = Record(stage, version, unit, dict(params), inputs, key, digest_table(table), len(table), counts.to_json())
    return context.store.write(record, table)
