"""The steps of a unit between its tokens and its pairs: candidates, near-duplicates, a cross-encoder's scores, pairs.

Which of them run, and what they look at, the mining rules of the build decide.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property

import pyarrow as pa

from medi import mine
from medi.mine.rescoring import rescore
from medi.schema import NEAR, Counts, text_id
from medi.store import Record
from medi.vectors import id_numbers
from pipelines.build.context import Context
from pipelines.build.keep import Look, What, step
from pipelines.build.units import SUPER_NI, Unit


@dataclass(frozen=True)
class Desk:
    """A unit's tables, opened at most once however many of its steps run."""

    context: Context
    unit: Unit
    rows: Record
    tokens: Record

    @property
    def kind(self) -> str:
        """Return `pair`, `label` or `text`."""
        return kind_of(self.rows)

    @property
    def given(self) -> mine.PairRules | None:
        """Return what the pairs of an embedding set say of each other; None where pairs are mined."""
        return given_rules(self.context, self.unit)

    @cached_property
    def table(self) -> pa.Table:
        """The unit's ROWS."""
        return self.context.store.open(self.rows)

    @cached_property
    def token_table(self) -> pa.Table:
        """The unit's TOKENS."""
        return self.context.store.open(self.tokens)

    @cached_property
    def texts(self) -> mine.Texts:
        """The unit's texts with their vectors."""
        encoded = mine.texts_to_encode(self.table, self.kind, self.given, self.token_table)
        vectors = self.context.vectors.gather(id_numbers([text_id(text) for text in encoded]))
        known = mine.texts_to_tokenize(self.table, self.kind, self.given)
        return mine.Texts.of(known, self.token_table, encoded, vectors)

    @property
    def inputs(self) -> dict[str, str]:
        """The contents that every step of mining looks at."""
        return {"rows": self.rows.content, "tokens": self.tokens.content}

    def step(
        self, stage: str, params: dict[str, object], inputs: dict[str, str], look: Look,
        run: Callable[[], tuple[pa.Table, Counts]],
    ) -> Record:  # fmt: skip
        """Return the record of a stage of this unit, running the stage where there is none."""
        what: What = (stage, self.unit.name, params, self.inputs | inputs)
        return step(self.context, what, look, run)


@dataclass(frozen=True)
class Mined:
    """The records of a unit's mining; `near` and `rescored` are None where the rules do not ask for them."""

    candidates: Record
    near: Record | None
    rescored: Record | None
    pairs: Record
    audit: Record

    def records(self) -> list[Record]:
        """Return those that there are."""
        return [r for r in (self.candidates, self.near, self.rescored, self.pairs, self.audit) if r is not None]


def mine_unit(desk: Desk, look: Look) -> Mined:
    """Return the records of a unit's mining. Raises Missing as `keep.step` does."""
    rules = desk.context.rules
    candidates = _candidates(desk, look)
    near = _near(desk, look) if rules.collapse_near_duplicates and desk.given else None
    rescored = _rescored(desk, candidates, look) if rules.rescore is not None else None
    pairs = _pairs(desk, candidates, near, rescored, look)
    params: dict[str, object] = {"source": desk.unit.source}
    audit = desk.step("audit", params, {"pairs": pairs.content}, look, lambda: _audit(desk, pairs))
    return Mined(candidates, near, rescored, pairs, audit)


def kind_of(rows: Record) -> str:
    """Return `pair`, `label` or `text`."""
    return str(rows.counts["facts"].get("kind", "pair"))


def given_rules(context: Context, unit: Unit) -> mine.PairRules | None:
    """Return what the pairs of an embedding set say of each other, and how many given negatives a row keeps."""
    source = unit.declared
    if unit.source == SUPER_NI or source.labelled:
        return None
    rules = context.rules
    return mine.PairRules(source.symmetric, source.clusters, rules.given_negatives, rules.given_looked_at)


def _candidates(desk: Desk, look: Look) -> Record:
    """Return the record of the unit's CANDIDATES, the same whatever is chosen among them."""
    given, strategy, ivf_from = desk.given, desk.context.rules.strategy, desk.context.rules.ivf_from
    params: dict[str, object] = {"kind": desk.kind, "encoder": desk.context.encoder_params}
    if given:
        params |= {"strategy": strategy, "symmetric": given.symmetric, "clusters": given.clusters}
        # Of fewer rows there are fewer documents: what was found of them exactly stands.
        params |= {"ivf_from": ivf_from} if ivf_from is not None and desk.rows.rows >= ivf_from else {}

    def run() -> tuple[pa.Table, Counts]:
        """Return the candidates of every row."""
        if given:
            return mine.pair_candidates(desk.table, desk.texts, given, strategy, desk.context.search, ivf_from)
        task = mine.label_candidates if desk.kind == "label" else mine.text_candidates
        return task(desk.table, desk.texts, desk.context.search)

    return desk.step("candidates", params, {}, look, run)


def _near(desk: Desk, look: Look) -> Record:
    """Return the record of the near-duplicates among the unit's queries, positives and given negatives."""

    def run() -> tuple[pa.Table, Counts]:
        """Return the groups of near-duplicates."""
        from medi.mine.near import near_groups

        others = (text for listed in desk.table["other_positives"].to_pylist() for text in listed)
        encoded = mine.texts_to_encode(desk.table, desk.kind, desk.given, desk.token_table)
        named = sorted((text_id(text), text) for text in {*encoded, *others})
        ids = [name for name, _ in named]
        groups = near_groups([text for _, text in named])
        table = pa.table([ids, [ids[group] for group in groups.tolist()]], schema=NEAR)
        return table, Counts(len(ids), len(ids), facts={"groups": len(set(groups.tolist()))})

    return desk.step("near", {"given_looked_at": desk.context.rules.given_looked_at}, {}, look, run)


def _rescored(desk: Desk, candidates: Record, look: Look) -> Record:
    """Return the record of the cross-encoder's scores of the unit's candidates."""
    rules = desk.context.rules
    names = ("rescore", "window", "negatives", "given_negatives", "max_positive_score")
    params: dict[str, object] = {"kind": desk.kind}
    params |= {name: getattr(rules, name) for name in names}

    def run() -> tuple[pa.Table, Counts]:
        """Return the candidates with the scores of the cross-encoder."""
        listed = desk.context.store.open(candidates)
        score = desk.context.cross_encoder().score
        with desk.context.device("mine"):
            return rescore(desk.kind, desk.table, desk.texts, listed, (rules, desk.given), score)

    return desk.step("rescore", params, {"candidates": candidates.content}, look, run)


def _pairs(desk: Desk, candidates: Record, near: Record | None, rescored: Record | None, look: Look) -> Record:
    """Return the record of the unit's PAIRS, all of the pool."""
    context, given = desk.context, desk.given
    params: dict[str, object] = {
        "kind": desk.kind, "encoder": context.encoder_params, "rules": context.rules.to_json(),
    }  # fmt: skip
    if given:
        params["relation"] = asdict(given)
    inputs = {"candidates": candidates.content}
    inputs |= {name: r.content for name, r in (("near", near), ("rescored", rescored)) if r is not None}

    def run() -> tuple[pa.Table, Counts]:
        """Return the pairs that the rules choose."""
        hints = mine.Hints(
            near and mine.near_of(desk.texts, context.store.open(near)),
            rescored and context.store.open(rescored),
            context.search.scan_bytes,
        )
        listed = context.store.open(candidates)
        if given:
            return mine.mine_pairs(desk.table, desk.texts, listed, given, context.rules, hints)
        return mine.mine_task(desk.kind, desk.table, desk.texts, listed, context.rules, hints)

    return desk.step("mine", params, inputs, look, run)


def _audit(desk: Desk, pairs: Record) -> tuple[pa.Table, Counts]:
    """Return the unit's POSITIVES, what `medi verify` checks negatives against."""
    table = mine.audit(desk.unit.source, desk.table, desk.context.store.open(pairs), desk.texts)
    return table, Counts(rows_in=len(table), rows_out=len(table))
