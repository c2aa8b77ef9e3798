"""Lines of a source -> its pool: 1.2 x quota good rows, taken in the order of a seeded hash (or as they stand).

The pool depends on which lines there are, not on how they are ordered or cut into files, and a smaller quota's pool is
a subset of a larger one's. Lines that are never drawn are never parsed.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from medi.errors import MediError, UsageError
from medi.ingest.clean import Row, clean, merge
from medi.ingest.draw import QUARANTINE_ROWS, STRICT, BadRow, Draw, Drawn, Line, draw, needs_mending, reason_of
from medi.ingest.parse import fields_of, parse
from medi.ingest.passages import passages_at
from medi.schema import ROWS, Counts, natural, row_id
from medi.source import Bad, Drop, Fields, Page, Place, RawBatch, Source, Variant

Pages = Callable[[Collection[str]], Iterable[Page]]


@dataclass(frozen=True)
class IngestParams:
    """What decides a pool. `take` is "hash" or "first"; bad rows beyond both limits fail the source.

    `max_negatives` given negatives of a row are kept, in file order, after those that cannot stand are out.
    """

    quota_rows: int
    seed: int = 0
    take: str = "hash"
    strict: bool = False
    max_bad_rows: int = 0
    max_bad_percent: float = 0.0
    check_all_lines: bool = False
    max_negatives: int = 64


# How the reader ends what it says of a file that is no better elsewhere.
_LOOK = "see what is in it"
# How many lines are in memory at once while good rows are looked for among many that are none.
_WIDEST_ROWS = 250_000


@dataclass
class _Pool:
    """A pool in the making: rows by folded identity, what became of the lines, and which `ranks` were also checked.

    `beside` says by origin what is wrong with a line that had to be mended, beside that.
    """

    rows: dict[bytes, Row] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    facts: Counter[str] = field(default_factory=Counter)
    bad: list[BadRow] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    beside: dict[str, str] = field(default_factory=dict)


def pool_rows(quota_rows: int) -> int:
    """Return how many good rows a quota asks for: 1.2 times as many, rounded up. Raises UsageError below 1."""
    if quota_rows < 1:
        raise UsageError(f"a quota of {quota_rows} rows gives nothing; ask for at least 1")
    return (quota_rows * 12 + 9) // 10


def ingest(
    params: IngestParams,
    source: Source,
    variant: Variant,
    batches: Callable[[], Iterator[RawBatch]],
    pages: Pages | None = None,
) -> tuple[pa.Table, Counts]:
    """Return a source's pool as ROWS sorted by id, and its counts; files are read again only where too few were good.

    In memory are the pool and the lines that one pass draws: a quarter more than the pool at first, four times as many
    in the next pass, but never more than 250,000 beyond the first.

    Raises MediError where more lines are bad than allowed, UsageError where the quota is below 1.
    """
    target_rows = pool_rows(params.quota_rows)
    # A few more than wanted, for lines that drop; many more where a second try would read the knowledge source again.
    keep_rows = target_rows + (target_rows if variant.pages else target_rows // 4) + 64
    pool, start, drawn_rows, wanted_rows = _Pool(), 0, 0, keep_rows
    while True:
        read = _noting(pool, variant, batches()) if params.strict else batches()
        drawn = draw(read, _how(params, variant, keep_rows, start))
        _fill(pool, params, _outcomes(drawn.lines, variant, params, pages), drawn)
        if drawn.complete or len(pool.rows) >= target_rows:
            break
        drawn_rows += len(drawn.lines)
        wanted_rows *= 4
        start = drawn.lines[-1].rank + 1 if params.take == "hash" else drawn_rows
        # Where a pass gave nothing, only a wider one gets on.
        widest_rows = max(keep_rows, _WIDEST_ROWS) if drawn.lines else wanted_rows
        keep_rows = min(wanted_rows - drawn_rows, widest_rows)
    _account(pool, drawn, params, source.name)
    return _table(source.name, list(pool.rows.values())), pool.counts.check(f"ingest of {source.name}")


def _noting(pool: _Pool, variant: Variant, batches: Iterator[RawBatch]) -> Iterator[RawBatch]:
    """Yield the batches of strict mode, and note what is bad about mended lines beside that: these are not drawn."""
    for batch in batches:
        mended = {mend.line for mend in batch.mended}
        for key, line in zip(batch.keys, batch.lines, strict=True) if mended else ():
            # No more of them are listed.
            if key in mended and len(pool.beside) < QUARANTINE_ROWS:
                outcome = _outcome(variant, line, False)
                pool.beside[f"{batch.file}:{key}"] = str(outcome) if isinstance(outcome, Bad) else ""
        yield batch


def _how(params: IngestParams, variant: Variant, keep_rows: int, start: int) -> Draw:
    return Draw(
        keep_rows,
        params.take,
        params.seed,
        lambda raw: _fault(variant, raw, params),
        params.check_all_lines,
        params.strict,
        start,
    )


def _read(variant: Variant, raw: bytes, strict: bool) -> Fields:
    """Parse one line. Raises Bad (in `strict` also where it had to be mended) and Drop."""
    value, mends = parse(raw)
    fields = fields_of(value, variant.read, strict)
    if mends:
        fields = fields._replace(mended=tuple(sorted(mends.union(fields.mended))))
    if strict and fields.mended:
        raise Bad(needs_mending(fields.mended))
    return fields


def _outcome(variant: Variant, raw: bytes, strict: bool) -> Fields | Drop | Bad:
    try:
        return _read(variant, raw, strict)
    except (Drop, Bad) as outcome:
        return outcome


def _fault(variant: Variant, raw: bytes, params: IngestParams) -> str:
    outcome = _outcome(variant, raw, params.strict)
    return str(outcome) if isinstance(outcome, Bad) else ""


def _outcomes(
    lines: list[Line], variant: Variant, params: IngestParams, pages: Pages | None
) -> Iterator[tuple[Line, Fields | Drop | Bad]]:
    """Yield what each line says. Passages are looked up for all lines together: one pass over the pages."""
    found = ((line, _outcome(variant, line.raw, params.strict)) for line in lines)
    if variant.pages is None:
        yield from found
        return
    held = list(found)
    places = {place for _, outcome in held if isinstance(outcome, Fields) for place in outcome.places}
    passages = passages_at(places, pages({p.page_id for p in places})) if pages and places else {}
    for line, outcome in held:
        yield line, _with_passages(outcome, passages) if isinstance(outcome, Fields) else outcome


def _with_passages(fields: Fields, passages: dict[Place, str]) -> Fields | Drop:
    """Put passages for places; the places that are left are those whose page was not found."""
    if not fields.places:
        return fields
    if fields.places[0] not in passages:
        return Drop("no_page")
    # Several places may lie in one passage.
    first, *others = dict.fromkeys(passages[place] for place in fields.places if place in passages)
    missing = tuple(place for place in fields.places if place not in passages)
    return Fields(fields.query, first, tuple(others), mended=fields.mended, places=missing)


def _fill(
    pool: _Pool, params: IngestParams, outcomes: Iterable[tuple[Line, Fields | Drop | Bad]], drawn: Drawn
) -> None:
    """Take lines in their order until enough good rows stand."""
    target_rows = pool_rows(params.quota_rows)
    checked = {rank for rank, _ in drawn.checked}
    for line, outcome in outcomes:
        times = drawn.times[line.rank] if drawn.times else 1
        pool.counts.rows_in += times
        if line.rank in checked:
            pool.ranks.add(line.rank)
        try:
            if not isinstance(outcome, Fields):
                raise outcome
            row = clean(outcome, params.max_negatives, pool.facts)
            _place(pool, row, line, params.max_negatives)
            if outcome.mended:
                pool.counts.mended.update({reason_of(mend) for mend in outcome.mended})
            if outcome.places:
                pool.facts["pos_no_page"] += len(outcome.places)
            pool.counts.dropped["duplicate"] += times - 1
        except Drop as reason:
            pool.counts.dropped[reason_of(str(reason))] += times
        except Bad as reason:
            pool.counts.dropped["bad"] += times
            pool.bad.append(BadRow(line.origin, line.offset, str(reason)))
            if len(pool.bad) > 10 * QUARANTINE_ROWS:
                # No more than these are listed; all are counted.
                pool.bad = sorted(pool.bad, key=lambda row: natural(row.origin))[:QUARANTINE_ROWS]
        if len(pool.rows) >= target_rows:
            break


def _place(pool: _Pool, row: Row, line: Line, max_negatives: int) -> None:
    """Put a row into the pool, or into the equal row that stands there. Raises Drop("duplicate") after the latter."""
    row.rank, row.origin = line.rank, line.origin
    if row.identity in pool.rows:
        merge(pool.rows[row.identity], row, max_negatives, pool.facts)
        raise Drop("duplicate")
    pool.rows[row.identity] = row


def _account(pool: _Pool, drawn: Drawn, params: IngestParams, source_name: str) -> None:
    """Complete the counts with the files' own faults and mends. Raises MediError where too much is bad."""
    counts = pool.counts
    lines_drawn = counts.rows_in
    # Of the first lines, how many more were at hand is the reader's affair: a longer beginning gives the same counts.
    lines_read = drawn.lines_read if params.take == "hash" or params.check_all_lines else lines_drawn
    elsewhere = [row for rank, row in drawn.checked if rank not in pool.ranks]
    pool.bad += [*elsewhere, *(_in_full(row, pool.beside.get(row.origin, "")) for row in drawn.faults)]
    counts.rows_in += len(elsewhere) + drawn.faults_rows
    counts.dropped["bad"] += len(elsewhere) + drawn.faults_rows
    counts.rows_out = len(pool.rows)
    counts.dropped = Counter({reason: n for reason, n in counts.dropped.items() if n})
    counts.mended.update(drawn.mended)
    counts.facts |= {"lines_read": lines_read, "lines_drawn": lines_drawn, **pool.facts}
    quarantine(pool.bad, counts, params, source_name)


def _in_full(row: BadRow, beside: str) -> BadRow:
    """Return a bad row with what is wrong beside its reason: leaving --strict out would not help it."""
    return row._replace(reason=f"{row.reason}, and beside that {beside}") if beside else row


def quarantine(bad: list[BadRow], counts: Counts, params: IngestParams, name: str) -> None:
    """List the bad rows in `counts.facts`, in natural order, the first 1,000 of them.

    Raises MediError, naming the first bad row and how many there are, where they are more than allowed.
    """
    if not bad:
        return
    bad = sorted(bad, key=lambda row: natural(row.origin))
    listed = bad[:QUARANTINE_ROWS]
    counts.facts["quarantine"] = [{"origin": r.origin, "offset": r.offset, "reason": r.reason} for r in listed]
    count = counts.dropped["bad"]
    if count > max(params.max_bad_rows, int(counts.rows_in * params.max_bad_percent / 100)):
        raise MediError(f"{name}: {_complaint(bad, count, counts.rows_in)}")


def _complaint(bad: list[BadRow], count: int, drawn_rows: int) -> str:
    """Return what is wrong with the first bad row, how many are, and the one thing that helps."""
    first = next((row for row in bad if row.damage), bad[0])
    place = first.origin if first.offset is None else f"{first.origin} (byte {first.offset:,})"
    if first.damage:
        # Where no fetching helps (a line without end), the lines before it may do: the file is read no further.
        before = f", or go on with what stands before it alone by --max-bad-rows {count}"
        return f"{place}: {first.reason}{before if first.reason.endswith(_LOOK) and count < drawn_rows else ''}"
    told = f"{place}: {first.reason}; {count:,} bad of {drawn_rows:,} records drawn"
    if first.reason.endswith(STRICT):
        others = sum(not row.reason.endswith(STRICT) for row in bad)
        return f"{told}: leave --strict out" + (f" ({others:,} would still be bad)" if others else "")
    if count == drawn_rows:
        return f"{told}: none can be read; put the file that belongs here in its place, or mend it"
    return f"{told}: mend the file, or go on without them by --max-bad-rows {count}"


def _table(source_name: str, rows: list[Row]) -> pa.Table:
    """Return the rows as ROWS, sorted by id: a column at a time, which takes a tenth of what a dict a row takes."""
    columns = {name: [getattr(row, name) for row in rows] for name in Row.__slots__ if name in ROWS.names}
    columns["id"] = [row_id(source_name, source_name, row.query, row.positive) for row in rows]
    columns |= {"task": [source_name] * len(rows), "references": [()] * len(rows)}
    nothing = [None] * len(rows)
    arrays = [pa.array(columns.get(column.name, nothing), column.type) for column in ROWS]
    return pa.Table.from_arrays(arrays, schema=ROWS).sort_by("id")
