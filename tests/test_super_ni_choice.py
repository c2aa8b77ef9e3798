"""The 300 Super-NI tasks: what the rule chooses, that the file is what the script writes, and a person's own choice."""

import csv
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from medi.errors import UsageError
from medi.instruct import load_instructions
from medi.super_ni_choice import choose_tasks

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "choose_super_ni.py"
REFERENCE = ROOT.parent / "shared" / "reference" / "super_ni_tasks.tsv"
EXCLUDED = tomllib.loads((ROOT / "instructions" / "super_ni_excluded.toml").read_text(encoding="utf-8"))
COLUMNS = "name\tcategory\tdomain\tinput_language\toutput_language\tsplit\n"


def is_of(task: str, data_set: str) -> bool:
    return f"{task.partition('_')[2]}_".startswith(f"{data_set}_")


def run_script(tasks: Path, out: Path) -> dict[str, str]:
    subprocess.run([sys.executable, SCRIPT, tasks, "--out", out], check=True)
    return tomllib.loads(out.read_text(encoding="utf-8"))["tasks"]


def test_300_tasks_from_55_categories() -> None:
    tasks = load_instructions().super_ni_tasks
    categories = Counter(tasks.values())
    assert (len(tasks), len(categories), max(categories.values())) == (300, 55, 10)
    assert not set(categories) & set(EXCLUDED["categories"])
    assert tasks["task002_quoref_answer_generation"] == "Question Answering"


def test_no_task_is_made_of_an_evaluation_set() -> None:
    tasks = load_instructions().super_ni_tasks
    assert [task for task in tasks if any(is_of(task, one) for one in EXCLUDED["data_sets"])] == []
    named = (
        "amazon",
        "imdb",
        "civil",
        "jigsaw",
        "dbpedia",
        "msmarco",
        "hotpotqa",
        "hellaswag",
        "cnn_dailymail",
        "mrpc",
    )
    assert [task for task in tasks if any(part in task for part in named)] == []


def test_the_file_is_what_the_script_writes(tmp_path: Path) -> None:
    if not REFERENCE.exists():
        pytest.skip("../shared/reference/super_ni_tasks.tsv is not there")
    run_script(REFERENCE, tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_bytes() == (ROOT / "instructions" / "super_ni.toml").read_bytes()


def test_each_line_of_the_exclusion_list_names_real_tasks() -> None:
    if not REFERENCE.exists():
        pytest.skip("../shared/reference/super_ni_tasks.tsv is not there")
    with REFERENCE.open(encoding="utf-8", newline="") as lines:
        names = [row["name"] for row in csv.DictReader(lines, delimiter="\t")]
    known = [*EXCLUDED["data_sets"], *EXCLUDED["false_hits"]]
    assert [one for one in known if not any(is_of(name, one) for name in names)] == []
    assert not set(EXCLUDED["data_sets"]) & set(EXCLUDED["false_hits"])


def test_the_rule_takes_categories_in_turn(tmp_path: Path) -> None:
    rows = [
        ("task3_a_x", "Beta", "News", "English", "train"),
        ("task1_a_x", "Beta", "News", "English", "train"),
        ("task2_a_x", "Alpha", "News", "English", "train"),
        ("task4_imdb_x", "Alpha", "Reviews", "English", "train"),
        ("task5_imdbs_x", "Alpha", "Reviews", "English", "train"),
        ("task6_a_x", "Alpha", "Code -> Language", "English", "train"),
        ("task7_a_x", "Translation", "News", "English", "train"),
        ("task8_a_x", "Alpha", "News", "French", "train"),
        ("task9_a_x", "Alpha", "News", "English", "test"),
    ]
    many = [(f"task{number}_b_x", "Gamma", "News", "English", "train") for number in range(1000, 1400)]
    lines = ["\t".join((name, category, domain, language, "English", split)) for name, category, domain, language, split
             in rows + many]  # fmt: skip
    (tmp_path / "tasks.tsv").write_text(COLUMNS + "\n".join(lines) + "\n", encoding="utf-8")
    chosen = run_script(tmp_path / "tasks.tsv", tmp_path / "out.toml")
    assert list(chosen)[:5] == ["task2_a_x", "task5_imdbs_x", "task1_a_x", "task3_a_x", "task1000_b_x"]
    assert (len(chosen), list(chosen)[-1]) == (300, "task1295_b_x")


def test_all_and_listed() -> None:
    assert choose_tasks(["task2_b", "task1_a"], "all") == (["task1_a", "task2_b"], [])
    assert choose_tasks(["task2_b", "task1_a"], "listed", ["task3_c", "task1_a"]) == (["task1_a"], ["task3_c"])


def test_a_file_of_names(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("\ufeff# mine\ntask2_b.json\n\n task1_a  # first\n", encoding="utf-8")
    assert choose_tasks(["task1_a", "task2_b", "task3_c"], str(names)) == (["task1_a", "task2_b"], [])


def test_where_tasks_are_downloaded_any_name_may_be_there_and_all_means_nothing(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("task547_alt_translation_entk_en\ntask137_detoxifying-lms_classification_toxicity\n")
    expected = ["task137_detoxifying-lms_classification_toxicity", "task547_alt_translation_entk_en"]
    assert choose_tasks(None, str(names), ["task1_a"]) == (expected, [])
    assert choose_tasks(None, "listed", ["task2_b", "task1_a"]) == (["task1_a", "task2_b"], [])
    with pytest.raises(UsageError, match="--super-ni-tasks all: only a --raw folder says what all is"):
        choose_tasks(None, "all", ["task1_a"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"task1_a\ntask7_z\ntask8_y\n", "2 unknown Super-NI tasks: task7_z, task8_y;"),
        (b"".join(b"task%d_z\n" % n for n in range(10, 22)), "task19_z and 2 more;"),
        (b"# nothing\n", "names no task"),
        (b"task1_a\n../secret\n", "'../secret' cannot be the name of a task"),
        (b"\xff\xfe", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    names = tmp_path / "names.txt"
    if content is not None:
        names.write_bytes(content)
    with pytest.raises(UsageError) as told:
        choose_tasks(["task1_a"], str(names))
    assert message in str(told.value) and "\n" not in str(told.value)
