"""Vectors come back by id from chunks of any history; what is missing is known; nothing that is not finite gets in."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from medi.errors import MediError
from medi.vectors import VectorStore, id_numbers


def some(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and unit vectors."""
    vectors = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    return np.arange(1, count + 1, dtype=np.uint64) * np.uint64(7), vectors / np.linalg.norm(vectors, axis=1)[:, None]


def test_any_chunking_gives_the_same_vectors(tmp_path: Path) -> None:
    ids, vectors = some(50)
    wanted = ids[[49, 0, 17, 17]]
    for name, cuts in (("one", [50]), ("many", [3, 20, 27])):
        store, start = VectorStore(tmp_path / name, "e"), 0
        for size in cuts:
            store.put(ids[start : start + size], vectors[start : start + size])
            start += size
        assert np.array_equal(store.gather(wanted), vectors[[49, 0, 17, 17]])


def test_missing_keeps_the_asked_order_and_sees_other_writers(tmp_path: Path) -> None:
    ids, vectors = some(6)
    reader, writer = VectorStore(tmp_path, "e"), VectorStore(tmp_path, "e")
    assert reader.missing(ids[::-1]).tolist() == ids[::-1].tolist()
    writer.put(ids[1:3], vectors[1:3])
    assert reader.missing(ids[::-1]).tolist() == ids[[5, 4, 3, 0]].tolist()


def test_encoders_do_not_share_vectors(tmp_path: Path) -> None:
    ids, vectors = some(2)
    VectorStore(tmp_path, "one").put(ids, vectors)
    assert VectorStore(tmp_path, "other").missing(ids).tolist() == ids.tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_refused_with_its_id(tmp_path: Path, value: float) -> None:
    """C17."""
    ids, vectors = some(3)
    vectors[1, 4] = value
    with pytest.raises(MediError, match="text 000000000000000e has a vector that is not finite"):
        VectorStore(tmp_path, "e").put(ids, vectors)
    assert VectorStore(tmp_path, "e").missing(ids).tolist() == ids.tolist()


def test_an_id_without_a_vector_is_an_error_not_a_neighbour(tmp_path: Path) -> None:
    ids, vectors = some(3)
    store = VectorStore(tmp_path, "e")
    with pytest.raises(MediError, match="missing"):
        store.gather(ids)
    store.put(ids, vectors)
    for absent in (1, 9, 10**9):
        with pytest.raises(MediError, match="missing"):
            store.gather(np.array([absent], dtype=np.uint64))


@pytest.mark.parametrize("name", ["ids.npy", "vectors.npy"])
def test_a_changed_byte_of_a_chunk_is_found(tmp_path: Path, name: str) -> None:
    ids, vectors = some(9)
    VectorStore(tmp_path, "e").put(ids, vectors)
    (path,) = tmp_path.glob(f"e/*/{name}")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    told = f"{path.parent} is damaged (its bytes are not those that were written); delete it and run the command again"
    with pytest.raises(MediError) as raised:
        VectorStore(tmp_path, "e").gather(ids)
    assert str(raised.value) == told


@pytest.mark.parametrize("record", ["", "[]", '{"digest": 5}'])
def test_a_damaged_record_is_found(tmp_path: Path, record: str) -> None:
    ids, vectors = some(3)
    VectorStore(tmp_path, "e").put(ids, vectors)
    (path,) = tmp_path.glob("e/*/record.json")
    path.write_text(record)
    with pytest.raises(MediError, match=r"is damaged \(.*\); delete it and run the command again"):
        VectorStore(tmp_path, "e").gather(ids)


def test_a_chunk_of_before_the_digest_is_read(tmp_path: Path) -> None:
    ids, vectors = some(3)
    VectorStore(tmp_path, "e").put(ids, vectors)
    (record,) = tmp_path.glob("e/*/record.json")
    record.write_text('{"rows": 3, "dimension": 8}')
    assert np.array_equal(VectorStore(tmp_path, "e").gather(ids), vectors)


def test_half_precision_comes_back_at_unit_length(tmp_path: Path) -> None:
    ids, vectors = some(20)
    store = VectorStore(tmp_path, "e")
    store.put(ids, vectors.astype(np.float16))
    back = store.gather(ids)
    np.testing.assert_allclose(np.linalg.norm(back, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(back, vectors, atol=1e-3)


def test_ids_are_the_hex_digits() -> None:
    assert id_numbers(["00000000000000ff", "ffffffffffffffff"]).tolist() == [255, 2**64 - 1]


def test_threads_that_write_and_read_get_their_own_vectors(tmp_path: Path) -> None:
    """A reader once saw the chunks of one moment with the rows of another, and mined with other texts' vectors."""
    ids, vectors = some(2_000)
    store = VectorStore(tmp_path, "e")

    def write_and_read(start: int) -> bool:
        rows = np.arange(start, start + 20)
        store.put(ids[rows], vectors[rows])
        return all(np.array_equal(store.gather(ids[rows]), vectors[rows]) for _ in range(5))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write_and_read, range(0, 2_000, 20)))
