"""The pages of docs/: every link leads somewhere, every error line is what its command prints, every page is listed."""

import contextlib
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from medi.sources import ALL
from pipelines.cli.app import main
from tests.pages import PAGES, ROOT, Session, anchors, fences, links, sessions

TROUBLE = ROOT / "docs" / "troubleshooting.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """A file and an anchor must be there; of an address only the form is looked at, as there may be no network."""
    for link in links(page):
        if re.match(r"\w+:", link):
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]+(/[\w./#?=&~%+-]*)?", link), link
            continue
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists() and there.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(there), link


def test_headings_have_one_anchor_each() -> None:
    for page in PAGES:
        assert len(anchors(page)) == len(set(anchors(page))), page


def test_every_page_is_listed_and_reached_from_the_readme() -> None:
    listed = set(links(ROOT / "docs" / "README.md"))
    assert {page.name for page in PAGES[1:]} - {"README.md"} <= listed
    assert "docs/README.md" in links(PAGES[0])


def test_no_page_names_a_machine() -> None:
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(?:work|tmp|home|root)/", page.read_text()), page


@pytest.mark.parametrize("session", sessions(TROUBLE), ids=lambda session: session.title)
def test_an_error_line_is_what_its_command_prints(
    session: Session, beside_the_sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All commands but the last make ready; of what the last one prints, `...` stands for anything."""
    *before, last = session.commands
    for command in before:
        subprocess.run(["bash", "-c", command], cwd=beside_the_sample, check=True)
    program, *args = shlex.split(last)
    assert program == "medi"
    with contextlib.chdir(beside_the_sample):
        code = main(args)
    printed = capsys.readouterr()
    told = [line for line in printed.err.splitlines() if line.startswith("medi: ")]
    assert code in (1, 2) and printed.out == ""
    assert len(told) == len(session.printed), printed.err
    for line, pattern in zip(told, session.printed, strict=True):
        assert re.fullmatch(".*".join(map(re.escape, pattern.split("..."))), line), line


def test_ten_errors_and_more_are_tried() -> None:
    titles = [session.title for session in sessions(TROUBLE)]
    assert len(titles) == len(set(titles)) >= 20


def test_lines_that_no_test_can_bring_about_stand_in_the_code() -> None:
    """`...` stands for what the code fills in."""
    told = "".join(path.read_text() for room in ("medi", "pipelines") for path in (ROOT / room).rglob("*.py"))
    joined = re.sub(r'"\s*\n\s*f?"', "", told)
    forms = re.sub(r"(\.\.\.)+", "...", re.sub(r"\{[^{}]*\}", "...", joined))
    quoted = [line for block in fences(TROUBLE, "text") for line in block.splitlines()]
    assert len(quoted) >= 4
    assert [line for line in quoted if line.removeprefix("medi: ") not in forms] == []


def test_numbers_of_speed_are_measured_ones() -> None:
    """Every number with a point or a comma in what docs/train.md says of speed stands in benchmarks/NOTES.md."""
    told = (ROOT / "docs" / "train.md").read_text().partition("\n## Speed\n")[2].partition("\n## ")[0]
    numbers = re.findall(r"\d+[.,]\d+", told)
    measured = re.findall(r"\d+[.,]\d+", (ROOT / "benchmarks" / "NOTES.md").read_text())
    assert len(numbers) >= 15
    assert [number for number in numbers if number not in measured] == []


def test_numbers_of_the_paper_are_those_that_the_sources_declare() -> None:
    """Table 5 in docs/how-medi-is-built.md: what the 30 sets give, Super-NI, and both."""
    told = (ROOT / "docs" / "how-medi-is-built.md").read_text()
    quotas = {source.name: source.quota_rows for source in ALL}
    super_ni = quotas.pop("super_ni")
    assert f"{sum(quotas.values()):,} for the {len(quotas)}, {super_ni:,} for Super-NI" in " ".join(told.split())
