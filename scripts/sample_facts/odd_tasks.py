"""Super-NI tasks that are odd on purpose: one class, another language, old shapes of the schema, soiled instances."""

from sample_facts import cap, table
from sample_facts.task import Task, instance

# What ingest must count for each odd task, as mended and as dropped.
PLANTED_TASKS: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "task9017_medi_one_class_answerability": ({}, {"single_class": 30}),
    "task9018_medi_spanish_diminutive_generation": ({}, {"other_language": 20}),
    "task9019_medi_weather_diary_classification": (
        {"coerced_keys": 3, "text_for_list": 1},
        {"conflicting_labels": 2, "duplicate_input": 2},
    ),
    "task9020_medi_computing_term_generation": (
        {"bom": 1, "lone_surrogate": 1, "number_as_text": 2, "text_for_list": 4},
        {"empty_text": 3, "null": 1, "duplicate_input": 1},
    ),
}
WORDS = (
    "casa:casita perro:perrito mesa:mesita gato:gatito flor:florecita libro:librito puerta:puertita sol:solecito "
    "barco:barquito amigo:amiguito papel:papelito café:cafecito árbol:arbolito plato:platito camino:caminito "
    "pan:panecito voz:vocecita luz:lucecita calle:callecita abuela:abuelita"
)
RAIN = (
    "It drizzled {when} and the road shone.",
    "Thunder rolled {when} over the roofs.",
    "Puddles stood in the yard {when}.",
)
SUN = (
    "Not a cloud was seen {when}.",
    "We ate outside in the warm light {when}.",
    "The paint on the bench dried fast {when}.",
)
TIMES = (
    "all morning",
    "at noon",
    "on the second day",
    "before the wedding",
    "during the whole walk",
    "when we reached the pass",
    "on our last evening",
    "after the market closed",
)


def _one_class() -> dict[str, object]:
    instances = [(f"Text: {answer}\nQuestion: {question}", ["Yes"]) for question, answer in table("gooaq")[:30]]
    definition = "Say Yes if the text answers the question, otherwise No."
    name = "task9017_medi_one_class_answerability"
    return Task(name, definition, "Answerability Classification", ["Web"], instances).record()


def _spanish() -> dict[str, object]:
    pairs = [word.split(":") for word in WORDS.split()]
    instances = [(f"Palabra: {word}", [small]) for word, small in pairs]
    definition = "Write the diminutive of the Spanish word."
    task = Task("task9018_medi_spanish_diminutive_generation", definition, "Word Semantics", ["Language"], instances)
    return {**task.record(), "Input_language": ["Spanish"], "Output_language": ["Spanish"]}


def _weather() -> dict[str, object]:
    """An old version of the schema: a definition that is a text, keys in lower case, no domains."""
    name, instances = "task9019_medi_weather_diary_classification", []
    for when in TIMES:
        instances += [(form.format(when=when), ["wet"]) for form in RAIN]
        instances += [(form.format(when=when), ["dry"]) for form in SUN]
    instances.insert(7, (f" {instances[5][0]}", list(instances[5][1])))
    instances.append((instances[20][0], list(instances[20][1])))
    instances += [("The wind turned to the west.", ["wet"]), ("The wind turned to the west.", ["Dry."])]
    definition = "A line of a diary tells of the weather. Was the day wet or dry?"
    record = Task(name, definition, "Text Categorization", [], instances).record()
    old: dict[str, object] = {"Definition": definition}
    for key in ("Input_language", "Output_language", "Instruction_language"):
        old[key.lower()] = record.pop(key)
    del record["Domains"], record["Negative Examples"]
    return {**record, **old}


def _computing() -> dict[str, object]:
    """Outputs of every shape: several references, a bare text, numbers, a truth value, null, nothing."""
    name, instances = "task9020_medi_computing_term_generation", []
    for term, meaning, use in table("terms"):
        bare = term.removeprefix("a ").removeprefix("an ")
        instances.append((f"{cap(meaning)}. {use}", list(dict.fromkeys([term, bare]))))
    record = Task(
        name, "Name the thing from computing that is described.", "Question Answering", ["Computing"], instances
    )
    full = record.record()
    listed: list[dict[str, object]] = full["Instances"]  # type: ignore[assignment]
    for index in (4, 11, 19, 33):
        listed[index]["output"] = listed[index]["output"][0]  # type: ignore[index]
    listed += [
        instance(name, "The code that a web server sends when a page is not found.", [404]),
        instance(name, "What a test of two equal values gives in most languages.", [True]),
        instance(name, "The name of a variable that nobody has set.", [None]),
        instance(name, "A word for a program without a purpose.", [""]),
        instance(name, "A word for a program that is nothing but blanks.", ["\u200b"]),
        instance(name, " \u200b ", ["whitespace"]),
        instance(name, listed[2]["input"] + " ", ["a data race"]),  # type: ignore[operator]
        instance(name, "A small picture in a text message \ud83d", ["an emoji"]),
    ]
    return full


def odd_tasks() -> dict[str, dict[str, object]]:
    """Return task name -> object for the four odd tasks."""
    names = list(PLANTED_TASKS)
    return dict(zip(names, (_one_class(), _spanish(), _weather(), _computing()), strict=True))
