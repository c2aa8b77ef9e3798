"""How long texts are, in tokens: as measured of real files (`lengths.json`), or from the characters of a few texts.

A length distribution is a sample of lengths, whatever it comes from; work is reckoned from its shares.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypedDict

import numpy as np

Shapes = Sequence[tuple[int, int]]
Count = Callable[[Sequence[str]], np.ndarray]
# Least squares over the 69,000 texts below 1,000 characters of lengths.json: tokens = 0.229 x characters + 2.4.
_TOKENS_OF_CHARACTER, _SPECIAL_TOKENS = 0.229, 2.4
# Of a look at a file, so many texts are tokenized.
_TOKENIZED = 24
# A source of which fewer texts were measured is taken as all of them together.
_ENOUGH_TEXTS = 60
LONGEST_TOKENS = 512


def tokens_of(texts: Sequence[str], per_character: float = _TOKENS_OF_CHARACTER) -> np.ndarray:
    """Return about how many tokens each text has, int64 [n], at most 512."""
    characters = np.fromiter((len(text) for text in texts), dtype=np.int64)
    tokens = np.rint(per_character * characters + _SPECIAL_TOKENS)
    return np.clip(tokens, 3, LONGEST_TOKENS).astype(np.int64)


@cache
def counter_of(folder: Path) -> Count:
    """Return what counts the tokens of texts by an encoder's own tokenizer, or as most do where it has no fast one.

    Some of the texts are tokenized, and the others are as long as their characters then say: that takes no time.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        return tokens_of
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(texts: Sequence[str]) -> np.ndarray:
        """Return about how many tokens each text has, int64 [n], at most 512."""
        some = texts[:: max(1, len(texts) // _TOKENIZED)]
        characters = sum(map(len, some))
        tokens = sum(len(encoded.ids) for encoded in tokenizer.encode_batch(list(some)))
        return tokens_of(texts, max(tokens - _SPECIAL_TOKENS * len(some), 0) / max(characters, 1))

    return count


class _Side(TypedDict):
    """The lengths of `texts` distinct texts: the means, in tokens, of equal parts of them, shortest first."""

    texts: int
    tokens: list[int]


def typical(source: str, side: str) -> np.ndarray:
    """Return a sample of the token lengths of a source's `query` or `document`, int64 [n]; where too few texts of it
    were measured, of all sources but Super-NI, whose tasks are like none of them.
    """
    measured = _measured()
    own = measured.get(source, {}).get(side)
    if own and own["texts"] >= _ENOUGH_TEXTS:
        return np.array(own["tokens"])
    others = [sides[side] for name, sides in measured.items() if name != "super_ni"]
    return np.concatenate([np.array(o["tokens"]) for o in others if o["texts"] >= _ENOUGH_TEXTS])


@cache
def _measured() -> dict[str, dict[str, _Side]]:
    """Return source -> side -> lengths, as lengths.json has them."""
    return json.loads(resources.files("medi.plan").joinpath("lengths.json").read_bytes())["sources"]


def batches(lengths: np.ndarray, texts: float, shapes: Shapes) -> np.ndarray:
    """Return how many batches of each shape so many texts of such `lengths` fill, float [len(shapes)].

    Parts of batches count as parts: texts of several units may fill one together (`whole_batches`).
    """
    if not len(lengths):
        return np.zeros(len(shapes))
    edges = [length for length, _ in shapes]
    buckets = np.searchsorted(edges, np.minimum(lengths, edges[-1]))
    shares = np.bincount(buckets, minlength=len(shapes)) / len(lengths)
    return shares * texts / np.array([rows for _, rows in shapes])


def whole_batches(parts: np.ndarray) -> np.ndarray:
    """Return the batches that are computed: the last one of a bucket is filled with blanks, which a few texts of many
    lengths pay dearly.
    """
    return np.ceil(parts - 1e-9)


def mean_tokens(lengths: np.ndarray, shapes: Shapes) -> float:
    """Return the mean length of a text, cut where the encoder cuts it; 0 where there is none."""
    return float(np.minimum(lengths, shapes[-1][0]).mean()) if len(lengths) else 0.0
