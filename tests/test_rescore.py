"""A pair's score depends on that pair alone, is sentence-transformers' own, and a model that cannot score says so."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from medi.errors import MediError, UsageError
from medi.fetch import Settings, find_encoder
from medi.rescore import CrossScorer, describe, load_cross_encoder
from tests.conftest import Once
from tests.tiny_encoders import make_cross_encoder

WORDS = [f"{a}{b}" for a in "tea" for b in "bcdfgh"]
PAIRS = [(" ".join(WORDS[: n % 7 + 1]), " ".join(WORDS[(n * k) % 18] for k in range(n % 23 + 1))) for n in range(70)]


@pytest.fixture(scope="session")
def scorer(tiny_cross_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> CrossScorer:
    return load_cross_encoder(str(tiny_cross_encoder), None, True, tmp_path_factory.mktemp("cache"))


def params_of(folder: Path, cache: Path) -> dict[str, object]:
    return describe(find_encoder(str(folder), None, Settings(cache, offline=True))).to_json()


def test_a_score_does_not_depend_on_its_companions(scorer: CrossScorer) -> None:
    together = scorer.score(PAIRS)
    assert together.dtype == np.float32 and len(set(together.tolist())) == len(set(PAIRS))
    for part in (slice(0, 1), slice(31, 36), slice(None, None, -1)):
        assert np.array_equal(scorer.score(PAIRS[part]), together[part])
    assert scorer.score([]).shape == (0,)


@pytest.mark.parametrize("width", [32, 384, 768])
def test_the_rows_of_a_batch_let_a_head_score_each_alone(scorer: CrossScorer, width: int) -> None:
    """One column of weights, as a head has: with 10 rows the bits depend on a row's place."""
    import torch

    torch.manual_seed(width)
    weights, bias = torch.randn(1, width), torch.randn(1)

    def agree(rows: int) -> bool:
        """Return whether each row's score is the same in all places."""
        states = torch.randn(rows, width)
        places = torch.randperm(rows)
        linear = torch.nn.functional.linear
        return torch.equal(linear(states[places], weights, bias), linear(states, weights, bias)[places])

    assert all(agree(rows) for _ in range(3) for _, rows in scorer.params["shapes"])  # type: ignore[attr-defined]
    assert all(rows % 8 == 0 for _, rows in scorer.params["shapes"])  # type: ignore[attr-defined]


def test_scores_do_not_depend_on_threads(scorer: CrossScorer) -> None:
    import torch

    threads, results = torch.get_num_threads(), []
    for count in (1, 2):
        torch.set_num_threads(count)
        results.append(scorer.score(PAIRS))
    torch.set_num_threads(threads)
    assert np.array_equal(*results)


def test_threads_may_score_at_once(scorer: CrossScorer) -> None:
    expected = scorer.score(PAIRS)
    with ThreadPoolExecutor(4) as pool:
        assert all(np.array_equal(scores, expected) for scores in pool.map(lambda _: scorer.score(PAIRS), range(8)))


def test_they_are_the_librarys_scores(tiny_cross_encoder: Path, scorer: CrossScorer) -> None:
    from sentence_transformers import CrossEncoder

    long = [("tea", "beta " * 500)]
    theirs = CrossEncoder(str(tiny_cross_encoder), device="cpu", local_files_only=True).predict([*PAIRS, *long])
    np.testing.assert_allclose(scorer.score([*PAIRS, *long]), theirs, atol=2e-6)


def test_params_name_the_files_not_their_place(tiny_cross_encoder: Path, scorer: CrossScorer, tmp_path: Path) -> None:
    elsewhere, changed = tmp_path / "elsewhere", tmp_path / "changed"
    shutil.copytree(tiny_cross_encoder, elsewhere)
    shutil.copytree(tiny_cross_encoder, changed)
    with (changed / "model.safetensors").open("r+b") as weights:
        weights.seek(-1, 2)
        weights.write(b"\x01")
    params = params_of(elsewhere, tmp_path)
    assert params == scorer.params and params["name"] == "local" and params["max_length_tokens"] == 128
    assert str(params["revision"]).startswith("sha256:")
    assert params_of(changed, tmp_path)["revision"] != params["revision"]
    assert json.loads(json.dumps(params)) == params


def test_a_model_with_several_labels_is_refused(once: Once, tmp_path: Path) -> None:
    folder = once("three-labels", lambda folder: make_cross_encoder(folder, labels=3))
    with pytest.raises(UsageError, match="--rescore local: gives 3 scores a pair; name a cross-encoder with one label"):
        load_cross_encoder(str(folder), None, True, tmp_path)


def test_an_encoder_of_single_texts_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    """The library would load it, with a new head of random numbers."""
    with pytest.raises(UsageError, match="BertModel has no head that scores a pair"):
        load_cross_encoder(str(tiny_encoder), None, True, tmp_path)


def test_a_score_that_is_not_finite_names_its_pair(tiny_cross_encoder: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "with-nan"
    shutil.copytree(tiny_cross_encoder, folder)
    weights = load_file(folder / "model.safetensors")
    vocabulary = json.loads((folder / "tokenizer.json").read_bytes())["model"]["vocab"]
    weights["bert.embeddings.word_embeddings.weight"][vocabulary["z"]] = np.nan
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    broken = load_cross_encoder(str(folder), None, True, tmp_path)
    with pytest.raises(MediError, match=r"1 score not finite \(first: nan, of pair 2, query 'a z'\)"):
        broken.score([("a", "b"), ("a", "c"), ("a z", "b")])


def test_a_name_that_is_no_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a folder here nor a Hub name"):
        load_cross_encoder("nowhere", None, True, tmp_path)
    with pytest.raises(MediError, match="offline, and model someone/reranker is not in"):
        load_cross_encoder("someone/reranker", None, True, tmp_path)
