"""The 31 sources of MEDI, in the order of the paper's Table 5: what is declared here is all that differs by source."""

from medi.source import Source, named
from medi.sources import embedding_training_data, medicine, super_ni, text_pairs, wikipedia

_DECLARED = {
    source.name: source
    for source in (
        *embedding_training_data.SOURCES,
        *text_pairs.SOURCES,
        *wikipedia.SOURCES,
        *medicine.SOURCES,
        super_ni.SUPER_NI,
    )
}

_TABLE_5 = """
    gooaq_pairs yahoo_answers_title_answer stackexchange eli5_question_answer squad_pairs NQ amazon-qa WikiAnswers
    agnews AllNLI npr specter_train_triples ccnews_title_text triviaqa zero_shot_re flickr30k_captions xsum code_search
    msmarco hotpotqa fever amazon_review_2018 S2ORC_title_abstract PAQ_pairs wow trex pubmed medmcqa wikihow simple_wiki
    super_ni
"""

ALL: tuple[Source, ...] = tuple(_DECLARED[name] for name in _TABLE_5.split())


def by_name(name: str) -> Source:
    """Return the source of that name. Raises UsageError, with the names that come close, where there is none."""
    return named(ALL, name)
