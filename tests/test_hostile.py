"""What other people wrote means harm: no path leads out, no code runs, nothing acts on a screen, no token stays."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medi.encoder import describe, load
from medi.errors import MediError, UsageError
from medi.fetch import Settings, download, find_encoder, find_raw
from medi.fetch.hosts import forget_hosts
from medi.fetch.lock import read_lock
from medi.fetch.places import Remote
from medi.instruct import load_instructions
from medi.release import open_release
from medi.release.inspect import random_rows, summarise
from medi.release.verify import verify
from medi.report.card import cell, dataset_card
from medi.shards import write_release
from medi.source import File, Source, Variant, pair
from medi.sources import by_name
from medi.store import Store
from medi.super_ni_choice import choose_tasks
from medi.vectors import VectorStore
from pipelines.cli.app import main
from pipelines.presets import resolve
from tests.builds import REPO, manifest_of, medi_build
from tests.hub_server import Hub, Repository, environment, serving
from tests.release_builder import tiny

# Colours, a title, a bell, a backspace, rich's own markup, a mark that turns the reading direction, a line end.
EVIL = "\x1b[31m\x1b]0;title\x07\b[red]x[/red]\u202e\u2066\x9b2J\r\nmedi: all is well"
ACTING = set("\x1b\x07\b\r\x9b\u202e\u2066")


# No path leaves its folder.


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "data/../../x", "data//x", "./data/x", "data/x/", "", "a\nb", "data/\x1b[31m"]
)
def test_a_manifest_names_no_file_outside_its_release(tmp_path: Path, path: str) -> None:
    tiny().write(tmp_path / "out")
    manifest = manifest_of(tmp_path / "out")
    manifest["files"][1]["path"] = path
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(MediError, match="is damaged .the path .* leads out of the release"):
        open_release(tmp_path / "out")


def test_a_release_with_links_is_read_but_never_replaced_or_followed(tmp_path: Path) -> None:
    out, data = tmp_path / "out", tmp_path / "elsewhere"
    tiny().write(out)
    shutil.move(out / "data", data)
    (out / "data").symlink_to(data)
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    with pytest.raises(MediError, match="out/data is not part of the release .* and would be deleted"):
        tiny().write(out)
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before
    assert [line for line in verify(out) if "is missing" in line or "not in the manifest" in line]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"format": "medi-release/1", "files": [{"path": {}}]}', "mine is not part of the release"),
        ('{"format": "medi-release/1", "files": 5}', "mine is not part of the release"),
        ("[" * 100_000, "is not a release of medi"),
        ("[]", "is not a release of medi"),
        ("\0", "is not a release of medi"),
    ],
    ids=["a path that is none", "files that are none", "brackets", "a list", "no JSON"],
)
def test_a_manifest_of_any_form_may_lie_where_a_release_goes(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text(text)
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(MediError, match=reason):
        tiny().write(tmp_path / "out")
    with pytest.raises(MediError, match="manifest.json (is damaged|has format)"):
        open_release(tmp_path / "out")
    assert (tmp_path / "out" / "mine").read_text() == "kept"


def test_a_shard_whose_text_is_no_utf8_is_one_line(tmp_path: Path) -> None:
    tiny().write(tmp_path / "out")
    (shard,) = (tmp_path / "out" / "data").iterdir()
    table = pq.read_table(shard)
    spoilt = pa.array([b"\xff"] * len(table), pa.binary()).view(pa.string())
    place = table.column_names.index("query")
    pq.write_table(table.set_column(place, table.schema.field(place), spoilt), shard, store_schema=False)
    assert [line for line in verify(tmp_path / "out") if re.search("cannot be read .*UTF.?8", line)]
    release = open_release(tmp_path / "out")
    for read in (lambda: random_rows(release, 1, 0), lambda: list(release.tables())):
        with pytest.raises(MediError, match="cannot be read .*UTF.?8.*; build the release again"):
            read()


def test_evidence_of_another_form_is_one_line(tmp_path: Path) -> None:
    tiny().write(tmp_path / "out")
    manifest = manifest_of(tmp_path / "out")
    manifest["tasks"][2]["evidence"] = {"ingest": {"evidence": {"rule": 1}}}
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(MediError, match="out is not as medi writes a release .KeyError.*`medi verify` says more"):
        summarise(open_release(tmp_path / "out"))


@pytest.mark.parametrize("name", ["../task1_x", "/etc/passwd", "a/b", "task1\x1b[31m", "..", "a b"])
def test_a_list_of_tasks_names_no_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "tasks.txt").write_text(f"task001_good\n{name}\n")
    with pytest.raises(UsageError, match="cannot be the name of a task"):
        choose_tasks(None, str(tmp_path / "tasks.txt"))


@pytest.mark.parametrize("commit", ["../../../up", "/etc", "..", "a/b", "\0"])
def test_no_commit_of_a_lock_file_leads_out_of_the_workspace(tmp_path: Path, commit: str) -> None:
    target = Remote("hub:o/n@main", "x.jsonl", "x.jsonl", commit).target(Settings(tmp_path))
    assert target.parent.parent == tmp_path / "hub" / "hub" / "o--n@main"


LOCKED = {"commit": "a" * 40, "tag": "", "size_bytes": 7, "sha256": "", "prefixes": {}}


@pytest.mark.parametrize(
    "place",
    [
        {"files": {"x": LOCKED | {"size_bytes": "7"}}},
        {"files": {"x": LOCKED | {"commit": 7}}},
        {"files": {"x": LOCKED | {"prefixes": {"4": None}}}},
        {"files": {"x": LOCKED | {"prefixes": []}}},
        {"files": {"x": LOCKED | {"more": 1}}},
        {"listed": {"*": "x"}},
        {"listed": {"*": [1]}},
    ],
)
def test_a_lock_file_of_another_form_is_one_line(tmp_path: Path, place: dict) -> None:
    whole = {"commit": "", "files": {}, "listed": {}} | place
    (tmp_path / "lock").write_text(json.dumps({"format": "medi.lock/1", "places": {"hub:o/n@main": whole}}))
    with pytest.raises(MediError, match="is not a lock file of medi .*; restore it, or delete it"):
        read_lock(tmp_path / "lock")
    (tmp_path / "lock").write_text("[" * 100_000)
    with pytest.raises(MediError, match="is not a lock file of medi"):
        read_lock(tmp_path / "lock")


def of_hub(file: File) -> Source:
    """Return a source with one file on the Hub."""
    return Source("agnews", 9, False, "none", "nobody", (Variant("v", "pairs", {}, pair, "", "hub:o/n", (file,)),))


def test_a_hub_that_names_a_path_for_a_commit_is_no_hub(tmp_path: Path) -> None:
    forget_hosts()
    source = of_hub(File("o/x.jsonl", "x.jsonl"))
    with serving(Hub(datasets={"o/n": Repository({"x.jsonl": b"x"}, commit="../../up")})) as hub:
        with environment(HF_ENDPOINT=hub.address), pytest.raises(MediError, match="this is no answer of a Hub"):
            download(source, source.variants[0], Settings(tmp_path / "w", attempts=1))
    assert [path for path in tmp_path.rglob("*") if path.name == "x.jsonl"] == []


@pytest.mark.parametrize(
    "name", [b"task1_\xff.json", b"task1_\x1b[31m.json", b"task1_\n.json", b"task1_\xe2\x80\xae.json"]
)
def test_a_file_name_that_does_not_print_is_refused(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / "super_ni" / "tasks"
    folder.mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(b"{}")
    with pytest.raises(MediError, match="the file name b'super_ni/tasks/task1_.* does not print; rename the file"):
        find_raw(tmp_path, by_name("super_ni"))


@pytest.mark.parametrize("option", ["raw", "out", "workspace"])
@pytest.mark.parametrize("name", [b"\xff", b"\x1b[31m"])
def test_a_folder_that_does_not_print_is_refused_before_anything_is_built(
    tmp_path: Path, option: str, name: bytes
) -> None:
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    with pytest.raises(UsageError, match=f"--{option} b'.*': does not print"):
        resolve(**{option: folder})


# No code runs: not from a pickle, not from a model's folder.


class Runs:
    """Unpickled, it makes a folder."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.mark),)


def pickled_weights(folder: Path, mark: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Runs(mark)))


def zipped_weights(folder: Path, mark: Path) -> None:
    import torch

    (folder / "model.safetensors").unlink()
    torch.save({"weight": Runs(mark)}, folder / "pytorch_model.bin")


def own_module(folder: Path, mark: Path) -> None:
    (folder / "modeling_own.py").write_text(f"import os\nos.mkdir({str(mark)!r})\nclass Own: pass\n")
    modules = json.loads((folder / "modules.json").read_bytes())
    modules[0]["type"] = "modeling_own.Own"
    (folder / "modules.json").write_text(json.dumps(modules))


def own_model(folder: Path, mark: Path, model_type: str = "own") -> None:
    (folder / "modeling_own.py").write_text(f"import os\nos.mkdir({str(mark)!r})\nclass Own: pass\n")
    config = json.loads((folder / "config.json").read_bytes())
    config |= {"model_type": model_type, "auto_map": dict.fromkeys(("AutoConfig", "AutoModel"), "modeling_own.Own")}
    (folder / "config.json").write_text(json.dumps(config))


def own_tokenizer(folder: Path, mark: Path) -> None:
    (folder / "own.py").write_text(f"import os\nos.mkdir({str(mark)!r})\nclass Own: pass\n")
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_bytes()) | {
        "auto_map": {"AutoTokenizer": ["own.Own", None]},
        "tokenizer_class": "Own",
    }
    path.write_text(json.dumps(config))


def loaded(folder: Path, tmp_path: Path) -> None:
    files = find_encoder(str(folder), None, Settings(tmp_path / "w", offline=True))
    load(describe(files.name, files.folder, files.revision, "float32"), files.folder)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (pickled_weights, "a .bin file of it holds more than weights, or is damaged; choose a model with safetensors"),
        (zipped_weights, "a .bin file of it holds more than weights, or is damaged; choose a model with safetensors"),
        (own_module, "it brings code of its own, which medi never runs; choose another model"),
        (own_model, "it brings code of its own, which medi never runs; choose another model"),
        (lambda folder, mark: own_model(folder, mark, "bert"), ""),
        (own_tokenizer, ""),
    ],
)
def test_no_code_of_a_model_runs(
    tiny_encoder: Path, tmp_path: Path, spoil: Callable[[Path, Path], None], reason: str
) -> None:
    """A model of a known kind loads by the library's own classes, whatever it asks for; another one is refused."""
    folder, mark = tmp_path / "model", tmp_path / "ran"
    shutil.copytree(tiny_encoder, folder)
    spoil(folder, mark)
    if reason:
        with pytest.raises(MediError) as refused:
            loaded(folder, tmp_path)
        assert str(refused.value).endswith(reason) and "trust_remote_code" not in str(refused.value)
    else:
        loaded(folder, tmp_path)
    assert not mark.exists()


def test_weights_without_code_may_be_a_bin(tiny_encoder: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    shutil.copytree(tiny_encoder, tmp_path / "model")
    weights = load_file(tmp_path / "model" / "model.safetensors")
    (tmp_path / "model" / "model.safetensors").unlink()
    torch.save(weights, tmp_path / "model" / "pytorch_model.bin")
    loaded(tmp_path / "model", tmp_path)


@pytest.mark.parametrize("file", ["config.json", "sentence_bert_config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff", b"[" * 100_000])
def test_settings_of_a_model_that_are_no_object_are_one_line(
    tiny_encoder: Path, tmp_path: Path, file: str, content: bytes
) -> None:
    shutil.copytree(tiny_encoder, tmp_path / "model")
    (tmp_path / "model" / file).write_bytes(content)
    if file != "sentence_bert_config.json":
        # Where this says how long texts may be, the others are not asked.
        (tmp_path / "model" / "sentence_bert_config.json").unlink(missing_ok=True)
    with pytest.raises(MediError, match=f"{file} (is not JSON .*|holds no object); fetch the model again"):
        loaded(tmp_path / "model", tmp_path)


def test_no_pickle_is_read_from_a_workspace(tmp_path: Path) -> None:
    vectors = VectorStore(tmp_path, "encoder")
    vectors.put(np.array([1], dtype=np.uint64), np.ones((1, 2), dtype=np.float32))
    (chunk,) = (tmp_path / "encoder").iterdir()
    np.save(chunk / "ids.npy", np.array([Runs(tmp_path / "ran")], dtype=object), allow_pickle=True)
    (chunk / "record.json").write_text("{}")
    with pytest.raises(MediError, match="is damaged .*allow_pickle=False.*; delete it and run the command again"):
        VectorStore(tmp_path, "encoder").missing(np.array([1], dtype=np.uint64))
    assert not (tmp_path / "ran").exists()


def test_the_code_asks_for_no_code_and_no_pickle() -> None:
    """But for the file that a person names with --source, as SECURITY.md says."""
    own = REPO / "medi" / "own" / "python_file.py"
    files = {path for folder in ("medi", "pipelines") for path in (REPO / folder).rglob("*.py")} - {own}
    text = "\n".join(path.read_text() for path in sorted(files))
    words = ("trust_remote_code=True", "allow_pickle=True", "weights_only=False", "shell=True")
    calls = r"(?<![.\w])(eval|exec|compile)\(|os\.system|pickle\.loads?\(|import yaml"
    assert [word for word in words if word in text] == [] and re.findall(calls, text) == []


TOML = [
    ("templates.toml", b"\xff", "is not TOML in UTF-8"),
    ("super_ni.toml", b"slots = [", "is not TOML in UTF-8"),
    ("vocabulary.toml", b"x = " + b"[" * 5_000, "is not TOML in UTF-8"),
    ("templates.toml", b'sentence = 5\nendings = {paper = ":"}\n', "sentence is no text"),
    ("templates.toml", b'sentence = "{text_type}"\nendings = {paper = 5}\n', "endings.paper is no text"),
    ("vocabulary.toml", b'table_4 = "physics"\n', "table_4 is no array"),
    ("vocabulary.toml", b"table_4 = [5]\n", r"table_4\[0\] is no text"),
    ("embedding.toml", b"NQ = 5\n", "NQ is no table"),
    ("embedding.toml", b"NQ.both.text_type = [1]\n", "NQ.both.text_type is no text"),
    ("msmarco_domains.toml", b"domains = 5\n", "domains is no table"),
]


@pytest.mark.parametrize(("name", "content", "reason"), TOML)
def test_an_instruction_file_of_another_form_is_one_line(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    shutil.copytree(REPO / "instructions", tmp_path / "words")
    (tmp_path / "words" / name).write_bytes(content)
    with pytest.raises(UsageError, match=f"{name}:? {reason}"):
        load_instructions(tmp_path / "words")


# Nothing acts on a screen.


def test_no_error_line_acts_on_a_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for call in (
        ["inspect", str(tmp_path / EVIL)],
        ["verify", EVIL],
        ["build", "--encoder", EVIL],
        ["build", "--sources", EVIL],
        ["build", "--variant", EVIL],
        ["build", "--super-ni-tasks", EVIL],
        ["sources", EVIL],
        ["domains", EVIL],
        ["reselect", EVIL, "--negatives", "2"],
        [EVIL],
        ["build", f"--{EVIL}"],
    ):
        assert main(call) in (1, 2)
        told = capsys.readouterr()
        assert told.out == "" and not ACTING & set(told.err), told.err
        assert told.err.count("\n") == 1 and told.err.startswith("medi: ")


def test_an_error_that_nobody_foresaw_does_not_act_on_a_screen_either() -> None:
    code = f"from pipelines.cli.app import main, _say_fault\n_say_fault(ValueError, ValueError({EVIL!r}), None)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=REPO).stderr.decode()
    assert told.startswith("medi: ValueError: \\x1b[31m") and not ACTING & set(told) and told.count("\n") == 1


def evil_release(folder: Path) -> None:
    """Write a release in which every text that may be anyone's is evil."""
    builder = tiny()
    for entry in (*builder.sources, *builder.tasks):
        entry |= {name: EVIL for name in ("licence", "citation", "variant") if name in entry}  # type: ignore[typeddict-item]
    for entry in builder.tasks:
        entry["evidence"] = {"ingest": {"evidence": {}, "skipped": EVIL, "licence": EVIL}}
    for rows in builder.rows.values():
        for row in rows:
            texts = ("query", "positive", "licence", "origin", "query_instruction", "document_instruction")
            row |= {name: f"{row[name]}{EVIL}" for name in texts}
            row["negatives"] = [f"{text}{EVIL}" for text in row["negatives"]]  # type: ignore[attr-defined]
            row["label"] = row["label"] and EVIL
    write_release(folder, builder.contents(), 1 << 20)


def test_no_command_that_shows_a_release_acts_on_a_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil_release(tmp_path / "out")
    manifest = manifest_of(tmp_path / "out")
    for call in (["inspect", str(tmp_path / "out"), "--n", "9"], ["verify", str(tmp_path / "out")]):
        main(call)
        told = capsys.readouterr()
        assert "\\x1b[31m" in told.out and not ACTING & set(told.out + told.err)
    manifest["content_digest"] = EVIL  # type: ignore[assignment]
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    assert main(["inspect", str(tmp_path / "out"), "--n", "0"]) == 0
    assert not ACTING & set(capsys.readouterr().out)


@pytest.mark.slow
def test_no_command_that_reads_raw_files_acts_on_a_screen(
    tiny_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = tmp_path / "raw"
    (raw / "super_ni" / "tasks").mkdir(parents=True)
    shutil.copytree(REPO / "data" / "sample" / "embedding_training_data", raw / "embedding_training_data")
    task = json.loads(by_name("super_ni").variants[0].sample)
    for name, changes in (
        ("task1_a", {"Input_language": [EVIL]}),
        ("task2_b", {"Instances": [{"id": EVIL, "input": {}}]}),
    ):
        (raw / "super_ni" / "tasks" / f"{name}.json").write_text(json.dumps(task | changes))
    call = ["--raw", raw, "--encoder", tiny_encoder, "--workspace", tmp_path / "w", "--out", tmp_path / "out"]
    done = medi_build(*call, "--runner", "none", "--sources", "gooaq_pairs,super_ni")
    assert done.returncode == 1 and not ACTING & set(done.stderr), done.stderr
    assert "task2_b: super_ni/tasks/task2_b.json#\\x1b[31m" in done.stderr
    done = medi_build(*call, "--runner", "none", "--sources", "gooaq_pairs,super_ni", "--max-bad-rows", "9")
    assert done.returncode == 0 and "left out (language Input_language \\x1b[31m" in done.stderr
    assert not ACTING & set(done.stderr + done.stdout)
    assert main(["sources", "--raw", str(raw)]) == 0
    assert not ACTING & set(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a | b\n# c", r"a \| b \# c"),
        ("<img src=x onerror=y>&lt;", r"\<img src=x onerror=y\>\&lt;"),
        ("[here](javascript:x) `c` *b* _i_ ~~s~~", r"\[here\](javascript:x) \`c\` \*b\* \_i\_ \~\~s\~\~"),
        ("gooaq_pairs", "gooaq_pairs"),
        ("\x1b[31mx\u202e", r"\\x1b\[31mx\\u202e"),
    ],
)
def test_a_cell_is_text_and_nothing_else(text: str, safe: str) -> None:
    assert cell(text) == safe


def test_the_card_holds_nothing_that_acts(tmp_path: Path) -> None:
    evil_release(tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert not (ACTING | {"\u2066"}) & set(card) and "\nmedi: all is well" not in card
    manifest = open_release(tmp_path / "out").manifest
    manifest["sources"][0]["licence"] = "x\n---\nevil: true"
    head = dataset_card(manifest).split("---\n")[1]
    assert "evil" not in head and 'license: ["other"]' in head


# No token is kept.


@pytest.mark.slow
def test_no_token_and_no_password_is_kept_or_said(tiny_encoder: Path, tmp_path: Path) -> None:
    """A build that fetches and one that fails, with secrets everywhere a client looks for them."""
    files = {
        path.name: path.read_bytes()
        for path in tiny_encoder.rglob("*")
        if path.is_file() and path.parent == tiny_encoder
    }
    files |= {f"1_Pooling/{p.name}": p.read_bytes() for p in tiny_encoder.glob("1_Pooling/*")}
    rows = b"".join(b'["question %d", "answer %d"]\n' % (n, n) for n in range(40))
    data = {"sentence-transformers/embedding-training-data": Repository({"gooaq_pairs.jsonl.gz": rows})}
    secret = "hf_SECRETSECRETSECRET"
    with serving(Hub(datasets=data, models={"o/tiny": Repository(files)})) as hub:
        places = {"HF_ENDPOINT": hub.address, "MEDI_MIRROR": hub.address}
        behind = {name: address.replace("http://", "http://me:passSECRET@") for name, address in places.items()}
        secrets = {"HF_TOKEN": secret, "PREFECT_API_KEY": "pnu_SECRET"}
        call = ["--preset", "full", "--scale", "0.001", "--workspace", tmp_path / "w", "--encoder", "o/tiny"]
        call += ["--runner", "none", "--out", tmp_path / "w" / "out"]
        done = medi_build(*call, "--sources", "gooaq_pairs", environment=secrets | places)
        assert any(secret in str(headers) for _, _, headers in hub.asked)
        failed = medi_build(*call, "--sources", "gooaq_pairs,agnews", environment=secrets | behind)
        debug = medi_build(*call, "--sources", "agnews", environment=secrets | places | {"HF_DEBUG": "1"})
    assert done.returncode == 0 and failed.returncode == 1 and debug.returncode == 1, done.stderr
    for told in (done, failed, debug):
        assert "SECRET" not in told.stdout + told.stderr, told.stderr
    kept = [path for path in (tmp_path / "w").rglob("*") if path.is_file() and b"SECRET" in path.read_bytes()]
    assert kept == [] and Store(tmp_path / "w" / "store").root.is_dir()
