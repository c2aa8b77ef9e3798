"""The thirty embedding sets: for each source the path of its file below the raw folder, and its clean records."""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sample_facts import code_blocks, kilt, pages, rng_of, scenes, science, table
from sample_facts.dirt import Json
from sample_facts.news import Story, stories


class Set(NamedTuple):
    """Where a source's file lies, how its records are laid out in it, and who makes them."""

    path: str
    layout: str
    make: Callable[[], Sequence[object]]

    def records(self) -> list[Json]:
        """Return the clean records as JSON has them."""
        return json.loads(json.dumps(self.make()))


def _pairs(name: str) -> Callable[[], Sequence[object]]:
    return lambda: [list(row) for row in table(name)]


def _news(name: str, tell: Callable[[Story, int], list[str]]) -> Callable[[], Sequence[object]]:
    return lambda: [tell(story, i) for i, story in enumerate(stories(name, 66))]


def _agnews(story: Story, index: int) -> list[str]:
    """Keep the marks of that corpus: entities that lost their ampersand, backslashes for line breaks."""
    text = f"{story.lead} {story.details[0]}"
    text = text.replace('"', "quot;") if index % 3 == 0 else text
    return [story.title, text.replace(". ", ".\\", 1) if index % 5 == 0 else text]


def _ccnews(story: Story, index: int) -> list[str]:
    tail = ("Read more: subscribe to our letter.", "Picture: archive.", "This story was updated at noon.")[index % 3]
    return [f"{story.other_title} - The {story.town} Courier", f"{story.body()} {tail}"]


def _wikihow() -> Sequence[object]:
    rows = [[step.split(" ~ ") for step in row] for row in table("wikihow")]
    return [[",\n".join(bold for bold, _ in row), "\n".join(detail for _, detail in row)] for row in rows]


def _reviews() -> Sequence[object]:
    return [[title, text] for _, _, _, title, text in table("products")]


def _amazon_qa() -> Sequence[object]:
    return [
        {"query": question, "pos": [f"{a}" for a in answers.split(" ~ ")]}
        for _, question, answers, _, _ in table("products")
    ]


def _code() -> Sequence[object]:
    return [list(block) for block in code_blocks()]


def _clusters(name: str) -> Callable[[], Sequence[object]]:
    return lambda: [{"set": row} for row in table(name)]


def _wikianswers() -> Sequence[object]:
    return [{"set": [f"{question}?" for question in row]} for row in table("wikianswers")]


def _pubmed() -> Sequence[object]:
    rng, labels = rng_of("pubmed ids"), ["BACKGROUND", "METHODS", "RESULTS"]
    return [
        {
            "QUESTION": question,
            "CONTEXTS": sections,
            "LABELS": labels,
            "MESHES": ["Humans", "Follow-Up Studies"],
            "YEAR": str(rng.randrange(1998, 2021)),
            "reasoning_required_pred": decision,
            "reasoning_free_pred": decision,
            "final_decision": decision,
            "LONG_ANSWER": f"The difference was {'clear' if decision == 'yes' else 'too small to matter'}.",
        }
        for question, sections, decision in science.trials()
    ]


def _hub(stem: str) -> str:
    return f"embedding_training_data/{stem}.jsonl.gz"


SETS: dict[str, Set] = {
    "gooaq_pairs": Set(_hub("gooaq_pairs"), "lines", _pairs("gooaq")),
    "yahoo_answers_title_answer": Set(_hub("yahoo_answers_title_answer"), "lines", _pairs("yahoo")),
    "stackexchange": Set(_hub("stackexchange_duplicate_questions_title_title"), "lines", _pairs("stackexchange")),
    "eli5_question_answer": Set(_hub("eli5_question_answer"), "lines", _pairs("eli5")),
    "squad_pairs": Set(_hub("squad_pairs"), "lines", pages.squad),
    "NQ": Set("dpr_format/nq-train.json", "array", pages.natural_questions),
    "amazon-qa": Set(_hub("amazon-qa"), "lines", _amazon_qa),
    "WikiAnswers": Set(_hub("WikiAnswers"), "lines", _wikianswers),
    "agnews": Set(_hub("agnews"), "lines", _news("agnews", _agnews)),
    "AllNLI": Set(_hub("AllNLI"), "lines", _pairs("nli")),
    "npr": Set(_hub("npr"), "lines", _news("npr", lambda story, _: [story.other_title, story.body()])),
    "specter_train_triples": Set(_hub("specter_train_triples"), "lines", science.title_triples),
    "ccnews_title_text": Set(_hub("ccnews_title_text"), "lines", _news("ccnews", _ccnews)),
    "triviaqa": Set("dpr_format/triviaqa-train.json.gz", "array", pages.trivia),
    "zero_shot_re": Set("kilt/structured_zeroshot-train-kilt.jsonl", "lines", kilt.zero_shot),
    "flickr30k_captions": Set(
        _hub("flickr30k_captions"), "lines", lambda: [{"set": row} for row in scenes.caption_sets()]
    ),
    "xsum": Set(_hub("xsum"), "lines", _news("xsum", lambda story, _: [story.summary, story.body()])),
    "code_search": Set(_hub("codesearchnet"), "lines", _code),
    "msmarco": Set(_hub("msmarco-triplets"), "lines", pages.msmarco),
    "hotpotqa": Set("dpr_format/hotpotqa-train.json", "array", pages.hotpot_questions),
    "fever": Set("kilt/fever-train-kilt.jsonl", "lines", kilt.fever),
    "amazon_review_2018": Set(_hub("amazon_review_2018"), "lines", _reviews),
    "S2ORC_title_abstract": Set(_hub("S2ORC_title_abstract"), "lines", science.abstracts),
    "PAQ_pairs": Set(_hub("PAQ_pairs"), "lines", pages.paq),
    "wow": Set("multi_train/emb-wow-train/train.parquet", "parquet", pages.wizard),
    "trex": Set("kilt/trex-train-kilt.jsonl", "lines", kilt.trex),
    "pubmed": Set("pubmedqa/ori_pqal.json", "keyed", _pubmed),
    "medmcqa": Set("medmcqa/train.json", "lines", science.exam_questions),
    "wikihow": Set(_hub("wikihow"), "lines", _wikihow),
    "simple_wiki": Set(_hub("SimpleWiki"), "lines", _clusters("simplewiki")),
}
