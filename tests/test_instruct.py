"""The instruction data and the stage: the paper's 62 strings letter for letter, levels, endings, clusters, errors."""

import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from medi.errors import MediError, UsageError
from medi.instruct import (
    PARAPHRASES,
    Clusters,
    Sides,
    Slots,
    Style,
    UnitInstructions,
    instruct,
    load_evaluation,
    load_instructions,
    render,
)
from medi.schema import EXAMPLES, PAIRS, canonical_json, table_of

ROOT = Path(__file__).parent.parent
SENTENCE = "Represent the[ {domain}] {text_type}[ for {objective}]"

# Tables 7 and 8 of the paper: source|query instruction|document instruction, each without the "Represent the " and the
# ":" that all have; "=" where both are one string.
TABLES = """\
gooaq_pairs|Google question for retrieving answers|Google answer for retrieval
yahoo_answers_title_answer|Yahoo question for retrieving answers|Yahoo answer for retrieval
stackexchange|StackExchange question for retrieving duplicate questions|=
eli5_question_answer|ELI5 question for retrieving answers|ELI5 answer for retrieval
squad_pairs|Squad question for retrieving evidence documents|Squad document for retrieval
NQ|Wikipedia question for retrieving supporting documents|Wikipedia document for retrieval
amazon-qa|Amazon question for retrieving answers|Amazon answer for retrieval
WikiAnswers|Wikipedia question for retrieving duplicate questions|=
agnews|news title for retrieving relevant articles|news article for retrieval
AllNLI|sentence for retrieving duplicate sentences|=
npr|news title for retrieving relevant articles|news article for retrieval
specter_train_triples|scientific title for retrieving duplicate titles|=
ccnews_title_text|news title for retrieving relevant articles|news article for retrieval
triviaqa|question for retrieving evidence documents|evidence document for retrieval
zero_shot_re|Wikipedia question for retrieving evidence documents|Wikipedia document for retrieval
flickr30k_captions|caption for retrieving duplicate captions|=
xsum|news title for retrieving relevant articles|news article for retrieval
code_search|comment for retrieving corresponding codes|code for retrieval
msmarco|[domain] question for retrieving evidence documents|[domain] document for retrieval
hotpotqa|Wikipedia question for retrieving supporting documents|Wikipedia document for retrieval
fever|fact for retrieving supporting evidence|evidence for retrieval
amazon_review_2018|Amazon title for retrieving relevant reviews|Amazon review for retrieval
S2ORC_title_abstract|Scientific title for retrieving relevant abstracts|Scientific abstract for retrieval
PAQ_pairs|question for retrieving evidence documents|evidence document for retrieval
wow|Wikipedia question for retrieving supporting documents|Wikipedia document for retrieval
trex|Wikipedia question for retrieving supporting documents|Wikipedia document for retrieval
pubmed|Medicine sentence for retrieving relevant documents|Medicine document for retrieval
medmcqa|Medicine question for retrieving supporting answers|Medicine answer for retrieval
wikihow|Wikipedia summary for retrieving relevant passages|Wikipedia passage for retrieval
simple_wiki|Wikipedia sentence for retrieving simplified sentences|Wikipedia sentence for retrieval
super_ni|example for the following task: [dataset definition]|=
"""


def rendered(unit: UnitInstructions) -> tuple[str, ...]:
    return tuple(render(slots, unit.style, unit.tag) for slots in unit.sides)


def unit_of(source: str, **choices: str) -> UnitInstructions:
    instructions = load_instructions(**choices)
    if source == "super_ni":
        return instructions.for_task("task9_x_y", "[dataset definition]", "Unknown")
    return instructions.for_source(source, "MIT")


def strings() -> dict[str, tuple[str, str]]:
    rows = [line.split("|") for line in TABLES.splitlines()]
    return {
        source: (f"Represent the {query}:", f"Represent the {query if document == '=' else document}:")
        for source, query, document in rows
    }


@pytest.mark.parametrize("source", strings())
def test_every_string_of_the_paper_comes_out(source: str) -> None:
    assert len(strings()) == 31
    assert rendered(unit_of(source)) == strings()[source]


def test_the_strings_here_are_those_of_the_tables() -> None:
    tables = ROOT.parent / "shared" / "reference" / "medi_tables.tsv"
    if not tables.exists():
        pytest.skip("../shared/reference/medi_tables.tsv is not there")
    rows = [line.split("\t") for line in tables.read_text(encoding="utf-8").splitlines()[2:]]
    assert {name: (query, document) for name, _, _, query, document in rows} == strings()


@pytest.mark.parametrize(("ending", "last"), [(":", ":"), (";", ";"), ("; Input: ", "; Input:")])
def test_optional_parts_leave_nothing_behind(ending: str, last: str) -> None:
    style = Style(SENTENCE, ending)
    assert render(Slots("sentence", domain="science"), style) == f"Represent the science sentence{last}"
    assert render(Slots("sentence"), style) == f"Represent the sentence{last}"
    assert render(Slots("document", objective="retrieval"), style) == f"Represent the document for retrieval{last}"


@pytest.mark.parametrize(
    ("level", "query", "task"),
    [
        ("none", "", ""),
        ("tag", "NQ:", "task9_x_y:"),
        ("simple", "Wikipedia question:", "example:"),
        (
            "detailed",
            "Represent the Wikipedia question for retrieving supporting documents:",
            "Represent the example for the following task: [dataset definition]:",
        ),
    ],
)
def test_levels_are_renderings_of_the_same_slots(level: str, query: str, task: str) -> None:
    assert rendered(unit_of("NQ", level=level))[0] == query
    assert rendered(unit_of("super_ni", level=level)) == (task, task)


def test_other_endings() -> None:
    assert rendered(unit_of("NQ", ending="released"))[1] == "Represent the Wikipedia document for retrieval;"
    assert rendered(unit_of("NQ", ending="v1"))[1] == "Represent the Wikipedia document for retrieval; Input:"


def test_a_definition_is_folded_and_otherwise_kept() -> None:
    definition = " Pick {domain} or\n[text_type].  Answer with:\n"
    unit = load_instructions().for_task("task1_a_b", definition, "Unknown")
    assert rendered(unit)[0] == (
        "Represent the example for the following task: Pick {domain} or [text_type]. Answer with:"
    )
    with pytest.raises(MediError, match="task1_a_b has an empty definition"):
        load_instructions().for_task("task1_a_b", " \n", "Unknown")


def pairs_of(*ids: str) -> pa.Table:
    row = {"task": "msmarco", "kind": "pair", "query": "q", "positive": "p", "negatives": ["n"], "negative_labels": []}
    scores = {
        "positive_score": 0.5,
        "negative_scores": [0.25],
        "negative_origins": ["given"],
        "origin": "f:1",
        "rank": 1,
    }
    return table_of(({"id": one} | row | scores for one in ids), PAIRS)


def test_the_stage_adds_source_licence_and_instructions() -> None:
    unit = UnitInstructions("toy", "toy", "CC0-1.0", Sides(Slots("fact"), Slots("page", "news")), Style(SENTENCE))
    assert canonical_json(asdict(unit)).endswith(
        b'"source":"toy","style":{"ending":":","level":"detailed","sentence":'
        b'"Represent the[ {domain}] {text_type}[ for {objective}]"},"tag":"toy"}'
    )
    table, counts = instruct(pairs_of("msmarco/b", "msmarco/a"), unit)
    assert table.schema == EXAMPLES
    assert table.column("id").to_pylist() == ["msmarco/a", "msmarco/b"]
    first = table.to_pylist()[0]
    assert (first["source"], first["task"], first["licence"]) == ("toy", "msmarco", "CC0-1.0")
    assert (first["query_instruction"], first["document_instruction"]) == (
        "Represent the fact:",
        "Represent the news page:",
    )
    assert (first["negatives"], first["negative_scores"], first["negative_origins"]) == (["n"], [0.25], ["given"])
    assert (counts.rows_in, counts.rows_out, dict(counts.dropped)) == (2, 2, {})
    assert counts.facts["slots"] == {
        "query": {"text_type": "fact", "domain": "", "objective": ""},
        "document": {"text_type": "page", "domain": "news", "objective": ""},
    }


def test_the_stage_takes_no_rows_too() -> None:
    table, counts = instruct(pairs_of(), unit_of("NQ"))
    assert (table.schema, len(table), counts.rows_in) == (EXAMPLES, 0, 0)


def test_clusters_become_tasks_with_a_domain_word() -> None:
    clusters = Clusters(np.array([1, 0, 1]), ["travel", "law"])
    table, counts = instruct(pairs_of("msmarco/a", "msmarco/b", "msmarco/c"), unit_of("msmarco"), clusters)
    assert table.column("id").to_pylist() == ["msmarco/b", "msmarco/a", "msmarco/c"]
    assert table.column("task").to_pylist() == ["msmarco/00", "msmarco/01", "msmarco/01"]
    assert table.column("document_instruction").to_pylist() == [
        "Represent the travel document for retrieval:",
        "Represent the law document for retrieval:",
        "Represent the law document for retrieval:",
    ]
    assert counts.facts["slots_of_task"]["msmarco/01"]["query"]["domain"] == "law"


def test_the_vocabulary_has_table_4_and_a_hundred_more_words() -> None:
    vocabulary = load_instructions().vocabulary
    assert {"wikipedia", "coronavirus", "physics"} < set(vocabulary)
    assert len(vocabulary) == len(set(vocabulary)) >= 111
    assert all(word == word.lower() and len(word.split()) <= 2 for word in vocabulary)


def test_paraphrases_differ_and_leave_definitions_alone() -> None:
    said = {rendered(unit_of("NQ", paraphrase=one)) for one in ("", *PARAPHRASES)}
    assert len(said) == 6
    assert ("Represent this Wikipedia question for finding supporting documents:",
            "Represent this Wikipedia document for search:") in said  # fmt: skip
    for one in PARAPHRASES:
        unit = load_instructions(paraphrase=one).for_task("task1_a_b", "Retrieving documents.", "Unknown")
        assert rendered(unit)[0].endswith("the following task: Retrieving documents.:")


def test_evaluation_sets_have_the_papers_strings() -> None:
    sets, style = load_evaluation(), Style(SENTENCE)
    assert len(sets) == 70
    shown = {
        "MindSmallReranking": "Represent the News query for retrieving articles:",
        "MedrxivClusteringS2S": "Represent the Medicine statement for retrieval:",
        "TwitterSemEval2015": "Represent the Tweet post for retrieving duplicate comments:",
        "ImdbClassification": "Represent the Review sentence for classifying emotion as positive or negative:",
        "STS12": "Represent the statement:",
        "SummEval": "Represent the Biomedical summary for retrieving duplicate summaries:",
        "mscoco": "Represent the caption for retrieving duplicate captions:",
        "GeoQuery": "Represent the Geography example for retrieving duplicate examples:",
    }
    assert {name: render(sets[name].query, style) for name in shown} == shown
    polarity = "Represent the Amazon comment for classifying the sentence as positive or negative:"
    assert render(sets["AmazonPolarityClassification"].query, style) == polarity
    assert render(sets["FiQA2018"].document, style) == "Represent the finance document for retrieval:"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("templates.toml", None, "has no templates.toml"),
        ("templates.toml", 'sentence = "Represent it"\n[endings]\npaper = ":"\n', "needs {text_type}"),
        ("templates.toml", 'sentence = "{text_type}"\n', "has no 'endings'"),
        ("embedding.toml", "[NQ\n", "is not TOML"),
        ("embedding.toml", '[NQ]\nquery = { text_type = "fact" }\n', "NQ has query: write"),
        ("embedding.toml", '[NQ]\nboth = { text = "fact" }\n', "NQ has the slots text: text_type is needed"),
        ("msmarco_domains.toml", '[domains]\n0 = "law"\n', "two digits"),
        ("vocabulary.toml", "table_4 = []\n", "has no word"),
        ("msmarco_domains.toml", '[domains]\n00 = "law"\n07 = " "\n08 = 5\n', "no word for 07, 08: write one"),
    ],
)
def test_a_wrong_folder_says_what_is_wrong(tmp_path: Path, file: str, text: str | None, message: str) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(ROOT / "instructions", folder)
    (folder / file).unlink() if text is None else (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as told:
        load_instructions(folder)
    assert message in str(told.value) and "\n" not in str(told.value)


def test_another_folder_is_used_as_it_stands(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "instructions", tmp_path / "mine")
    (tmp_path / "mine" / "embedding.toml").write_text('[mine]\nboth = { text_type = "poem" }\n', encoding="utf-8")
    instructions = load_instructions(tmp_path / "mine")
    assert rendered(instructions.for_source("mine", "MIT"))[0] == "Represent the poem:"
    with pytest.raises(UsageError, match="source NQ has no instruction"):
        instructions.for_source("NQ", "MIT")


@pytest.mark.parametrize("choice", [{"ending": "?"}, {"level": "loud"}, {"paraphrase": "06"}])
def test_an_unknown_choice_lists_the_known_ones(choice: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="choose one of"):
        load_instructions(**choice)
