"""A unit of a build -> what is known of it before it runs: from its artifacts, else its files, else as declared."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from medi.errors import MediError
from medi.ingest import pool_rows
from medi.plan import estimate
from medi.plan.counted import integers_of, numbers_of
from medi.plan.figures import COUNTED, EXACT, GUESSED, Figure
from medi.plan.lengths import Count, batches, mean_tokens, typical
from medi.plan.peek import Peek, peek, peek_task
from medi.plan.work import Left, Part
from medi.sample import quota_of
from medi.schema import text_id
from medi.source import Variant
from medi.store import Record
from medi.vectors import id_numbers
from pipelines.build.context import Context
from pipelines.build.fetching import TASK_BYTES
from pipelines.build.keep import EVERYTHING, Missing
from pipelines.build.mining import Desk, mine_unit
from pipelines.build.steps import ingest_step, instruct_step, is_skipped, sample_step, tokens_step
from pipelines.build.units import SUPER_NI, TASK_QUOTA_ROWS, Group, Unit

# Instances of a Super-NI task on average: 5.0 million of 1,616 tasks (arXiv 2204.07705, table 1).
_TASK_LINES = 3_100
# With --take first, the first so many of each, or ten for each row wanted.
_FIRST_TASK_LINES = 100
# Characters of a token, and how often gz packs them (measured of the files of 20 sources: 2.1 to 3.4).
_TOKEN_BYTES, _PACKED = 4.4, 2.7
_GIVEN = 4


def unit_part(context: Context, unit: Unit, width: int, count: Count) -> Part:
    """Return what is known of a unit whose files are here. `width` is the encoder's: what a search compares."""
    try:
        rows = ingest_step(context, unit, look=EVERYTHING)
    except Missing:
        return _peeked(context, unit, width, count)
    part = _drawn(unit, rows)
    if is_skipped(rows):
        return replace(part, done=("ingest", "tokens", "embed", "mine", "release"))
    try:
        tokens = tokens_step(context, unit, rows, EVERYTHING)
    except Missing:
        guess = _peeked(context, unit, width, count)
        mine = replace(guess.left, ingest_bytes=0.0, ingest_rows=0.0, mine_rows=rows.rows, release_rows=part.rows.value)
        return replace(part, texts=guess.texts, tokens=guess.tokens, left=mine)
    return _tokenized(context, unit, (rows, tokens), part, width)


def _drawn(unit: Unit, rows: Record) -> Part:
    """Return what the record of a unit's ROWS says."""
    lines = Figure(float(str(rows.counts["facts"].get("lines_read", rows.rows))), EXACT)
    pool = Figure(rows.rows, EXACT)
    planned = Figure(min(unit.quota_rows, rows.rows), GUESSED if rows.rows else EXACT)
    nothing = Figure(0.0, EXACT)
    return Part(unit.source, unit.variant, lines, pool, planned, nothing, nothing, done=("ingest",))


def _tokenized(context: Context, unit: Unit, records: tuple[Record, Record], part: Part, width: int) -> Part:
    """Return a part of which TOKENS are in place, with what is left behind them."""
    rows, tokens = records
    facts = tokens.counts["facts"]
    part = replace(
        part, texts=Figure(tokens.rows, EXACT), tokens=Figure(facts["tokens"], EXACT), done=("ingest", "tokens")
    )
    try:
        mined = mine_unit(Desk(context, unit, rows, tokens), EVERYTHING)
        sampled = sample_step(context, unit, mined.pairs, EVERYTHING)
        instructed = instruct_step(context, unit, rows, sampled, EVERYTHING)
    except Missing:
        missing, lengths = _unencoded(context, rows, tokens)
        done = part.done if missing.value else (*part.done, "embed")
        left = Left(
            texts=missing,
            batches=batches(lengths, missing.value, context.spec.shapes),
            mine_rows=rows.rows,
            search_flops=_search_flops(rows.rows, tokens.rows, width),
            release_rows=part.rows.value,
        )
        return replace(part, left=left, done=done, kept_vectors=_kept(context, tokens))
    left = Left(release_rows=instructed.rows)
    done = ("ingest", "tokens", "embed", "mine")
    return replace(part, rows=Figure(instructed.rows, EXACT), left=left, done=done, kept_vectors=tokens.rows)


def _kept(context: Context, tokens: Record) -> int:
    """Return how many of the texts have a vector."""
    ids = numbers_of(context.store.open(tokens)["text_id"])
    return len(ids) - len(context.vectors.missing(ids))


def _unencoded(context: Context, rows: Record, tokens: Record) -> tuple[Figure, np.ndarray]:
    """Return how many texts are still to be encoded, and the lengths of those that may be among them, int64 [n].

    Positives beyond the first of a row are tokenized but never encoded, and of the given negatives only the chosen are:
    of these it is known how many there may be at most.
    """
    table, drawn = context.store.open(tokens), context.store.open(rows)
    ids, lengths = numbers_of(table["text_id"]), integers_of(table["length_tokens"])
    missing = np.isin(ids, context.vectors.missing(ids))
    if rows.counts["facts"].get("kind", "pair") != "pair":
        return Figure(int(missing.sum()), EXACT), lengths[missing]
    own_texts = pa.chunked_array([*drawn["query"].chunks, *drawn["positive"].chunks]).unique().to_pylist()
    own = np.isin(ids, id_numbers([text_id(text) for text in own_texts]))
    given = sum(min(len(listed), _GIVEN) for listed in drawn["negatives"].to_pylist())
    others = min(int((missing & ~own).sum()), max(given - int((~missing & ~own).sum()), 0))
    needed = Figure(int((missing & own).sum()) + others, GUESSED if others else EXACT)
    return needed, lengths[missing] if others else lengths[missing & own]


def _peeked(context: Context, unit: Unit, width: int, count: Count) -> Part:
    """Return what a look at a unit's files says, where no build has read them."""
    try:
        seen = peek_task(unit.files[0], count) if unit.source == SUPER_NI else peek(unit.files, unit.origin, count)
    except (MediError, OSError):
        seen = Peek(Figure(0.0), 0.0, np.zeros(0, dtype=np.int64), 0.0)
    lines = seen.lines.value
    if unit.source == SUPER_NI:
        pool = min(lines, _first_lines(unit.quota_rows)) if context.settings.take == "first" else lines
    else:
        pool = min(lines, pool_rows(unit.quota_rows))
    return _part(context, (unit.source, unit.variant, unit.quota_rows), seen, pool, width)


def _part(context: Context, what: tuple[str, str, int], seen: Peek, pool: float, width: int) -> Part:
    """Return the part of a source or task of which nothing is in place."""
    source, variant, quota_rows = what
    shapes, lines = context.spec.shapes, seen.lines
    texts = pool * seen.texts_of_line
    tokens = texts * mean_tokens(seen.lengths, shapes)
    rows = Figure(min(quota_rows, pool), GUESSED)
    left = Left(
        ingest_bytes=seen.unpacked_bytes,
        ingest_rows=pool,
        tokens=tokens,
        texts=Figure(texts),
        batches=batches(seen.lengths, texts, shapes),
        mine_rows=pool,
        search_flops=_search_flops(pool, texts, width),
        release_rows=rows.value,
    )
    return Part(source, variant, lines, Figure(pool), rows, Figure(texts), Figure(tokens), left=left)


def _search_flops(rows: float, texts: float, width: int) -> float:
    """Return the operations of comparing every query with every document."""
    return 2.0 * width * rows * max(texts - rows, rows)


def _first_lines(quota_rows: int) -> int:
    """Return how many instances of a task `--take first` reads."""
    return max(_FIRST_TASK_LINES, 10 * quota_rows)


def declared_part(context: Context, group: Group, width: int) -> Part:
    """Return what is declared of a source that is still to be fetched, or of a group of Super-NI tasks."""
    settings = context.settings
    if group.source == SUPER_NI:
        return _declared_tasks(context, group, width)
    source = settings.source(group.source)
    named = settings.variants.get(source.name)
    variant = source.variant(named) if named else next((v for v in source.variants if v.place), source.variants[0])
    quota_rows = quota_of(source.quota_rows, settings.scale)
    lines = Figure(variant.lines or pool_rows(quota_rows), COUNTED if variant.lines else GUESSED)
    pool = min(lines.value, pool_rows(quota_rows))
    seen = _typical(variant, source.name, lines)
    part = _part(context, (source.name, variant.name, quota_rows), seen, pool, width)
    download = _download(variant, quota_rows, settings.take, seen)
    left = replace(part.left, fetch_bytes=download.value, ingest_bytes=_PACKED * download.value)
    return replace(part, download_bytes=download, left=left)


def _download(variant: Variant, quota_rows: int, take: str, seen: Peek) -> Figure:
    """Return what will be fetched of a variant, by its declared sizes, else by how long its lines are."""
    files = [*variant.files, *([variant.pages] if variant.pages else [])]
    told = estimate("", variant, quota_rows, {file.remote or file.pattern: file.size_bytes for file in files}, take)
    if told.download_bytes is not None:
        return Figure(told.download_bytes, COUNTED)
    line_bytes = seen.texts_of_line * float(seen.lengths.mean()) * _TOKEN_BYTES / _PACKED
    return Figure(told.guessed_bytes if take == "first" else seen.lines.value * line_bytes)


def _declared_tasks(context: Context, group: Group, width: int) -> Part:
    """Return what is guessed of Super-NI tasks that are still to be fetched."""
    quota_rows, tasks = quota_of(TASK_QUOTA_ROWS, context.settings.scale), len(group.task_names)
    first = context.settings.take == "first"
    pool = min(_TASK_LINES, _first_lines(quota_rows)) if first else _TASK_LINES
    lengths = typical(SUPER_NI, "query")
    # In half of the tasks outputs are encoded too, of which half are distinct.
    seen = Peek(Figure(_TASK_LINES * tasks), 1.25, lengths, TASK_BYTES * tasks)
    part = _part(context, (SUPER_NI, "tasks", quota_rows * tasks), seen, pool * tasks, width)
    left = replace(part.left, fetch_bytes=TASK_BYTES * tasks, search_flops=part.left.search_flops / max(tasks, 1))
    return replace(part, download_bytes=Figure(TASK_BYTES * tasks), left=left, units=tasks)


def _typical(variant: Variant, source: str, lines: Figure) -> Peek:
    """Return what is typical of a source that nobody has looked into here."""
    documents = 1 + _GIVEN * variant.given_negatives
    query, document = np.resize(typical(source, "query"), 240), typical(source, "document")
    return Peek(lines, 1.0 + documents, np.concatenate([query, np.resize(document, 240 * documents)]), 0.0)
