"""NQ and the six sets that MEDI took from KILT: questions, claims and dialogues with passages of Wikipedia.

MEDI most plausibly read DPR's training files (NQ) and those of KILT's multi-task DPR (the six), which bring hard
negatives; KILT's own rows name pages only, whose passages are looked up in the knowledge source.
"""

from medi.source import (
    Bad,
    Drop,
    Fields,
    File,
    Json,
    Place,
    Source,
    Variant,
    member,
    optional,
    query_pairs,
    query_triplets,
    text_of,
)
from medi.sources.embedding_training_data import PAIR, hub_file

_HARD_NEGATIVES = 4
_DPR_FIELDS = {
    "query": "question",
    "positive": "positive_ctxs[0].title, .text",
    "other_positives": "positive_ctxs[1:]",
    "negatives": f"hard_negative_ctxs[:{_HARD_NEGATIVES}]",
}
_DPR_SAMPLE = (
    '{"question": "who built lume tower", "answers": ["Ada Kreis"],'
    ' "positive_ctxs": [{"title": "Lume Tower", "text": "The tower was built by Ada Kreis."},'
    ' {"title": "Ada Kreis", "text": "She built the tower at Lume."}], "negative_ctxs": [],'
    ' "hard_negative_ctxs": [{"title": "Lume", "text": "Lume has a harbour."}]}'
)
_COLUMNS = {"query": "query", "positive": "pos", "negatives": "neg"}
_COLUMNS_SAMPLE = (
    '{"query": "who built lume tower", "pos": "Lume Tower The tower was built by Ada Kreis.",'
    ' "neg": "Lume Lume has a harbour.", "idx": 7, "task_name": "hotpotqa"}'
)
_KILT_FIELDS = {"query": "input", "positive": "output[].provenance[0]", "other_positives": "output[].provenance[1:]"}
_KILT_SAMPLE = (
    '{"id": "q7", "input": "who built lume tower", "output": [{"answer": "Kreis"}, {"answer": "Ada Kreis",'
    ' "provenance": [{"wikipedia_id": "12", "title": "Lume Tower", "start_paragraph_id": 1, "start_character": 4,'
    ' "end_paragraph_id": 1, "end_character": 33, "section": "Section::::Abstract."},'
    ' {"wikipedia_id": "15", "title": "Ada Kreis", "start_paragraph_id": 2, "start_character": 0}]}]}'
)
_KNOWLEDGE = File("kilt/*knowledgesource*.json*", "kilt_knowledgesource.json", 37_320_000_000)


def dpr_record(record: Json) -> Fields:
    """Read a DPR record: text is title, blank, text; the first positive context, up to four first hard negatives.

    Raises Drop("no_positive") where it has no positive context, Bad for another shape.
    """
    mends: set[str] = set()
    question = text_of(member(record, "question", mends), "question", mends)
    positives = _contexts(member(record, "positive_ctxs", mends), "positive_ctxs", mends)
    if not positives:
        raise Drop("no_positive")
    hard = optional(record, "hard_negative_ctxs", mends)
    negatives = _contexts(hard[:_HARD_NEGATIVES] if isinstance(hard, list) else hard, "hard_negative_ctxs", mends)
    return Fields(question, positives[0], tuple(positives[1:]), tuple(negatives), tuple(sorted(mends)))


def _contexts(value: Json, name: str, mends: set[str]) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Bad(f"{name} is no array")
    return [_passage(context, mends) for context in value]


def _passage(context: Json, mends: set[str]) -> str:
    text = text_of(member(context, "text", mends), "text", mends)
    title = optional(context, "title", mends)
    return f"{text_of(title, 'title', mends)} {text}" if title else text


def columns(record: Json) -> Fields:
    """Read a row of `query`, `pos` and, where there is one, `neg`, each a text or a list. Raises Bad."""
    if not isinstance(record, dict):
        return query_pairs(record)
    row = dict(record)
    for key, value in record.items():
        if key.lower() in ("pos", "neg") and isinstance(value, str):
            row[key] = [value]
    if optional(row, "neg", set()) is not None:
        return query_triplets(row)
    return query_pairs({key: value for key, value in row.items() if key.lower() != "neg"})


def kilt_row(record: Json) -> Fields:
    """Read a KILT row: the input, and where its provenances start; those of all outputs are positives.

    Raises Drop: `no_input`, or `no_provenance` where no output names a page. Raises Bad for another shape.
    """
    mends: set[str] = set()
    outputs = optional(record, "output", mends)
    if not isinstance(outputs, list):
        raise Bad("expected an object with the array 'output'")
    question = optional(record, "input", mends)
    if question is None:
        raise Drop("no_input")
    query = text_of(question, "input", mends)
    places = dict.fromkeys(_place(found, mends) for output in outputs for found in _provenance(output, mends))
    if not places:
        raise Drop("no_provenance")
    return Fields(query, "", mended=tuple(sorted(mends)), places=tuple(places))


def _provenance(output: Json, mends: set[str]) -> list[Json]:
    if not isinstance(output, dict):
        raise Bad("an output is no object")
    found = optional(output, "provenance", mends) or []
    if not isinstance(found, list):
        raise Bad("'provenance' is no array")
    return found


def _place(provenance: Json, mends: set[str]) -> Place:
    page_id = optional(provenance, "wikipedia_id", mends)
    if not isinstance(page_id, str | int):
        raise Bad("a provenance has no 'wikipedia_id'")
    start = (optional(provenance, key, mends) for key in ("start_paragraph_id", "start_character"))
    paragraph, character = (value or 0 for value in start)
    if not (isinstance(paragraph, int) and isinstance(character, int)):
        raise Bad("a provenance starts at no whole number")
    return Place(str(page_id), paragraph, character)


def dpr_file(stem: str, place: str = "", remote: str = "", lines: int | None = None) -> Variant:
    """Return the variant that reads DPR files `<stem>-*.json*`, a train file where there is one."""
    otherwise = (f"dpr_format/{stem}-*.json*",)
    if stem == "biencoder-nq":
        otherwise += ("dpr_format/nq-train*.json*", "dpr_format/nq-*.json*")
    file = File(f"dpr_format/{stem}-train*.json*", remote, None, otherwise)
    how = f"put the DPR training file {stem}-train-multikilt.json into DIR/dpr_format/, then --raw DIR"
    return Variant("dpr", "DPR", _DPR_FIELDS, dpr_record, _DPR_SAMPLE, place, (file,), lines, True, how=how)


def hub_columns(name: str, given_negatives: bool = True, lines: int | None = None, also: str = "") -> Variant:
    """Return the variant that reads the tables of the Hub's `multi-train/emb-<name>-train`.

    In a raw folder the set may also go by the name `also`.
    """
    first, *others = [
        f"multi_train/emb-{set_name}-train/{below}" for set_name in (name, also) for below in ("*", "*/*")
    ]
    file = File(first, "data/train-*.parquet", otherwise=tuple(others) if also else (others[0],))
    sample = (
        _COLUMNS_SAMPLE if given_negatives else '{"query": "what is loam", "pos": "Sand, silt and clay.", "idx": 3}'
    )
    fields = _COLUMNS if given_negatives else {"query": "query", "positive": "pos"}
    place = f"hub:multi-train/emb-{name}-train"
    return Variant("multi_train", "query, pos, neg", fields, columns, sample, place, (file,), lines, given_negatives)


def kilt_file(stem: str, remote: str, lines: int) -> Variant:
    """Return the variant that reads KILT's rows (dev only where there is no train) and its knowledge source."""
    file = File(f"kilt/{stem}-train*-kilt.jsonl*", remote, None, (f"kilt/{stem}-dev*-kilt.jsonl*",))
    place = "https://dl.fbaipublicfiles.com/KILT"
    return Variant("kilt", "KILT", _KILT_FIELDS, kilt_row, _KILT_SAMPLE, place, (file,), lines, pages=_KNOWLEDGE)


def _kilt_source(name: str, quota_rows: int, licence: str, citation: str, *variants: Variant) -> Source:
    return Source(name, quota_rows, False, licence, citation, variants)


SOURCES: tuple[Source, ...] = (
    _kilt_source(
        "NQ",
        50_000,
        "CC BY-SA 3.0",
        "Kwiatkowski et al. 2019, Natural Questions; Karpukhin et al. 2020, Dense Passage Retrieval",
        dpr_file(
            "biencoder-nq", "https://dl.fbaipublicfiles.com/dpr/data/retriever", "biencoder-nq-train.json.gz", 58_880
        ),
        hub_columns("nq"),
        hub_file(
            "NQ-train_pairs",
            PAIR,
            100_231,
            '["who built lume tower", "Lume Tower The tower was built by Ada Kreis."]',
            "pairs",
            27.3,
        ),
        kilt_file("nq", "nq-train-kilt.jsonl", 87_372),
    ),
    _kilt_source(
        "triviaqa",
        50_000,
        "Apache-2.0",
        "Joshi et al. 2017, TriviaQA: A Large Scale Distantly Supervised Challenge Dataset",
        dpr_file("triviaqa", lines=52_886),
        hub_columns("triviaqa", lines=52_886),
        hub_file(
            "TriviaQA_pairs",
            PAIR,
            73_346,
            '["Which port lies on the Lume?", "Lume Port is the only port on the river Lume."]',
            "pairs",
            96.9,
        ),
        kilt_file("triviaqa", "triviaqa-train_id-kilt.jsonl", 61_844),
    ),
    _kilt_source(
        "zero_shot_re",
        15_000,
        "MIT (KILT)",
        "Levy et al. 2017, Zero-Shot Relation Extraction via Reading Comprehension; Petroni et al. 2021, KILT",
        dpr_file("zeroshot", lines=132_063),
        hub_columns("zeroshot", lines=132_063, also="zero_shot_re"),
        kilt_file("structured_zeroshot", "structured_zeroshot-train-kilt.jsonl", 147_909),
    ),
    _kilt_source(
        "hotpotqa",
        40_000,
        "CC BY-SA 4.0",
        "Yang et al. 2018, HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering",
        dpr_file("hotpotqa", lines=68_659),
        hub_columns("hotpotqa", lines=68_659),
        kilt_file("hotpotqa", "hotpotqa-train-kilt.jsonl", 88_869),
    ),
    _kilt_source(
        "fever",
        75_000,
        "CC BY-SA 3.0",
        "Thorne et al. 2018, FEVER: a Large-scale Dataset for Fact Extraction and VERification",
        dpr_file("fever", lines=71_257),
        hub_columns("fever", lines=71_257),
        kilt_file("fever", "fever-train-kilt.jsonl", 104_966),
    ),
    _kilt_source(
        "wow",
        30_000,
        "CC BY 4.0",
        "Dinan et al. 2019, Wizard of Wikipedia: Knowledge-Powered Conversational Agents",
        dpr_file("wow", lines=80_035),
        hub_columns("wow", lines=80_035),
        kilt_file("wow", "wow-train-kilt.jsonl", 63_734),
    ),
    _kilt_source(
        "trex",
        30_000,
        "CC BY-SA 4.0",
        "Elsahar et al. 2018, T-REx: A Large Scale Alignment of Natural Language with Knowledge Base Triples",
        dpr_file("trex", lines=2_284_168),
        hub_columns("trex", lines=2_284_168),
        kilt_file("trex", "trex-train-kilt.jsonl", 2_284_168),
    ),
)
