"""KILT rows meet the knowledge source: which passage a provenance points at, and what where the page is absent."""

import json
from pathlib import Path

import pytest

from medi.ingest import IngestParams, ingest
from medi.ingest.passages import PASSAGE_WORDS, passages_at
from medi.read import raw_batches, wanted_pages
from medi.source import Page, Place
from medi.sources import by_name
from tests.raw_lines import batches, json_lines, pool


def words(count: int, mark: str = "w") -> str:
    return " ".join([*(f"{mark}{i}" for i in range(count - 1)), f"{mark}."])


def page(*paragraphs: str, page_id: str = "7", title: str = "Lume") -> Page:
    return Page(page_id, title, (f"{title}\n", *paragraphs))


def passage(found: Page, paragraph: int, character: int = 0) -> str:
    place = Place(found.page_id, paragraph, character)
    return passages_at([place], [found])[place]


def test_a_short_page_is_one_passage_with_its_paragraphs_on_lines() -> None:
    lume = page("Lume has a tower.\n", "It is tall.\n")
    assert {passage(lume, 1), passage(lume, 2, 5)} == {"Lume Lume has a tower.\nIt is tall."}


def test_a_heading_ends_a_passage_and_is_no_text() -> None:
    lume = page("Lume has a tower.\n", "Section::::History.\n", "It is old.\n", "BULLET::::- 1804: built.\n")
    assert passage(lume, 1) == "Lume Lume has a tower."
    assert passage(lume, 3) == passage(lume, 4) == "Lume It is old.\nBULLET::::- 1804: built."


def test_a_place_on_the_title_or_a_heading_is_the_passage_after_it_or_else_the_last() -> None:
    lume = page("Lume has a tower.\n", "Section::::History.\n", "It is old.\n", "Section::::Notes.\n")
    assert passage(lume, 0, 3) == "Lume Lume has a tower."
    assert passage(lume, 2) == passage(lume, 4) == passage(lume, 99) == "Lume It is old."


def test_sentences_are_packed_into_passages_of_at_most_100_words() -> None:
    first, second, third = words(60, "A"), words(40, "B"), words(1, "C")
    lume = page(f"{first} {second} {third}\n")
    assert passage(lume, 1) == passage(lume, 1, len(first) + 5) == f"Lume {first} {second}"
    assert passage(lume, 1, len(first) + len(second) + 2) == f"Lume {third}"


def test_a_paragraph_goes_on_in_the_passage_before_while_both_have_at_most_100_words() -> None:
    lume = page(words(99, "A"), words(1, "B"), words(1, "C"))
    assert passage(lume, 2) == f"Lume {words(99, 'A')}\n{words(1, 'B')}"
    assert passage(lume, 3) == f"Lume {words(1, 'C')}"


def test_a_long_sentence_is_cut_after_each_100_words() -> None:
    sentence = words(250)
    cuts = sentence.split()
    lume = page(sentence)
    assert passage(lume, 1) == "Lume " + " ".join(cuts[:100])
    assert passage(lume, 1, sentence.index("w150")) == "Lume " + " ".join(cuts[100:200])
    assert passage(lume, 1, len(sentence) - 1) == "Lume " + " ".join(cuts[200:])


@pytest.mark.parametrize("length", [1, 7, 99, 100, 101, 340])
def test_no_word_is_lost_and_no_passage_is_longer_than_it_may_be(length: int) -> None:
    text = words(length, "A") + " " + words(30, "B")
    places = [Place("7", 1, i) for i in range(len(text))]
    at = passages_at(places, [page(text)])
    found = dict.fromkeys(at[place] for place in places)
    parts = [passage.removeprefix("Lume ") for passage in found]
    assert " ".join(parts).split() == text.split()
    assert all(len(part.split()) <= PASSAGE_WORDS for part in parts)


def test_a_page_with_a_title_alone_has_no_passage() -> None:
    assert passages_at([Place("7", 0, 0)], [page("Section::::Notes.\n", " \n")]) == {}


def row(*provenances: tuple[str, int, int], **fields: object) -> dict:
    output = [
        {"provenance": [{"wikipedia_id": i, "start_paragraph_id": p, "start_character": c} for i, p, c in provenances]}
    ]
    return {"id": "x", "input": "who built it?", "output": output, **fields}


PAGES = [
    page("Ada Kreis built it.\n", "Section::::Use.\n", "It is a tower.\n", page_id="1", title="Lume Tower"),
    page("She was a mason.\n", page_id="2", title="Ada Kreis"),
]


def test_the_first_provenance_is_the_positive_and_all_others_are_other_positives() -> None:
    rows, counts = pool(
        [row(("1", 1, 4), ("2", 1, 0), ("1", 1, 9), ("1", 3, 0), ("9", 1, 0))], origin="hotpotqa:kilt", pages=PAGES
    )
    assert [(r["query"], r["positive"]) for r in rows] == [("who built it?", "Lume Tower Ada Kreis built it.")]
    assert rows[0]["other_positives"] == ["Ada Kreis She was a mason.", "Lume Tower It is a tower."]
    assert counts.facts == {"lines_read": 1, "lines_drawn": 1, "pos_no_page": 1}


def test_several_outputs_give_one_row_from_the_first_with_a_page() -> None:
    outputs = [{"answer": "alias"}, *row(("2", 1, 0))["output"], *row(("1", 1, 0))["output"]]
    rows, _ = pool([row(output=outputs)], origin="fever:kilt", pages=PAGES)
    assert [(r["positive"], r["other_positives"]) for r in rows] == [
        ("Ada Kreis She was a mason.", ["Lume Tower Ada Kreis built it."])
    ]


@pytest.mark.parametrize("pages", [None, [], PAGES[1:]])
def test_a_row_without_its_page_is_dropped(pages: list[Page] | None) -> None:
    rows, counts = pool([row(("1", 1, 0)), row()], origin="wow:kilt", pages=pages)
    assert (rows, counts.dropped) == ([], {"no_page": 1, "no_provenance": 1})


def test_pages_are_asked_for_once_for_all_rows_and_only_those_that_are_wanted() -> None:
    asked = []

    def pages(wanted: set[str]) -> list[Page]:
        asked.append(set(wanted))
        return PAGES

    source = by_name("trex")
    lines = json_lines(row((i, 1, 0), input=f"Lume [SEP] {i}") for i in ("1", "2", "5"))
    table, counts = ingest(IngestParams(10), source, source.variant("kilt"), lambda: batches({"a": lines}), pages)
    assert asked == [{"1", "2", "5"}]
    assert sorted(table["query"].to_pylist()) == ["Lume [SEP] 1", "Lume [SEP] 2"]
    assert counts.dropped == {"no_page": 1}


def test_real_hotpotqa_rows_find_their_pages(shared_raw: Path) -> None:
    rows = shared_raw / "kilt" / "hotpotqa-dev-kilt.jsonl"
    knowledge = shared_raw / "kilt" / "knowledgesource-hotpotqa-sample.jsonl"
    source = by_name("hotpotqa")
    table, counts = ingest(
        IngestParams(40_000),
        source,
        source.variant("kilt"),
        lambda: raw_batches([(rows, "dev")]),
        lambda wanted: wanted_pages([(knowledge, "k")], wanted),
    )
    assert (counts.rows_out, counts.dropped) == (69, {"no_page": 1980})
    alone = [row["query"] for row in table.to_pylist() if not row["other_positives"]]
    # Of this row alone the sample lacks a page (Rosie O'Donnell's).
    assert alone == ['Which American comedian born on March 21, 1962, appeared in the movie "Sleepless in Seattle?"']
    titles = {str(json.loads(line)["wikipedia_title"]) for line in knowledge.read_text(encoding="utf-8").splitlines()}
    assert all(any(text.startswith(f"{title} ") for title in titles) for text in table["positive"].to_pylist())
    duke = "Are both Duke Energy and Affiliated Managers Group based in Massachusetts?"
    found = {row["query"]: row["positive"] for row in table.to_pylist()}[duke]
    assert found.startswith("Duke Energy Duke Energy, headquartered in Charlotte, North Carolina, is an electric power")
