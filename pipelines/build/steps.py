"""The steps of one unit, each a look into the store first: found means done, else the stage runs and is kept.

A unit is what goes through the stages on its own: one of the 30 embedding sets, or one Super-NI task. Steps give
records; tables stay in the store.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from medi import mine
from medi.domains import Queries, Vocabulary, find_domains
from medi.embed import chunks, embed, tokens
from medi.instruct import Clusters, UnitInstructions, instruct
from medi.sample import sample
from medi.schema import Counts, text_id
from medi.store import Record
from medi.vectors import CHUNK_ROWS, id_numbers
from pipelines.build.context import Context
from pipelines.build.keep import NOTHING, Look, step
from pipelines.build.mining import Desk, Mined, given_rules, kind_of, mine_unit
from pipelines.build.progress import reporter
from pipelines.build.reading import run_ingest
from pipelines.build.units import SUPER_NI, Unit


@dataclass(frozen=True)
class Chain:
    """The records of a unit's stages."""

    rows: Record
    tokens: Record
    mined: Mined
    sampled: Record
    instructed: Record

    def records(self) -> list[Record]:
        """Return them as a list."""
        return [self.rows, self.tokens, *self.mined.records(), self.sampled, self.instructed]


def ingest_step(context: Context, unit: Unit, look: Look = NOTHING) -> Record:
    """Return the record of the unit's ROWS."""
    settings = context.settings
    params: dict[str, object] = {
        "source": unit.source,
        "variant": unit.variant,
        "layout": unit.origin.layout,
        "fields": unit.origin.fields,
        "seed": settings.seed,
        "strict": settings.strict,
        "max_bad_rows": settings.max_bad_rows,
    }
    if unit.source == SUPER_NI and settings.licences:
        params["licences"] = list(settings.licences)
    if unit.source != SUPER_NI or settings.take == "first":
        # Otherwise a Super-NI task is read whole, whatever its quota.
        params |= {"quota_rows": unit.quota_rows, "take": settings.take}
    if unit.source != SUPER_NI:
        params |= {
            "check_all_lines": settings.check_all_lines,
            "keyed": any(file.keyed for file in unit.origin.files),
            "beginnings": sorted(file.name for file in unit.files if file.prefix),
            **unit.declared_by,
        }
    inputs = {file.name: file.sha256 for file in (*unit.files, *unit.pages)}
    return step(context, ("ingest", unit.name, params, inputs), look, lambda: run_ingest(settings, unit))


def tokens_step(context: Context, unit: Unit, rows: Record, look: Look = NOTHING) -> Record:
    """Return the record of the unit's TOKENS."""
    spec = context.spec.to_json()
    params: dict[str, object] = {key: spec[key] for key in ("name", "revision", "prompt", "max_length_tokens")}
    if unit.source != SUPER_NI:
        params["given_looked_at"] = context.rules.given_looked_at

    def run() -> tuple[pa.Table, Counts]:
        """Return the tokens of the unit's texts."""
        texts = mine.texts_to_tokenize(context.store.open(rows), kind_of(rows), given_rules(context, unit))
        return tokens(texts, context.encoder().tokenize, context.spec.max_length_tokens)

    return step(context, ("tokens", unit.name, params, {"rows": rows.content}), look, run)


def lengths_to_encode(context: Context, unit: Unit) -> dict[str, int]:
    """Return the texts that mining needs vectors of, with their lengths in tokens."""
    rows = ingest_step(context, unit)
    if is_skipped(rows):
        return {}
    table = context.store.open(tokens_step(context, unit, rows))
    known = dict(zip(table["text_id"].to_pylist(), table["length_tokens"].to_pylist(), strict=True))
    texts = mine.texts_to_encode(context.store.open(rows), kind_of(rows), given_rules(context, unit), table)
    return {text: known[text_id(text)] for text in texts}


def missing_texts(context: Context, lengths: Mapping[str, int]) -> list[str]:
    """Return those of the texts that have no vector yet, sorted."""
    texts = sorted(lengths)
    ids = id_numbers([text_id(text) for text in texts])
    wanted = np.isin(ids, context.vectors.missing(ids))
    return [text for text, want in zip(texts, wanted, strict=True) if want]


def encode_texts(context: Context, lengths: Mapping[str, int]) -> None:
    """Encode those of the texts that have no vector yet: together, so that few batches hold blanks; in chunks, so that
    a build that was stopped goes on behind the last chunk.
    """
    with context.device("embed"):
        missing = missing_texts(context, lengths)
        for chunk in chunks(missing, np.array([lengths[text] for text in missing]), CHUNK_ROWS):
            encoder = context.encoder()
            vectors = embed(chunk, encoder.tokenize, encoder.encoder, context.spec.dtype, _show_encoded)
            context.vectors.put(id_numbers([text_id(text) for text in chunk]), vectors)


def _show_encoded(texts: int) -> None:
    """Show that so many more texts are encoded."""
    reporter().advance("embed", rows=texts, steps=texts)


def sample_step(context: Context, unit: Unit, mined: Record, look: Look = NOTHING) -> Record:
    """Return the record of the unit's PAIRS within the quota."""
    what = ("sample", unit.name, {"quota_rows": unit.quota_rows}, {"pairs": mined.content})
    return step(context, what, look, lambda: sample(context.store.open(mined), unit.quota_rows))


def instruct_step(context: Context, unit: Unit, rows: Record, sampled: Record, look: Look = NOTHING) -> Record:
    """Return the record of the unit's EXAMPLES."""
    words = instructions_of(context, unit, rows)
    params: dict[str, object] = {"instructions": asdict(words)}
    if unit.source == CLUSTERED:
        params |= {
            "encoder": context.encoder_params,
            "seed": context.settings.seed,
            "domains": context.instructions.msmarco_domains,
            "vocabulary": list(context.instructions.vocabulary),
        }

    def run() -> tuple[pa.Table, Counts]:
        """Return the pairs with their instructions."""
        pairs = context.store.open(sampled)
        return instruct(pairs, words, _clusters(context, pairs) if unit.source == CLUSTERED else None)

    return step(context, ("instruct", unit.name, params, {"pairs": sampled.content}), look, run)


# The source whose rows are cut into clusters, each a task with its own domain word (paper, Table 7).
CLUSTERED = "msmarco"


def _clusters(context: Context, pairs: pa.Table) -> Clusters:
    """Return the cluster of each row, and the domain word of each cluster with what speaks for it."""
    words = list(context.instructions.vocabulary)
    lengths = dict.fromkeys(words, 1)
    reporter().expect("embed", len(missing_texts(context, lengths)))
    encode_texts(context, lengths)
    texts = pairs["query"].to_pylist()
    vectors, word_vectors = (context.vectors.gather(id_numbers([text_id(t) for t in part])) for part in (texts, words))
    vocabulary = Vocabulary(words, word_vectors, context.instructions.msmarco_domains)
    of_row, domains = find_domains(Queries(pairs["id"].to_pylist(), texts, vectors), vocabulary, context.settings.seed)
    if absent := [number for number in vocabulary.fixed if int(number) >= len(domains)]:
        said = f"names {', '.join(absent)}, but the last cluster is {len(domains) - 1:02d}: these words are not used"
        reporter().say(f"msmarco_domains.toml {said}")
    return Clusters(of_row, [domain.word for domain in domains], [domain._asdict() for domain in domains])


def instructions_of(context: Context, unit: Unit, rows: Record) -> UnitInstructions:
    """Return what is said of the unit's queries and documents."""
    if unit.source != SUPER_NI:
        return context.instructions.for_source(unit.source, unit.declared.licence)
    facts = rows.counts["facts"]
    return context.instructions.for_task(unit.name, str(facts["definition"]), str(facts["licence"]))


def is_skipped(rows: Record) -> bool:
    """Return whether the unit gives nothing, with the reason in its facts."""
    return rows.rows == 0


def finish(context: Context, unit: Unit, look: Look = NOTHING) -> Chain | None:
    """Return the records of all stages of a unit whose vectors are there, or None where it gives no rows.

    Raises:
        Missing: a record of the stages `look` is not in the store.
    """
    rows = ingest_step(context, unit, look)
    if is_skipped(rows):
        return None
    token_record = tokens_step(context, unit, rows, look)
    mined = mine_unit(Desk(context, unit, rows, token_record), look)
    sampled = sample_step(context, unit, mined.pairs, look)
    return Chain(rows, token_record, mined, sampled, instruct_step(context, unit, rows, sampled, look))
