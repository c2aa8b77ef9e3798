"""Models that train: the embedding is the one that sentence-transformers gives for a prompt, also once it is saved."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding, Transformer
from transformers import AttentionInterface

from medi.errors import MediError
from medi.train.collate import join, own_tokenizer
from medi.train.model import encode, load_model, tokenizer_of
from medi.train.tokens import pad

TEXTS = ["what is the city of water?", "a", "  people first", "which year? " * 100, "naïve ﬁrst café, 木", "er city"]
INSTRUCTIONS = ["Represent the question for retrieving answers:", "", "the people title.", "tag:"]


@pytest.fixture(scope="module")
def dense_t5(tiny_t5_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A T5 with the modules of gtr-t5: mean pooling, a projection, unit length."""
    torch.manual_seed(0)
    body = Transformer(str(tiny_t5_encoder), max_seq_length=96)
    projection = Dense(32, 24, bias=False, activation_function=torch.nn.Identity())
    folder = tmp_path_factory.mktemp("models") / "dense"
    modules = [body, Pooling(32, "mean"), projection, Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


@pytest.mark.parametrize("which", ["tiny_encoder", "tiny_t5_encoder", "dense_t5"])
def test_the_embedding_is_that_of_sentence_transformers(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    model = load_model("tiny", request.getfixturevalue(which), None, "cpu")
    assert model.training
    model.eval()
    model.save(str(tmp_path / "saved"))
    saved = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    tokenizer = own_tokenizer(tokenizer_of(model), int(model.max_seq_length or 0))
    for instruction in INSTRUCTIONS:
        tokens, truncated = join(tokenizer, instruction, TEXTS)
        assert truncated.tolist() == [False, False, False, True, False, False]
        padded = pad(tokens, np.arange(len(TEXTS)), model.tokenizer.pad_token_id or 0, "right", 8)
        ours = encode(model, padded).detach().numpy()
        theirs = np.stack([saved.encode(text, prompt=instruction or None) for text in TEXTS])
        np.testing.assert_allclose(ours, theirs / np.linalg.norm(theirs, axis=1, keepdims=True), atol=1e-5)


def test_where_an_instruction_grows_into_the_text_the_embedding_is_still_that_of_sentence_transformers(
    tiny_encoder: Path,
) -> None:
    """ "wat" and "er" are one token together, and several apart."""
    model = load_model("tiny", tiny_encoder, None, "cpu").eval()
    tokenizer = own_tokenizer(tokenizer_of(model), 128)
    for instruction, text in (("wat", "er city is the people first"), ("the peop", "le title which year")):
        tokens, _ = join(tokenizer, instruction, [text])
        ours = encode(model, pad(tokens, np.array([0]), 0))[0].detach().numpy()
        theirs = model.encode(text, prompt=instruction, normalize_embeddings=True)
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_the_pooling_leaves_the_instruction_out(tiny_t5_encoder: Path) -> None:
    model = load_model("tiny", tiny_t5_encoder, None, "cpu").eval()
    tokenizer = own_tokenizer(tokenizer_of(model), 128)
    tokens, _ = join(tokenizer, "the title:", ["water"])
    padded = pad(tokens, np.array([0]), 0, "left", 16)
    states = model[0]({"input_ids": padded.input_ids, "attention_mask": padded.attention_mask})["token_embeddings"]
    expected = states[0, padded.pooled_mask[0].bool()].mean(0)
    assert padded.pooled_mask.sum() == len(tokenizer.encode("water").ids)
    found = encode(model, padded)[0]
    assert torch.allclose(found, expected / expected.norm(), atol=1e-6)


def test_attention_stays_in_float32_under_autocast_and_no_saved_model_tells(tiny_encoder: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = load_model("tiny", tiny_encoder, None, "cpu")
    query, key, value = (torch.randn(1, 2, 9, 8, dtype=torch.bfloat16) for _ in range(3))
    attend = AttentionInterface()[model[0].model.config._attn_implementation]
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = attend(torch.nn.Module(), query, key, value, None, dropout=0.0, is_causal=False)
    exact = torch.nn.functional.scaled_dot_product_attention(query.float(), key.float(), value.float())
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, exact.transpose(1, 2).bfloat16())
    model.save(str(tmp_path))
    assert "float32" not in re.sub(r'"dtype": "float32"', "", (tmp_path / "config.json").read_text())


def test_a_maximum_length_is_the_model_s_or_less(dense_t5: Path) -> None:
    assert load_model("dense", dense_t5, None, "cpu").max_seq_length == 96
    assert load_model("dense", dense_t5, 64, "cpu").max_seq_length == 64
    with pytest.raises(MediError, match="--max-length 128: dense takes 96 tokens at most"):
        load_model("dense", dense_t5, 128, "cpu")


def test_models_that_cannot_be_trained_are_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    body = Transformer(str(tiny_encoder))
    SentenceTransformer(modules=[body, Pooling(32, "cls")], device="cpu").save(str(tmp_path / "cls"))
    with pytest.raises(MediError, match="--model x: pools by cls, which no instruction can be left out of"):
        load_model("x", tmp_path / "cls", None, "cpu")
    words = StaticEmbedding(tokenizer_of(load_model("tiny", tiny_encoder, None, "cpu")), embedding_dim=8)
    SentenceTransformer(modules=[words], device="cpu").save(str(tmp_path / "static"))
    with pytest.raises(MediError, match="--model x: is no transformer of text alone"):
        load_model("x", tmp_path / "static", None, "cpu")
    without = shutil.ignore_patterns("tokenizer.json", "vocab.txt")
    shutil.copytree(tiny_encoder, tmp_path / "wordless", ignore=without)
    with pytest.raises(MediError, match="--model x: its tokenizer knows 5 tokens, the model "):
        load_model("x", tmp_path / "wordless", None, "cpu")
    (tmp_path / "cls" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(MediError, match=r"--model x: cannot be loaded from \S+/cls: "):
        load_model("x", tmp_path / "cls", None, "cpu")
