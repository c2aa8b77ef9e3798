"""PubMedQA and MedMCQA: questions with the abstract they are about, and exam questions with their explanation."""

from collections.abc import Callable

from medi.source import Bad, Drop, Fields, File, Json, Source, Variant, member, optional, text_of, texts_of
from medi.sources.wikipedia import hub_columns


def pubmedqa_record(record: Json) -> Fields:
    """Read `{"QUESTION", "CONTEXTS": [...]}`: the positive is the abstract's sections, joined by blanks. Raises Bad."""
    mends: set[str] = set()
    question = text_of(member(record, "QUESTION", mends), "QUESTION", mends)
    sections = texts_of(member(record, "CONTEXTS", mends), "CONTEXTS", mends)
    return Fields(question, " ".join(sections), mended=tuple(sorted(mends)))


def pubmedqa_row(record: Json) -> Fields:
    """Read a row of the Hub's tables, where the sections stand in `context.contexts`. Raises Bad."""
    mends: set[str] = set()
    question = text_of(member(record, "question", mends), "question", mends)
    sections = texts_of(member(member(record, "context", mends), "contexts", mends), "contexts", mends)
    return Fields(question, " ".join(sections), mended=tuple(sorted(mends)))


def medmcqa_row(record: Json) -> Fields:
    """Read a question and its explanation. Raises Drop("no_explanation") where `exp` has no text, Bad."""
    mends: set[str] = set()
    question = text_of(member(record, "question", mends), "question", mends)
    explanation = optional(record, "exp", mends)
    if explanation is None or (isinstance(explanation, str) and not explanation.strip()):
        raise Drop("no_explanation")
    if not isinstance(explanation, str):
        raise Bad("'exp' is no text")
    return Fields(question, explanation, mended=tuple(sorted(mends)))


def _medmcqa(name: str, place: str, file: File, how: str = "") -> Variant:
    fields = {"query": "question", "positive": "exp"}
    return Variant(name, "JSON lines", fields, medmcqa_row, _MEDMCQA_SAMPLE, place, (file,), 182_822, how=how)


def _pubmedqa_file(stem: str) -> File:
    """Declare one of the two files that hold records with an abstract; beside them lie answers and unlabeled ones."""
    return File(f"pubmedqa/{stem}.json", otherwise=(f"pubmedqa/{stem}.json.gz",), keyed=True)


def _pubmed(
    name: str, fields: dict[str, str], read: Callable[[Json], Fields], sample: str, place: str, files: tuple[File, ...]
) -> Variant:
    how = "put ori_pqal.json and ori_pqaa.json of PubMedQA into DIR/pubmedqa/, then --raw DIR"
    return Variant(name, "PubMedQA", fields, read, sample, place, files, 212_269, how="" if place else how)


_MEDMCQA_SAMPLE = (
    '{"id": "a1", "question": "Which vitamin does the sun help to make?", "opa": "A", "opb": "D", "opc": "C",'
    ' "opd": "K", "cop": 2, "choice_type": "single", "exp": "Skin makes vitamin D in sunlight.",'
    ' "subject_name": "Physiology", "topic_name": null}'
)

PUBMED = Source(
    "pubmed",
    30_000,
    False,
    "MIT",
    "Jin et al. 2019, PubMedQA: A Dataset for Biomedical Research Question Answering",
    (
        _pubmed(
            "files",
            {"query": "QUESTION", "positive": "CONTEXTS"},
            pubmedqa_record,
            '{"QUESTION": "Does rest help a sprain?", "CONTEXTS": ["Forty sprains were seen.", "Half were rested."],'
            ' "LABELS": ["METHODS", "RESULTS"], "MESHES": [], "final_decision": "yes", "LONG_ANSWER": "It does."}',
            "",
            tuple(_pubmedqa_file(stem) for stem in ("ori_pqaa", "ori_pqal")),
        ),
        _pubmed(
            "hub",
            {"query": "question", "positive": "context.contexts"},
            pubmedqa_row,
            '{"pubid": 7, "question": "Does rest help a sprain?", "context": {"contexts": ["Forty sprains were seen.",'
            ' "Half were rested."], "labels": ["METHODS", "RESULTS"], "meshes": []}, "final_decision": "yes"}',
            "hub:qiaojin/PubMedQA",
            (
                File("pubmedqa/pqa_labeled/*", "pqa_labeled/train-*.parquet"),
                File("pubmedqa/pqa_artificial/*", "pqa_artificial/train-*.parquet"),
            ),
        ),
        hub_columns("pubmed", False, 212_269),
    ),
)

MEDMCQA = Source(
    "medmcqa",
    30_000,
    False,
    "Apache-2.0 (Hub); MIT (GitHub)",
    "Pal et al. 2022, MedMCQA: A Large-scale Multi-Subject Multi-Choice Dataset for Medical domain Question Answering",
    (
        _medmcqa(
            "files",
            "",
            File("medmcqa/train*", otherwise=("medmcqa/*", "medmcqa/data/train*")),
            "put train.json of MedMCQA into DIR/medmcqa/, then --raw DIR",
        ),
        _medmcqa("hub", "hub:openlifescienceai/medmcqa", File("medmcqa/data/train*", "data/train-*.parquet")),
        hub_columns("medmcqa", False, 160_869),
    ),
)

SOURCES: tuple[Source, ...] = (PUBMED, MEDMCQA)
