"""Raw files of a unit -> its ROWS: hands the files of `medi.read` to the stage `ingest`."""

from collections.abc import Collection, Iterable

import pyarrow as pa

from medi import read
from medi.ingest import IngestParams, ingest, ingest_task, labelled
from medi.licences import is_allowed
from medi.schema import Counts
from medi.source import Page
from pipelines.build.units import SUPER_NI, Unit
from pipelines.presets import Settings


def ingest_params(settings: Settings, quota_rows: int) -> IngestParams:
    """Return what decides a unit's pool."""
    rows, percent = (0, float(settings.max_bad_rows[:-1])) if settings.max_bad_rows.endswith("%") else (
        int(settings.max_bad_rows), 0.0
    )  # fmt: skip
    return IngestParams(
        quota_rows=quota_rows,
        seed=settings.seed,
        take=settings.take,
        strict=settings.strict,
        max_bad_rows=rows,
        max_bad_percent=percent,
        check_all_lines=settings.check_all_lines,
    )


def _allowed(settings: Settings, table: pa.Table, counts: Counts) -> tuple[pa.Table, Counts]:
    """Return a task as it is, or without a row where --licences does not allow what it states."""
    licence = str(counts.facts.get("licence", ""))
    if not settings.licences or not len(table) or is_allowed(licence, settings.licences):
        return table, counts
    counts.dropped["licence"] += len(table)
    counts.facts["skipped"] = f"licence {licence}"
    counts.rows_out = 0
    return table.slice(0, 0), counts


def run_ingest(settings: Settings, unit: Unit) -> tuple[pa.Table, Counts]:
    """Return the unit's ROWS and counts.

    Raises:
        MediError: a file is damaged, or more of its lines are bad than allowed.
    """
    params = ingest_params(settings, unit.quota_rows)
    if unit.source == SUPER_NI:
        file = unit.files[0]
        return _allowed(settings, *ingest_task(params, file.name, read.read_whole(file.path)))
    keyed = any(file.keyed for file in unit.origin.files)
    files = [(file.path, file.name) for file in unit.files]
    prefixes = {file.name for file in unit.files if file.prefix}

    def pages(wanted: Collection[str]) -> Iterable[Page]:
        """Return the pages that are wanted, from the knowledge source of the unit."""
        return read.wanted_pages([(file.path, file.name) for file in unit.pages], wanted)

    table, counts = ingest(
        params,
        unit.declared,
        unit.origin,
        lambda: read.raw_batches(files, keyed, prefixes),
        pages if unit.pages else None,
    )
    return labelled(table, counts, unit.source) if unit.declared.labelled else (table, counts)
