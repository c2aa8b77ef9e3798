"""All 31 sources are declared as Table 5 has them, and every variant reads its own invented sample."""

import json
from pathlib import Path, PurePosixPath

import pytest

from medi.errors import UsageError
from medi.ingest.parse import parse
from medi.schema import natural
from medi.source import Bad, Drop, Fields, Place, Source, Variant, pair, query_pairs, text_set, triplet
from medi.sources import ALL, by_name

VARIANTS = [(source, variant) for source in ALL for variant in source.variants]

# What each sample must say: query, positive, further positives, negatives.
KREIS = "Lume Tower The tower was built by Ada Kreis."
DPR = ("who built lume tower", KREIS, ("Ada Kreis She built the tower at Lume.",), ("Lume Lume has a harbour.",))
COLUMNS = ("who built lume tower", KREIS, (), ("Lume Lume has a harbour.",))
LOAM = ("what is loam", "Sand, silt and clay.", (), ())
SPRAIN = ("Does rest help a sprain?", "Forty sprains were seen. Half were rested.", (), ())
VITAMIN = ("Which vitamin does the sun help to make?", "Skin makes vitamin D in sunlight.", (), ())
MERGE = "How do I undo a merge?"
ADD = ("def add(a, b):\n    return a + b", "def add(a, b):\n  return a + b")
SAYS = {
    "gooaq_pairs hub": ("how long does clay need to dry?", "Two to three days.", (), ()),
    "yahoo_answers_title_answer hub": (
        "Why is my bread so dense ?",
        "Too little time to rise.\nGive it an hour more.",
        (),
        (),
    ),
    "stackexchange title_title": (MERGE, "Reverting a merge that was not pushed", (), ()),
    "stackexchange body_body": (
        "I merged the wrong branch. How can I take it back?",
        "The merge is local only; I want it gone.",
        (),
        (),
    ),
    "stackexchange title_body": (f"{MERGE} I merged the wrong branch.", "Reverting a merge It is local only.", (), ()),
    "eli5_question_answer hub": ("Why do onions make us cry?", "Cutting sets free a gas that stings the eye.", (), ()),
    "squad_pairs hub": ("Who built the mill?", "The mill was built in 1804 by the miller Anton Kreis.", (), ()),
    "NQ pairs": ("who built lume tower", KREIS, (), ()),
    "amazon-qa hub": ("Does the kettle whistle?", "Yes, loudly.", ("Mine only hums.",), ()),
    "WikiAnswers hub": (
        "how tall is the tower of lume?",
        "height of the lume tower?",
        ("how high is lume tower",),
        (),
    ),
    "agnews hub": ("Ferry service resumes", "The ferry runs again, the port #39;s office said.", (), ()),
    "AllNLI hub": ("A man sleeps on a bench.", "A person is asleep.", (), ("The man is running.",)),
    "npr hub": ("A Town Rebuilds Its Bridge", "For years the river kept two halves of a town apart.", (), ()),
    "specter_train_triples hub": (
        "Sorting in linear time",
        "Counting keys instead of comparing them",
        (),
        ("A history of the abacus",),
    ),
    "ccnews_title_text hub": ("Council votes on park", "The council met on Monday to vote on the park.", (), ()),
    "triviaqa pairs": ("Which port lies on the Lume?", "Lume Port is the only port on the river Lume.", (), ()),
    "flickr30k_captions hub": ("A dog leaps over a log.", "A brown dog jumps.", ("The dog is in the air.",), ()),
    "xsum hub": ("A lost parrot has come home.", "The bird was found on a roof.\nIts owner was glad.", (), ()),
    "code_search hub": ("Add two numbers.\n\n:param a: the first", ADD[0], (), ()),
    "code_search code_search_net": ("Add two numbers.", ADD[1], (), ()),
    "msmarco hub": ("what is loam", "Loam is sand, silt and clay.", (), ("Sand runs.", "Clay is wet.")),
    "amazon_review_2018 hub": ("Five Stars", "Works as it should, and came a day early.", (), ()),
    "S2ORC_title_abstract hub": (
        "Moss on north walls",
        "We measured moss on 40 walls and found more of it on the north side.",
        (),
        (),
    ),
    "PAQ_pairs hub": ("when was the canal dug", "Lume Canal The canal was dug from 1871 to 1874.", (), ()),
    "pubmed files": SPRAIN,
    "pubmed hub": SPRAIN,
    "pubmed multi_train": LOAM,
    "medmcqa files": VITAMIN,
    "medmcqa hub": VITAMIN,
    "medmcqa multi_train": LOAM,
    "wikihow hub": ("Soak the beans.,\nBoil them.", "Put the beans in water overnight. Boil for an hour.", (), ()),
    "simple_wiki hub": ("The edifice was erected in 1804.", "The house was built in 1804.", (), ()),
    "super_ni tasks": ("The sky was blue.", "blue", ("sky blue",), ()),
}
BY_VARIANT = {"dpr": DPR, "multi_train": COLUMNS}


@pytest.mark.parametrize(("source", "variant"), VARIANTS, ids=[f"{s.name}-{v.name}" for s, v in VARIANTS])
def test_every_sample_is_read_as_it_says(source: Source, variant: Variant) -> None:
    value, mends = parse(variant.sample.encode())
    fields = variant.read(value)
    assert (mends, fields.mended) == (set(), ())
    if variant.name == "kilt":
        assert (fields.query, fields.places) == ("who built lume tower", (Place("12", 1, 4), Place("15", 2, 0)))
        assert variant.pages is not None and PurePosixPath("kilt/kilt_knowledgesource.json").match(
            variant.pages.pattern
        )
        return
    says = SAYS.get(f"{source.name} {variant.name}") or BY_VARIANT[variant.name]
    assert (fields.query, fields.positive, fields.other_positives, fields.negatives) == says
    assert variant.given_negatives == bool(fields.negatives)


def test_names_quotas_and_symmetry_are_those_of_table_5() -> None:
    assert len(ALL) == 31 and sum(source.quota_rows for source in ALL) == 1_435_000
    expected = Path(__file__).parent.parent.parent / "shared" / "reference" / "medi_tables.tsv"
    if not expected.exists():
        pytest.skip("the tables of the paper are not beside the repository")
    lines = [line.split("\t") for line in expected.read_text(encoding="utf-8").splitlines()[2:]]
    assert [(s.name, s.symmetric, s.quota_rows) for s in ALL] == [
        (n, s == "symmetric", int(q)) for n, s, q, *_ in lines
    ]


def test_clusters_are_the_three_transitive_sources() -> None:
    assert {s.name for s in ALL if s.clusters} == {"WikiAnswers", "flickr30k_captions", "stackexchange"}


@pytest.mark.parametrize(("source", "variant"), VARIANTS, ids=[f"{s.name}-{v.name}" for s, v in VARIANTS])
def test_every_variant_says_where_its_files_are(source: Source, variant: Variant) -> None:
    assert source.licence and source.citation and variant.files and variant.fields
    assert variant.place.startswith(("hub:", "https://")) or "DIR/" in variant.how
    assert len({v.name for v in source.variants}) == len(source.variants)


@pytest.mark.parametrize(
    ("name", "files", "variant", "found"),
    [
        ("NQ", ["dpr_format/nq-dev-5.json", "embedding_training_data/NQ-train_pairs.jsonl.gz"], "dpr", 1),
        ("NQ", ["dpr_format/biencoder-nq-train.json.gz", "dpr_format/nq-dev.json"], "dpr", 1),
        ("hotpotqa", ["kilt/hotpotqa-train-kilt.jsonl", "kilt/hotpotqa-dev-kilt.jsonl"], "kilt", 1),
        ("wow", ["kilt/wow-dev-kilt.jsonl"], "kilt", 1),
        (
            "triviaqa",
            ["kilt/triviaqa-train_id-kilt.jsonl", "multi_train/emb-triviaqa-train/a.parquet"],
            "multi_train",
            1,
        ),
        ("zero_shot_re", ["dpr_format/zeroshot-a.json", "dpr_format/zeroshot-b.json"], "dpr", 2),
        ("zero_shot_re", ["kilt/structured_zeroshot-train-kilt.jsonl"], "kilt", 1),
        ("pubmed", ["pubmedqa/ori_pqal.json", "pubmedqa/ori_pqaa.json"], "files", 2),
        (
            "pubmed",
            ["pubmedqa/ori_pqal.json.gz", "pubmedqa/ori_pqau.json", "pubmedqa/test_ground_truth.json"],
            "files",
            1,
        ),
        ("medmcqa", ["medmcqa/train.json", "medmcqa/dev.json"], "files", 1),
        ("medmcqa", ["medmcqa/rows.parquet"], "files", 1),
        (
            "stackexchange",
            ["embedding_training_data/stackexchange_duplicate_questions_body_body.jsonl.gz"],
            "body_body",
            1,
        ),
        ("AllNLI", ["embedding_training_data/AllNLI.jsonl"], "hub", 1),
    ],
)
def test_the_first_variant_with_a_file_is_found(
    tmp_path: Path, name: str, files: list[str], variant: str, found: int
) -> None:
    from medi.fetch.raw import find_raw

    for file in files:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    present = find_raw(tmp_path, by_name(name))
    assert present is not None
    assert (present.variant.name, len(present.files)) == (variant, found)


def test_an_unknown_source_is_told_the_names_that_come_close() -> None:
    with pytest.raises(UsageError, match=r"there is no source 'hotpot'; did you mean hotpotqa\?"):
        by_name("hotpot")
    with pytest.raises(UsageError, match="`medi sources` lists all"):
        by_name("zzz")


@pytest.mark.parametrize(
    ("read", "record", "reason"),
    [
        (pair, ["a", "b", "c"], "expected an array of 2, found an array of 3"),
        (pair, {"set": ["a", "b"]}, "expected an array of 2, found an object with the keys 'set'"),
        (pair, ["a", ["b"]], r"\[1\] is an array of 1 where a text belongs"),
        (triplet, ["a", "b"], "expected an array of 3, found an array of 2"),
        (text_set, ["a", "b"], "expected an object with the key 'set', found an array of 2"),
        (query_pairs, {"query": "a", "pos": ["b"], "neg": []}, "an object with 'neg' in a file of query and pos"),
        (query_pairs, {"query": "a", "pos": [{"b": 1}]}, r"pos\[0\] is an object"),
        (query_pairs, {"query": "a"}, "the key 'pos' is missing; found 'query'"),
        (by_name("msmarco").variants[0].read, {"query": "a", "pos": ["b"]}, "the key 'neg' is missing"),
        (by_name("NQ").variants[0].read, ["a", "b"], "expected an object with the key 'question'"),
        (by_name("trex").variant("kilt").read, {"input": "a"}, "the array 'output'"),
        (by_name("medmcqa").variants[0].read, {"question": "a", "exp": ["b"]}, "'exp' is no text"),
    ],
)
def test_another_shape_is_bad(read: object, record: object, reason: str) -> None:
    with pytest.raises(Bad, match=reason):
        read(record)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("read", "record", "reason"),
    [
        (pair, ["a", None], r"null in \[1\]"),
        (text_set, {"set": ["a"]}, "set_of_one"),
        (query_pairs, {"query": "a", "pos": [None]}, "null in pos"),
        (query_pairs, {"query": "a", "pos": []}, "empty_text"),
        (by_name("NQ").variants[0].read, {"question": "a", "positive_ctxs": []}, "no_positive"),
        (by_name("medmcqa").variants[0].read, {"question": "a", "exp": None}, "no_explanation"),
        (by_name("medmcqa").variants[0].read, {"question": "a", "exp": " "}, "no_explanation"),
        (by_name("triviaqa").variant("kilt").read, {"id": "q", "output": []}, "no_input"),
        (by_name("fever").variant("kilt").read, {"input": "a", "output": [{"answer": "yes"}]}, "no_provenance"),
    ],
)
def test_what_cannot_be_used_is_dropped_by_reason(read: object, record: object, reason: str) -> None:
    with pytest.raises(Drop, match=f"^{reason}$"):
        read(record)  # type: ignore[operator]


def test_a_dpr_record_gives_four_hard_negatives_and_untitled_text_as_it_is() -> None:
    contexts = [{"title": "T", "text": str(i)} for i in range(6)]
    record = {"question": "q", "positive_ctxs": [{"title": "", "text": "p"}], "hard_negative_ctxs": contexts}
    fields = by_name("NQ").variants[0].read(json.loads(json.dumps(record)))
    assert fields == Fields("q", "p", (), ("T 0", "T 1", "T 2", "T 3"))


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        ({"query": "q", "pos": "p", "neg": "n", "idx": 1}, Fields("q", "p", (), ("n",))),
        ({"query": "q", "pos": ["p", "o"], "neg": ["n", "m"]}, Fields("q", "p", ("o",), ("n", "m"))),
        ({"query": "q", "pos": "p", "neg": None}, Fields("q", "p")),
        ({"query": "q", "pos": "p"}, Fields("q", "p")),
    ],
)
def test_columns_are_texts_or_lists(record: dict, fields: Fields) -> None:
    read = by_name("wow").variant("multi_train").read
    assert read(record) == fields
    with pytest.raises(Bad, match="the key 'query' is missing"):
        read({"pos": "p"})


def test_kilt_keeps_a_relation_as_it_is_and_each_place_once() -> None:
    provenance = {"wikipedia_id": 5, "start_paragraph_id": 1, "start_character": 0}
    record = {"input": "USA-88 [SEP] launch", "output": [{"answer": "x"}, {"provenance": [provenance, provenance]}]}
    fields = by_name("trex").variant("kilt").read(json.loads(json.dumps(record)))
    assert fields == Fields("USA-88 [SEP] launch", "", places=(Place("5", 1, 0),))


def test_numbers_count_in_natural_order() -> None:
    assert sorted(["a:10", "a:9", "b:1", "a10:1", "a9:1"], key=natural) == ["a9:1", "a10:1", "a:9", "a:10", "b:1"]
