"""A text's vector depends on that text alone; MiniLM's are those of sentence-transformers."""

import json
import platform
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from medi import encoder, fixed_shapes
from medi.embed import chunks, embed, tokens
from medi.errors import MediError, UsageError
from medi.fixed_shapes import FixedShapes, shapes_for

TEXTS = [f"sentence {n} about " + " ".join(f"word{(n * k) % 97}" for k in range(n % 70)) for n in range(90)]


def loaded(folder: Path, dtype: str = "float32") -> tuple[encoder.EncoderSpec, encoder.LoadedEncoder]:
    """Return a loaded encoder and its identity."""
    spec = encoder.describe("tiny", folder, "r", dtype)
    return spec, encoder.load(spec, folder)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_vector_does_not_depend_on_its_companions(tiny_encoder: Path, dtype: str) -> None:
    _, tiny = loaded(tiny_encoder, dtype)
    seen: list[int] = []
    together = embed(TEXTS, tiny.tokenize, tiny.encoder, dtype, seen.append)
    assert sum(seen) == len(TEXTS) and len(seen) > 1
    assert together.dtype == (np.float16 if dtype == "bfloat16" else np.float32)
    for part in (TEXTS[:1], TEXTS[40:45], TEXTS[::-1]):
        expected = together[[TEXTS.index(t) for t in part]]
        assert np.array_equal(embed(part, tiny.tokenize, tiny.encoder, dtype), expected)


def test_vectors_do_not_depend_on_threads(tiny_encoder: Path) -> None:
    """Nor on how many batches run at once, nor on how many GPUs hold the model."""
    import torch
    from sentence_transformers import SentenceTransformer

    spec, tiny = loaded(tiny_encoder)
    models = [SentenceTransformer(str(tiny_encoder), device="cpu") for _ in range(3)]
    token_ids, default, results = tiny.tokenize(TEXTS), torch.get_num_threads(), []
    for threads, copies in ((1, 1), (2, 1), (4, 1), (2, 3)):
        torch.set_num_threads(threads)
        results.append(FixedShapes(models[:copies], spec.shapes).encode(token_ids))
        # Who computes next has the threads that he had.
        assert torch.get_num_threads() == threads
    torch.set_num_threads(default)
    assert all(np.array_equal(results[0], other) for other in results[1:])


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
    found = sorted(chunks(TEXTS, lengths, 40), key=lambda chunk: max(map(len, chunk)))
    assert [len(c) for c in found] == [40, 40, 10]
    assert sorted(t for c in found for t in c) == sorted(TEXTS)
    assert all(max(map(len, one)) <= min(map(len, other)) for one, other in pairwise(found))
    # Not the short ones first: who looks at the clock would be told too little.
    assert [len(c) for c in chunks(TEXTS, lengths, 1)] == [1] * 90
    assert [c[0] for c in chunks(TEXTS, lengths, 1)] != sorted(TEXTS, key=len)


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


def test_a_folder_without_its_tokenizer_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    """Transformers would make one that knows no word, and all texts would be one."""
    without = shutil.ignore_patterns("tokenizer.json", "vocab.txt")
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "m", ignore=without))
    told = r"--encoder m: its tokenizer knows 5 tokens, the model [\d,]+; put its tokenizer.json into the folder"
    with pytest.raises(MediError, match=told):
        encoder.load(encoder.describe("m", folder, "r", "float32"), folder)


def test_a_slow_tokenizer_is_refused() -> None:
    slow = SimpleNamespace(tokenizer=SimpleNamespace(is_fast=False))
    told = "has no fast tokenizer (tokenizer.json); convert it or choose another"
    assert encoder.tokenizer_fault(slow) == told  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_zero_and_not_finite_vectors_have_no_length(value: float) -> None:
    vectors = np.ones((3, 4), dtype=np.float32)
    vectors[1, :2] = value
    vectors[1, 2:] = 0
    found = fixed_shapes.unit_length(vectors)
    assert np.isnan(found[1]).all() and found[0].tolist() == found[2].tolist() == [0.5] * 4


def test_threads_may_tokenize_at_once(tiny_encoder: Path) -> None:
    _, tiny = loaded(tiny_encoder)
    expected = tiny.tokenize(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        assert all(ids == expected for ids in pool.map(lambda _: tiny.tokenize(TEXTS), range(40)))


def cut_to(folder: Path, positions: int, made_of: Path) -> Path:
    """Write the encoder again with so few positions, which is then all that its files say of its length."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(made_of, folder)
    weights, table = load_file(folder / "model.safetensors"), "embeddings.position_embeddings.weight"
    save_file(weights | {table: weights[table][:positions]}, folder / "model.safetensors", {"format": "pt"})
    for name, change in (
        ("config.json", {"max_position_embeddings": positions}),
        ("sentence_bert_config.json", {"max_seq_length": positions}),
    ):
        (folder / name).write_text(json.dumps(json.loads((folder / name).read_bytes()) | change))
    return folder


def test_no_position_beyond_the_encoders_own_maximum(tiny_encoder: Path, tmp_path: Path) -> None:
    spec, short = loaded(cut_to(tmp_path / "short", 77, tiny_encoder))
    assert (spec.max_length_tokens, spec.shapes) == (77, (*fixed_shapes.SHAPES[:9], (77, 6)))
    long = " ".join("abcdefghij" * 20)
    assert [len(ids) for ids in short.tokenize([long])] == [77]
    vectors = embed([long, "tea"], short.tokenize, short.encoder, "float32")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_the_last_shape_is_the_maximum() -> None:
    assert shapes_for(512) == fixed_shapes.SHAPES
    assert shapes_for(16) == ((8, 64), (12, 42), (16, 32))
    assert shapes_for(130, fixed_shapes.GPU_SHAPES)[-2:] == ((128, 128), (130, 102))


def test_a_gpu_may_be_hidden() -> None:
    hidden = {"", "-1", " -1", "-1,0", "NoDevFiles"}
    shown = {"0", "1,0", "0,-1", "GPU-8f2a"}
    values = hidden | shown
    assert {value for value in values if not encoder.shows_gpu({"CUDA_VISIBLE_DEVICES": value})} == hidden
    assert encoder.shows_gpu({})


def test_a_gpu_that_torch_cannot_use_says_how_to_do_without(tiny_encoder: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("torch can use the GPU of this machine")
    spec = replace(encoder.describe("tiny", tiny_encoder, "r", "float32"), arithmetic="cuda-sm90")
    with pytest.raises(MediError, match="CUDA_VISIBLE_DEVICES= before the command$"):
        encoder.load(spec, tiny_encoder)


@pytest.mark.parametrize(
    ("extensions", "flags", "float32", "bfloat16"),
    [
        ({"baseline": ["X86_V2"]}, "", f"cpu-{platform.machine().lower()}", f"cpu-{platform.machine().lower()}"),
        ({"found": ["X86_V3"]}, "amx_bf16", "cpu-avx2", "cpu-avx2"),
        ({"found": ["X86_V3", "X86_V4"]}, "avx512f", "cpu-avx512", "cpu-avx512"),
        ({"found": ["AVX512F"]}, "avx512_bf16", "cpu-avx512", "cpu-avx512bf16"),
        ({"found": ["AVX512F"]}, "avx512_bf16 amx_bf16", "cpu-avx512", "cpu-amxbf16"),
    ],
)
def test_the_processor_is_named(extensions: dict[str, list[str]], flags: str, float32: str, bfloat16: str) -> None:
    assert encoder.cpu_arithmetic("float32", extensions, flags) == float32
    assert encoder.cpu_arithmetic("bfloat16", extensions, flags) == bfloat16


@pytest.mark.parametrize(
    ("arithmetic", "slow"),
    [("cpu-avx2", True), ("cpu-avx512", True), ("cpu-avx512bf16", False), ("cpu-amxbf16", False), ("cuda-sm90", False)],
)
def test_a_dtype_that_only_slows_a_processor_down_is_told(arithmetic: str, slow: bool) -> None:
    told = "--dtype bfloat16: this processor has no instructions for it, float32 is faster here; leave --dtype out"
    assert encoder.slowness_of("bfloat16", arithmetic) == (told if slow else "")
    assert encoder.slowness_of("float32", arithmetic) == ""
