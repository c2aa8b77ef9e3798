"""The eight text tasks of the sample: summaries, titles, questions, rewriting, lists, measures, choices, sentences."""

from sample_facts import cap, rng_of, table
from sample_facts.news import stories
from sample_facts.pages import triples
from sample_facts.relations import QUESTIONS
from sample_facts.task import Task
from sample_facts.world import World

UNITS = (("kg", "kilogram"), ("km", "kilometre"), ("l", "litre"), ("m", "metre"), ("h", "hour"), ("t", "tonne"))
NUMBERS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split()


def summary() -> Task:
    """Return the task of news articles and a sentence that sums them up."""
    instances = [(s.body(), [s.summary]) for s in stories("summary task", 85)]
    return Task(
        "task9009_medi_news_summarization",
        "Sum up a short news article in a single sentence. Leave out quotations and numbers that do not matter.",
        "Summarization",
        ["News"],
        instances,
    )


def headline() -> Task:
    """Return the task of news articles and their titles; two titles are accepted."""
    instances = [(s.body(), [s.title, s.other_title]) for s in stories("title task", 85)]
    return Task(
        "task9010_medi_article_title_generation",
        "Write a title for the article. It should be short and say what is new.",
        "Title Generation",
        ["News"],
        instances,
    )


def question() -> Task:
    """Return the task of passages and answers for which a question is wanted."""
    world, rng = World("question generation", 12), rng_of("question generation")
    facts = [f for f in world.facts if f.relation in QUESTIONS]
    instances = []
    for fact in rng.sample(facts, 90):
        forms = [cap(form.format(s=fact.page.title)) + "?" for form in QUESTIONS[fact.relation]]
        instances.append((f"Passage: {fact.page.passage()}\nAnswer: {fact.value}", forms))
    return Task(
        "task9011_medi_passage_question_generation",
        "You get a passage and an answer that is taken from it. Ask a question to which this is the answer.",
        "Question Generation",
        ["Wikipedia"],
        list(dict(instances).items()),
    )


def paraphrase() -> Task:
    """Return the task of questions to be asked in other words."""
    instances = []
    for cluster in table("wikianswers"):
        instances.append((cap(cluster[0]) + "?", [cap(other) + "?" for other in cluster[1:3]]))
        if len(cluster) > 3:
            instances.append((cap(cluster[2]) + "?", [cap(cluster[3]) + "?"]))
        elif len(cluster) == 2:
            instances.append((cap(cluster[1]) + "?", [cap(cluster[0]) + "?"]))
    return Task(
        "task9012_medi_question_rewriting",
        "Ask the same question in other words. Do not change what is asked for.",
        "Question Rewriting",
        ["Web"],
        instances,
    )


def ingredients() -> Task:
    """Return the task of recipes whose ingredients are to be listed."""
    instances = []
    for dish, origin, parts, way, tip in table("food"):
        listed = ", ".join(parts.replace(" and ", ", ").replace(" or ", ", ").split(", "))
        instances.append((f"{cap(dish)} comes from {origin}. It is made of {parts}: {way}.", [listed]))
        instances.append((f"Put {parts} on the table. For {dish}, {way}. {tip}", [listed]))
    return Task(
        "task9013_medi_recipe_keyword_tagging",
        "List the ingredients that a recipe names, in order, separated by commas.",
        "Keyword Tagging",
        ["Food"],
        instances,
    )


def measure() -> Task:
    """Return the task of measures to be written in words."""
    rng, instances = rng_of("measure task"), {}
    frames = ("The label says {x}.", "Please order {x} more.", "We still need {x}.", "It came to {x} in the end.")
    while len(instances) < 90:
        number, half, (short, word) = rng.randrange(1, 15), rng.random() < 0.5, rng.choice(UNITS)
        figure = f"{number}.5 {short}" if half else f"{number} {short}"
        words = NUMBERS[number - 1] + (" and a half" if half else "")
        many = "" if number == 1 and not half else "s"
        instances[rng.choice(frames).format(x=figure)] = [f"{words} {word}{many}"]
    return Task(
        "task9014_medi_unit_phrase_generation",
        'Find the measure in the sentence and write it in words, such as "two and a half litres" for 2.5 l.',
        "Text Modification",
        ["Everyday"],
        list(instances.items()),
    )


def choice() -> Task:
    """Return the task of multiple choice: the answer is a letter that stands in the input, no class."""
    rng, rows, instances = rng_of("choice task"), table("countries"), []
    for column, form in ((1, "What is the capital of {n}?"), (6, "Which of these would you visit in {n}?")):
        for row in rows[:46]:
            others = rng.sample([r[column] for r in rows if r[column] != row[column]], 3)
            options = [*others, row[column]]
            rng.shuffle(options)
            listed = " ".join(f"({letter}) {option}" for letter, option in zip("ABCD", options, strict=True))
            letter = "ABCD"[options.index(row[column])]
            instances.append((f"Question: {form.format(n=row[0])}\nOptions: {listed}", [letter]))
    return Task(
        "task9015_medi_geography_multiple_choice",
        "Answer the question by the letter of the right option: A, B, C or D.",
        "Question Answering",
        ["Geography"],
        instances,
    )


def data_to_text() -> Task:
    """Return the task of triples to be said in a sentence."""
    rng = rng_of("data to text")
    chosen = rng.sample([triple for triple in triples() if triple[0] in triple[3]], 90)
    return Task(
        "task9016_medi_triple_data_to_text",
        "You are given a subject, a relation and a value. Say it in one full sentence.",
        "Data to Text",
        ["Wikipedia"],
        list({f"{s} | {relation} | {value}": [sentence] for s, relation, value, sentence in chosen}.items()),
    )


def text_tasks() -> list[Task]:
    """Return the eight tasks in the order of their numbers."""
    makers = (summary, headline, question, paraphrase, ingredients, measure, choice, data_to_text)
    return [make() for make in makers]
