"""What must hold of a workspace after a kill, and at the end: whole artifacts, a whole release, nothing left over."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from medi.release.verify import verify
from medi.schema import digest_table
from medi.store import Store

_MARK = ".replacing"


def finished(workspace: Path) -> dict[str, int]:
    """Return the artifacts and chunks that are finished: their folder in the store -> when its record was written."""
    store = workspace / "store"
    records = [path for path in store.rglob("record.json") if ".tmp-" not in path.parent.name]
    return {path.parent.relative_to(store).as_posix(): path.stat().st_mtime_ns for path in records}


def whole_artifacts(workspace: Path) -> None:
    """Assert that existing means complete: every table has the values its record names, every chunk its rows."""
    store = Store(workspace / "store")
    for name in finished(workspace):
        folder = store.root / name
        record = json.loads((folder / "record.json").read_bytes())
        if "stage" in record:
            artifact = store.find(*name.split("/"))
            assert artifact and digest_table(store.open(artifact)) == artifact.content == record["content"], name
        else:
            shape = np.load(folder / "vectors.npy").shape
            assert (record["rows"], record["dimension"]) == shape and len(np.load(folder / "ids.npy")) == shape[0]
    ids = np.concatenate([np.empty(0, dtype=np.uint64), *map(np.load, store.root.glob("vectors/*/[!.]*/ids.npy"))])
    assert len(ids) == len(np.unique(ids)), "a text was encoded twice"


def temporaries(workspace: Path) -> list[Path]:
    """Return what a run leaves behind that does not end: in the store, among the digests, beside the release."""
    hidden = [*(workspace / "store").rglob(".*"), *(workspace / "digests").glob(".*")]
    return [*hidden, *workspace.glob("out.*"), *workspace.glob(f"out/{_MARK}"), *workspace.glob(".*")]


def content_of(release: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a release, by name; run.json and the mark of a swap are none of its own."""
    paths = [path for path in release.rglob("*") if path.is_file() and path.name not in ("run.json", _MARK)]
    return {path.relative_to(release).as_posix(): path.read_bytes() for path in paths}


def whole_or_absent(out: Path, releases: Sequence[Path]) -> None:
    """Assert that a reader of `out` finds one of the releases, or, in the middle of a swap, the new one beside it."""
    whole = [content_of(release) for release in releases]
    if out.exists():
        assert content_of(out) in whole, f"{out} is neither the old release nor the new one"
    elif len(releases) > 1:
        marked = [path.parent for path in out.parent.glob(f"out.new-*/{_MARK}")]
        assert [content_of(release) for release in marked] == whole[1:], "the release is gone"


def nothing_is_left(workspace: Path, expected: Path) -> None:
    """Assert that the release is the expected one, byte by byte, that it verifies, and that no temporary is left."""
    out = workspace / "out"
    assert content_of(out) == content_of(expected)
    json.loads((out / "run.json").read_bytes())
    assert list(verify(out)) == []
    assert temporaries(workspace) == []
