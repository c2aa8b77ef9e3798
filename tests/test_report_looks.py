"""How the report looks in a real browser: what a narrow window keeps, where names break, what axes tell."""

from dataclasses import replace
from pathlib import Path

import pytest

from medi.release.manifest import Json
from medi.shards import write_release
from tests.browser import Page
from tests.release_builder import Builder, pair_row, source_entry, task_entry, tiny
from tests.test_report import measures_of_tiny
from tests.test_report_browser import ASKS, LABEL, NAMES, TEXT, TWINS, WHOLE, choose
from tests.test_report_words import clusters

VISIBLE = "[...document.querySelectorAll('thead th')].filter((th) => th.checkVisibility()).map((th) => th.textContent)"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a tiny release whose tasks differ in lengths."""
    out = tmp_path_factory.mktemp("release") / "out"
    measures = measures_of_tiny()
    for number, task in enumerate(measures["tasks"]):  # type: ignore[arg-type]
        task["query_tokens_median"] = 5 + number  # type: ignore[index,call-overload]
    write_release(out, replace(tiny().contents(), measures=lambda: measures))
    return out / "report.html"


def test_a_narrow_window_sorts_by_what_it_has_no_room_for_and_shows_it(page: Page, report: Path) -> None:
    page.open(report, 400)
    assert page.run(VISIBLE) == ["name", "rows", "of planned"]
    choose(page, "sort", "query tokens")
    assert page.run(VISIBLE) == ["name", "rows", "query tokens"]
    # The source of two tasks has no median, so it is last, either way.
    assert page.run(NAMES) == [TEXT, LABEL, TWINS, ASKS, WHOLE]
    assert page.run("document.getElementById('turn').textContent") == "highest first \u2195"
    page.run("document.getElementById('turn').click()")
    assert page.run(NAMES) == [ASKS, TWINS, LABEL, TEXT, WHOLE]
    shown = "[...document.querySelectorAll('#table tbody tr')].map((tr) => tr.querySelector('td.now').textContent)"
    assert page.run(shown) == ["5", "6", "7", "8", "–"]
    choose(page, "sort", "name")
    assert page.run("document.getElementById('turn').textContent") == "A first \u2195"
    # A heading and the list say the same.
    page.run("[...document.querySelectorAll('thead button')].find((b) => b.textContent === 'rows').click()")
    assert page.run("document.getElementById('sort').value") == "rows"
    assert page.run(VISIBLE) == ["name", "rows", "of planned"]
    scroll = "document.querySelector('.scroll')"
    assert page.run(f"{scroll}.scrollWidth") == page.run(f"{scroll}.clientWidth")


def test_names_break_behind_underscores_and_slashes_alone(page: Page, tmp_path: Path) -> None:
    made = Builder({}, [source_entry("x", 8, clusters=True)], [])
    names = [
        "stackexchange_title_body/computerscience_and_mathematics", "amazon-qa",
        "task1516_imppres_naturallanguageinference", "task001_" + "e" * 60,
    ]  # fmt: skip
    for name in sorted(names):
        made.rows["x", name] = [pair_row("x", n, name) for n in range(2)]
        made.tasks.append(task_entry("x", name, "pair", 2))
    made.write(tmp_path / "out")
    page.open(tmp_path / "out" / "report.html", 400)
    # The first letter of each line that a name takes.
    lines = """[...document.querySelectorAll('tbody th button')].map((button) => {
      const [range, lines] = [document.createRange(), []];
      let last = -99;
      for (const { firstChild: text } of button.querySelectorAll('span')) {
        for (let i = 0; i < text.length; i++) {
          range.setStart(text, i);
          range.setEnd(text, i + 1);
          const { top } = range.getBoundingClientRect();
          if (top > last + 3) lines.push('');
          lines[lines.length - 1] += text.data[i];
          last = Math.max(last, top);
        }
      }
      return lines;
    })"""
    found = {"".join(told): told for told in page.run(lines)}
    assert set(found) >= set(names) and found["amazon-qa"] == ["amazon-qa"]
    for name in (names[0], names[2]):
        assert len(found[name]) > 1 and all(line.endswith(("_", "/")) for line in found[name][:-1])
    # What cannot be broken there is broken somewhere, and the window is as wide as it was.
    assert len(found[names[3]]) > 2 and page.run("document.documentElement.scrollWidth") == 400


def test_axes_of_lengths_double_and_bars_are_equally_wide(page: Page, report: Path) -> None:
    page.open(report, 1600, at=f"#{ASKS}")
    figure = "document.querySelector('.panel figure')"
    assert page.run(f"{figure}.querySelector('h4').textContent") == "Length of queries"
    ticks = f"[...{figure}.querySelectorAll('g[aria-label=\"x-axis tick label\"] text')].map((t) => t.textContent)"
    assert page.run(ticks) == ["4", "8", "16", "32", "64", "128", "256"]
    # Bins 4 and 5 are 5 and 6 tokens: of 3 and 1 queries.
    bars = f"[...{figure}.querySelectorAll('g[aria-label=rect] rect')]"
    assert page.run(f"{bars}.map((bar) => bar.textContent)") == ["5 to 6: 3 queries", "6 to 7: 1 query"]
    widths = page.run(f"{bars}.map((bar) => bar.getAttribute('width'))")
    assert float(widths[0]) == pytest.approx(float(widths[1]), abs=0.01)
    caption = page.run(f"{figure}.querySelector('figcaption').textContent")
    assert caption == "4 queries: nine tenths between 5 and 7, the median in 5 to 6."


def test_bars_of_lengths_hold_what_their_bins_held(page: Page, report: Path) -> None:
    page.open(report)
    # Bins begin at 14, 15, 16 and 18 tokens; bars at 14, 16 and 20.
    joined = page.run("bins([13, 1, 2, 4, 8, 16], data.edges.tokens, is_quarter).map((b) => [b.x1, b.x2, b.y])")
    assert joined == [[14, 16, 3], [16, 20, 12], [20, 24, 16]]
    assert page.run("bins([14, 2], data.edges.tokens, is_quarter).map((b) => [b.x1, b.x2])") == [[14, 16]]
    assert page.run("[4, 6, 8, 12, 256].map(doublings)") == [2, 2.5, 3, 3.5, 8]


def test_what_overlaps_is_outlined_and_places_tell_their_shares(page: Page, report: Path) -> None:
    page.open(report, 1600, at=f"#{ASKS}")
    of = "[...document.querySelectorAll('.panel figure')].find((f) => f.querySelector('h4').textContent === {!r})"
    cosines, places = of.format("Cosine with the query"), of.format("Place of mined negatives")
    strokes = f"[...{cosines}.querySelectorAll('g[aria-label=line]')].map((g) => g.getAttribute('stroke'))"
    assert page.run(strokes) == ["var(--positive)", "var(--negative)"]
    keys = f"[...{cosines}.querySelectorAll('.key')].map((key) => [key.textContent, key.className])"
    assert page.run(keys) == [["positives", "key positive"], ["negatives", "key negative"]]
    told = f"[...{places}.querySelectorAll('g[aria-label=text] text')].map((t) => t.textContent)"
    assert page.run(told) == ["75%", "25%"]


@pytest.mark.parametrize(("width", "columns"), [(400, 1), (1000, 2), (1600, 3)])
def test_examples_fill_their_rows(page: Page, report: Path, width: int, columns: int) -> None:
    page.open(report, width, at=f"#{ASKS}")
    tops = page.run("[...document.querySelectorAll('.example')].map((e) => e.getBoundingClientRect().top)")
    assert len(tops) == 3 and tops.count(tops[0]) == columns


def test_the_search_says_whole_what_it_looks_for(page: Page, report: Path) -> None:
    for width in (400, 1600):
        page.open(report, width)
        assert page.run(
            "(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.getElementById('search'))"
        )


def test_shares_read_the_same_in_the_page(page: Page, report: Path) -> None:
    page.open(report)
    asked = (
        "[[0, 9], [3, 25000], [1, 1000], [94, 10000], [95, 10000], [1, 3], [994, 1000], [996, 1000], [9, 9], [0, 0]]"
    )
    assert page.run(f"{asked}.map(([part, whole]) => percent(part, whole))") == [
        "0%", "<0.1%", "0.1%", "0.9%", "1%", "33%", "99%", ">99%", "100%", "–",
    ]  # fmt: skip
    assert page.run("[1, 2000].map((n) => many(n, 'query'))") == ["1 query", "2,000 queries"]


def test_a_warning_shows_ten_lines_and_the_rest_on_demand(page: Page, tmp_path: Path) -> None:
    made = tiny()
    for number in range(12):
        name = f"more{number:02d}"
        made.rows[name, name] = [pair_row(name, n) | {"licence": "CC BY-NC 4.0"} for n in range(2)]
        made.sources.append(source_entry(name, 2))
        made.tasks.append(task_entry(name, name, "pair", 2))
    for task in (LABEL, TEXT):
        for row in made.rows["super_ni", task]:
            row["licence"] = "CC BY-NC 4.0"
    made.write(tmp_path / "out")
    page.open(tmp_path / "out" / "report.html")
    summaries = (
        "[...document.querySelectorAll('#first summary')].filter((s) => s.checkVisibility()).map((s) => s.textContent)"
    )
    first = "Licences that forbid commercial use (14) 2 tasks of super_ni, more00, more01, …"
    assert page.run(summaries) == [first]
    page.run("document.querySelector('#first details').open = true")
    lines = "[...document.querySelectorAll('#first li')].filter((line) => line.checkVisibility())"
    assert page.run(f"{lines}.length") == 10
    assert page.run(summaries) == [first, "super_ni: 2 tasks, 8 rows", "3 more"]


@pytest.mark.parametrize(("made", "says"), [(1, "One task needs no map."), (2, "Two tasks need no map.")])
def test_few_tasks_need_no_map(page: Page, tmp_path: Path, made: int, says: str) -> None:
    built = clusters()
    if made == 1:
        built.tasks.pop()
        built.rows.popitem()
        built.sources[0]["got"] = 3
        built.sources[0]["drawn"] = 6
    measured: list[Json] = [{"source": "twins", "task": f"twins/0{n}", "place": [0.0, 0.0]} for n in range(made)]
    contents = replace(built.contents(), measures=lambda: {"max_length_tokens": 256, "tasks": measured})
    write_release(tmp_path / "out", contents)
    page.open(tmp_path / "out" / "report.html")
    assert page.run("document.getElementById('map').textContent") == says
    planned = "[...document.querySelectorAll('#table tbody tr')].map((tr) => tr.children[3].textContent)"
    assert page.run(planned) == ["<0.1%", *["–"] * made]
