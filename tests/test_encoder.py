"""A text's vector depends on that text alone; MiniLM's are those of sentence-transformers."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from medi import encoder
from medi.embed import chunks, embed, tokens
from medi.errors import MediError, UsageError

TEXTS = [f"sentence {n} about " + " ".join(f"word{(n * k) % 97}" for k in range(n % 70)) for n in range(90)]


def loaded(folder: Path, dtype: str = "float32") -> tuple[encoder.EncoderSpec, encoder.LoadedEncoder]:
    """Return a loaded encoder and its identity."""
    spec = encoder.describe("tiny", folder, "r", dtype)
    return spec, encoder.load(spec, folder)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_vector_does_not_depend_on_its_companions(tiny_encoder: Path, dtype: str) -> None:
    _, tiny = loaded(tiny_encoder, dtype)
    together = embed(TEXTS, tiny.tokenize, tiny.encoder, dtype)
    assert together.dtype == (np.float16 if dtype == "bfloat16" else np.float32)
    for part in (TEXTS[:1], TEXTS[40:45], TEXTS[::-1]):
        expected = together[[TEXTS.index(t) for t in part]]
        assert np.array_equal(embed(part, tiny.tokenize, tiny.encoder, dtype), expected)


def test_vectors_do_not_depend_on_threads(tiny_encoder: Path) -> None:
    import torch

    _, tiny = loaded(tiny_encoder)
    threads, results = torch.get_num_threads(), []
    for count in (1, 2):
        torch.set_num_threads(count)
        results.append(embed(TEXTS, tiny.tokenize, tiny.encoder, "float32"))
    torch.set_num_threads(threads)
    assert np.array_equal(*results)


def test_they_are_sentence_transformers_vectors(tiny_encoder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    _, tiny = loaded(tiny_encoder)
    theirs = SentenceTransformer(str(tiny_encoder), device="cpu").encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(embed(TEXTS, tiny.tokenize, tiny.encoder, "float32"), theirs, atol=2e-6)


def test_token_keys_tell_what_the_encoder_cannot(tiny_encoder: Path) -> None:
    spec, tiny = loaded(tiny_encoder)
    long = "word1 " * 2_000
    table, counts = tokens(["tea  time", "tea time", long, long + " word2"], tiny.tokenize, spec.max_length_tokens)
    keys = dict(zip(table["text_id"].to_pylist(), table["token_key"].to_pylist(), strict=True))
    assert len(keys) == 4 and len(set(keys.values())) == 2
    assert counts.facts["full_texts"] == 2


def test_chunks_hold_every_text_once_alike_in_length() -> None:
    lengths = np.array([len(t) for t in TEXTS])
    found = list(chunks(TEXTS, lengths, 40))
    assert [len(c) for c in found] == [40, 40, 10]
    assert sorted(t for c in found for t in c) == sorted(TEXTS)
    assert max(map(len, found[0])) <= min(map(len, found[1]))


def test_identity_names_what_decides_the_bits(tiny_encoder: Path) -> None:
    one, other = (encoder.describe("tiny", tiny_encoder, "r", d).to_json() for d in ("float32", "bfloat16"))
    assert one != other and json.loads(json.dumps(one))["max_length_tokens"] == one["max_length_tokens"]
    assert str(one["arithmetic"]).startswith(("cpu-", "cuda-"))


def test_float16_is_refused(tiny_encoder: Path) -> None:
    """C17: T5's activations overflow at 65,504."""
    with pytest.raises(UsageError, match="float16"):
        encoder.describe("tiny", tiny_encoder, "r", "float16")


def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(MediError, match="has no config.json"):
        encoder.describe("nothing", tmp_path, "r", "float32")


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_zero_and_not_finite_vectors_stop_the_encoding(value: float) -> None:
    vectors = np.ones((3, 4), dtype=np.float32)
    vectors[1] = value
    with pytest.raises(MediError, match=r"gave 1 vectors .*first: row 1"):
        encoder.unit_length(vectors)


def test_threads_may_tokenize_at_once(tiny_encoder: Path) -> None:
    _, tiny = loaded(tiny_encoder)
    expected = tiny.tokenize(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        assert all(ids == expected for ids in pool.map(lambda _: tiny.tokenize(TEXTS), range(40)))
