"""Mines Super-NI tasks (paper 2.3): pairs of inputs, by label or by s_pos and s_neg.

Label tasks: the positive is the most similar example with the same label, the negative the most similar with another,
by cos(E(x_i), E(x_j)). Text tasks: s_pos = cos(E(x_i), E(x_j)) + cos(E(y_i), E(y_j)) and s_neg = cos(E(x_i), E(x_j)) -
cos(E(y_i), E(y_j)); one inner-product index over [x; y] answers both: query [x; y], then [x; -y].
"""

import numpy as np
import pyarrow as pa

from medi.mine.search import SCAN_BYTES, Found, Lists, Search, top_k
from medi.mine.texts import Texts
from medi.schema import PAIRS, SECOND_OF_MUTUAL, Counts, table_of

_Found = tuple[np.ndarray, np.ndarray]


def mine_label_task(rows: pa.Table, texts: Texts, scan_bytes: int = SCAN_BYTES) -> tuple[pa.Table, Counts]:
    """Return PAIRS of kind `label` from ROWS with labels, sorted by id.

    Counts: dropped `no_positive` (no other example has the label). Facts: queries_short, negatives_missing.
    """
    labels = np.array(rows["label"].to_pylist(), dtype=object)
    vectors = texts.vectors_of(rows["query"].to_pylist())
    classes = texts.classes(rows["query"].to_pylist())
    positives, negatives = _empty(len(rows)), _empty(len(rows))
    for label in sorted(set(labels.tolist())):
        inside, outside = np.flatnonzero(labels == label), np.flatnonzero(labels != label)
        for found, pool in ((positives, inside), (negatives, outside)):
            barred = Lists.of(_equal_to(classes[inside], classes[pool]))
            numbers, scores, _ = top_k(vectors[inside], vectors[pool], 1, barred, Search(scan_bytes))
            found[0][inside] = np.where(numbers[:, 0] >= 0, pool[numbers[:, 0]] if len(pool) else -1, -1)
            found[1][inside] = scores[:, 0]
    clipped = [(numbers, np.clip(scores, -1.0, 1.0)) for numbers, scores in (positives, negatives)]
    return _finish(rows, "label", clipped[0], clipped[1])


def mine_text_task(rows: pa.Table, texts: Texts, scan_bytes: int = SCAN_BYTES) -> tuple[pa.Table, Counts]:
    """Return PAIRS of kind `text` from ROWS whose first reference is y, sorted by id.

    The positive is chosen first. Super-NI is symmetric (Table 5), so an example that chose this one is a known positive
    too, and the negative is neither of them: one pair of texts never stands both as a positive and as a negative.
    Counts and facts as for label tasks.
    """
    inputs, outputs = (texts.vectors_of(rows[column].to_pylist()) for column in ("query", "output"))
    classes = texts.classes(rows["query"].to_pylist())
    both = np.hstack([inputs, outputs])
    equal = _equal_to(classes, classes)
    positives = _first(top_k(both, both, 1, Lists.of(equal), Search(scan_bytes)))
    partners: list[list[int]] = [[] for _ in range(len(rows))]
    for one, other in enumerate(positives[0].tolist()):
        if other >= 0:
            partners[one].append(other)
            partners[other].append(one)
    in_class = {int(c): np.flatnonzero(classes == c) for c in np.unique(classes)}
    barred = [
        np.unique(np.concatenate([own, *(in_class[int(classes[p])] for p in listed)]))
        for own, listed in zip(equal, partners, strict=True)
    ]
    negatives = _first(top_k(np.hstack([inputs, -outputs]), both, 1, Lists.of(barred), Search(scan_bytes)))
    # A sum of two cosines may be a hair over 2, as a cosine may be over 1.
    clipped = [(numbers, np.clip(scores, -2.0, 2.0)) for numbers, scores in (positives, negatives)]
    return _finish(rows, "text", clipped[0], clipped[1])


def _equal_to(queries: np.ndarray, documents: np.ndarray) -> list[np.ndarray]:
    """Return for each query class the numbers of the documents of that class."""
    order = np.argsort(documents, kind="stable")
    low = np.searchsorted(documents[order], queries, side="left")
    high = np.searchsorted(documents[order], queries, side="right")
    return [order[a:b] for a, b in zip(low, high, strict=True)]


def _empty(count: int) -> _Found:
    """Return arrays for one found number and score an anchor."""
    return np.full(count, -1, dtype=np.int64), np.full(count, -np.inf, dtype=np.float32)


def _first(found: Found) -> _Found:
    """Return the best number and score of each query, [n], from [n, k]."""
    return found.numbers[:, 0], found.scores[:, 0]


def _finish(rows: pa.Table, kind: str, positives: _Found, negatives: _Found) -> tuple[pa.Table, Counts]:
    """Return the PAIRS of the anchors that have a positive, ranked: best first, second rows of mutual pairs last."""
    ids, queries, labels = (rows[c].to_pylist() for c in ("id", "query", "label"))
    origins, tasks = rows["origin"].to_pylist(), rows["task"].to_pylist()
    anchors = np.flatnonzero(positives[0] >= 0)
    partner = positives[0]
    second = (partner[partner[anchors]] == anchors) & (partner[anchors] < anchors)
    order = np.lexsort((anchors, -positives[1][anchors], second))
    ranks = np.empty(len(anchors), dtype=np.int64)
    ranks[order] = np.arange(len(anchors)) + np.where(second[order], SECOND_OF_MUTUAL, 0)
    table = []
    for i, rank in zip(anchors.tolist(), ranks.tolist(), strict=True):
        has = negatives[0][i] >= 0
        other = int(negatives[0][i])
        table.append(
            {
                "id": ids[i],
                "task": tasks[i],
                "kind": kind,
                "query": queries[i],
                "positive": queries[partner[i]],
                "label": labels[i],
                "negatives": [queries[other]] if has else [],
                "negative_labels": [labels[other]] if has and kind == "label" else [],
                "positive_score": positives[1][i],
                "negative_scores": [negatives[1][i]] if has else [],
                "negative_origins": ["mined"] if has else [],
                "origin": origins[i],
                "rank": rank,
            }
        )
    short = int(np.sum(negatives[0][anchors] < 0))
    counts = Counts(rows_in=len(rows), rows_out=len(table), facts={"queries_short": short, "negatives_missing": short})
    counts.facts |= {"mined_negatives": len(table) - short, "mutual_pairs": int(second.sum())}
    counts.dropped["no_positive"] = len(rows) - len(table)
    return table_of(table, PAIRS), counts
