"""Is a Super-NI task a label task, a text task, a choice task? By rule, by TAPP's list and by eye; the eye is right."""

from pathlib import Path

import pytest

from medi.ingest import IngestParams, ingest_task
from medi.ingest.choices import choice_texts, symbol_of
from medi.ingest.verdict import find_choices, judge, normal
from medi.read import read_whole
from medi.release.verdict import verdict_line
from medi.schema import Counts
from tests.raw_lines import rows_of_task


def instances(pairs: list[tuple[str, str]]) -> list[object]:
    return [{"input": text, "output": [output]} for text, output in pairs]


@pytest.mark.parametrize(
    ("answer", "symbol"),
    [
        ("A", "a"),
        ("(b)", "b"),
        ("2.", "2"),
        ("Response 2", "2"),
        ("option C", "c"),
        ("Completion (B)", "b"),
        ("12", "12"),
        ("no", ""),
        ("A man", ""),
        ("the man B", ""),
        ("", ""),
    ],
)
def test_answers_that_name_a_choice_are_told_from_others(answer: str, symbol: str) -> None:
    assert symbol_of(answer) == symbol


@pytest.mark.parametrize(
    ("text", "symbol", "choice"),
    [
        ("Where?\n(A)bank (B)library (C)department store", "c", "department store"),
        ("Where?\n(A)bank (B)library (C)department store", "a", "bank"),
        ("A different what?\n(A)free will (B)choice (C)will", "b", "choice"),
        ("Choices:  1. Guns and swords.  2. Nobody. 3. It cost 2. 50.", "3", "It cost 2. 50."),
        ("Sentence 1: Nancy ran. Sentence 2: She won. Choices: a. Baby weight. b. The Sad Book.", "b", "The Sad Book."),
        ("He fell. (A) He was hit. (B) He sang., Question: cause", "b", "He sang."),
        ("text <sep>, Pronoun: he <sep>, A: God <sep>, B: Russell", "a", "God"),
        ("<sep>, A: Mary Smith <sep>, B: Ann Smith", "a", "Mary Smith"),
        ("Prompt: x \n Response 1: Yeah: with 2 dogs. \n Response 2: Oh.", "1", "Yeah: with 2 dogs."),
        ("Prompt: x \n Response 1: Be there at 2:15 A.M. \n Response 2: Oh.", "1", "Be there at 2:15 A.M."),
        ("Middle 1: She ran home. Middle 2: She sat. Ending: It rained.", "1", "She ran home."),
        ("Middle 1: She ran home. Middle 2: She sat. Ending: It rained.", "2", "She sat."),
        ("Sentence1: He ate soup. Sentence2: He ate a chair.", "1", "He ate soup."),
        ("It broke.\n(1)I ran.(2)I read.", "2", "I read."),
        ("Options: Option A: tea Option B: milk\nContext: B: no", "b", "milk"),
        ("Q\nA) one\nB) two\nC) three\n\nPassage: long text", "c", "three"),
        ("Options: a ) 38 , b ) 27.675 , c ) 30", "b", "27.675"),
        ("John A. Smith met B. Jones (A) yes (B) no", "a", "yes"),
        ("there is no list", "a", ""),
        ("(A) only one", "a", ""),
        ("(A) x (B) y", "c", ""),
    ],
)
def test_a_choice_is_found_by_its_marker(text: str, symbol: str, choice: str) -> None:
    assert choice_texts([text], [symbol]) == [choice]


def test_the_style_of_the_task_goes_before_what_looks_like_a_list() -> None:
    """One statement has "1) ... 2) ..." in it; its choices are written as those of the others."""
    odd = "He was 1) tall and 2) kind. Choices: 1. He was short. 2. He was good."
    plain = [f"Statement. Choices: 1. It is {word}. 2. It is not {word}." for word in ("so", "odd", "true")]
    texts = choice_texts([odd, *plain], ["2", "1", "2", "1"])
    assert texts == ["He was good.", "It is so.", "It is not odd.", "It is true."]


def choices(count: int, unresolved: int = 0) -> list[object]:
    found = [(f"{i}? (A) left {i} (B) right {i}", "AB"[i % 2]) for i in range(count - unresolved)]
    return instances([*found, *((f"none {i}", "A") for i in range(unresolved))])


def test_choices_become_their_texts() -> None:
    rows, counts = rows_of_task([*choices(18), *instances([("neither? (A) x (B) y", "Neither")])])
    assert counts.facts["kind"] == "text"
    assert {(row["output"], row["label"]) for row in rows} == {
        *((f"{'left' if i % 2 == 0 else 'right'} {i}", None) for i in range(18)),
        ("Neither", None),
    }
    evidence = counts.facts["evidence"]
    assert isinstance(evidence, dict) and (evidence["choices"], evidence["choices_resolved_share"]) == (18, 1.0)


def test_a_few_unresolved_choices_are_dropped_and_many_skip_the_task() -> None:
    rows, counts = rows_of_task(choices(20, unresolved=2))
    assert len(rows) == 18 and counts.dropped == {"choice_unresolved": 2}
    rows, counts = rows_of_task(choices(20, unresolved=3))
    assert rows == [] and counts.dropped == {"choice_unresolved": 20}
    assert counts.facts["skipped"] == "choices resolved in 85% of instances"
    assert counts.facts["evidence"] == {"choices": 20, "choices_resolved_share": 0.85}


def test_choices_that_are_always_the_same_are_labels() -> None:
    rows, counts = rows_of_task(instances([(f"{i}? (A) Yes (B) No", "AB"[i % 2]) for i in range(30)]))
    assert counts.facts["kind"] == "label" and {row["label"] for row in rows} == {"yes", "no"}


@pytest.mark.parametrize("symbols", ["01", "123"])
def test_letters_and_digits_that_stand_nowhere_in_the_input_are_labels(symbols: str) -> None:
    pairs = [(f"Sentence 1: {i}. Sentence 2: b.", symbols[i % len(symbols)]) for i in range(60)]
    assert find_choices(pairs) is None
    rows, counts = rows_of_task(instances(pairs))
    assert counts.facts["kind"] == "label" and {row["label"] for row in rows} == set(symbols)


@pytest.mark.parametrize(
    ("outputs", "definition", "kind", "rule"),
    [
        (["Yes", "no."] * 20, "Is it?", "label", "small_label_set"),
        ([f"l{i % 10}" for i in range(100)], "", "label", "small_label_set"),
        ([f"l{i % 11}" for i in range(110)], "", "text", "none"),
        ([f"l{i % 20}" for i in range(100)], " ".join(f"l{i}" for i in range(10)), "label", "small_label_set"),
        ([f"l{i % 20}" for i in range(100)], " ".join(f"l{i}" for i in range(9)), "text", "none"),
        ([f"l{i % 21}" for i in range(210)], "", "text", "none"),
        ([f"l{i % 20}" for i in range(99)], "", "text", "none"),
        ([f"L_{i % 40}" for i in range(90)], " ".join(f"'L_{i}'," for i in range(40)), "label", "labels_in_definition"),
        ([f"l{i}" for i in range(40)], " ".join(f"l{i}" for i in range(40)), "text", "none"),
        (["a", "he"] * 2, "a task for the patient", "text", "none"),
    ],
)
def test_the_kind_is_decided_by_rule(outputs: list[str], definition: str, kind: str, rule: str) -> None:
    found, evidence = judge(outputs, definition)
    assert (found, evidence["rule"], "labels" in evidence) == (kind, rule, kind == "label")
    assert evidence["instances"] == len(outputs) and evidence["distinct_outputs"] == len(set(map(normal, outputs)))


def test_the_evidence_of_a_label_task_has_its_commonest_labels() -> None:
    outputs = ["No."] * 9 + ["yes", "Yes"] * 3 + [f"l{i // 2:02}" for i in range(60)]
    labels = judge(outputs, " ".join(["yes no", *(f"l{i:02}" for i in range(30))]))[1]["labels"]
    assert labels == {"no": 9, "yes": 6, **{f"l{i:02}": 2 for i in range(18)}}


# What the 19 real tasks teach on which the former rule (20 distinct outputs, a fifth of the instances), TAPP's list and
# the eye do not agree, with invented words: (definition, (input, output) pairs, the right kind).
LESSONS = {
    "answers end in a full stop, and TAPP finds no 'no.'": (
        "Is it told, yes or no?",
        [(f"Sentence: he left at {i}. Question: when?", ("Yes.", "No.")[i % 2]) for i in range(40)],
        "label",
    ),
    "the definition does not say how to answer": (
        "Classify whether the question can be answered.",
        [(f"question {i}", ("Yes", "No")[i % 2]) for i in range(40)],
        "label",
    ),
    "the definition forgets one label": (
        "Classify into joy, fear or love.",
        [(f"i feel {i}", ("joy", "fear", "love", "sadness")[i % 4]) for i in range(40)],
        "label",
    ),
    "letters name choices, so one letter is no class": (
        "Answer with A or B.",
        [(f"Who is taller? (A) Ann {i} (B) Bob {i}", "AB"[i % 2]) for i in range(40)],
        "text",
    ),
    "responses name choices as well": (
        "Answer 'Completion A' or 'Completion B'.",
        [(f"Completion A: mild {i} Completion B: rude {i}", f"Completion {'AB'[i % 2]}") for i in range(40)],
        "text",
    ),
    "words to find, several of which fit": (
        "A tool is to its use as what is to the given one?",
        [(f"cut : knife. use {i % 17} : ?", f"tool {i % 13}") for i in range(200)],
        "text",
    ),
    "more than 20 labels, all in the definition": (
        "Choose one of " + ", ".join(f"'BOT_{i}'" for i in range(30)),
        [(f"a dialogue {i}", f"BOT_{i % 30}") for i in range(90)],
        "label",
    ),
}


@pytest.mark.parametrize("lesson", LESSONS)
def test_what_the_real_tasks_teach(lesson: str) -> None:
    definition, pairs, kind = LESSONS[lesson]
    rows, counts = rows_of_task(instances(pairs), Definition=[definition])
    assert (counts.facts["kind"], len(rows)) == (kind, len({text for text, _ in pairs}))


# The right verdict where the former rule, TAPP's list and the eye do not agree, and why.
DISAGREEMENTS = {
    "task020_mctaco_span_based_question": ("label", "yes or no, with full stops"),
    "task050_multirc_answerability": ("label", "yes or no, with full stops"),
    "task1624_disfl_qa_question_yesno_classification": ("label", "yes or no, never named"),
    "task1687_sentiment140_classification": ("label", "positive or negative, both named"),
    "task875_emotion_classification": ("label", "six emotions, sadness not named"),
    "task1394_meta_woz_task_classification": ("label", "47 domains, all of them named"),
    "task073_commonsenseqa_answer_generation": ("choice", "letters of five different answers"),
    "task1391_winogrande_easy_answer_generation": ("choice", "letters of two different nouns"),
    "task1393_superglue_copa_text_completion": ("choice", "letters of two different sentences"),
    "task200_mnli_entailment_classification": ("choice", "numbers of three different sentences"),
    "task201_mnli_neutral_classification": ("choice", "numbers of three different sentences"),
    "task202_mnli_contradiction_classification": ("choice", "numbers of three different sentences"),
    "task220_rocstories_title_classification": ("choice", "letters of two different titles"),
    "task329_gap_classification": ("choice", "letters of two names, neither"),
    "task362_spolin_yesand_prompt_response_sub_classification": ("choice", "numbers of two different responses"),
    "task827_copa_commonsense_reasoning": ("choice", "numbers of two different sentences"),
    "task1152_bard_analogical_reasoning_causation": ("text", "one verb is found, unnamed"),
    "task1154_bard_analogical_reasoning_travel": ("text", "bus and car both fit"),
    "task1157_bard_analogical_reasoning_rooms_for_containers": ("text", "sink: kitchen and bathroom fit"),
    "task1158_bard_analogical_reasoning_manipulating_items": ("text", "bottle: squeeze and pour fit"),
    "task1159_bard_analogical_reasoning_containers": ("text", "milk: bottle and jug fit"),
}

# All 134 by eye, by number: these are label tasks, those of DISAGREEMENTS included; the others are texts and choices.
LABEL = """020 050 1155 133 1344 1385 1386 1387 1388 1390 1394 1439 1442 1516 1529 1531 1533 1534 1554 1612 1615 1624
1640 1687 190 199 226 232 233 242 290 349 363 391 392 520 623 640 641 642 738 828 875 879 880 890 892 893 935 936 937
970""".split()


@pytest.mark.real
def test_the_134_real_tasks_are_judged_as_a_person_would(shared_raw: Path) -> None:
    kinds: dict[str, str] = {}
    counted: dict[str, Counts] = {}
    for path in sorted((shared_raw / "super_ni" / "tasks").glob("*.json")):
        table, counts = ingest_task(IngestParams(600), f"super_ni/tasks/{path.name}", read_whole(path))
        evidence = counts.facts["evidence"]
        assert isinstance(evidence, dict) and "skipped" not in counts.facts and len(table) == counts.rows_out >= 26
        assert evidence.get("choices_resolved_share", 1.0) == 1.0
        kinds[path.stem] = "choice" if "choices" in evidence else str(counts.facts["kind"])
        counted[path.stem] = counts
    assert len(kinds) == 134
    assert {task: kinds[task] for task in DISAGREEMENTS} == {task: kind for task, (kind, _) in DISAGREEMENTS.items()}
    named = {kind: {task for task, found in kinds.items() if found == kind} for kind in ("label", "choice")}
    assert {task.removeprefix("task").split("_")[0] for task in named["label"]} == set(LABEL)
    assert named["choice"] == {task for task, (kind, _) in DISAGREEMENTS.items() if kind == "choice"}
    dropped = {task: counts.dropped for task, counts in counted.items() if counts.dropped}
    assert dropped == {"task511_reddit_tifu_long_text_summarization": {"empty_text": 1}}


# By eye: an instance of each choice task whose list is hard to read, and the text that its answer names.
HARD_CHOICES = {
    "task073_commonsenseqa_answer_generation": ("John felt that his actions were fate.", "choice"),
    "task201_mnli_neutral_classification": (
        "an endearing straight-talker.",
        "Barry Goldwater is an important figure when it comes to political conservatism.",
    ),
    "task1393_superglue_copa_text_completion": ("The boat capsized.", "It was caught in a hurricane."),
    "task202_mnli_contradiction_classification": (
        "used as a church in the early Middle Ages, as attested by three",
        "The southern most Temple of Ciri was built in 45 b.c.",
    ),
    "task220_rocstories_title_classification": ("about the history of his Fjord horses", "Fjord 2."),
    "task362_spolin_yesand_prompt_response_sub_classification": (
        "how can you sleep in that dining booth",
        "Well, there won't be anyone sitting there at 2:15 A.M.  That's when I plan on calling it a night and getting "
        "some beauty sleep.",
    ),
    "task827_copa_commonsense_reasoning": ("The cat purred.", "I petted it."),
}


@pytest.mark.real
@pytest.mark.parametrize("task", HARD_CHOICES)
def test_the_hard_choices_of_the_real_tasks_are_resolved(shared_raw: Path, task: str) -> None:
    path = shared_raw / "super_ni" / "tasks" / f"{task}.json"
    table, _ = ingest_task(IngestParams(600), f"super_ni/tasks/{path.name}", read_whole(path))
    text, choice = HARD_CHOICES[task]
    assert {row["output"] for row in table.to_pylist() if text in row["query"]} == {choice}


def test_the_verdict_is_one_line_for_a_person() -> None:
    def line(pairs: list[tuple[str, str]]) -> str:
        return verdict_line({"ingest": rows_of_task(instances(pairs))[1].to_json()["facts"]})  # type: ignore[dict-item]

    assert line([(f"q{i}", ("Yes", "no.", "yes")[i % 3]) for i in range(30)]) == (
        "label task (a small label set): 2 distinct of 30 answers: yes 20, no 10"
    )
    assert line([(f"q{i}", f"l{i % 8}") for i in range(80)]).endswith("l4 10, l5 10, ...")
    assert line([(f"q{i}", f"a{i}") for i in range(2_000)]) == (
        "text task (the answers are no label set): 2,000 distinct of 2,000 answers"
    )
    named = [(f"{i}? (A) left {i} (B) right {i}", "AB"[i % 2]) for i in range(20)]
    assert line(named) == (
        "text task (the answers are no label set): 20 distinct of 20 answers; "
        "20 answers name a choice of the input, 100.0% are put as its text"
    )
    assert line([*named, *((f"none {i}", "A") for i in range(4))]) == (
        "left out (choices resolved in 83% of instances); "
        "24 answers name a choice of the input, 83.3% are put as its text"
    )
    assert line([(f"q{i}", "yes") for i in range(9)]) == (
        "left out (single_class); label task (a small label set): 1 distinct of 9 answers: yes 9"
    )
    assert verdict_line({}) == verdict_line({"ingest": {"lines_read": 9}}) == verdict_line(None) == ""
