"""Super-NaturalInstructions: each task is a file of its own, which ingest reads whole; its pairs are mined."""

from medi.source import Bad, Fields, File, Json, Source, Variant, member, task_instance


def first_instance(record: Json) -> Fields:
    """Read a task file's first instance, as ingest reads them all. Raises Bad, Drop."""
    instances = member(record, "Instances", set())
    if not isinstance(instances, list) or not instances:
        raise Bad("'Instances' is no array with something in it")
    return task_instance(instances[0])


_SAMPLE = (
    '{"Contributors": ["A. Person"], "Source": ["an invented set"], "URL": [], "Categories": ["Question Answering"],'
    ' "Reasoning": [], "Definition": ["Name the colour that the sentence speaks of."], "Input_language": ["English"],'
    ' "Output_language": ["English"], "Instruction_language": ["English"], "Domains": ["Nature"],'
    ' "Positive Examples": [{"input": "Grass is green.", "output": "green", "explanation": "It says so."}],'
    ' "Negative Examples": [], "Instances": [{"id": "task9001-0a1b", "input": "The sky was blue.",'
    ' "output": ["blue", "sky blue"]}], "Instance License": ["CC0-1.0"]}'
)

SUPER_NI = Source(
    "super_ni",
    180_000,
    True,
    "Apache-2.0; instances as their sources",
    "Wang et al. 2022, Super-NaturalInstructions: Generalization via Declarative Instructions on 1600+ NLP Tasks",
    (
        Variant(
            "tasks",
            "Super-NI task",
            {"query": "Instances[].input", "references": "Instances[].output"},
            first_instance,
            _SAMPLE,
            "https://raw.githubusercontent.com/allenai/natural-instructions",
            (File("super_ni/tasks/*.json", "tasks/*.json"),),
        ),
    ),
)
