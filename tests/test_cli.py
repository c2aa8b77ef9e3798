"""The command line's manners: one line for every error, the right exit code, and an answer at once to `--help`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from medi import __version__
from medi.errors import MediError
from medi.sources import ALL
from pipelines.cli.app import line_of, main
from pipelines.stopping import stops_as_such
from tests.release_builder import tiny

# What would keep a person waiting for `medi --help`: it takes 0.3 s without them, pyarrow and numpy alone add 0.3 s.
HEAVY = (
    "torch", "faiss", "sentence_transformers", "transformers", "mteb", "prefect", "datasets", "pandas", "pyarrow",
    "numpy", "scipy", "huggingface_hub", "httpx", "plotly", "jinja2",
)  # fmt: skip


def medi(*args: str, code: str = "", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `medi` in a process of its own; `code` runs first and may add a command to `app`."""
    program = f"from pipelines.cli.app import app, main\n{code}\nraise SystemExit(main())"
    call = [sys.executable, "-c", program, *args]
    return subprocess.run(call, capture_output=True, text=True, check=False, env=os.environ | (env or {}), timeout=60)


def test_version_and_help_go_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr() == (f"medi {__version__}\n", "")
    assert main(["build", "--help"]) == 0
    assert "--super-ni-tasks all|listed|FILE" in capsys.readouterr().out


@pytest.mark.parametrize("args", [["--help"], ["build", "--help"], ["train", "--help"], ["--version"]], ids=" ".join)
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    code = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr))"
    )
    done = medi(*args, code=code)
    assert (done.returncode, done.stderr) == (0, "[]\n")


# More than any number in use can hold.
HUGE = str(10**20)
NO_RELEASE = [[name, "no/folder"] for name in ("inspect", "domains", "verify")]
NO_RELEASE.append(["reselect", "no/folder", "--negatives", "2"])


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "no command given; `medi --help` lists them"),
        (["bild"], "No such command 'bild'. Did you mean 'build'?; see `medi --help`"),
        (["build", "--scal", "2"], "No such option: --scal (Possible options: --sampling, --scale); see `medi"),
        (["build", "--seed", "x"], "Invalid value for '--seed': Input should be a valid integer"),
        (["build", "--preset", "huge"], "--preset huge: there is no such preset; give one of sample, lite, full"),
        (["build", "--profile", "dirty"], "--profile dirty: give one of paper, clean"),
        (["build", "--take", "last"], "--take last: give one of hash, first"),
        (["build", "--dtype", "float16"], "--dtype float16: give one of float32, bfloat16"),
        (["build", "--runner", "slurm"], "--runner slurm: give one of threads, dask, ray, none"),
        (["build", "--scale", "0"], "--scale 0.0: a quota of nothing"),
        (["build", "--scale", "1e20"], "--scale 1e+20: no source has so many rows; give at most 1,000,000"),
        (["build", "--workers", HUGE], f"--workers {HUGE}: give at least 1 and at most 4,096"),
        (["build", "--memory", HUGE], f"--memory {HUGE}: give bytes, or a number with K, M, G or T, such as 8G"),
        (["build", "--max-bad-rows", HUGE], f"--max-bad-rows {HUGE}: give a number of rows (12)"),
        (["build", "--max-bad-rows", "9" * 5_000], f"--max-bad-rows {'9' * 5_000}: give a number of rows (12)"),
        (["build", "--seed", HUGE], f"--seed {HUGE}: give a whole number from 0 to 2147483647"),
        (["build", "--negatives", HUGE], f"--negatives {HUGE}: give a number from 1 to 16"),
        (["build", "--window", HUGE], f"--window {HUGE}: give a number from 1 to 64"),
        (["build", "--skip-top", HUGE], f"--skip-top {HUGE}: give a number from 0 to 63"),
        (["build", "--scale", "nan"], "--scale nan: a quota of nothing"),
        (["build", "--seed", "-1"], "--seed -1: give a whole number from 0"),
        (["build", "--workers", "0"], "--workers 0: give at least 1"),
        (["build", "--memory", "lots"], "--memory lots: give bytes, or a number with K, M, G or T, such as 8G"),
        (["build", "--memory", "1M"], "--memory 1048576: too little for a build"),
        (["build", "--encoder", " "], "--encoder: empty"),
        (["build", "--max-bad-rows", "101%"], "--max-bad-rows 101%: give a number of rows (12)"),
        (["build", "--max-bad-rows", "1.5"], "--max-bad-rows 1.5: give a number of rows (12)"),
        (["build", "--sources", ","], "--sources: empty"),
        (["build", "--sources", "goaq_pairs"], "there is no source 'goaq_pairs'; did you mean gooaq_pairs"),
        (["build", "--variant", "NQ"], "--variant NQ: give SOURCE=NAME"),
        (["build", "--variant", "NQ=none"], "--variant NQ=none: NQ has no such variant; give one of "),
        (["build", "--sources", "xsum", "--variant", "NQ=pairs"], "--variant NQ=pairs: says something of NQ, which"),
        (["plan", "--sources", "xsum", "--super-ni-tasks", "all"], "--super-ni-tasks: says something of super_ni, wh"),
        (["push", "no/folder", "me/it", "--allow-restricted"], "--allow-restricted: says something of --public, whi"),
        (["build", "--super-ni-tasks", "no/list"], "--super-ni-tasks no/list: no such file"),
        (["build", "--preset", "full", "--super-ni-tasks", "all"], "all: only a --raw folder says what all is; give"),
        (["build", "--raw", "no/folder"], "no/folder: no such folder"),
        (["sources", "goaq_pairs"], "there is no source 'goaq_pairs'; did you mean gooaq_pairs"),
        (["sources", "--raw", "no/folder"], "the raw folder no/folder is not there; check --raw"),
        *((call, "no/folder is not a folder; name the folder that `medi build` printed") for call in NO_RELEASE),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(
    args: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    workspace = ["--workspace", str(tmp_path / "data")] if args[:1] == ["build"] else []
    assert main([*args, *workspace]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("medi: ") and captured.err.count("\n") == 1
    assert says in captured.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["raw", ""])
def test_a_release_never_takes_the_place_of_what_it_is_built_from(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "raw").mkdir()
    out = tmp_path / place
    assert main(["build", "--raw", str(tmp_path / "raw"), "--out", str(out), "--workspace", str(tmp_path / "w")]) == 2
    assert f"--out {out}: holds the raw folder {tmp_path / 'raw'}; name a folder of its own" in capsys.readouterr().err


@pytest.mark.parametrize("linked", [False, True])
def test_a_release_is_not_written_into_the_raw_folder(
    linked: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (tmp_path / "link").symlink_to(raw)
    out = (tmp_path / "link" if linked else raw) / "deep" / "out"
    assert main(["build", "--raw", str(raw), "--out", str(out), "--workspace", str(tmp_path / "w")]) == 2
    assert f"--out {out}: lies in the raw folder {raw}; name a folder elsewhere" in capsys.readouterr().err
    # Also where nobody named it: the workspace is data/ of the folder that one is in.
    assert main(["build", "--raw", str(raw), "--workspace", str(raw / "data")]) == 2
    assert f"--out {raw}/data/medi/raw-raw: lies in the raw folder" in capsys.readouterr().err
    assert list(raw.iterdir()) == []


def test_what_a_person_reads_about_an_error_of_the_machine() -> None:
    full, closed = OSError(28, "No space left on device", "/disk/shard"), PermissionError(13, "Permission denied", "/x")
    assert line_of(full) == (
        "/disk/shard: no space left on device; make room there, or name another folder"
    )
    assert line_of(closed) == "/x: permission denied; check the path and its permissions"
    assert line_of(OSError("the pipe broke")) == "the pipe broke"
    # Of a temporary name a person knows nothing; Arrow tells path and reason in one sentence.
    told = "; check the path and its permissions"
    for name, known in (
        ("/disk/.tmp-vm-1-2-0/export", "/disk"),
        ("/disk/my.new-0123456789ab/data/x", "/disk/my/data/x"),
        ("/disk/my.new-things/x", "/disk/my.new-things/x"),
    ):
        assert line_of(OSError(13, "Permission denied", name)) == f"{known}: permission denied{told}"
        arrows = OSError(13, f"Failed to open local file '{name}'. Detail: [errno 13] Permission denied")
        assert line_of(arrows) == f"{known}: permission denied{told}"
    assert line_of(MediError("a: b; do c")) == "a: b; do c"


@pytest.mark.parametrize("to", ["jsonl", "flagembedding"])
def test_what_cannot_be_written_is_named_as_it_was_asked_for(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny().write(tmp_path / "r")
    assert main(["export", str(tmp_path / "r"), "--to", to, "--out", "/proc/out"]) == 1
    assert capsys.readouterr().err == "medi: /proc/out: no such file or directory; put that right and run again\n"
    with pytest.raises(OSError, match="No such file or directory: '/proc/out'"):
        tiny().write(Path("/proc/out"))


BOOM = "app.command('boom')(lambda: {}['gone'])"


def test_a_fault_of_ours_is_one_line_and_a_traceback_only_with_debug() -> None:
    quiet, loud = medi("boom", code=BOOM), medi("boom", "--debug", code=BOOM)
    assert (quiet.returncode, loud.returncode) == (1, 1)
    assert quiet.stderr == (
        "medi: KeyError: 'gone'; this is a fault of medi: run it again with --debug and report what it shows\n"
    )
    assert loud.stderr.startswith("Traceback") and "KeyError: 'gone'" in loud.stderr


def test_each_note_of_an_error_is_a_line_before_it() -> None:
    code = (
        "from medi.errors import MediError\n"
        "def many():\n"
        "    error = MediError('2 failed')\n"
        "    error.add_note('a:\\nbad'); error.add_note('b: bad'); raise error\n"
        "app.command('many')(many)"
    )
    done = medi("many", code=code)
    assert (done.returncode, done.stderr) == (1, "medi: a: bad\nmedi: b: bad\nmedi: 2 failed\n")


def test_debug_shows_the_traceback_of_a_foreseen_error() -> None:
    done = medi("build", "--scale", "0", "--debug")
    assert done.stderr.startswith("Traceback") and done.stderr.rstrip().endswith("such as 0.02")


@pytest.mark.parametrize(("signal", "code", "name"), [("SIGINT", 130, "Ctrl-C"), ("SIGTERM", 143, "SIGTERM")])
def test_a_stopped_run_says_how_to_go_on(signal: str, code: int, name: str) -> None:
    send = f"os.kill(os.getpid(), signal.{signal})"
    # Whoever runs the tests behind `&` has them ignore SIGINT, and children too.
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    stop = f"import os, signal, time\n{heard}\napp.command('stop')(lambda: ({send}, time.sleep(9)))"
    done = medi("stop", code=stop)
    assert done.returncode == code
    assert done.stderr == f"medi: stopped by {name}; what is finished is kept: run the same command again to go on\n"


@pytest.mark.parametrize(("signal", "code", "name"), [("SIGINT", 130, "Ctrl-C"), ("SIGTERM", 143, "SIGTERM")])
def test_a_library_that_cannot_close_its_file_hides_no_stop(signal: str, code: int, name: str) -> None:
    """As torch, when it is stopped while it writes an optimizer."""
    stop = (
        "import os, signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "@app.command('stop')\ndef stop():\n    try:\n"
        f"        os.kill(os.getpid(), signal.{signal})\n        time.sleep(9)\n"
        "    finally:\n        raise RuntimeError('unexpected pos 23552 vs 23444')"
    )
    done = medi("stop", code=stop)
    assert done.returncode == code
    assert done.stderr == f"medi: stopped by {name}; what is finished is kept: run the same command again to go on\n"


def test_two_signals_are_one_stop() -> None:
    """As `timeout` and make both send one."""
    send = "os.kill(os.getpid(), signal.SIGTERM)"
    stop = (
        "import os, signal, time\nfrom pipelines.stopping import ending_at_once\n"
        "@app.command('stop')\ndef stop():\n"
        f"    with ending_at_once(lambda line: {send}):\n        {send}\n        time.sleep(9)"
    )
    done = medi("stop", code=stop)
    assert done.returncode == 143
    assert done.stderr == "medi: stopped by SIGTERM; what is finished is kept: run the same command again to go on\n"


def test_an_error_that_came_of_no_stop_stays_what_it_is() -> None:
    with pytest.raises(ValueError, match="odd"), stops_as_such():
        try:
            raise KeyError("behind it")
        except KeyError:
            raise ValueError("odd") from None
    with pytest.raises(SystemExit) as left, stops_as_such():
        raise SystemExit(3)
    assert left.value.code == 3


def test_params_are_printed_and_nothing_is_built(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, tiny_encoder: Path
) -> None:
    places = ["--encoder", str(tiny_encoder), "--workspace", str(tmp_path)]
    assert main(["build", "--show-params", "--scale", "0.5", "--workers", "7", *places]) == 0
    printed, said = capsys.readouterr()
    params = json.loads(printed)
    assert (params["scale"], params["seed"], params["take"], params["profile"]) == (0.5, 0, "hash", "paper")
    assert params["encoder"]["dtype"] == "float32"
    assert said == "" and "workers" not in params
    assert not (tmp_path / "medi").exists()


def test_sources_for_a_program(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "embedding_training_data").mkdir()
    (tmp_path / "embedding_training_data" / "agnews.jsonl").write_text('["a","b"]\n')
    assert main(["sources", "--json", "--raw", str(tmp_path)]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert (len(entries), sum(entry["quota"] for entry in entries)) == (31, 1_435_000)
    assert [entry["name"] for entry in entries if entry["present"]] == ["agnews"]
    agnews = next(entry for entry in entries if entry["name"] == "agnews")
    assert {name: agnews[name] for name in ("quota", "symmetric", "given_negatives", "file", "present")} == {
        "quota": 45_000,
        "symmetric": False,
        "given_negatives": False,
        "file": "embedding_training_data/agnews.jsonl",
        "present": True,
    }
    assert list(agnews) == [
        "name", "quota", "symmetric", "licence", "layout", "given_negatives", "variant", "file", "present",
    ]  # fmt: skip


def test_a_locale_without_the_letters_ends_no_command(tmp_path: Path) -> None:
    poor = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    raw = tmp_path / "embedding_training_data"
    raw.mkdir()
    (raw / "agnews.jsonl").touch()
    (raw / "S2ORC_title_abstract-\u00fc\U0001f600.jsonl.gz").touch()
    listed = medi("sources", "--json", "--raw", str(tmp_path), env=poor)
    assert listed.stdout.isascii() and len(json.loads(listed.stdout)) == 31
    said = "app.command('say')(lambda: print('\\u00fc \\U0001f600'))"
    assert medi("say", code=said, env=poor).stdout == "\\xfc \\U0001f600\n"


def test_sources_for_a_person_fit_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sources"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "31 sources, 1,435,000 rows; `medi sources NAME` shows all about one"
    assert "msmarco                      175,000  -   yes  non-commercial research" in lines
    assert "    dpr: https://dl.fbaipublicfiles.com/dpr/data/retriever" in lines
    # Nothing is cut: every licence stands there whole.
    together = "".join("".join(lines).split())
    assert "\u2026" not in together and all("".join(source.licence.split()) in together for source in ALL)


def test_a_source_is_shown_whole_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sources", *(source.name for source in ALL)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if not line.startswith(" ")] == [
        f"{source.name}: {source.quota_rows:,} rows" for source in ALL
    ]
    together = "".join("".join(lines).split())
    for source in ALL:
        for text in (source.citation, *(text for v in source.variants for text in (v.place or v.how, v.sample))):
            assert "".join(text.split()) in together
    assert main(["sources", "agnews", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == ["agnews"]
    assert main(["sources", "NQ"]) == 0
    assert capsys.readouterr().out.splitlines()[:9] == [
        "NQ: 50,000 rows",
        "  licence      CC BY-SA 3.0",
        "  cite         Kwiatkowski et al. 2019, Natural Questions; Karpukhin et al.",
        "               2020, Dense Passage Retrieval",
        "  pairs        not symmetric",
        "  variant      dpr (the default)",
        "    place      https://dl.fbaipublicfiles.com/dpr/data/retriever",
        "    file       DIR/dpr_format/biencoder-nq-train*.json* from",
        "               biencoder-nq-train.json.gz",
    ]


@pytest.mark.parametrize("runner", ["dask", "ray"])
def test_a_runner_that_is_not_installed_is_refused_before_anything_is_said(runner: str, tmp_path: Path) -> None:
    absent = f"import sys\nsys.modules['prefect_{runner}'] = None"
    done = medi("build", "--runner", runner, "--workspace", str(tmp_path / "w"), code=absent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"medi: --runner {runner}: not installed; pip install '.[{runner}]', or use threads\n"
    assert list(tmp_path.iterdir()) == []
