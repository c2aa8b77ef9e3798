"""The loss is the published objective: numbers worked by hand, two independent oracles, values and gradients."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from medi.errors import MediError
from medi.train.loss import StepTexts, contrast, hash_labels, hash_texts, masks

if TYPE_CHECKING:
    import torch

    from medi.train.loss import Masks

HALF = 0.6931471805599453  # ln 2


@pytest.mark.parametrize(
    ("queries", "positives", "negatives", "temperature", "expected"),
    [
        ([[1, 0]], [[1, 0]], [[0, 1]], 0.1, 4.5398899e-05),
        ([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[-1, 0], [0, -1]], 0.1, 9.0799859e-05),
        ([[1, 0]], [[0.6, 0.8]], [[0.6, 0.8]], 0.1, HALF),
        ([[1, 0]], [[0.6, 0.8]], [[0.6, 0.8]], 0.01, HALF),
        ([[1, 0, 0], [0, 1, 0]], [[0.8, 0.6, 0], [0, 0.6, 0.8]], [[0, 0, 1], [1, 0, 0]], 0.05, 2.0181591),
        ([[1, 0], [1, 0]], [[1, 0], [0.6, 0.8]], [[0, -1], [0, -1]], 0.1, 0.6956652),
    ],
)
def test_numbers_worked_by_hand(
    queries: list, positives: list, negatives: list, temperature: float, expected: float
) -> None:
    loss = contrast(*_vectors(queries, positives, negatives), None, temperature, "negatives")
    assert float(loss) == pytest.approx(expected, rel=1e-6)


def test_an_equal_query_is_no_negative_on_the_way_back() -> None:
    vectors = _vectors([[1, 0], [1, 0]], [[1, 0], [0.6, 0.8]], [[0, -1], [0, -1]])
    masked = _masks(["tea", "tea "], ["a", "b"], ["x", "y"])
    assert float(contrast(*vectors, masked, 0.1, "negatives")) == pytest.approx(0.0025180, abs=1e-7)


@pytest.mark.parametrize(("rows", "forward"), [(1, "all"), (1, "negatives"), (3, "negatives")])
def test_a_loss_that_would_be_constant_is_refused(rows: int, forward: str) -> None:
    import torch

    vectors = torch.eye(3)[:rows]
    with pytest.raises(MediError, match=f"a step of {rows} rows? without negatives: its loss would be constant"):
        contrast(vectors, vectors, torch.empty(0, 3), None, 0.01, forward)  # type: ignore[arg-type]


@pytest.mark.parametrize("negatives", [0, 1, 4])
def test_with_all_candidates_it_is_twice_the_loss_of_sentence_transformers(negatives: int) -> None:
    import torch
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    def peer(queries: "torch.Tensor", positives: "torch.Tensor", others: "torch.Tensor") -> "torch.Tensor":
        loss = MultipleNegativesRankingLoss(
            torch.nn.Identity(),  # type: ignore[arg-type]
            scale=100, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction",
        )  # fmt: skip
        columns = [queries, positives, *others.view(len(queries), negatives, 16).unbind(1)]
        return 2 * loss.compute_loss_from_embeddings(columns, torch.empty(0))

    _same_value_and_gradients(lambda *columns: contrast(*columns), peer, negatives=8 * negatives)


@pytest.mark.parametrize("negatives", [1, 5, 24])
def test_with_negatives_alone_it_is_the_released_formula(negatives: int) -> None:
    import torch

    def released(queries: "torch.Tensor", positives: "torch.Tensor", others: "torch.Tensor") -> "torch.Tensor":
        cosine = torch.nn.CosineSimilarity(dim=0)
        total = torch.zeros((), dtype=queries.dtype)
        for query, positive in zip(queries, positives, strict=True):
            own = torch.exp(cosine(query, positive) / 0.01)
            against_negatives = sum((torch.exp(cosine(query, other) / 0.01) for other in others), own)
            against_queries = sum(torch.exp(cosine(other, positive) / 0.01) for other in queries)
            total = total - torch.log(own / against_negatives) - torch.log(own / against_queries)
        return total / len(queries)

    _same_value_and_gradients(
        lambda *columns: contrast(*columns, forward_candidates="negatives"), released, negatives=negatives
    )


def test_what_belongs_together_is_never_held_against_each_other() -> None:
    """Rows 0 and 1 ask the same, rows 1 and 3 are answered the same; negative 1 is row 1's answer to row 0's query."""
    hidden = _masks(["tea", " tea\n", "ale", "rum"], ["leaf", "cup  of", "hops", "cup of"], ["leaf", "cup of", "wine"])
    assert hidden.positives.int().tolist() == [[0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert hidden.negatives.int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0]]


def test_labels_mask_rows_and_negatives_of_the_same_label_and_null_is_no_label() -> None:
    labels = (hash_labels(["x", "y", "x", None]), hash_labels(["x", "y", "z", None]))
    texts = StepTexts(hash_texts("abcd"), hash_texts("efgh"), hash_texts("ijkl"), *labels)
    hidden = masks(texts, mask_same_label=True)
    assert hidden.positives.int().tolist() == [[0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert hidden.negatives.int().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert not masks(texts).positives.any() and not masks(texts).negatives.any()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("forward", ["all", "negatives"])
def test_masks_and_loss_together_are_the_rule_in_plain_loops(seed: int, forward: str) -> None:
    """Few texts, so that many are equal; the rule as the plan of the house words it, a row at a time."""
    random = np.random.default_rng(seed)
    queries, positives = (random.choice(list("abcdef"), 6).tolist() for _ in range(2))
    negatives = random.choice(list("abcdefgh"), 9).tolist()
    vectors = _random(6, 9)
    q, p, n = (column.numpy() for column in vectors)
    total = 0.0
    for i in range(6):
        answers = {positives[j] for j in range(6) if queries[j] == queries[i]}
        ahead = [n[k] for k in range(9) if negatives[k] not in answers]
        if forward == "all":
            ahead += [p[j] for j in range(6) if j != i and positives[j] not in answers]
        askers = {queries[j] for j in range(6) if positives[j] == positives[i]}
        behind = [q[j] for j in range(6) if j != i and queries[j] not in askers]
        total += _surprise(q[i], p[i], ahead) + _surprise(p[i], q[i], behind)
    loss = contrast(*vectors, _masks(queries, positives, negatives), 0.1, forward)  # type: ignore[arg-type]
    assert float(loss) == pytest.approx(total / 6, rel=1e-9)


def test_a_step_whose_rows_all_belong_together_teaches_nothing_and_harms_nothing() -> None:
    vectors = [column.requires_grad_() for column in _random(2, 1)]
    loss = contrast(*vectors, _masks(["a", "a"], ["b", "c"], ["b"]))
    loss.backward()
    assert float(loss.detach()) == 0 and not any(column.grad.any() for column in vectors)  # type: ignore[union-attr]


def test_bf16_vectors_are_scored_in_float32() -> None:
    """A bf16 product near 1 over 0.01 would be off by half a unit of a logit."""
    import torch

    vectors = [column.bfloat16() for column in _random(8, 8)]
    with torch.autocast("cpu", torch.bfloat16):
        loss = contrast(*vectors)
    assert float(loss) == pytest.approx(float(contrast(*(column.double() for column in vectors))), rel=1e-5)


def _surprise(anchor: np.ndarray, own: np.ndarray, others: list[np.ndarray]) -> float:
    """Return -log of the share that its own has among all that the anchor meets, at temperature 0.1."""
    scores = np.exp(np.array([anchor @ own, *(anchor @ other for other in others)]) / 0.1)
    return -float(np.log(scores[0] / scores.sum()))


def _masks(queries: list[str], positives: list[str], negatives: list[str]) -> "Masks":
    unlabelled = (hash_labels([None] * len(queries)), hash_labels([None] * len(negatives)))
    return masks(StepTexts(hash_texts(queries), hash_texts(positives), hash_texts(negatives), *unlabelled))


def _vectors(*columns: list) -> list["torch.Tensor"]:
    import torch

    return [torch.tensor(column, dtype=torch.float64) for column in columns]


def _random(rows: int, negatives: int) -> list["torch.Tensor"]:
    """Return unit vectors in float64, near enough to one another that no softmax saturates at temperature 0.01."""
    import torch

    torch.manual_seed(rows * 100 + negatives)
    drawn = (1 + 0.1 * torch.randn(count, 16, dtype=torch.float64) for count in (rows, rows, negatives))
    return [torch.nn.functional.normalize(column) for column in drawn]


def _same_value_and_gradients(ours: Callable, peer: Callable, negatives: int) -> None:
    """Compare two losses of 8 rows, and how they change the vectors before those are brought to length 1."""
    import torch

    results = []
    for loss_of in (ours, peer):
        columns = [column.requires_grad_() for column in _random(8, negatives)]
        loss = loss_of(*(torch.nn.functional.normalize(column) for column in columns))
        loss.backward()
        results.append([loss.detach(), *(column.grad for column in columns if len(column))])
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
