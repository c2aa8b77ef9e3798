"""Stage `rescore`: the candidates within the window, scored by a cross-encoder; and the lowest positive of each query.

Only rows that need mined negatives are scored, and only as many candidates as the window holds.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from medi.mine.candidates import matrix
from medi.mine.tasks import choose_positives
from medi.mine.texts import PairRules, Texts, given_negatives, known_positives, narrowed
from medi.profiles import Rules
from medi.schema import RESCORED, Counts

Score = Callable[[Sequence[tuple[str, str]]], np.ndarray]
_BLOCK_ROWS = 256


def rescore(
    kind: str, rows: pa.Table, texts: Texts, candidates: pa.Table, rules: tuple[Rules, PairRules | None], score: Score
) -> tuple[pa.Table, Counts]:
    """Return RESCORED, a line for each of the ROWS in their order; empty where a row needs no mined negative.

    `rules` are those of mining, and for kind `pair` those of its source; `score` gives float32 [n] for n (query,
    document). Facts: pairs_scored.
    """
    mining, given = rules
    queries = rows["query"].to_pylist()
    documents = queries if given is None else rows["positive"].to_pylist()
    if given is None:
        positives = choose_positives(kind, rows, texts, candidates, mining)
        asking = np.flatnonzero(positives >= 0)
    else:
        positives = np.arange(len(rows))
        asking = _short(rows, texts, given, mining.negatives)
    listed = matrix(candidates["negatives"], -1, np.int64)[:, : mining.window]
    scores: list[list[float]] = [[] for _ in queries]
    own = np.full(len(rows), np.nan, dtype=np.float32)
    for start in range(0, len(asking), _BLOCK_ROWS):
        block = asking[start : start + _BLOCK_ROWS].tolist()
        taken = [[int(positives[row]), *listed[row][listed[row] >= 0].tolist()] for row in block]
        pairs = [(queries[row], documents[n]) for row, numbers in zip(block, taken, strict=True) for n in numbers]
        parts = np.split(score(pairs), np.cumsum([len(numbers) for numbers in taken])[:-1])
        for row, part in zip(block, parts, strict=True):
            own[row], scores[row] = part[0], part[1:].tolist()
    _, of_query = np.unique(texts.classes(queries), return_inverse=True)
    lowest = np.full(int(of_query.max(initial=-1)) + 1, np.inf, dtype=np.float32)
    np.fmin.at(lowest, of_query, own)
    table = pa.table([rows["id"], pa.array(scores, pa.list_(pa.float32())), lowest[of_query]], schema=RESCORED)
    scored = sum(map(len, scores)) + len(asking)
    return table, Counts(len(rows), len(rows), facts={"pairs_scored": scored})


def _short(rows: pa.Table, texts: Texts, given: PairRules, negatives: int) -> np.ndarray:
    """Return the rows whose given negatives are fewer than wanted and whose positive is another text."""
    rows, _ = narrowed(rows, given)
    kept, _ = given_negatives(rows, texts, known_positives(rows, texts, given), given.given)
    other = texts.classes(rows["query"].to_pylist()) != texts.classes(rows["positive"].to_pylist())
    return np.flatnonzero(other & (np.array([len(listed) for listed in kept]) < negatives))
