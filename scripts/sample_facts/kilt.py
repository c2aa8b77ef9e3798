"""KILT rows on the invented world: claims, subject-relation inputs, and the knowledge source that they point into.

All offsets come from the facts themselves, so a provenance always cuts out the sentence that states what is claimed.
"""

from random import Random

from sample_facts import a, cap, rng_of
from sample_facts.relations import CLAIMS, QUESTIONS
from sample_facts.world import Fact, Page, World

Record = dict[str, object]
TREX = (
    "creator",
    "publication date",
    "headquarters location",
    "product",
    "founded by",
    "location",
    "architect",
    "main subject",
)
ZERO_SHOT = (
    "place of birth",
    "educated at",
    "award received",
    "occupation",
    "located in or next to body of water",
    "located in the administrative territorial entity",
    "inception",
)


def world() -> World:
    """Return the world that fever, trex and zero_shot_re share."""
    return World("kilt", 24)


def knowledge_source(pages: list[Page]) -> list[Record]:
    """Return the pages as records of the knowledge source, with anchors where one page names another."""
    out = []
    for page in pages:
        anchors = []
        for number, text, other in page.links:
            start = page.paragraphs[number].index(text)
            href = other.title.replace(" ", "%20")
            anchors.append(
                {"text": text, "href": href, "paragraph_id": number, "start": start, "end": start + len(text)}
            )
        identity = str(page.number)
        wikidata = {"description": page.kind, "wikipedia_title": page.title, "wikidata_id": f"Q{page.number}9"}
        out.append(
            {
                "_id": identity,
                "wikipedia_id": identity,
                "wikipedia_title": page.title,
                "text": page.paragraphs,
                "anchors": anchors,
                "categories": f"Invented {page.kind} pages",
                "history": {"pageid": identity, "parentid": 0, "revid": page.number * 7, "pre_dump": True},
                "wikidata_info": wikidata,
            }
        )
    return out


def provenance(fact: Fact, bleu: float = 1.0) -> Record:
    """Return the provenance that cuts out the fact's sentence."""
    headings = [p for p in fact.page.paragraphs[: fact.paragraph] if p.startswith("Section::::")]
    return {
        "wikipedia_id": str(fact.page.number),
        "title": fact.page.title,
        "section": headings[-1].strip() if headings else "Section::::Abstract.",
        "start_paragraph_id": fact.paragraph,
        "start_character": fact.start,
        "end_paragraph_id": fact.paragraph,
        "end_character": fact.end,
        "bleu_score": bleu,
    }


def _claim(fact: Fact, value: str) -> str:
    return CLAIMS[fact.relation].format(s=fact.page.title, v=value, a_v=a(value))


def _single(world: World, rng: Random, count: int) -> list[tuple[str, list[Record]]]:
    facts = [f for f in world.facts if f.relation in CLAIMS]
    out = []
    for fact in rng.sample(facts, count):
        values = sorted({f.value for f in facts if f.relation == fact.relation and f.value != fact.value})
        true = rng.random() < 0.6
        output: Record = {
            "answer": "SUPPORTS" if true else "REFUTES",
            "provenance": [provenance(fact, round(rng.uniform(0.5, 1.0), 16))],
        }
        extra: list[Record] = [{"answer": output["answer"]}] if rng.random() < 0.2 else []
        out.append((_claim(fact, fact.value if true else rng.choice(values)), [output, *extra]))
    return out


def fever() -> list[Record]:
    """Return claims: most stand on one page, some need two together, some have evidence in either of two pages."""
    invented, rng = world(), rng_of("fever")
    rows = _single(invented, rng, 46)
    for company in invented.companies[:12]:
        founder = company.about["founded by"]
        both = [invented.of(company, "founded by"), invented.of(founder, "place of birth")]
        claim = f"The founder of {company.title} was born in {founder.values['place of birth']}."
        rows.append((claim, [{"answer": "SUPPORTS", "provenance": [provenance(f) for f in both]}]))
    residents = [f for f in invented.facts if f.relation.startswith("resident ")]
    for fact in residents[:40:4]:
        person = next(p for p in invented.people if p.title == fact.value)
        born = invented.of(person, "place of birth")
        claim = f"{person.title}, the {person.values['occupation']}, was a native of {fact.page.title}."
        rows.append((claim, [{"answer": "SUPPORTS", "provenance": [provenance(f)]} for f in (born, fact)]))
    rng.shuffle(rows)
    return [{"id": str(70_000 + 31 * i), "input": claim, "output": output} for i, (claim, output) in enumerate(rows)]


def _uuid(rng: Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _relations(name: str, relations: tuple[str, ...], count: int) -> list[tuple[Random, World, Fact]]:
    invented, rng = world(), rng_of(name)
    by_relation = [[f for f in invented.facts if f.relation == relation] for relation in relations]
    for facts in by_relation:
        rng.shuffle(facts)
    return [(rng, invented, by_relation[i % len(relations)][i // len(relations)]) for i in range(count)]


def trex() -> list[Record]:
    """Return `subject [SEP] relation` rows; aliases follow as outputs without provenance, some name a second page."""
    out = []
    for i, (rng, invented, fact) in enumerate(_relations("trex", TREX, 68)):
        outputs: list[Record] = [{"answer": fact.value, "provenance": [provenance(fact)]}]
        if fact.relation in fact.page.about and i % 3 == 0:
            other = fact.page.about[fact.relation]
            first = next(f for f in invented.facts if f.page is other)
            outputs.append({"answer": fact.value, "provenance": [provenance(first, 0.8)]})
        if " " in fact.value and i % 2:
            outputs.append({"answer": fact.value.split()[-1]})
        out.append(
            {
                "id": _uuid(rng),
                "input": f"{fact.page.title} [SEP] {fact.relation}",
                "output": outputs,
                "meta": {"subj_aliases": [], "sub_surface": [fact.page.title], "obj_surface": [fact.value]},
            }
        )
    return out


def zero_shot() -> list[Record]:
    """Return `subject [SEP] relation` rows with the question forms of the relation."""
    out = []
    for rng, _, fact in _relations("zero_shot_re", ZERO_SHOT, 68):
        place = {**provenance(fact), "meta": {}}
        questions = [f"{cap(form.format(s=fact.page.title))}?" for form in QUESTIONS[fact.relation]]
        out.append(
            {
                "id": _uuid(rng),
                "input": f"{fact.page.title} [SEP] {fact.relation}",
                "output": [{"answer": fact.value, "provenance": [place]}],
                "meta": {"template_questions": questions},
            }
        )
    return out
