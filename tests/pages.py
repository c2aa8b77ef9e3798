"""The pages of the documentation, and what stands in them: commands, code, links, sessions of a terminal."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
# The test of a source of one's own runs this page from its first line to its last.
_RUN_ELSEWHERE = {"add-a-source.md"}
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
CHECKED = [page for page in PAGES if page.name not in _RUN_ELSEWHERE]


class Session(NamedTuple):
    """Commands of a terminal and what the last one prints; `title` is the heading above."""

    title: str
    commands: list[str]
    printed: list[str]


def fences(page: Path, language: str) -> list[str]:
    """Return the code of a language on a page, block by block."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def lines(page: Path) -> list[str]:
    """Return the commands of a page's bash blocks, one that is continued as one."""
    return [line for fence in fences(page, "bash") for line in fence.replace("\\\n", "").splitlines()]


def inline(page: Path) -> list[str]:
    """Return the commands in a page's sentences."""
    return re.findall(r"`((?:medi|make) [^`\n]+)`", page.read_text())


def sessions(page: Path) -> list[Session]:
    """Return the sessions of a page in their order."""
    found = []
    title = ""
    for heading, session in re.findall(
        r"^#+ ([^\n]+)$|^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    ):
        title = heading or title
        if session:
            typed = [line.removeprefix("$ ") for line in session.splitlines() if line.startswith("$ ")]
            printed = [line for line in session.splitlines() if not line.startswith("$ ")]
            found.append(Session(title, typed, printed))
    return found


def without_code(page: Path) -> str:
    """Return the text of a page, blocks and spans of code taken out."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL))


def links(page: Path) -> list[str]:
    """Return where the links and pictures of a page lead."""
    text = without_code(page)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^\]]+\]: (\S+)$", text, flags=re.MULTILINE)


def anchors(page: Path) -> list[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
