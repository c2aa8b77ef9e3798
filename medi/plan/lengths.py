"""How long texts are, in tokens: as measured of real files (`lengths.json`), or from the characters of a few texts.

A length distribution is a sample of lengths, whatever it comes from; work is reckoned from its shares.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources

import numpy as np

from medi.plan.figures import COUNTED, GUESSED

Shapes = Sequence[tuple[int, int]]
# Least squares over the 69,000 texts below 1,000 characters of lengths.json: tokens = 0.229 x characters + 2.4.
_TOKENS_OF_CHARACTER, _SPECIAL_TOKENS = 0.229, 2.4
# A source of which fewer texts were measured is taken as all of them together.
_ENOUGH_TEXTS = 60
LONGEST_TOKENS = 512


def tokens_of(texts: Iterable[str]) -> np.ndarray:
    """Return about how many tokens each text has, int64 [n], at most 512."""
    characters = np.fromiter((len(text) for text in texts), dtype=np.int64)
    tokens = np.rint(_TOKENS_OF_CHARACTER * characters + _SPECIAL_TOKENS)
    return np.clip(tokens, 3, LONGEST_TOKENS).astype(np.int64)


def typical(source: str, side: str) -> tuple[np.ndarray, str]:
    """Return a sample of the token lengths of a source's `query` or `document`, and how it is known."""
    measured = _measured()
    own = measured["sources"].get(source, {}).get(side)
    if own and own["texts"] >= _ENOUGH_TEXTS:
        return np.array(own["tokens"]), COUNTED
    # Of Super-NI nothing is like the others.
    others = [sides[side] for name, sides in measured["sources"].items() if name != "super_ni"]
    known = [part["tokens"] for part in others if part["texts"] >= _ENOUGH_TEXTS]
    return np.concatenate([np.array(tokens) for tokens in known]), GUESSED


@cache
def _measured() -> dict[str, dict[str, dict[str, dict[str, list[float]]]]]:
    """Return the content of lengths.json."""
    return json.loads(resources.files("medi.plan").joinpath("lengths.json").read_bytes())


def batches(lengths: np.ndarray, texts: float, shapes: Shapes) -> np.ndarray:
    """Return how many batches of each shape so many texts of such `lengths` fill, float [len(shapes)].

    The last batch of a bucket is filled with blanks, which a few texts of many lengths pay dearly.
    """
    if not len(lengths) or texts < 1:
        return np.zeros(len(shapes))
    edges = [length for length, _ in shapes]
    buckets = np.searchsorted(edges, np.minimum(lengths, edges[-1]))
    shares = np.bincount(buckets, minlength=len(shapes)) / len(lengths)
    rows = np.array([rows for _, rows in shapes])
    return np.ceil(shares * texts / rows - 1e-9)


def mean_tokens(lengths: np.ndarray, shapes: Shapes) -> float:
    """Return the mean length of a text, cut where the encoder cuts it; 0 where there is none."""
    return float(np.minimum(lengths, shapes[-1][0]).mean()) if len(lengths) else 0.0
