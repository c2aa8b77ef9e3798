"""What the rules of mining may need beside texts and candidates: near-duplicates, and a cross-encoder's scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from medi.mine.candidates import matrix
from medi.mine.search import SCAN_BYTES
from medi.mine.select import Listing
from medi.mine.texts import Groups, Texts
from medi.schema import text_id

# What choosing among the candidates of one row takes: numbers, names, scores, marks and orders of each.
ROW_BYTES = 64 * 128


@dataclass(frozen=True)
class Hints:
    """Hints, and the memory of one block.

    `near` int64 [t]: a group for each text of `Texts`, equal for near-duplicates; `rescored` RESCORED, the
    cross-encoder's scores of the candidates within the window, a line for each of the ROWS.
    """

    near: np.ndarray | None = None
    rescored: pa.Table | None = None
    scan_bytes: int = SCAN_BYTES


CHOSEN_POSITIVE = "mining chose a known positive as a negative; this is a fault of medi, please report it"
NO_HINTS = Hints()


def names(ids: Sequence[str]) -> np.ndarray:
    """Return row ids as uint64 [n]: names that do not depend on other rows."""
    return np.array([int(i.rsplit("/", 1)[-1], 16) for i in ids], dtype=np.uint64)


def near_of(texts: Texts, near: pa.Table) -> np.ndarray:
    """Return a group for each text, int64 [t]: equal for near-duplicates and for what is one text to the encoder."""
    stands_for = dict(zip(near["text_id"].to_pylist(), near["near"].to_pylist(), strict=True))
    number_of_id = {text_id(text): number for text, number in texts.number_of.items()}
    groups = Groups(len(texts.class_of))
    for name, number in number_of_id.items():
        groups.join(number, int(texts.class_of[number]))
        groups.join(number, number_of_id[stands_for.get(name, name)])
    return groups.roots()


def rescored_listing(listing: Listing, rescored: pa.Table, keep_lowest: bool = True) -> Listing:
    """Return the listing with the cross-encoder's scores, in whose order candidates are then chosen.

    `keep_lowest` is False where margins do not apply.
    """
    found = matrix(rescored["scores"], -np.inf, np.float32)
    scores = np.full(listing.numbers.shape, -np.inf, dtype=np.float32)
    places = range(min(len(found[0]), len(scores[0])) if len(found) else 0)
    scores[:, places] = found[:, places]
    lowest = rescored["lowest"].to_numpy() if keep_lowest else np.full(len(rescored), np.nan, dtype=np.float32)
    return listing._replace(scores=scores, lowest=lowest, rescored=True)
