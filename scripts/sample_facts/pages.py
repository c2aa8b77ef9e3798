"""Sets that stand on the invented world or on countries: DPR records, questions with passages, dialogues.

A DPR record holds a question, passages that answer it, and passages of the same kind of page that do not.
"""

from random import Random

from sample_facts import cap, rng_of, table
from sample_facts.relations import QUESTIONS
from sample_facts.world import Fact, Page, World

Record = dict[str, object]


def _context(page: Page, score: float) -> Record:
    title_score = 1 if score > 900 else 0
    return {
        "title": page.title,
        "text": page.passage(),
        "score": score,
        "title_score": title_score,
        "passage_id": str(page.number),
    }


def _record(
    dataset: str, question: str, answers: list[str], positives: list[Page], rng: Random, world: World
) -> Record:
    """Return a DPR record; hard negatives are of the first positive's kind, plain negatives of any."""
    same = [p for p in world.pages if p.kind == positives[0].kind and p not in positives]
    rest = [p for p in world.pages if p.kind != positives[0].kind and p not in positives]
    return {
        "dataset": dataset,
        "question": question,
        "answers": answers,
        "positive_ctxs": [_context(p, 1000) for p in positives],
        "negative_ctxs": [_context(p, round(rng.uniform(4, 9), 6)) for p in rng.sample(rest, 1)],
        "hard_negative_ctxs": [
            _context(p, round(rng.uniform(9, 20), 6)) for p in rng.sample(same, rng.randrange(1, 4))
        ],
    }


def asked(world: World, rng: Random, count: int) -> list[tuple[Fact, str]]:
    """Return facts with a question each, one from every page before any page comes twice."""
    facts = [f for f in world.facts if f.relation in QUESTIONS]
    rng.shuffle(facts)
    seen: dict[int, int] = {}
    rounds: list[tuple[int, int]] = []
    for index, fact in enumerate(facts):
        seen[fact.page.number] = seen.get(fact.page.number, 0) + 1
        rounds.append((seen[fact.page.number], index))
    facts = [facts[index] for _, index in sorted(rounds)]
    return [(f, rng.choice(QUESTIONS[f.relation]).format(s=f.page.title)) for f in facts[:count]]


def natural_questions() -> list[Record]:
    """Return DPR records with questions in lower case, as people type them."""
    world, rng = World("nq", 14), rng_of("NQ")
    return [_record("nq_train_psgs_w100", q.lower(), [f.value], [f.page], rng, world) for f, q in asked(world, rng, 66)]


def hotpot_questions() -> list[Record]:
    """Return DPR records whose question needs two pages, which are both positive."""
    world, rng, out = World("hotpot", 18), rng_of("hotpotqa"), []
    for i in range(18):
        person, company = world.people[i], world.companies[i]
        work, building, other = world.works[i], world.structures[i], world.structures[i - 1]
        town, founder, maker = person.about["place of birth"], company.about["founded by"], work.about["creator"]
        river = town.values["located in or next to body of water"]
        first = min(building, other, key=lambda p: int(p.values["date of official opening"]))
        rows = [
            (f"Which river flows through the town where {person.title} was born?", river, [person, town]),
            (
                f"What was the profession of the founder of {company.title}?",
                founder.values["occupation"],
                [company, founder],
            ),
            (f"In which year was the creator of {work.title} born?", maker.values["date of birth"], [work, maker]),
            (f"Which was opened first, the {building.title} or the {other.title}?", first.title, [building, other]),
        ]
        out += [_record("hotpotqa", q, [answer], pages, rng, world) for q, answer, pages in rows]
    return out[:68]


def squad() -> list[list[str]]:
    """Return [question, passage]; two questions share a passage."""
    world, rng, out = World("squad", 7), rng_of("squad"), []
    for page in world.pages[:36]:
        facts = [f for f in world.facts if f.page is page and f.relation in QUESTIONS]
        for fact in rng.sample(facts, 2):
            out.append([cap(rng.choice(QUESTIONS[fact.relation]).format(s=page.title)) + "?", page.passage()])
    return out


def paq() -> list[list[str]]:
    """Return [question in lower case, passage that begins with its title]."""
    world, rng = World("paq", 14), rng_of("PAQ")
    return [[q.lower(), f"{f.page.title} {f.page.passage()}"] for f, q in asked(world, rng, 66)]


def _country_text(row: list[str]) -> str:
    name, capital, region, language, currency, known, feature = row
    return (
        f"{name} is a country in {region} whose capital is {capital}. The language most used in offices and schools "
        f"is {language}, and people pay with the {currency}. Abroad it is known for {known}. "
        f"Among its sights is {feature}."
    )


def trivia() -> list[Record]:
    """Return DPR records of quiz questions about countries."""
    rows, rng, out = table("countries"), rng_of("triviaqa"), []
    forms = (
        ("{capital} is the capital of which country?", 0),
        ("What is the capital of {name}?", 1),
        ("Which country is known for {known}?", 0),
        ("In which currency would you pay in {name}?", 4),
        ("{feature} belongs to the sights of which country in {region}?", 0),
        ("Which language is taught in the schools of {name}?", 3),
    )
    for i, row in enumerate(rows):
        form, answer = forms[i % len(forms)]
        name, capital, region, _, _, known, feature = row
        question = cap(form.format(name=name, capital=capital, region=region, known=known, feature=feature))
        near = [r for r in rows if r[2] == region and r is not row] or [rows[i - 1]]
        far = rng.sample([r for r in rows if r[2] != region], 3)
        contexts = [
            [
                {
                    "title": r[0],
                    "text": _country_text(r),
                    "score": score,
                    "title_score": 0,
                    "passage_id": str(9000 + rows.index(r)),
                }
            ]
            for r, score in ((row, 1000), (near[i % len(near)], 17.25), (far[0], 12.5), (far[1], 5.75))
        ]
        out.append(
            {
                "dataset": "triviaqa",
                "question": question,
                "answers": [row[answer]],
                "positive_ctxs": contexts[0],
                "negative_ctxs": contexts[3],
                "hard_negative_ctxs": contexts[1] + contexts[2],
            }
        )
    return out


def wizard() -> list[Record]:
    """Return rows of `query, pos, neg, idx, task_name`: a talk of one or three turns and the page it turns to."""
    rows, out = table("topics"), []
    for i, (title, opener, first, second, third, question) in enumerate(rows):
        near = rows[(i + 11) % len(rows)]
        turns = [opener] if i % 3 == 0 else [opener, f"Nice! {second if i % 2 else third}", question]
        passage, other = (f"{r[0]} {r[0]}\n{r[2]} {r[3]} {r[4]}" for r in ((title, opener, first, second, third), near))
        out.append({"query": "\n".join(turns), "pos": passage, "neg": other, "idx": i, "task_name": "wow"})
    return out


def msmarco() -> list[Record]:
    """Return {"query", "pos", "neg"} with several negatives, forty of each of health, travel, cooking and computing."""
    rng, out = rng_of("msmarco"), []
    for forms, documents in (_health(), _travel(), _cooking(), _computing()):
        for i, (name, text) in enumerate(documents[:40]):
            others = [t for n, t in documents if n != name]
            out.append(
                {
                    "query": forms[i % len(forms)].format(s=name).lower(),
                    "pos": [text],
                    "neg": rng.sample(others, rng.randrange(2, 6)),
                }
            )
    rng.shuffle(out)
    return out


def _health() -> tuple[list[str], list[tuple[str, str]]]:
    forms = ["what causes {s}", "symptoms of {s}", "how is {s} treated", "{s} treatment and signs", "what is {s}"]
    return forms, [
        (
            r[0],
            f"{cap(r[0])} is a medical condition caused by {r[1]}. Patients usually notice {r[2]}. "
            f"Doctors treat it with {r[3]}.",
        )
        for r in table("medicine")
    ]


def _travel() -> tuple[list[str], list[tuple[str, str]]]:
    forms = [
        "what is the capital of {s}",
        "currency of {s} for travellers",
        "what is {s} famous for",
        "language spoken in {s}",
    ]
    return forms, [
        (
            r[0],
            f"{r[0]} lies in {r[2]}. Flights land in {r[1]}, its capital. Visitors need the {r[4]} and get far with a "
            f"few words of {r[3]}. The country is famous for {r[5]}, and most trips take in {r[6]}.",
        )
        for r in table("countries")
    ]


def _cooking() -> tuple[list[str], list[tuple[str, str]]]:
    forms = [
        "how to make {s}",
        "{s} ingredients",
        "where does {s} come from",
        "easy recipe for {s}",
        "tips for cooking {s}",
    ]
    return forms, [
        (r[0], f"{cap(r[0])} is a dish from {r[1]}. You need {r[2]}. To cook it, {r[3]}. {r[4]}") for r in table("food")
    ]


def _computing() -> tuple[list[str], list[tuple[str, str]]]:
    forms = ["what is {s} in computing", "{s} explained", "why do programmers use {s}", "definition of {s}"]
    names = [(r[0].removeprefix("a ").removeprefix("an "), r) for r in table("terms")]
    return forms, [(name, f"In computing, {r[0]} is {r[1]}. {r[2]}") for name, r in names]


def triples() -> list[tuple[str, str, str, str]]:
    """Return (subject, relation, value, sentence) of the world that the data-to-text task is made from."""
    world = World("triples", 12)
    return [(f.page.title, f.relation, f.value, f.sentence) for f in world.facts if f.relation in QUESTIONS]
