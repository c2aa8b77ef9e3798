"""The report in a real browser: opens without a word on the console, sorts, searches, opens, by mouse and keys."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from medi.release import open_release
from medi.report.page import report_page
from medi.shards import write_release
from tests.browser import Page
from tests.release_builder import tiny
from tests.test_report import HOSTILE, measures_of_tiny

NAMES = "[...document.querySelectorAll('#table tbody tr:not(.panel) th')].map((cell) => cell.textContent)"
ASKS, TWINS, WHOLE, LABEL, TEXT = (
    "asks", "twins", "super_ni: all 2 tasks", "task001_yes_or_no", "task002_rewrite",
)  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a tiny release with measures, in which `asks` has fewer rows than the others, and a hostile one."""
    made = tiny()
    made.rows["asks", "asks"].pop()
    made.row("asks")["query"] = HOSTILE
    made.sources[0] |= {"got": 3, "drawn": 6}
    made.tasks[0] |= {"got": 3, "drawn": 3}
    for number, row in enumerate(made.rows["twins", "twins"]):
        row["positive_score"] = 0.9 + number / 100
    out = tmp_path_factory.mktemp("release") / "out"
    write_release(out, replace(made.contents(), measures=measures_of_tiny))
    return out / "report.html"


def click(page: Page, selector: str, number: int = 0) -> None:
    page.run(f"document.querySelectorAll({json.dumps(selector)})[{number}].click()")


def choose(page: Page, name: str, value: str) -> None:
    """Put a value into a field of the filters, as typing and choosing do."""
    event = "new Event('input', { bubbles: true })"
    field = f"document.getElementById({json.dumps(name)})"
    page.run(f"{field}.value = {json.dumps(value)}; {field}.dispat" + f"chEvent({event})")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_it_opens_silently_at_any_width_by_day_and_night(page: Page, report: Path, width: int, dark: bool) -> None:
    page.troubles.clear()
    page.open(report, width, dark=dark)
    assert page.run(NAMES) == [ASKS, TWINS, WHOLE, LABEL, TEXT]
    for number in range(5):
        click(page, "#table tbody tr:not(.panel) th button", number)
    assert page.run("document.querySelectorAll('#table .panel:not([hidden])').length") == 5
    assert page.run("document.documentElement.scrollWidth") == width
    # Nor does what was opened stand beyond the window.
    opened = "[...document.querySelectorAll('.panel figure, .panel dl')]"
    assert page.run(f"Math.max(...{opened}.map((e) => e.getBoundingClientRect().right))") <= width
    paper = page.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(23, 24, 27)" if dark else "rgb(253, 253, 252)")
    assert page.troubles == []


def test_a_heading_sorts_and_turns_round(page: Page, report: Path) -> None:
    page.open(report)
    heading = "[...document.querySelectorAll('thead th')].find((th) => th.textContent === 'rows')"
    page.run(f"{heading}.firstChild.click()")
    assert page.run(f"{heading}.ariaSort") == "descending"
    # Equal ones stay in the order of the release.
    assert page.run(NAMES) == [WHOLE, TWINS, LABEL, TEXT, ASKS]
    page.run(f"{heading}.firstChild.click()")
    assert page.run(f"{heading}.ariaSort") == "ascending"
    assert page.run(NAMES) == [ASKS, TWINS, LABEL, TEXT, WHOLE]
    positive = "[...document.querySelectorAll('thead th')].find((th) => th.textContent === 'positive')"
    page.run(f"{positive}.firstChild.click()")
    # Of cosines and sums together there is no median: what has none is last, either way.
    assert page.run(NAMES) == [TEXT, TWINS, LABEL, ASKS, WHOLE]
    page.run(f"{positive}.firstChild.click()")
    assert page.run(NAMES) == [ASKS, LABEL, TWINS, TEXT, WHOLE]
    assert page.run(f"{heading}.ariaSort") is None


def test_search_and_filters_leave_what_fits_and_say_how_many(page: Page, report: Path) -> None:
    page.open(report)
    choose(page, "search", "SUPER_ni rewrite")
    assert page.run(NAMES) == [TEXT]
    assert page.run("document.getElementById('shown').textContent") == "1 of 5 shown"
    choose(page, "search", "")
    choose(page, "level", "source")
    assert page.run(NAMES) == [ASKS, TWINS, WHOLE]
    choose(page, "level", "task")
    assert page.run(NAMES) == [ASKS, TWINS, LABEL, TEXT]
    choose(page, "kind", "label")
    assert page.run(NAMES) == [LABEL]


def test_a_task_opens_with_figures_and_examples_that_a_reader_can_be_told(page: Page, report: Path) -> None:
    page.open(report)
    button = "document.querySelectorAll('#table tbody th button')[3]"
    page.run(f"{button}.click()")
    assert page.run(f"{button}.ariaExpanded") == "true"
    panel = f"document.getElementById({button}.getAttribute('aria-controls'))"
    titles = page.run(f"[...{panel}.querySelectorAll('h4')].map((e) => e.textContent)")
    assert titles == [
        "Length of queries", "Length of documents", "Cosine with the query", "Place of mined negatives",
        "Rows by label", "highest positive score", "at random", "at random",
    ]  # fmt: skip
    told = page.run(f"[...{panel}.querySelectorAll('svg[role=img]')].map((e) => e.getAttribute('aria-label'))")
    assert len(told) == 5 and told[3] == (
        "Place of mined negatives. 4 mined negatives: 75% are the nearest candidate, the last is number 3."
    )
    assert told[4] == "Rows by label. yes 4 (100%)"
    assert page.run(f"{panel}.querySelectorAll('svg rect').length") >= 7
    page.run(f"{button}.click()")
    assert page.run(f"[{button}.ariaExpanded, {panel}.hidden]") == ["false", True]


def test_keys_alone_reach_everything(page: Page, report: Path) -> None:
    page.open(report)
    page.press("Tab")
    assert page.run("document.activeElement.textContent") == "Skip to sources and tasks"
    page.press("Enter")
    page.press("Tab")
    assert page.run("document.activeElement.id") == "search"
    page.press(*"twins")
    assert page.run(NAMES) == [TWINS]
    for _ in range(30):
        page.press("Tab")
        if page.run("document.activeElement.textContent") == TWINS:
            break
    page.press("Enter")
    assert page.run("document.activeElement.ariaExpanded") == "true"
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_names_of_every_control_are_told(page: Page, report: Path) -> None:
    page.open(report)
    page.call("Accessibility.enable")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    page.call("Accessibility.disable")
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")
    ]
    controls = [(role, name) for role, name in named if role in ("button", "searchbox", "combobox", "image", "table")]
    assert len(controls) == 20 and all(name for _, name in controls)
    assert ("button", ASKS) in controls and ("button", "rows") in controls
    assert {("combobox", name) for name in ("Show", "Kind", "Sort by")} <= set(controls)
    assert ("searchbox", "Search") in controls
    assert ("image", "4 tasks by the mean of their queries' vectors, coloured by category.") in controls


def test_an_address_opens_its_task_and_a_warning_leads_there(page: Page, report: Path) -> None:
    page.open(report, at=f"#{TEXT}")
    expanded = "[...document.querySelectorAll('th button[aria-expanded=true]')].map((e) => e.textContent)"
    assert page.run(expanded) == [TEXT]
    assert page.run("document.activeElement.textContent") == TEXT
    choose(page, "search", "asks")
    page.run(f"location.hash = '#{LABEL}'")
    page.run("new Promise((done) => setTimeout(done, 200))")
    assert page.run(expanded) == [LABEL, TEXT] and page.run("document.getElementById('search').value") == ""


def test_a_dot_of_the_map_opens_its_task(page: Page, report: Path) -> None:
    page.open(report, 1000, 1200)
    dots = "document.querySelectorAll('#map g[aria-label=dot] circle')"
    assert page.run(f"{dots}.length") == 4
    for number, name in ((3, TEXT), (0, ASKS)):
        page.run(f"{dots}[{number}].scrollIntoView({{ block: 'center' }})")
        box = page.run(f"(({{ x, y, width }}) => [x, y, width])({dots}[{number}].getBoundingClientRect())")
        for kind, button in (("mouseMoved", "none"), ("mousePressed", "left"), ("mouseReleased", "left")):
            at = {"x": box[0] + box[2] / 2, "y": box[1] + box[2] / 2}
            page.call("Input.dispat" + "chMouseEvent", type=kind, button=button, clickCount=1, **at)
            # The nearest dot is found when the next frame is drawn.
            page.run("new Promise((done) => setTimeout(done, 100))")
        assert page.run("document.activeElement.textContent") == name


def test_what_data_hold_is_text_and_nothing_else(page: Page, report: Path) -> None:
    page.open(report, at=f"#{ASKS}")
    assert page.run("document.title") == "MEDI, rebuilt: report"
    shown = page.run("[...document.querySelectorAll('.example dd')].map((e) => e.textContent)")
    assert any("</script><script>document.title='taken'</script><!--slot d3-->&" in text for text in shown)
    # A script that came in another way would not run either.
    page.run(
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'document.title = 1' }))"
    )
    assert page.run("document.title") == "MEDI, rebuilt: report"


def test_without_measures_it_says_so_and_works(page: Page, tmp_path: Path) -> None:
    tiny().write(tmp_path / "out")
    page.troubles.clear()
    page.open(tmp_path / "out" / "report.html", at=f"#{TEXT}")
    assert "keeps no measures" in page.run("document.getElementById('first').textContent")
    assert page.run("document.getElementById('map').textContent").startswith("There is no map")
    assert page.run("[...document.querySelectorAll('.panel figure h4')].map((e) => e.textContent)") == [
        "s_pos and s_neg"
    ]
    assert page.troubles == []


def test_the_real_build_shows_every_task(page: Page, built: Path, tmp_path: Path) -> None:
    release = open_release(built / "out")
    (tmp_path / "page.html").write_text(report_page(release), encoding="utf-8")
    assert (tmp_path / "page.html").read_bytes() == (built / "out" / "report.html").read_bytes()
    page.troubles.clear()
    page.open(tmp_path / "page.html", 400)
    tasks = [entry["task"] for entry in release.manifest["tasks"]]
    assert set(tasks) <= set(page.run(NAMES))
    for number in range(page.run(f"{NAMES}.length")):
        click(page, "#table tbody tr:not(.panel) th button", number)
    assert page.run("document.documentElement.scrollWidth") == 400 and page.troubles == []
