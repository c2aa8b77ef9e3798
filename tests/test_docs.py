"""README and docs/ cannot drift: commands are run or parsed, Python runs on the sample, tables match the code.

Links and the sessions of docs/troubleshooting.md have tests of their own, in tests/test_docs_pages.py.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from medi import __version__
from medi.schema import EXAMPLES
from pipelines.cli.app import app
from tests.pages import CHECKED, README, fences, inline, lines

# What has no parser of ours; tests/test_deployment.py runs the lines that begin with `prefect`.
ELSEWHERE = {"sudo apt install make python3-venv", "source .venv/bin/activate"}


def commands() -> list[str]:
    """Return the commands of all pages, each once."""
    return list(dict.fromkeys(line for page in CHECKED for line in [*lines(page), *inline(page)]))


def lines_of(program: str) -> list[list[str]]:
    """Return the arguments of every line that calls the program, by its name or its place in .venv/bin."""
    words = [shlex.split(line) for line in commands()]
    return [rest for first, *rest in words if Path(first).name == program]


def blocks(language: str) -> list[str]:
    """Return the code of all pages in that language, each block once."""
    return list(dict.fromkeys(code for page in CHECKED for code in fences(page, language)))


def test_every_command_is_checked_by_some_test() -> None:
    known = {"medi", "make", "python", "prefect", "torchrun"}
    strange = [c for c in commands() if c not in ELSEWHERE and Path(c.split()[0]).name not in known]
    assert strange == []
    assert len(lines_of("medi")) >= 10


TYPED = {line for page in CHECKED for line in lines(page)}
LAUNCHED = [args[args.index("pipelines.cli.app") + 1 :] for args in lines_of("torchrun")]


@pytest.mark.parametrize("args", [*lines_of("medi"), *LAUNCHED], ids=" ".join)
def test_medi_commands_parse(args: list[str]) -> None:
    group = get_command(app)
    command = group.get_command(group.make_context("medi", list(args)), args[0])
    assert command is not None
    if len(args) == 1 and " ".join(["medi", *args]) not in TYPED:
        # A sentence may name a command without its arguments.
        return
    assert command.make_context(args[0], args[1:]).args == []


@pytest.mark.parametrize("args", lines_of("make"), ids=" ".join)
def test_make_commands_have_their_target(args: list[str], repo_root: Path) -> None:
    makefile = (repo_root / "Makefile").read_text()
    target, *settings = args
    assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    dry = subprocess.run(["make", "--dry-run", target], cwd=repo_root, capture_output=True, text=True, check=False)
    assert dry.returncode == 0, dry.stderr
    assert all(f"$({setting.partition('=')[0]})" in makefile for setting in settings)


def test_every_target_can_be_made(repo_root: Path) -> None:
    """Those that .ci/run makes as well: it is what nobody types."""
    (listed,) = re.findall(r"^\.PHONY:(.*)$", (repo_root / "Makefile").read_text(), flags=re.MULTILINE)
    targets = set(listed.split())
    assert set(re.findall(r"^ *make (\S+)", (repo_root / ".ci" / "run").read_text(), flags=re.MULTILINE)) <= targets
    for target in targets:
        dry = subprocess.run(["make", "--dry-run", target], cwd=repo_root, capture_output=True, text=True, check=False)
        assert dry.returncode == 0 and dry.stdout, f"{target}: {dry.stderr}"


@pytest.mark.parametrize("args", lines_of("python"), ids=" ".join)
def test_python_commands_take_the_options_of_medi_build(args: list[str], repo_root: Path) -> None:
    call = [sys.executable, *args, "--scale", "0"]
    done = subprocess.run(call, cwd=repo_root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("medi: --scale 0.0: a quota of nothing")


# One process: most blocks import torch, which takes longer than what they do.
BLOCKS = """
import contextlib, io, json, sys
for code in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(code, code, "exec"), {"__name__": "__main__"})
    print(len(said.getvalue().strip()))
"""


def run(call: list[str], folder: Path) -> str:
    env = os.environ | {"HF_HOME": str(folder / "hub"), "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    done = subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_python_runs_on_the_sample(beside_the_sample: Path) -> None:
    shown = blocks("python")
    said = [int(length) for length in run([sys.executable, "-c", BLOCKS, json.dumps(shown)], beside_the_sample).split()]
    assert len(said) == len(shown) > 2 and min(said) > 0


def test_medi_commands_run_on_the_sample(beside_the_sample: Path) -> None:
    # tests/test_train_cli.py trains, tests/test_diff.py compares.
    shown = [args for args in lines_of("medi") if "data/medi/sample" in args and args[0] not in ("train", "diff")]
    assert {args[0] for args in shown} == {"domains", "export", "inspect", "reselect", "report", "verify"}
    for args in shown:
        assert run([sys.executable, "-m", "pipelines.cli.app", *args], beside_the_sample).strip()


def rows_of_table(header: str) -> Iterator[list[str]]:
    """Yield the cells of the table with this header, without its first two lines."""
    table = README.read_text().partition(header)[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_the_columns_are_those_of_the_shards() -> None:
    assert [cells[0].strip("`") for cells in rows_of_table("| column | what it holds |")] == EXAMPLES.names


def test_the_glossary_is_in_order_and_every_path_of_the_tree_exists(repo_root: Path) -> None:
    words = [cells[0] for cells in rows_of_table("| word | meaning |")]
    assert words == sorted(words, key=str.lower) and len(words) == len(set(words))
    tree = README.read_text().partition("## The tree\n\n```\n")[2].partition("```")[0]
    paths = re.findall(r"^( *)(\S+)", tree, flags=re.MULTILINE)
    assert [name for indent, name in paths if not (repo_root / ("medi" if indent else "") / name).exists()] == []
    rooms = {path.name + "/" * path.is_dir() for path in (repo_root / "medi").iterdir() if path.name[0] not in "_."}
    assert rooms == {name for indent, name in paths if indent}


def test_one_version_everywhere(repo_root: Path) -> None:
    assert f"\nversion: {__version__}\n" in (repo_root / "CITATION.cff").read_text()
    assert re.search(rf"^## {re.escape(__version__)}\b", (repo_root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
