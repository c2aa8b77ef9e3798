"""Reads the code itself: the walls between the rooms, the budgets of files and functions, the habits of the house.

Each rule is a function from one parsed file to the lines that break it; each is shown a bad file first.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {"torch", "faiss", "sentence_transformers", "transformers", "datasets", "pandas", "mteb", "sklearn"}
# What a room may import of ours, beside medi.errors and itself; rooms that are not named here compose, and may choose.
WALLS = {
    "schema": set(), "source": set(), "store": {"publish"}, "publish": set(), "errors": set(), "sources": {"source"},
    "ingest": {"schema", "source"}, "super_ni": {"schema", "source"}, "instruct": {"schema", "source"},
    "embed": {"schema", "encoder"}, "mine": {"schema", "profiles", "lanes"}, "profiles": set(), "sample": {"schema"},
    "domains": {"schema"}, "encoder": {"fixed_shapes"}, "fixed_shapes": {"lanes"}, "lanes": set(),
}  # fmt: skip


@dataclass(frozen=True)
class Module:
    """A file of ours: its path below the repository, its text, its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """Return the part of `medi` that the file belongs to: `mine` for medi/mine.py and medi/mine/search.py."""
        parts = Path(self.path).with_suffix("").parts
        return parts[1] if parts[0] == "medi" and len(parts) > 1 else parts[0]


Rule = Callable[[Module], Iterator[str]]


def parse(path: str, text: str) -> Module:
    return Module(path, text, ast.parse(text))


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import, wherever it stands; `from medi import x` gives medi.x."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def walls(module: Module) -> Iterator[str]:
    """Yield imports through a wall."""
    in_library = module.path.startswith("medi/")
    for line, name in imports(module.tree):
        top, *rest = name.split(".")
        room = rest[0] if top == "medi" and rest else ""
        allowed = WALLS.get(module.room)
        if in_library and top in ("pipelines", "prefect"):
            yield f"{line} the library imports {top}"
        elif in_library and top == "medi" and allowed is not None and room not in {*allowed, "errors", module.room}:
            yield f"{line} medi.{module.room} imports {name}"


def heavy_imports(module: Module) -> Iterator[str]:
    """Yield imports of heavy packages that stand outside a function (those for the type checker alone may)."""
    nodes = [n for n in module.tree.body if not (isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test))]
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (f"{line} imports {n}" for line, n in imports(node) if n.split(".")[0] in HEAVY)


def lengths(module: Module) -> Iterator[str]:
    """Yield files of 300 lines or more, functions of 45 or more, and functions with more than 6 arguments."""
    lines = module.text.count("\n")
    if lines >= 300:
        yield f"1 the file has {lines} lines"
    for node in functions(module.tree):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length >= 45:
            yield f"{node.lineno} {node.name} has {length} lines"
        arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len([name for name in arguments if name not in ("self", "cls")])
        if count > 6 and not module.path.startswith("pipelines/cli/"):
            yield f"{node.lineno} {node.name} takes {count} arguments"


def documents(module: Module) -> Iterator[str]:
    """Yield public names without a docstring or without annotations, and files without a docstring."""
    if not ast.get_docstring(module.tree):
        yield "1 the file has no docstring"
    owners = [module.tree, *(n for n in module.tree.body if isinstance(n, ast.ClassDef) and n.name[0] != "_")]
    for owner in owners:
        for node in owner.body:
            if isinstance(node, ast.ClassDef) and node.name[0] != "_" and not ast.get_docstring(node):
                yield f"{node.lineno} {node.name} has no docstring"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                yield from _undocumented(node)
    for node in functions(module.tree):
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        bare = [a.arg for a in arguments if a.annotation is None and a.arg not in ("self", "cls")]
        if bare or node.returns is None:
            yield f"{node.lineno} {node.name} lacks annotations {' '.join(bare) or 'of what it returns'}"


def _undocumented(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    docstring = ast.get_docstring(node) or ""
    if not docstring:
        yield f"{node.lineno} {node.name} has no docstring"
    elif "aise" not in docstring and any(isinstance(n, ast.Raise) and n.exc and _own_error(n) for n in ast.walk(node)):
        yield f"{node.lineno} {node.name} does not say what it raises"


def _own_error(node: ast.Raise) -> bool:
    return "MediError" in ast.unparse(node) or "UsageError" in ast.unparse(node)


def habits(module: Module) -> Iterator[str]:
    """Yield broad excepts, prints outside the command line, Any outside the store, and work left undone."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "everything"
            raises_again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            if caught in ("everything", "Exception") or (caught == "BaseException" and not raises_again):
                yield f"{node.lineno} catches {caught}"
        called = isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
        if called and not module.path.startswith("pipelines/cli/"):
            yield f"{node.lineno} prints"
        named = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        if named in ("Any", "typing.Any") and module.room != "store":
            yield f"{node.lineno} says Any"
    for number, line in enumerate(module.text.splitlines(), 1):
        if re.search(r"#.*\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b", line):
            yield f"{number} leaves work undone"


def code() -> list[Module]:
    """Return every Python file of the library and the programs."""
    paths = sorted(p for folder in ("medi", "pipelines") for p in (ROOT / folder).rglob("*.py"))
    return [parse(p.relative_to(ROOT).as_posix(), p.read_text()) for p in paths if "_sample" not in p.parts]


BAD = '''
import torch
import medi.store
from pipelines.presets import resolve
def f(a, b: int, c: int, d: int, e: int, f: int, g: int) -> Any:
    try:
        print(a)
    except Exception:
        pass  # TO''' + '''DO
    raise MediError("no")
'''


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (walls, ["3 medi.mine imports medi.store", "4 the library imports pipelines"]),
        (heavy_imports, ["2 imports torch"]),
        (lengths, ["5 f takes 7 arguments"]),
        (documents, ["1 the file has no docstring", "5 f has no docstring", "5 f lacks annotations a"]),
        (habits, ["5 says Any", "8 catches Exception", "7 prints", "9 leaves work undone"]),
    ],
)
def test_each_rule_sees_a_bad_file_and_the_code_keeps_it(rule: Rule, expected: list[str]) -> None:
    assert sorted(rule(parse("medi/mine.py", BAD))) == sorted(expected)
    assert [f"{module.path}:{broken}" for module in code() for broken in rule(module)] == []


def test_an_error_that_the_docstring_hides_is_seen() -> None:
    text = '"""x"""\ndef f() -> None:\n    """Do it."""\n    raise MediError("no")\n'
    assert list(documents(parse("medi/x.py", text))) == ["2 f does not say what it raises"]


def test_long_files_and_functions_are_seen() -> None:
    text = "def f() -> None:\n" + "    pass\n" * 44 + "\n" * 255
    assert list(lengths(parse("medi/x.py", text))) == ["1 the file has 300 lines", "1 f has 45 lines"]


def test_only_the_programs_import_prefect() -> None:
    users = {m.path.split("/")[0] for m in code() for _, name in imports(m.tree) if name.split(".")[0] == "prefect"}
    assert users <= {"pipelines"}


def test_no_class_inherits_from_a_class_of_ours() -> None:
    classes = [(m.path, n) for m in code() for n in ast.walk(m.tree) if isinstance(n, ast.ClassDef)]
    ours = {node.name for _, node in classes} - {"MediError"}
    heirs = [(path, node.name) for path, node in classes for base in node.bases if ast.unparse(base) in ours]
    assert heirs == []


def test_tests_run_the_real_path() -> None:
    """No test replaces a part of the program; the word itself is not in the folder."""
    word = re.compile("pat" + "ch|unittest.mo" + "ck|import mo" + "ck")
    assert [p.name for p in sorted((ROOT / "tests").rglob("*.py")) if word.search(p.read_text())] == []


def test_nothing_names_the_machine_it_was_written_on() -> None:
    names = re.compile("/wo" + "rk/|/opt/wh" + "eels|/ro" + "ot/|/home/[a-z]")
    suffixes = {".py", ".toml", ".md", ".txt", ".yaml", ".cff", ""}
    skipped = {".git", ".venv", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis"}
    files = [p for p in ROOT.rglob("*") if p.is_file() and p.suffix in suffixes and not skipped & set(p.parts)]
    files = [p for p in files if p.relative_to(ROOT).parts[0] != "data" or "sample" in p.parts]
    assert [p.relative_to(ROOT).as_posix() for p in files if names.search(p.read_text(errors="replace"))] == []
