"""Fields of one line -> a clean row: nothing invisible, no pair of equals, no negative that is query or positive."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import xxhash

from medi.schema import fold, is_visible, natural
from medi.source import Drop, Fields


@dataclass(slots=True)
class Row:
    """A clean row of the pool; `identity` is equal where query and positive are when folded.

    `rank` is the hash of its line, `origin` where that stands.
    """

    query: str
    positive: str
    other_positives: tuple[str, ...]
    negatives: tuple[str, ...]
    identity: bytes
    rank: int = 0
    origin: str = ""


def clean(fields: Fields, max_negatives: int, facts: Counter[str]) -> Row:
    """Return the row of a line. What is taken out of its lists is counted in `facts`: `pos_in_neg`, `pos_empty`, ...

    Raises Drop: `empty_text` where query or positive has no visible character, `identity_pair` where they are equal.
    """
    if not (is_visible(fields.query) and is_visible(fields.positive)):
        raise Drop("empty_text")
    query, positive = fold(fields.query), fold(fields.positive)
    if query == positive:
        raise Drop("identity_pair")
    others = _distinct("pos", fields.other_positives, {query: "pos_is_query", positive: "pos_repeated"}, facts)
    taken = {query: "neg_is_query", positive: "pos_in_neg"} | {fold(text): "pos_in_neg" for text in others}
    negatives = _distinct("neg", fields.negatives, taken, facts)
    if len(negatives) > max_negatives:
        facts["neg_over_limit"] += len(negatives) - max_negatives
    identity = xxhash.xxh3_128_digest(f"{query}\n{positive}".encode())
    return Row(fields.query, fields.positive, others, negatives[:max_negatives], identity)


def merge(row: Row, again: Row, max_negatives: int, facts: Counter[str]) -> None:
    """Take into a row what an equal row of higher rank adds: its other positives and negatives, the smaller origin.

    Negatives that are a positive of the other row are counted in `facts`; texts that both rows have are no loss.
    """
    united = Fields(
        row.query, row.positive, (*row.other_positives, *again.other_positives), (*row.negatives, *again.negatives)
    )
    taken_out: Counter[str] = Counter()
    both = clean(united, max_negatives, taken_out)
    facts.update({reason: taken_out[reason] for reason in ("pos_in_neg", "neg_over_limit") if taken_out[reason]})
    row.other_positives, row.negatives = both.other_positives, both.negatives
    row.origin = min(row.origin, again.origin, key=natural)


def _distinct(kind: str, texts: Iterable[str], taken: dict[str, str], counts: Counter[str]) -> tuple[str, ...]:
    """Return the visible texts that are new when folded, in order; count the others by the reason in `taken`."""
    seen, kept = dict(taken), []
    for text in texts:
        folded = fold(text)
        if not is_visible(text):
            counts[f"{kind}_empty"] += 1
        elif folded in seen:
            counts[seen[folded]] += 1
        else:
            seen[folded] = f"{kind}_repeated"
            kept.append(text)
    return tuple(kept)
