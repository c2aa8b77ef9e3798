"""Accounts for a unit's negatives: where each came from, what struck out the others, who is short, how scores lie.

Sums add up: `candidates.listed` = `candidates.chosen` + the sum of `candidates.dropped`, likewise for given negatives
and for draws; `negatives` by origin are those of the pairs.
"""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from medi.profiles import Rules

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


class Account:
    """Takes what the blocks of a unit report."""

    def __init__(self, given: Counter[str] | None = None) -> None:
        """Take what was left out of the given negatives, by reason."""
        self._given = Counter({name.removeprefix("given_"): count for name, count in (given or Counter()).items()})
        self._candidates: Counter[str] = Counter()
        self._draws: Counter[str] = Counter()

    def mined(self, counts: Counter[str], known: int) -> None:
        """Add what became of some rows' candidates, and the known positives that the search left out of them."""
        self._candidates += counts + Counter(known_positive=known)

    def filled(self, counts: Counter[str]) -> None:
        """Add what became of some rows' draws for filling up."""
        self._draws += counts

    def facts(self, pairs: pa.Table, rules: Rules) -> dict[str, object]:
        """Return all of it, with a JSON form; scores are the quantiles QUANTILES, of the unit's whole pool."""
        origins = Counter(pc.list_flatten(pairs["negative_origins"]).to_pylist())
        missing = rules.negatives - pc.list_value_length(pairs["negatives"]).to_numpy()
        facts: dict[str, object] = {
            "candidates": _sums(self._candidates),
            "negatives": dict(sorted(origins.items())),
            "queries_short": int((missing > 0).sum()),
            "negatives_missing": int(np.maximum(missing, 0).sum()),
            "positive_scores": _quantiles(pairs["positive_score"]),
            "negative_scores": _quantiles(pc.list_flatten(pairs["negative_scores"])),
        }
        if self._given or origins["given"]:
            facts["given"] = _sums(self._given + Counter(chosen=origins["given"]))
        if self._draws:
            facts["draws"] = _sums(self._draws)
        return facts


def _sums(counts: Counter[str]) -> dict[str, object]:
    """Return how many there were, how many were chosen, and why the others were not."""
    dropped = {reason: count for reason, count in sorted(counts.items()) if reason != "chosen" and count}
    return {"listed": counts.total(), "chosen": counts["chosen"], "dropped": dropped}


def _quantiles(scores: pa.ChunkedArray) -> list[float]:
    """Return the quantiles rounded to four digits, none for no scores."""
    values = scores.drop_null().to_numpy()
    if not len(values):
        return []
    return [round(float(q), 4) for q in np.quantile(values.astype(np.float64), QUANTILES, method="inverted_cdf")]
