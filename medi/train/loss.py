"""InstructOR's objective: InfoNCE over cosines in both directions, summed, with what is no negative masked.

A query meets its own positive, all negatives of the step and (`all`) the other rows' positives; a positive meets its
own query and the other rows' queries. One matrix product does what the released script does in a double loop.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import xxhash

from medi.errors import MediError
from medi.schema import fold

if TYPE_CHECKING:
    import torch

ForwardCandidates = Literal["all", "negatives"]

# The label of a row or a negative that has none; it equals no label, not even itself.
NO_LABEL = -1


class StepTexts(NamedTuple):
    """What the masks of a step of B rows and N negatives are made of: int64 hashes of folded texts and of labels."""

    queries: np.ndarray
    positives: np.ndarray
    negatives: np.ndarray
    labels: np.ndarray
    negative_labels: np.ndarray


class Masks(NamedTuple):
    """What counts for nothing, bool: `positives` [B, B], row a query, column a positive; `negatives` [B, N].

    A query and a positive count for nothing to each other, in both directions. The diagonal is False.
    """

    positives: "torch.Tensor"
    negatives: "torch.Tensor"


def hash_texts(texts: Iterable[str]) -> np.ndarray:
    """Return int64 [n], equal where the texts are equal when folded."""
    return np.array([xxhash.xxh3_64_intdigest(fold(text).encode()) for text in texts], dtype=np.uint64).view(np.int64)


def hash_labels(labels: Iterable[str | None]) -> np.ndarray:
    """Return int64 [n], equal where the labels are; NO_LABEL for null."""
    # One bit less than the hash has, so that no label is negative, as NO_LABEL is.
    hashes = [NO_LABEL if label is None else xxhash.xxh3_64_intdigest(label.encode()) >> 1 for label in labels]
    return np.array(hashes, dtype=np.int64)


def masks(texts: StepTexts, mask_same_label: bool = False) -> Masks:
    """Return what counts for nothing in a step.

    A query and a text belong together where any row of the step says so, and are never held against each other. With
    `mask_same_label` neither are a query and another row's positive, or a negative, of the query's own label.
    """
    import torch

    _, numbers = np.unique(np.concatenate([texts.positives, texts.negatives]), return_inverse=True)
    positives, negatives = np.split(numbers, [len(texts.positives)])
    _, queries = np.unique(texts.queries, return_inverse=True)
    together = np.zeros((queries.max(initial=-1) + 1, numbers.max(initial=-1) + 1), dtype=bool)
    together[queries, positives] = True
    known = together[queries]
    of_positives, of_negatives = known[:, positives], known[:, negatives]
    if mask_same_label:
        labels = np.where(texts.labels == NO_LABEL, NO_LABEL - 1, texts.labels)[:, None]
        of_positives = of_positives | (labels == texts.labels)
        of_negatives = of_negatives | (labels == texts.negative_labels)
    np.fill_diagonal(of_positives, False)
    return Masks(torch.from_numpy(of_positives), torch.from_numpy(of_negatives))


def contrast(
    queries: "torch.Tensor",
    positives: "torch.Tensor",
    negatives: "torch.Tensor",
    masks: Masks | None = None,
    temperature: float = 0.01,
    forward_candidates: ForwardCandidates = "all",
) -> "torch.Tensor":
    """Return the loss of a step, a scalar: the mean over rows of either direction, summed.

    Vectors are of unit length: queries and positives [B, D], negatives [N, D] of any owners, N may be 0.

    Raises:
        MediError: the loss would be constant: one row without negatives, or `negatives` where there are none.
    """
    import torch

    rows = len(queries)
    if not len(negatives) and (rows == 1 or forward_candidates == "negatives"):
        raise MediError(
            f"a step of {rows} {'row' if rows == 1 else 'rows'} without negatives: its loss would be constant; "
            "leave the rows out, or give them negatives" + (", or --forward-candidates all" if rows > 1 else "")
        )
    # Halves of a bf16 product over 0.01 would be whole units of a logit.
    with torch.autocast(queries.device.type, enabled=False):
        queries, positives, negatives = (_wide(vectors) for vectors in (queries, positives, negatives))
        pairs = queries @ positives.T / temperature
        others = queries @ negatives.T / temperature
    own = pairs.diagonal()
    if masks is not None:
        pairs = pairs.masked_fill(masks.positives, -torch.inf)
        others = others.masked_fill(masks.negatives, -torch.inf)
    near = pairs if forward_candidates == "all" else own[:, None]
    forward = torch.logsumexp(torch.cat([near, others], dim=1), dim=1) - own
    back = torch.logsumexp(pairs, dim=0) - own
    return forward.mean() + back.mean()


def _wide(vectors: "torch.Tensor") -> "torch.Tensor":
    """Return the vectors in float32, in float64 where they came so."""
    return vectors if vectors.element_size() >= 4 else vectors.float()
