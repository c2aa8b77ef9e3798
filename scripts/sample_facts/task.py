"""A Super-NI task in the making, and its form on disk: upstream's keys in upstream's order, four blanks of indent."""

import hashlib
import json
from typing import NamedTuple

from sample_facts.dirt import escaped


class Task(NamedTuple):
    """Name, definition, category, domains, and (input, references) of each instance."""

    name: str
    definition: str
    category: str
    domains: list[str]
    instances: list[tuple[str, list[str]]]

    def record(self) -> dict[str, object]:
        """Return the task as an object with upstream's keys; the first two instances serve as positive examples."""
        shown = [
            {"input": text, "output": outputs[0], "explanation": f"The answer is {outputs[0]!r}, as the task asks."}
            for text, outputs in self.instances[:2]
        ]
        wrong = {"input": self.instances[0][0], "output": "I do not know", "explanation": "This does not answer."}
        return {
            "Contributors": ["The medi project"],
            "Source": ["medi sample"],
            "URL": [],
            "Categories": [self.category],
            "Reasoning": [],
            "Definition": [self.definition],
            "Input_language": ["English"],
            "Output_language": ["English"],
            "Instruction_language": ["English"],
            "Domains": self.domains,
            "Positive Examples": shown,
            "Negative Examples": [wrong],
            "Instances": [instance(self.name, text, outputs) for text, outputs in self.instances],
            "Instance License": ["CC0 1.0"],
        }


def instance(task: str, text: str, output: object) -> dict[str, object]:
    """Return one instance; its id is the task's number and the MD5 of the input."""
    digest = hashlib.md5(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"id": f"{task.split('_')[0]}-{digest}", "input": text, "output": output}


def encode(record: dict[str, object]) -> bytes:
    """Return the bytes of a task file, without a final newline as upstream has it."""
    return escaped(json.dumps(record, ensure_ascii=False, indent=4))
