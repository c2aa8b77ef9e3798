"""What a person sees of a build: one line a stage, with rows, speed and the time left, each said once when it ends."""

import fcntl
import io
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from pipelines.build.context import Context, prepare
from pipelines.build.progress import Reporter, showing
from pipelines.build.progress import reporter as reporter_in_use
from pipelines.build.summary import replacing_aloud
from pipelines.presets import resolve
from tests.builds import REPO
from tests.release_builder import tiny


def plain() -> tuple[Reporter, io.StringIO]:
    """Return a reporter without a terminal, and what it writes."""
    text = io.StringIO()
    return Reporter(Console(file=text, width=80)), text


def test_a_stage_says_one_line_when_it_ends() -> None:
    reporter, text = plain()
    with reporter:
        reporter.expect("ingest", 2)
        reporter.expect("embed", 0)
        reporter.begin("ingest")
        reporter.advance("ingest", rows=1_000)
        assert text.getvalue() == ""
        reporter.advance("ingest", rows=500)
        assert re.fullmatch(r"ingest   2/2  1,500 rows  [\d,]+ rows/s  in 0 s\n", text.getvalue())
    assert text.getvalue().count("\n") == 1


def test_what_grew_after_its_end_is_said_again_and_a_stage_that_stopped_short_too() -> None:
    reporter, text = plain()
    with reporter:
        reporter.expect("embed", 10)
        reporter.advance("embed", rows=10, steps=10)
        reporter.expect("embed", 5)
        reporter.advance("embed", rows=2, steps=2)
        reporter.advance("mine")
    assert [line.split()[1] for line in text.getvalue().splitlines()] == ["10/10", "12/15"]
    # It is over: nobody may wait for what will not come.
    assert text.getvalue().rstrip().endswith("in 0 s, the rest not done")


def test_a_line_that_promised_more_is_followed_by_how_it_ended() -> None:
    reporter, text = plain()
    with reporter:
        reporter.every_seconds = 0.0
        reporter.expect("mine", 3)
        for _ in range(2):
            reporter.advance("mine", rows=5)
    lines = text.getvalue().splitlines()
    assert [line.partition("rows/s")[2].strip() for line in lines] == [
        *["about 0 s left"] * 2, "in 0 s, the rest not done",
    ]  # fmt: skip


def test_a_long_step_is_not_silent() -> None:
    reporter, text = plain()
    reporter.every_seconds = 0.02
    with reporter:
        reporter.expect("embed", 9)
        reporter.begin("embed")
        for _ in range(500):
            if text.getvalue().count("\n") >= 2:
                break
            time.sleep(0.01)
    assert re.match(r"(embed    0/9 texts  0 texts/s  at work for 0 s\n){2}", text.getvalue())


def test_a_terminal_shows_no_time_left_of_a_stage_that_is_over() -> None:
    text = io.StringIO()
    reporter = Reporter(Console(file=text, width=80, force_terminal=True))
    with reporter:
        reporter.expect("ingest", 4)
        for _ in range(3):
            reporter.advance("ingest", rows=1)
            time.sleep(0.02)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue()).rstrip()
    assert shown.endswith("the rest not done") and "3/4" in shown.splitlines()[-1]


def test_an_encoder_is_said_to_be_loaded_once() -> None:
    reporter, text = plain()
    with reporter:
        for seconds in (6.2, 6.1, 0.0):
            reporter.loaded("o/tiny", seconds)
    assert text.getvalue() == "load     o/tiny  in 6 s\n"


def test_a_text_that_two_groups_share_is_expected_once() -> None:
    reporter, text = plain()
    with reporter:
        for texts in (["a", "b"], ["b", "c"], []):
            reporter.expect_texts("embed", texts)
        reporter.advance("embed", rows=3, steps=3)
    assert re.fullmatch(r"embed    3/3 texts  [\d,]+ texts/s  in 0 s\n", text.getvalue())


def test_a_reporter_is_in_use_for_a_while_only() -> None:
    before, (new, text) = reporter_in_use(), plain()
    with showing(new):
        reporter_in_use().say("heard")
    assert (text.getvalue(), reporter_in_use()) == ("heard\n", before)


def test_quiet_says_nothing_and_names_from_data_are_no_markup() -> None:
    quiet = Reporter(Console(file=io.StringIO()), quiet=True)
    quiet.say("nothing")
    assert quiet.console.file.getvalue() == ""  # type: ignore[attr-defined]
    reporter, text = plain()
    reporter.say("[red]task[/red] " + "long " * 30)
    assert text.getvalue() == "[red]task[/red] " + "long " * 30 + "\n"


def test_a_stage_that_waits_says_so_once_and_not_that_it_is_at_work() -> None:
    reporter, text = plain()
    reporter.every_seconds = 0.02
    told = "waits for the encoder: another build uses it"
    with reporter:
        reporter.expect("embed", 9)
        reporter.begin("embed")
        for _ in range(2):
            with reporter.waiting("embed", told):
                assert reporter.shares()["embed"] == (0.0, f"embed    0/9 texts  0 texts/s  {told}")
                time.sleep(0.2)
        # What it waited is no part of its speed, nor of the time that is left.
        reporter.every_seconds = 1e9
        reporter.advance("embed", rows=3, steps=3)
        percent, line = reporter.shares()["embed"]
    assert (round(percent), line.endswith("about 0 s left")) == (33, True)
    assert int(re.search(r"([\d,]+) texts/s", line)[1].replace(",", "")) > 3 / 0.2  # type: ignore[index]
    assert text.getvalue().splitlines()[0] == f"embed    {told}" and text.getvalue().count("wait") == 1


def test_a_bar_shows_that_its_stage_waits() -> None:
    text = io.StringIO()
    reporter = Reporter(Console(file=text, width=80, force_terminal=True))
    with reporter:
        reporter.expect("embed", 9)
        with reporter.waiting("embed", "waits for the encoder: another build uses it"):
            time.sleep(0.3)
        before = text.getvalue()
        reporter.advance("embed", rows=9, steps=9)
    assert re.search(r"0/9.*texts.*waits\s", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", before))
    assert not re.search(r"9/9.*waits", text.getvalue())


def test_a_device_is_waited_for_aloud_only_where_another_build_has_it(tmp_path: Path, tiny_encoder: Path) -> None:
    context = prepare(resolve(raw=REPO / "data" / "sample", encoder=str(tiny_encoder), workspace=tmp_path))
    reporter, text = plain()
    with showing(reporter):
        reporter.expect("embed", 9)
        # Threads of one build take their turns without a word.
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: _hold(context), range(8)))
        assert text.getvalue() == ""
        with ThreadPoolExecutor(1) as threads, (tmp_path / "encoder.lock").open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            waiter = threads.submit(_hold, context)
            until = time.monotonic() + 60
            while not text.getvalue() and time.monotonic() < until:
                time.sleep(0.01)
            assert not waiter.done()
            fcntl.flock(other, fcntl.LOCK_UN)
    assert text.getvalue() == "embed    waits for the encoder: another build uses it\n"


def _hold(context: Context) -> None:
    with context.device("embed"):
        time.sleep(0.01)


def test_a_stage_that_stood_still_while_the_encoder_was_loaded_is_as_fast_as_without() -> None:
    reporter, text = plain()
    with reporter:
        for stage in ("ingest", "mine"):
            reporter.expect(stage, 2)
            reporter.begin(stage)
        time.sleep(0.6)
        # What went on meanwhile keeps its time.
        reporter.advance("mine", rows=5)
        reporter.loaded("tiny", 0.6)
        for stage in ("ingest", "mine"):
            reporter.advance(stage, rows=10, steps=2)
    ends = [line.split()[-2] for line in text.getvalue().splitlines() if "rows/s" in line]
    assert ends == ["0", "1"]


def test_a_release_that_takes_the_place_of_another_one_is_told(tmp_path: Path) -> None:
    """Its name may be the preset's alone: a build of one source of the sample goes where the whole sample is."""
    out = tmp_path / "out"
    said, digests = [], []
    for rows in (4, 4, 3):
        reporter, text = plain()
        with reporter, replacing_aloud(reporter, out):
            digests.append(tiny(rows).write(out))
        said.append(text.getvalue().replace("\n", ""))
    assert said[:2] == ["", ""]
    assert said[2] == f"{out}: this took the place of a release of 16 rows, content digest {digests[0]}"
