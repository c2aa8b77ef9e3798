"""The sets of the same repository whose lines are plain pairs: question and answer, title and text, comment and code.

Which of the two comes first is not uniform: xsum and wikihow have the summary first.
"""

from medi.source import Fields, File, Json, Source, Variant, member, text_of
from medi.sources.embedding_training_data import PAIR, hub_file, hub_source


def _code_search_net(record: Json) -> Fields:
    """Read a row of the code_search_net tables: the comment, then the code."""
    mends: set[str] = set()
    query = text_of(member(record, "func_documentation_string", mends), "func_documentation_string", mends)
    code = text_of(member(record, "func_code_string", mends), "func_code_string", mends)
    return Fields(query, code, mended=tuple(sorted(mends)))


SOURCES: tuple[Source, ...] = (
    hub_source(
        "gooaq_pairs",
        25_000,
        "Apache-2.0 (code); Google's snippets",
        "Khashabi et al. 2021, GooAQ: Open Question Answering with Diverse Answer Types",
        hub_file(
            "gooaq_pairs", PAIR, 3_012_496, '["how long does clay need to dry?", "Two to three days."]', megabytes=362
        ),
    ),
    hub_source(
        "yahoo_answers_title_answer",
        25_000,
        "Yahoo Webscope, non-commercial",
        "Zhang et al. 2015, Character-level Convolutional Networks for Text Classification",
        hub_file(
            "yahoo_answers_title_answer",
            PAIR,
            1_198_260,
            '["Why is my bread so dense ?", "Too little time to rise.\\nGive it an hour more."]',
        ),
    ),
    hub_source(
        "stackexchange",
        25_000,
        "CC BY-SA 4.0",
        "Stack Exchange Data Dump, duplicate questions",
        hub_file(
            "stackexchange_duplicate_questions_title_title",
            PAIR,
            304_525,
            '["How do I undo a merge?", "Reverting a merge that was not pushed"]',
            "title_title",
        ),
        hub_file(
            "stackexchange_duplicate_questions_body_body",
            PAIR,
            250_519,
            '["I merged the wrong branch. How can I take it back?", "The merge is local only; I want it gone."]',
            "body_body",
            114,
        ),
        hub_file(
            "stackexchange_duplicate_questions_title-body_title-body",
            PAIR,
            250_460,
            '["How do I undo a merge? I merged the wrong branch.", "Reverting a merge It is local only."]',
            "title_body",
            123,
        ),
    ),
    hub_source(
        "eli5_question_answer",
        25_000,
        "MIT (KILT); Reddit's texts",
        "Fan et al. 2019, ELI5: Long Form Question Answering",
        hub_file(
            "eli5_question_answer",
            PAIR,
            325_475,
            '["Why do onions make us cry?", "Cutting sets free a gas that stings the eye."]',
            megabytes=67,
        ),
    ),
    hub_source(
        "squad_pairs",
        25_000,
        "CC BY-SA 4.0",
        "Rajpurkar et al. 2016, SQuAD: 100,000+ Questions for Machine Comprehension of Text",
        hub_file(
            "squad_pairs",
            PAIR,
            87_599,
            '["Who built the mill?", "The mill was built in 1804 by the miller Anton Kreis."]',
            megabytes=7.81,
        ),
    ),
    hub_source(
        "agnews",
        45_000,
        "non-commercial use",
        "AG's corpus of news articles (Gulli 2005)",
        hub_file(
            "agnews", PAIR, 1_157_745, '["Ferry service resumes", "The ferry runs again, the port #39;s office said."]'
        ),
    ),
    hub_source(
        "npr",
        25_000,
        "NPR's texts, copyright",
        "Articles of npr.org (Pushshift)",
        hub_file(
            "npr",
            PAIR,
            594_384,
            '["A Town Rebuilds Its Bridge", "For years the river kept two halves of a town apart."]',
        ),
    ),
    hub_source(
        "ccnews_title_text",
        25_000,
        "news texts, copyright",
        "Hamborg et al. 2017, news-please (CC-News)",
        hub_file(
            "ccnews_title_text",
            PAIR,
            614_664,
            '["Council votes on park", "The council met on Monday to vote on the park."]',
        ),
    ),
    hub_source(
        "xsum",
        10_000,
        "BBC's texts",
        "Narayan et al. 2018, Don't Give Me the Details, Just the Summary!",
        hub_file(
            "xsum",
            PAIR,
            226_711,
            '["A lost parrot has come home.", "The bird was found on a roof.\\nIts owner was glad."]',
        ),
    ),
    hub_source(
        "code_search",
        15_000,
        "licences of the repositories",
        "Husain et al. 2019, CodeSearchNet Challenge: Evaluating the State of Semantic Code Search",
        hub_file(
            "codesearchnet",
            PAIR,
            1_151_414,
            '["Add two numbers.\\n\\n:param a: the first", "def add(a, b):\\n    return a + b"]',
            megabytes=314,
        ),
        Variant(
            "code_search_net",
            "table",
            {"query": "func_documentation_string", "positive": "func_code_string"},
            _code_search_net,
            '{"func_documentation_string": "Add two numbers.", "func_code_string": "def add(a, b):\\n  return a + b"}',
            "",
            (File("code_search_net/*", otherwise=("code_search_net/*/*",)),),
            how="save the train tables of the Hub's code-search-net/code_search_net (Parquet) as DIR/code_search_net/",
        ),
    ),
    hub_source(
        "amazon_review_2018",
        100_000,
        "non-commercial research",
        "Ni et al. 2019, Justifying Recommendations using Distantly-Labeled Reviews",
        hub_file("amazon_review_2018", PAIR, 87_877_725, '["Five Stars", "Works as it should, and came a day early."]'),
    ),
    hub_source(
        "S2ORC_title_abstract",
        100_000,
        "ODC-By 1.0",
        "Lo et al. 2020, S2ORC: The Semantic Scholar Open Research Corpus",
        hub_file(
            "S2ORC_title_abstract",
            PAIR,
            41_769_185,
            '["Moss on north walls", "We measured moss on 40 walls and found more of it on the north side."]',
            megabytes=11_400,
        ),
    ),
    hub_source(
        "PAQ_pairs",
        25_000,
        "CC BY-SA 3.0",
        "Lewis et al. 2021, PAQ: 65 Million Probably-Asked Questions and What You Can Do With Them",
        hub_file(
            "PAQ_pairs",
            PAIR,
            64_371_441,
            '["when was the canal dug", "Lume Canal The canal was dug from 1871 to 1874."]',
        ),
    ),
    hub_source(
        "wikihow",
        5_000,
        "CC BY-NC-SA 3.0",
        "Koupaee and Wang 2018, WikiHow: A Large Scale Text Summarization Dataset",
        hub_file(
            "wikihow",
            PAIR,
            128_542,
            '["Soak the beans.,\\nBoil them.", "Put the beans in water overnight. Boil for an hour."]',
        ),
    ),
)
