"""The sets of the Hub repository `sentence-transformers/embedding-training-data`: gz files of one JSON value a line.

The order of a pair is not uniform: xsum and wikihow have the summary first, simple_wiki the harder sentence.
The Hub states no licence for the data; what stands here is the data set's own, as far as it is known.
"""

from collections.abc import Callable

from medi.source import Fields, File, Json, Source, Variant, pair, query_pairs, query_triplets, text_set, triplet

HUB = "hub:sentence-transformers/embedding-training-data"

_Layout = tuple[str, dict[str, str], Callable[[Json], Fields], bool]

PAIR: _Layout = ("array of two", {"query": "[0]", "positive": "[1]"}, pair, False)
TRIPLET: _Layout = ("array of three", {"query": "[0]", "positive": "[1]", "negatives": "[2]"}, triplet, True)
SET: _Layout = ("set", {"query": "set[0]", "positive": "set[1]", "other_positives": "set[2:]"}, text_set, False)
PAIRS: _Layout = (
    "query, pos",
    {"query": "query", "positive": "pos[0]", "other_positives": "pos[1:]"},
    query_pairs,
    False,
)
TRIPLETS: _Layout = (
    "query, pos, neg",
    {"query": "query", "positive": "pos[0]", "other_positives": "pos[1:]", "negatives": "neg"},
    query_triplets,
    True,
)


def hub_file(stem: str, layout: _Layout, lines: int, sample: str, name: str = "hub", megabytes: float = 0) -> Variant:
    """Return the variant that reads `<stem>.jsonl.gz` of the repository; `megabytes` is its packed size, 0 unknown."""
    words, fields, read, given = layout
    file = f"{stem}.jsonl.gz"
    size_bytes = int(megabytes * 1_000_000) or None
    # A person may have unpacked the file; gz or plain, the first bytes say.
    where = File(f"embedding_training_data/{file}", file, size_bytes, (f"embedding_training_data/{stem}.jsonl",))
    return Variant(name, words, fields, read, sample, HUB, (where,), lines, given)


def hub_source(name: str, quota_rows: int, licence: str, citation: str, *variants: Variant) -> Source:
    """Return a source of these sets; which are symmetric and which are clusters stands in one place below."""
    return Source(name, quota_rows, name in _SYMMETRIC, licence, citation, variants, name in _CLUSTERS)


_SYMMETRIC = {"stackexchange", "WikiAnswers", "AllNLI", "specter_train_triples", "flickr30k_captions"}
_CLUSTERS = {"WikiAnswers", "flickr30k_captions", "stackexchange"}

SOURCES: tuple[Source, ...] = (
    hub_source(
        "amazon-qa",
        100_000,
        "MIT (card of embedding-data/Amazon-QA); Amazon's terms",
        "McAuley and Yang 2016, Addressing Complex and Subjective Product-Related Queries with Customer Reviews",
        hub_file(
            "amazon-qa",
            PAIRS,
            1_095_290,
            '{"query": "Does the kettle whistle?", "pos": ["Yes, loudly.", "Mine only hums."]}',
            megabytes=247,
        ),
    ),
    hub_source(
        "WikiAnswers",
        25_000,
        "unstated (research)",
        "Fader et al. 2014, Open Question Answering over Curated and Extracted Knowledge Bases",
        hub_file(
            "WikiAnswers",
            SET,
            27_383_151,
            '{"set": ["how tall is the tower of lume?", "height of the lume tower?", "how high is lume tower"]}',
        ),
    ),
    hub_source(
        "AllNLI",
        50_000,
        "SNLI: CC BY-SA 4.0; MultiNLI: OANC and others",
        "Bowman et al. 2015, SNLI; Williams et al. 2018, MultiNLI",
        hub_file(
            "AllNLI",
            TRIPLET,
            277_230,
            '["A man sleeps on a bench.", "A person is asleep.", "The man is running."]',
            megabytes=16.6,
        ),
    ),
    hub_source(
        "specter_train_triples",
        50_000,
        "ODC-By / Apache-2.0",
        "Cohan et al. 2020, SPECTER: Document-level Representation Learning using Citation-informed Transformers",
        hub_file(
            "specter_train_triples",
            TRIPLET,
            684_100,
            '["Sorting in linear time", "Counting keys instead of comparing them", "A history of the abacus"]',
            megabytes=37.7,
        ),
    ),
    hub_source(
        "flickr30k_captions",
        25_000,
        "Flickr's terms, non-commercial",
        "Young et al. 2014, From image descriptions to visual denotations",
        hub_file(
            "flickr30k_captions",
            SET,
            31_783,
            '{"set": ["A dog leaps over a log.", "A brown dog jumps.", "The dog is in the air."]}',
        ),
    ),
    hub_source(
        "msmarco",
        175_000,
        "non-commercial research",
        "Bajaj et al. 2016, MS MARCO: A Human Generated MAchine Reading COmprehension Dataset",
        hub_file(
            "msmarco-triplets",
            TRIPLETS,
            499_184,
            '{"query": "what is loam", "pos": ["Loam is sand, silt and clay."], "neg": ["Sand runs.", "Clay is wet."]}',
            megabytes=1_200,
        ),
    ),
    hub_source(
        "simple_wiki",
        5_000,
        "CC BY-SA 3.0",
        "Coster and Kauchak 2011, Simple English Wikipedia: A New Text Simplification Task",
        hub_file(
            "SimpleWiki",
            SET,
            102_225,
            '{"set": ["The edifice was erected in 1804.", "The house was built in 1804."]}',
            megabytes=8.47,
        ),
    ),
)
