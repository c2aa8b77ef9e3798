"""A source of a person's own: a Python file or a file of pairs, from the command line to a release that verifies."""

import contextlib
import gzip
import io
import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medi.errors import UsageError
from medi.ingest import IngestParams, ingest
from medi.own import Pairs, load, pairs, source_file, spec_from, spec_json
from medi.read import raw_batches
from medi.release import open_release
from medi.release.verify import verify
from medi.release.why import Places, why
from pipelines.cli.app import main
from tests.builds import files_of, manifest_of, medi_build
from tests.hub_server import Hub, Repository, serving

ROWS = [
    {"q": "how long do eggs boil", "p": "Six minutes for a soft egg.", "n": "Potatoes take twenty minutes."},
    {"q": "what is roux", "p": ["Flour cooked in butter.", "Butter and flour."], "n": ["Stock is water.", "Aspic."]},
    {"q": "how much salt in pasta water", "p": "A spoon of it a litre.", "n": None},
    {"q": "what is blanching", "p": "A short bath in boiling water.", "n": "A long one."},
]
SOURCE = '''"""Recipes and their names."""
from medi.instruct import Sides, Slots
from medi.source import Drop, Fields, File, Source, Variant

def read(record):
    if record["kind"] == "note":
        raise Drop("note")
    return Fields(record["name"], record["steps"])

INSTRUCTIONS = Sides(
    query=Slots(domain="cooking", text_type="name", objective="retrieving a recipe"),
    document=Slots(domain="cooking", text_type="recipe", objective="retrieval"),
)
SOURCE = Source("recipes", 100, False, "CC0-1.0", "Nobody 2024", (
    Variant("file", "an object", {"query": "name", "positive": "steps"}, read,
            '{"kind": "recipe", "name": "Toast", "steps": "Toast it."}', "", (File("recipes.jsonl"),)),
))
'''
RECIPES = [{"kind": "recipe", "name": f"Soup of {word}", "steps": f"Boil {word} for {number} minutes."}
           for number, word in enumerate("leek pea bean beet corn kale fish lamb".split(), 10)]  # fmt: skip


def write_lines(path: Path, rows: list[dict[str, object]]) -> Path:
    """Write rows as JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    """A Python file with a source, and its raw file beside it, in which a line is none."""
    write_lines(tmp_path / "recipes.jsonl", [*RECIPES, {"kind": "note", "name": "", "steps": ""}])
    (tmp_path / "recipes.py").write_text(SOURCE)
    return tmp_path / "recipes.py"


@pytest.fixture
def call(tmp_path: Path, tiny_encoder: Path) -> list[str]:
    """The options of a build with the tiny encoder in a workspace of this test."""
    return ["--workspace", str(tmp_path / "w"), "--encoder", str(tiny_encoder), "--runner", "none"]


def rows_of(spec: Pairs) -> list[dict[str, object]]:
    """Return what is read of a file of pairs, in the order of the file."""
    source, path = load(spec).source, Path(spec.place)
    table, _ = ingest(
        IngestParams(9, take="first"), source, source.variants[0], lambda: raw_batches([(path, path.name)])
    )
    names = ["query", "positive", "other_positives", "negatives", "origin"]
    return sorted(table.select(names).to_pylist(), key=lambda row: row["origin"])


def test_each_form_of_file_gives_the_same_rows(tmp_path: Path) -> None:
    fields = {"query_field": "q", "positive_field": "p", "negatives_field": "n"}
    plain = [{"q": row["q"], "p": f"{row['p'][0]}", "n": "No, nothing."} if isinstance(row["p"], list) else
             {"q": row["q"], "p": row["p"], "n": "No, nothing."} for row in ROWS]  # fmt: skip
    right = [{"query": r["q"], "positive": r["p"], "other_positives": [], "negatives": ["No, nothing."]} for r in plain]
    write_lines(tmp_path / "a.jsonl", plain)
    (tmp_path / "b.json").write_text(json.dumps(plain))
    pq.write_table(pa.Table.from_pylist(plain), tmp_path / "c.parquet")
    quoted = "".join(f'{r["q"]},"{r["p"]}",x,"No, nothing."\r\n' for r in plain)
    (tmp_path / "d.csv").write_text(f"q,p,id,n\r\n{quoted}", newline="")
    (tmp_path / "e.tsv").write_text("q\tp\tn\n" + "".join(f"{r['q']}\t{r['p']}\t{r['n']}\n" for r in plain))
    keys = {"a.jsonl": ":1", "b.json": "#0", "c.parquet": "#0", "d.csv": ":2", "e.tsv": ":2"}
    for name, key in keys.items():
        found = rows_of(pairs(str(tmp_path / name), fields))
        assert found[0]["origin"] == f"{name}{key}"
        assert [{k: v for k, v in row.items() if k != "origin"} for row in found] == right
    arrays = tmp_path / "f.jsonl"
    arrays.write_text("".join(f"{json.dumps(list(r.values()))}\n" for r in plain))
    found = rows_of(pairs(str(arrays), {"query_field": "0", "positive_field": "1", "negatives_field": "2"}))
    assert [{k: v for k, v in row.items() if k != "origin"} for row in found] == right


def test_lists_nulls_and_absent_negatives(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "kitchen notes.jsonl", [*ROWS, {"q": "why", "p": "So."}])
    spec = pairs(str(path), {"query_field": "q", "positive_field": "p", "negatives_field": "n"})
    assert (spec.name, spec.quota_rows) == ("kitchen_notes", 5)
    found = {row["query"]: row for row in rows_of(spec)}
    assert found["what is roux"]["positive"] == "Flour cooked in butter."
    assert found["what is roux"]["other_positives"] == ["Butter and flour."]
    assert found["what is roux"]["negatives"] == ["Stock is water.", "Aspic."]
    assert found["how long do eggs boil"]["negatives"] == ["Potatoes take twenty minutes."]
    assert found["how much salt in pasta water"]["negatives"] == found["why"]["negatives"] == []


def test_pairs_become_a_release_of_their_own(
    tmp_path: Path, call: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "kitchen.jsonl", [*ROWS, ROWS[0]])
    asked = ["--pairs", str(path), "--query-field", "q", "--positive-field", "p", "--negatives-field", "n"]
    assert main(["build", *asked, *call]) == 0
    out = tmp_path / "w" / "medi" / "kitchen"
    assert capsys.readouterr().out == f"{out}\n"
    assert list(verify(out)) == []
    manifest = manifest_of(out)
    assert manifest["params"]["own_sources"] == {  # type: ignore[call-overload]
        "kitchen": {"pairs": "kitchen.jsonl", "query": "q", "positive": "p", "negatives": "n"}
    }
    (source,) = manifest["sources"]
    assert (source["name"], source["planned"], source["got"], source["dropped"]) == ("kitchen", 5, 4, {"duplicate": 1})
    rows = {row["query"]: row for row in pq.read_table(out / "data").to_pylist()}
    roux = rows["what is roux"]
    assert (roux["source"], roux["task"], roux["kind"], roux["licence"]) == ("kitchen", "kitchen", "pair", "unknown")
    assert (roux["negatives"], roux["negative_origins"]) == (["Stock is water.", "Aspic."], ["given", "given"])
    assert roux["query_instruction"] == "Represent the query for retrieving relevant documents:"
    # Its story needs nothing but the release and the file.
    story = why(open_release(out), roux["id"], Places(raw=tmp_path))
    assert story.raw and json.loads(story.raw.text) == ROWS[1] and story.absent == []


def test_labelled_texts_are_mined_by_their_label(tmp_path: Path, call: list[str]) -> None:
    texts = [{"text": f"{mood} {thing}", "mood": number, "x": 1} for number, mood in enumerate(("a fine", "a dreary"))
             for thing in ("film", "play", "song", "book")]  # fmt: skip
    both = [{"text": "a film", "mood": 0}, {"text": "a  film", "mood": 1}]
    path = write_lines(tmp_path / "moods.jsonl", [*texts, *both, texts[0]])
    asked = ["--pairs", str(path), "--query-field", "text", "--label-field", "mood", "--negatives", "2"]
    assert main(["build", *asked, *call]) == 0
    out = tmp_path / "w" / "medi" / "moods"
    assert list(verify(out)) == []
    assert manifest_of(out)["tasks"][0]["dropped"] == {"conflicting_labels": 2, "duplicate": 1}
    label_of = {row["text"]: str(row["mood"]) for row in texts}
    rows = pq.read_table(out / "data").to_pylist()
    assert {row["query"] for row in rows} == set(label_of)
    for row in rows:
        assert row["kind"] == "label" and row["label"] == label_of[row["query"]] == label_of[row["positive"]]
        assert row["query"] != row["positive"] and len(row["negatives"]) == 2
        assert [label_of[text] for text in row["negatives"]] == row["negative_labels"] != [row["label"]] * 2
    # An id is of text and label: verify sees a row whose label is another.
    table = pq.read_table(out / "data")
    ids = table["id"].to_pylist()
    assert Counter(id[:6] for id in ids) == {"moods/": 8}


def test_one_label_is_too_few(tmp_path: Path, call: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(tmp_path / "moods.jsonl", [{"text": f"film {n}", "mood": "fine"} for n in range(4)])
    assert main(["build", "--pairs", str(path), "--query-field", "text", "--label-field", "mood", *call]) == 1
    said = "moods: its texts have the one label 'fine' (4 in all); two are needed, name another --label-field\n"
    assert capsys.readouterr().err.endswith(said)


def test_a_python_file_goes_through_everything(
    recipes: Path, call: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["build", "--source", str(recipes), *call]) == 0
    out = tmp_path / "w" / "medi" / "recipes"
    assert list(verify(out)) == []
    manifest = manifest_of(out)
    told = manifest["params"]["own_sources"]["recipes"]  # type: ignore[call-overload]
    assert told == {"file": "recipes.py", "sha256": source_file(recipes).sha256}
    (source,) = manifest["sources"]
    assert source["dropped"] == {"note": 1} and source["files"][0]["name"] == "recipes.jsonl"  # type: ignore[index]
    row = next(r for r in pq.read_table(out / "data").to_pylist() if r["query"] == "Soup of pea")
    assert (row["positive"], row["licence"], row["origin"]) == (
        "Boil pea for 11 minutes.", "CC0-1.0", "recipes.jsonl:2")  # fmt: skip
    assert row["query_instruction"] == "Represent the cooking name for retrieving a recipe:"
    assert row["document_instruction"] == "Represent the cooking recipe for retrieval:"
    # A release brings no code: its row's story needs the file, as it was.
    absent = why(open_release(out), row["id"]).absent[0]
    assert absent == "raw line: recipes is declared in recipes.py, whose code a release does not bring; give that " \
        "file with --source FILE"  # fmt: skip
    story = why(open_release(out), row["id"], Places(own=(load(source_file(recipes)),)))
    assert story.raw and json.loads(story.raw.text) == RECIPES[1]
    assert "recipes" in (out / "report.html").read_text() and "Nobody 2024" in (out / "README.md").read_text()
    capsys.readouterr()
    assert main(["reselect", str(out), "--negatives", "3", "--out", str(tmp_path / "three")]) == 0
    assert main(["build", "--source", str(recipes), *call, "--negatives", "3", "--out", str(tmp_path / "again")]) == 0
    assert files_of(tmp_path / "three") == files_of(tmp_path / "again")


@pytest.mark.slow
def test_what_the_file_says_decides_the_bytes_and_nothing_else(
    recipes: Path, call: list[str], tmp_path: Path, tiny_encoder: Path
) -> None:
    assert main(["build", "--source", str(recipes), *call]) == 0
    other = tmp_path / "elsewhere"
    other.mkdir()
    for name in ("recipes.py", "recipes.jsonl"):
        shutil.copy(tmp_path / name, other / name)
    places = ["--workspace", str(other / "w"), "--encoder", str(tiny_encoder)]
    done = medi_build("--source", other / "recipes.py", *places, environment={"PYTHONHASHSEED": "7"})
    assert done.returncode == 0, done.stderr
    first = tmp_path / "w" / "medi" / "recipes"
    assert files_of(first) == files_of(other / "w" / "medi" / "recipes")
    before = manifest_of(first)
    recipes.write_text(SOURCE.replace('record["steps"]', 'record["steps"].upper()'))
    assert main(["build", "--source", str(recipes), *call]) == 0
    after = manifest_of(first)
    assert before["content_digest"] != after["content_digest"]
    assert {row["positive"] for row in pq.read_table(first / "data").to_pylist()} == {
        str(recipe["steps"]).upper() for recipe in RECIPES
    }


def test_own_sources_stand_behind_those_of_table_5_by_name(recipes: Path, call: list[str], tmp_path: Path) -> None:
    path = write_lines(tmp_path / "kitchen.jsonl", ROWS)
    asked = ["--source", str(recipes), "--pairs", str(path), "--query-field", "q", "--positive-field", "p"]
    names = ["--sources", "recipes,xsum,kitchen", "--scale", "0.5"]
    assert main(["build", *asked, *names, *call]) == 0
    out = tmp_path / "w" / "medi" / "sample-kitchen-recipes"
    assert [source["name"] for source in manifest_of(out)["sources"]] == ["xsum", "kitchen", "recipes"]
    assert list(verify(out)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"recipes", 100', '"NQ", 100', "medi has a source 'NQ' itself; choose another name"),
        ('"recipes", 100', '"a/b", 100', "the name 'a/b' cannot begin an id; write up to 64 letters"),
        ('"recipes", 100', '"task12_x", 100', "the name 'task12_x' cannot begin an id"),
        ('"recipes", 100', '"recipes", 0', "quota_rows is 0; write how many rows it may give, from 1 to 1,0"),
        ('"recipes", 100', '"recipes", 10**20', f"quota_rows is {10**20}; write how many rows it may give, from 1 to"),
        ("SOURCE = Source(", "THING = Source(", "has no SOURCE; write SOURCE = Source(...), from medi.source"),
        ("INSTRUCTIONS = ", "WORDS = ", "has no INSTRUCTIONS; write INSTRUCTIONS = Sides(query=Slots(...)"),
        ('text_type="recipe"', 'text_type=" "', "the document has no text_type; say what its texts are"),
        ('text_type="recipe"', "text_type=7", "the slots of the document are no texts"),
        ("100, False", "100, True", "a symmetric source says the same of both sides"),
        (
            "from medi.source import",
            "from medi.sauce import",
            "line 3: ModuleNotFoundError: No module named 'medi.sauce'",
        ),
        ("def read(record):", "def read(record:", "line 5: SyntaxError"),
        ('record["steps"])', 'record["step"])', "(recipes.py cannot read it (line 8: KeyError: 'step')); mend either"),
        ('record["steps"])', "None)", "(recipes.py gave None where a text belongs)"),
        ('return Fields(record["name"], record["steps"])', "return 7", "(recipes.py gave int where Fields belong)"),
        ('\'{"kind"', "'{kind", "the sample of file is no JSON; write one raw record"),
        ('(File("recipes.jsonl"),)', "()", "has no Variant with a File"),
    ],
)
def test_a_file_that_declares_no_source_is_one_line(
    recipes: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    assert SOURCE.count(old) == 1
    recipes.write_text(SOURCE.replace(old, new))
    assert main(["build", "--source", str(recipes)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("medi: --source recipes.py: ") and said in err and err.count("\n") == 1


PAIRS = ["--query-field", "q", "--positive-field", "p"]


def test_the_first_row_may_lack_the_negatives_that_another_has(tmp_path: Path) -> None:
    path, fields = tmp_path / "x.jsonl", {"query_field": "q", "positive_field": "p", "negatives_field": "n"}
    path.write_text('{"q":"a","p":"b"}\n{"q":"c","p":"d","n":["e"]}\n{"q":"f","p":"g"}\n')
    assert pairs(str(path), fields).quota_rows == 3
    with pytest.raises(UsageError, match=r"--negatives-field m: x.jsonl has no such field; it has q, p$"):
        pairs(str(path), fields | {"negatives_field": "m"})
    with pytest.raises(UsageError, match="--positive-field n: x.jsonl has no such field; it has q, p$"):
        pairs(str(path), fields | {"positive_field": "n", "negatives_field": ""})


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--pairs", "a.jsonl", "--query-field", "question", "--positive-field", "p"],
         "--query-field question: a.jsonl has no such field; it has q, p, n"),
        (["--pairs", "a.jsonl", *PAIRS, "--negatives-field", "hard"],
         "--negatives-field hard: a.jsonl has no such field; it has q, p, n"),
        (["--pairs", "a.jsonl", "--positive-field", "p"], "name the field of the query with --query-field"),
        (["--pairs", "a.jsonl", "--query-field", "q"], "name either --positive-field or, of labelled texts, --label-f"),
        (["--pairs", "a.jsonl", *PAIRS, "--label-field", "n"], "name either --positive-field or, of labelled texts"),
        (["--pairs", "b.jsonl", *PAIRS], "--pairs b.jsonl: no such file; name one, or a data set of the Hub as OWNER/"),
        (["--pairs", "x/b.csv", *PAIRS], "--pairs x/b.csv: no such file"),
        (["--pairs", ".", *PAIRS], "--pairs .: is no file; name one, or a data set of the Hub as OWNER/NAME"),
        (["--pairs", "a.jsonl", *PAIRS, "--name", "msmarco"], "medi has a source 'msmarco' itself; choose another"),
        (["--pairs", "a.jsonl", *PAIRS, "--rows", "0"], "--rows 0: give how many rows it may give, from 1 to 1"),
        (["--pairs", "a.jsonl", *PAIRS, "--rows", "9" * 20], f"--rows {'9' * 20}: give how many rows it may give, fr"),
        (PAIRS, "--query-field: says something of --pairs FILE, which is not given"),
        (["--name", "x"], "--name: says something of --pairs FILE, which is not given"),
        (["--source", "none.py"], "--source none.py: no such file or directory; name a Python file"),
        (["--source", "r.py", "--source", "r.py"], "--source r.py: another source of your own is named 'recipes'"),
        (["--source", "r.py"], "--source r.py: no file recipes.jsonl in "),
        (["--source", "r.py", "--sources", "recipe"], "there is no source 'recipe'; did you mean recipes?"),
        (["--pairs", "o/n", *PAIRS, "--offline"], "n: offline, and its files are not in "),
    ],
)  # fmt: skip
def test_a_wrong_call_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    write_lines(tmp_path / "a.jsonl", ROWS)
    (tmp_path / "r.py").write_text(SOURCE)
    with contextlib.chdir(tmp_path):
        assert main(["build", *args, "--runner", "none"]) in (1, 2)
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("miss.csv", b"q,p\na b\nc d,e f\n", "miss.csv:2: 1 of 2 columns; 1 bad of 2 records drawn"),
        ("late.csv", b"q,p\nc d,e f\na b\n", "late.csv:3: 1 of 2 columns; 1 bad of 2 records drawn"),
        ("wide.tsv", b"q\tp\na\tb\tc\nc d\te f\n", "wide.tsv:2: 3 cells for 2 columns; 1 bad of 2 records drawn"),
        ("a.parquet", b"hello\n", "a.parquet: named .parquet and no Parquet: it begins with 'hello\\n'; name it as"),
        ("a.json", b"[]", "a.json: the file holds no record"),
    ],
)
def test_a_file_of_pairs_that_is_not_whole_is_one_line_that_names_the_row(
    name: str, content: bytes, said: str, call: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert main(["build", "--pairs", str(tmp_path / name), *PAIRS, *call]) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("medi: ")]
    assert f": {said}" in line


@pytest.mark.parametrize(
    ("name", "header", "told"),
    [
        ("a.csv", "q;p", "; it has q;p: its cells stand between semicolons; save it with commas"),
        ("a.tsv.gz", "q,p", "; it has q,p: its cells stand between commas; save it with tabs"),
        ("a.csv", "q;x,p", "; it has q;x, p"),
    ],
)
def test_a_table_with_other_marks_between_its_cells_is_told_apart(
    name: str, header: str, told: str, call: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    content = f"{header}\n{header}\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert main(["build", "--pairs", str(tmp_path / name), *PAIRS, *call]) == 2
    assert capsys.readouterr().err == f"medi: --query-field q: {name} has no such field{told}\n"


def test_a_bad_record_names_its_line_and_that_of_the_code(
    recipes: Path, call: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_lines(tmp_path / "recipes.jsonl", [*RECIPES, {"kind": "recipe", "title": "Toast"}])
    assert main(["build", "--source", str(recipes), *call]) == 1
    err = capsys.readouterr().err
    assert "recipes.jsonl:9 (byte" in err and "recipes.py cannot read it (line 8: KeyError: 'name')" in err
    assert main(["build", "--source", str(recipes), *call, "--max-bad-rows", "1"]) == 0
    assert manifest_of(tmp_path / "w" / "medi" / "recipes")["tasks"][0]["dropped"] == {"bad": 1}


def test_a_spec_is_told_and_found_again(tmp_path: Path, recipes: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", ROWS)
    for spec in (source_file(recipes), pairs(str(path), {"query_field": "q", "label_field": "p"}, "named", 3)):
        assert spec_from(json.loads(json.dumps(spec_json(spec)))) == spec


def test_a_file_that_changes_meanwhile_is_refused(recipes: Path) -> None:
    spec = source_file(recipes)
    recipes.write_text(SOURCE + "\n")
    with pytest.raises(UsageError, match="the file changed while it was used"):
        load(spec)


@pytest.mark.slow
def test_a_set_of_the_hub_is_fetched_pinned_and_built_again_offline(tmp_path: Path, call: list[str]) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([{"anchor": r["q"], "positive": f"{r['p']}"} for r in ROWS]), sink)
    hub = Hub(datasets={"o/kitchen": Repository({"data/train-00000-of-00001.parquet": sink.getvalue()})})
    asked = ["--pairs", "o/kitchen", "--query-field", "anchor", "--positive-field", "positive", "--rows", "100", *call]
    with serving(hub):
        done = medi_build(*asked, environment={"HF_ENDPOINT": hub.address, "HF_HUB_DISABLE_TELEMETRY": "1"})
    assert done.returncode == 0, done.stderr
    out = tmp_path / "w" / "medi" / "kitchen"
    assert list(verify(out)) == []
    (source,) = manifest_of(out)["sources"]
    assert (source["got"], source["variant"], source["files"][0]["commit"]) == (4, "hub", "a" * 40)  # type: ignore[index]
    before = files_of(out)
    again = medi_build(*asked, "--offline", environment={"HF_ENDPOINT": "http://127.0.0.1:9"})
    assert again.returncode == 0, again.stderr
    assert files_of(out) == before


def test_a_file_of_which_no_row_comes_is_accounted_for(
    call: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], recipes: Path
) -> None:
    """Neither more sources nor a larger scale helps there; the reasons do, as a table and in the line."""
    path = write_lines(tmp_path / "same.jsonl", [{"q": "a", "p": "a "}, {"q": "b", "p": " b"}, {"q": "c", "p": " "}])
    assert main(["build", "--pairs", str(path), "--query-field", "q", "--positive-field", "p", *call]) == 1
    *_, table, told, last = capsys.readouterr().err.splitlines()
    nothing = "medi: no task gave a row, so nothing is released"
    assert last == f"{nothing} (dropped: identity_pair 2, empty_text 1); mend the file, or name other fields of it"
    assert table.split()[:3] == ["all", "3", "0"]
    assert told == "no rows of same: empty_text 1, identity_pair 2"
    write_lines(tmp_path / "recipes.jsonl", [{"kind": "note"}])
    assert main(["build", "--source", str(recipes), *call]) == 1
    assert capsys.readouterr().err.endswith(f"{nothing} (dropped: note 1); mend the file, or what reads it\n")


def test_a_variant_of_a_source_that_is_not_built_beside_own_files_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.jsonl").write_text('{"q": "Is tea hot?", "p": "Tea is hot."}\n')
    own = ["--pairs", str(tmp_path / "own.jsonl"), "--query-field", "q", "--positive-field", "p"]
    assert main(["build", *own, "--variant", "NQ=pairs", "--show-params"]) == 2
    said = "medi: --variant NQ=pairs: says something of NQ, which is not built; name it in --sources too\n"
    assert capsys.readouterr().err == said
    assert main(["build", "--preset", "lite", *own, "--variant", "NQ=pairs", "--show-params", "--offline"]) == 0
