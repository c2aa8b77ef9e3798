"""A file's digest that follows the writer is that of the whole file, however it was written."""

import hashlib
from pathlib import Path

import pytest

from medi.release.digests import FollowingDigest, sha256_of


@pytest.mark.parametrize("sizes", [[], [1], [0, 5, 0], [3 << 20, 1, (1 << 20) + 7]])
def test_a_digest_follows_what_is_written(tmp_path: Path, sizes: list[int]) -> None:
    path = tmp_path / "file"
    digest, written = FollowingDigest(path), b""
    with path.open("wb", buffering=0) as file:
        for number, size in enumerate(sizes):
            piece = bytes([number + 1]) * size
            file.write(piece)
            written += piece
            digest.follow(len(written))
        file.write(b"the end")
    assert digest.hexdigest(len(written) + 7) == sha256_of(path) == hashlib.sha256(written + b"the end").hexdigest()


def test_a_file_that_is_gone_is_no_digest(tmp_path: Path) -> None:
    digest = FollowingDigest(tmp_path / "nothing")
    digest.follow(1)
    with pytest.raises(FileNotFoundError):
        digest.hexdigest(1)
