"""The list of Super-NI tasks (TSV) into `instructions/super_ni.toml`: the 300 tasks that MEDI takes, by category.

Which 300 the paper took was never published. Ours follow from a rule, so that anybody can check and repeat them:
python scripts/choose_super_ni.py super_ni_tasks.tsv
"""

import argparse
import csv
import tomllib
from collections import defaultdict
from itertools import zip_longest
from pathlib import Path

INSTRUCTIONS = Path(__file__).parent.parent / "instructions"
TASKS = 300
HEADER = """\
# The 300 Super-NI tasks of MEDI by file name, and what is said of each: the paper's Table 8.
# Written by scripts/choose_super_ni.py; change the rule there or super_ni_excluded.toml, then run it again.

[slots]
both = { text_type = "example", objective = "the following task: {definition}" }

[tasks]
"""


def main() -> None:
    """Read the list and write the choice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "tasks", type=Path, help="TSV with name, category, domain, input_language, output_language, split"
    )
    parser.add_argument("--excluded", type=Path, default=INSTRUCTIONS / "super_ni_excluded.toml")
    parser.add_argument("--out", type=Path, default=INSTRUCTIONS / "super_ni.toml")
    given = parser.parse_args()
    excluded = tomllib.loads(given.excluded.read_text(encoding="utf-8"))
    with given.tasks.open(encoding="utf-8", newline="") as lines:
        tasks = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    given.out.write_text(as_toml(choose([task for task in tasks if is_usable(task, excluded)])), encoding="utf-8")


def is_usable(task: dict[str, str], excluded: dict[str, dict[str, str]]) -> bool:
    """Return whether a task is English, to be trained on, about language, and not made of an evaluation set."""
    return (
        (task["input_language"], task["output_language"], task["split"]) == ("English", "English", "train")
        and task["category"] not in excluded["categories"]
        and not any(domain.split(" -> ")[0] in excluded["domains"] for domain in task["domain"].split(", "))
        and not any(is_of(task["name"], data_set) for data_set in excluded["data_sets"])
    )


def is_of(task: str, data_set: str) -> bool:
    """Return whether `taskNNN_<data set>_<kind>` is a task of the data set."""
    _, _, rest = task.partition("_")
    return rest == data_set or rest.startswith(f"{data_set}_")


def choose(tasks: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return (category, name) of the chosen: round robin over the categories by name, in each the tasks by name."""
    categories: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for task in sorted(tasks, key=lambda task: (task["category"], task["name"])):
        categories[task["category"]].append((task["category"], task["name"]))
    rounds = zip_longest(*categories.values())
    return [task for one_round in rounds for task in one_round if task is not None][:TASKS]


def as_toml(chosen: list[tuple[str, str]]) -> str:
    """Return the file's text; tasks stand by category, then by name."""
    return HEADER + "".join(f'"{name}" = "{category}"\n' for category, name in sorted(chosen))


if __name__ == "__main__":
    main()
