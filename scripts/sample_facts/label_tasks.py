"""The eight label tasks of the sample: their instances are made from the tables, their answers are classes."""

from itertools import combinations, product

from sample_facts import cap, rng_of, table
from sample_facts.news import stories
from sample_facts.relations import QUESTIONS
from sample_facts.task import Task
from sample_facts.world import World


def sentiment() -> Task:
    """Return the task of two-sentence opinions that are good or bad."""
    instances = []
    for thing, good, bad in table("opinions"):
        for label, sentences in (("Positive", good.split(" ~ ")), ("Negative", bad.split(" ~ "))):
            pairs = list(combinations(sentences, 2))[:12]
            instances += [(f"About a {thing}: {first} {second}", [label]) for first, second in pairs]
    return Task(
        "task9001_medi_sentiment_classification",
        'Read what somebody wrote about a restaurant, a hotel, a film or a phone. Answer "Positive" if the writer was '
        'pleased and "Negative" if the writer was not.',
        "Sentiment Analysis",
        ["Reviews"],
        instances,
    )


def topic() -> Task:
    """Return the task of headlines with six topics."""
    topics = ("Sports", "Business", "Science", "Politics", "Weather", "Local")
    found = [s for s in stories("topic task", 17 * 14) if s.topic in topics]
    instances = [(s.other_title if i % 2 else s.title, [s.topic]) for i, s in enumerate(found)]
    distinct = list(dict(instances).items())[:140]
    return Task(
        "task9002_medi_headline_topic_classification",
        "Sort a headline into one of six topics: Sports, Business, Science, Politics, Weather or Local.",
        "Text Categorization",
        ["News"],
        distinct,
    )


def entailment() -> Task:
    """Return the task whose labels are "Yes." and "No."."""
    instances = []
    for premise, entailed, contradicted in table("nli"):
        instances.append((f"Premise: {premise}\nHypothesis: {entailed}", ["Yes."]))
        instances.append((f"Premise: {premise}\nHypothesis: {contradicted}", ["No."]))
    return Task(
        "task9003_medi_caption_entailment",
        "You are given a premise and a hypothesis. Say whether the hypothesis follows from the premise. Reply with Yes "
        "or No.",
        "Textual Entailment",
        ["Captions", "Dialogue"],
        instances,
    )


def politeness() -> Task:
    """Return the task whose labels are digits that are true classes."""
    forms = (
        ("{X}, and be quick about it. How often must I say it?", "How hard can it be? {X} at last.", "0"),
        ("{X} before noon.", "The next thing to do: {x}.", "1"),
        ("Would you be so kind as to {x}?", "If it is no trouble, could you {x}? Thank you so much.", "2"),
    )
    instances = []
    for i, (x, _, _) in enumerate(table("requests")):
        instances += [(form[i % 2].format(x=x, X=cap(x)), [form[2]]) for form in forms]
    return Task(
        "task9004_medi_politeness_classification",
        "Grade how polite a request is. Give 0 for a rude request, 1 for a plain one and 2 for a polite one.",
        "Style Classification",
        ["Dialogue"],
        instances,
    )


def animal_class() -> Task:
    """Return the task of sentences about animals of five classes."""
    instances = []
    for label, names, forms, habits in table("animals"):
        for i, name in enumerate(names.split(", ")):
            form, habit = forms.split(" ~ ")[i % 3], habits.split(" ~ ")[i % 4]
            instances.append((form.format(a=name, x=habit), [label]))
    return Task(
        "task9005_medi_animal_class_identification",
        "A sentence describes an animal. Name the group it belongs to: mammal, bird, reptile, fish or insect.",
        "Information Extraction",
        ["Natural Science"],
        instances,
    )


def question_kind() -> Task:
    """Return the task of questions that ask for a person, a place, a date or a number."""
    kinds = {
        "creator": "person",
        "founded by": "person",
        "architect": "person",
        "narrative location": "place",
        "headquarters location": "place",
        "place of birth": "place",
        "inception": "date",
        "date of official opening": "date",
        "publication date": "date",
        "population": "number",
        "employees": "number",
    }
    world, rng = World("question task", 12), rng_of("question task")
    facts = [f for f in world.facts if f.relation in kinds]
    rng.shuffle(facts)
    instances = []
    for fact in facts[:110]:
        question = rng.choice(QUESTIONS[fact.relation]).format(s=fact.page.title)
        instances.append((cap(question) + "?", [kinds[fact.relation]]))
    return Task(
        "task9006_medi_question_kind_classification",
        "What kind of answer does the question ask for? Choose among person, place, date and number.",
        "Question Understanding",
        ["Wikipedia"],
        list(dict(instances).items()),
    )


def tense() -> Task:
    """Return the task of sentences in the past, the present or the future."""
    people = ("My neighbour", "Ilse", "The new trainee", "Grandfather", "Our guide")
    instances = []
    for i, (base, past, future) in enumerate(table("requests")):
        who, verb = people[i % len(people)], base.split(" ")
        third = verb[0] + ("es" if verb[0].endswith(("sh", "x", "ch")) else "s")
        third = verb[0][:-1] + "ies" if verb[0] in ("carry", "copy", "empty") else third
        instances += [
            (f"{who} {past}.", ["Past"]),
            (f"{' '.join([who, third, *verb[1:]])} every week.", ["Present"]),
            (f"{who} {future}.", ["Future"]),
        ]
    return Task(
        "task9007_medi_tense_classification",
        "Decide in which tense a sentence stands. Write Past, Present or Future.",
        "Linguistic Probing",
        ["Grammar"],
        instances,
    )


def mail_intent() -> Task:
    """Return the task of short letters to a shop with four intents."""
    forms = {
        "complaint": (
            "My {p} arrived broken, and I want my money back.",
            "For the second time the {p} stopped working.",
        ),
        "order": ("Please send me two of the {p} by Friday.", "I would like to buy the {p} and pay by invoice."),
        "question": ("Does the {p} come in other colours?", "How long does it take until the {p} is delivered?"),
        "praise": ("I love the {p}, thank you for such good work.", "The {p} is the best thing I bought this year."),
    }
    names = [row[0] for row in table("products")]
    instances = []
    for i, (name, label) in enumerate(product(names[:26], forms)):
        instances.append((forms[label][(i // 4) % 2].format(p=name), [label]))
    return Task(
        "task9008_medi_mail_intent_identification",
        "A customer writes to a shop. Find out what the letter is: a complaint, an order, a question or praise.",
        "Intent Identification",
        ["Commerce"],
        instances,
    )


def label_tasks() -> list[Task]:
    """Return the eight tasks in the order of their numbers."""
    makers = (sentiment, topic, entailment, politeness, animal_class, question_kind, tense, mail_intent)
    return [make() for make in makers]
