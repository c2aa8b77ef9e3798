"""Mines the 30 embedding sets: given negatives that pass, then candidates that the rules let through, then fillings.

A negative is never, folded or to the encoder, the query or a known positive of that query (design section 7). Profile
`paper`: the first four given negatives that pass; where a source brings none, the one document nearest to the query.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from medi.errors import MediError
from medi.mine.account import Account
from medi.mine.candidates import matrix
from medi.mine.hints import CHOSEN_POSITIVE, NO_HINTS, ROW_BYTES, Hints, names, rescored_listing
from medi.mine.scores import cosines_of, scores_at
from medi.mine.search import Lists
from medi.mine.select import Listing, draws, repeated, select
from medi.mine.texts import Known, PairRules, Texts, given_negatives, known_positives, narrowed
from medi.profiles import Rules
from medi.schema import PAIRS, Counts

_BLOCK_ROWS = 512
# Where the negatives of a row come from, in the order in which they stand.
_ORIGINS = ("given", "mined", "random")


@dataclass(frozen=True)
class Pool:
    """What negatives are chosen from, row by row: everything by the number of the row."""

    texts: Texts
    known: Known
    queries: np.ndarray
    documents: np.ndarray
    ids: np.ndarray
    positive_scores: np.ndarray
    lowest: np.ndarray
    given: list[list[int]]
    candidates: pa.Table
    rules: Rules
    hints: Hints

    def marks(self, numbers: np.ndarray) -> np.ndarray:
        """Return what makes texts (by number) one: their class, or the group of their near-duplicates."""
        return self.texts.class_of[numbers] if self.hints.near is None else self.hints.near[numbers]


def mine_pairs(
    rows: pa.Table, texts: Texts, candidates: pa.Table, given: PairRules, rules: Rules, hints: Hints = NO_HINTS
) -> tuple[pa.Table, Counts]:
    """Return PAIRS of kind `pair`, sorted by id, one for each of the ROWS whose positive is another text.

    Counts: dropped `identity_to_encoder` (positive and query are one text to the encoder). Facts: those of
    `account.Account`, and given negatives left out by reason.
    """
    rows, left_out = narrowed(rows, given)
    pool, by_encoder = pool_of(rows, texts, candidates, given, (rules, hints))
    queries, kept, known = pool.queries, pool.given, pool.known
    usable = np.flatnonzero(texts.class_of[queries] != texts.class_of[pool.documents])
    account = Account(left_out + by_encoder)
    mined, filled = [[]] * len(rows), [[]] * len(rows)
    for block in _blocks(usable, pool):
        chosen = choose(block, pool, account)
        drawn = fill_up(block, pool, chosen, account) if rules.fill != "none" else [[]] * len(block)
        for row, some, others in zip(block.tolist(), chosen.numbers, drawn, strict=True):
            mined[row], filled[row] = some, others
    negatives = [[*kept[row], *mined[row], *filled[row]] for row in usable.tolist()]
    origins = np.array([(len(kept[row]), len(mined[row]), len(filled[row])) for row in usable.tolist()])
    _check(known, texts, queries[usable], negatives)
    pairs = _pairs(rows.take(usable), pool, pool.positive_scores[usable], negatives, origins)
    counts = Counts(len(rows), len(pairs), Counter(identity_to_encoder=len(rows) - len(pairs)))
    counts.facts = account.facts(pairs, rules)
    return pairs, counts


def pool_of(
    rows: pa.Table, texts: Texts, candidates: pa.Table, given: PairRules, how: tuple[Rules, Hints]
) -> tuple[Pool, Counter[str]]:
    """Return what negatives are chosen from, of ROWS that are `narrowed`, and given negatives left out by reason."""
    known = known_positives(rows, texts, given)
    kept_texts, by_encoder = given_negatives(rows, texts, known, given.given)
    queries, documents = (texts.numbers(rows[column].to_pylist()) for column in ("query", "positive"))
    usable = np.flatnonzero(texts.class_of[queries] != texts.class_of[documents])
    positive_scores = np.full(len(rows), np.nan, dtype=np.float32)
    positive_scores[usable] = _cosines(texts, queries[usable], documents[usable])
    kept = [texts.numbers(listed).tolist() if listed else [] for listed in kept_texts]
    lowest = _lowest(texts.class_of[queries], positive_scores)
    ids = names(rows["id"].to_pylist())
    return Pool(texts, known, queries, documents, ids, positive_scores, lowest, kept, candidates, *how), by_encoder


def _lowest(queries: np.ndarray, positive_scores: np.ndarray) -> np.ndarray:
    """Return for each row the lowest score of a positive of its query in the pool, float32 [n]."""
    _, of_row = np.unique(queries, return_inverse=True)
    least = np.full(int(of_row.max(initial=-1)) + 1, np.inf, dtype=np.float32)
    np.fmin.at(least, of_row, positive_scores)
    return least[of_row]


def _blocks(usable: np.ndarray, pool: Pool) -> Iterator[np.ndarray]:
    """Yield the rows in blocks whose listings and vectors fit the memory of one block."""
    size = max(1, pool.hints.scan_bytes // ROW_BYTES)
    yield from (usable[start : start + size] for start in range(0, len(usable), size))


@dataclass(frozen=True)
class _Mined:
    """The numbers of the texts that each row of a block got, and those that it must not get by filling up."""

    numbers: list[list[int]]
    refused: list[np.ndarray]


def choose(block: np.ndarray, pool: Pool, account: Account) -> _Mined:
    """Return the chosen candidates of some rows."""
    wanted = np.array([max(0, pool.rules.negatives - len(pool.given[row])) for row in block.tolist()], dtype=np.int64)
    asking = np.flatnonzero(wanted)
    rows = block[asking]
    listing = listing_of(rows, pool)
    texts = pool.documents[listing.numbers]
    choice = select(listing, wanted[asking], pool.ids[rows], pool.rules)
    account.mined(choice.counts, int(pool.candidates["known"].take(rows).to_numpy().sum()))
    found: list[list[int]] = [[]] * len(block)
    refused = [np.empty(0, dtype=np.int64)] * len(block)
    for place, columns, struck, listed in zip(asking.tolist(), choice.columns, choice.refused, texts, strict=True):
        found[place] = listed[columns[columns >= 0]].tolist()
        refused[place] = listed[struck]
    return _Mined(found, refused)


def listing_of(rows: np.ndarray, pool: Pool) -> Listing:
    """Return the candidates of some rows, as numbers of rows, with what the rules look at."""
    part = pool.candidates.take(rows)
    numbers = matrix(part["negatives"], -1, np.int64)
    texts = pool.documents[numbers]
    scores = matrix(part["negative_scores"], -np.inf, np.float32)
    if pool.rules.strategy == "s_neg" and pool.rules.compares_scores:
        scores = _cosines_at(pool, rows, texts)
    listing = Listing(numbers, pool.ids[numbers], scores, pool.lowest[rows], _barred(rows, texts, pool))
    if pool.hints.rescored is None:
        return listing
    return rescored_listing(listing, pool.hints.rescored.take(rows))


def _barred(rows: np.ndarray, texts: np.ndarray, pool: Pool) -> dict[str, np.ndarray]:
    """Return what is struck out of candidates [n, c], given as texts: near-duplicates, and what the row has already."""
    marks = pool.marks(texts)
    own = Lists.of([pool.marks(np.array(pool.given[row], dtype=np.int64)) for row in rows.tolist()])
    barred = {"repeated": own.mask(marks, len(pool.texts.class_of)) | repeated(marks)}
    if pool.hints.near is None:
        return barred
    members = _members(rows, pool)
    near = Lists(members.starts, pool.marks(members.items))
    return {"near_duplicate": near.mask(marks, len(pool.texts.class_of)), **barred}


def _members(rows: np.ndarray, pool: Pool) -> Lists:
    """Return for each row the texts, by number, of its query and of its known positives."""
    return pool.known.among(pool.texts.class_of[pool.queries[rows]], pool.texts.class_of)


def fill_up(block: np.ndarray, pool: Pool, mined: _Mined, account: Account) -> list[list[int]]:
    """Return seeded documents for the rows that are still short: barred like candidates, known positives too."""
    wanted = np.array(
        [
            max(0, pool.rules.negatives - len(pool.given[row]) - len(some))
            for row, some in zip(block.tolist(), mined.numbers, strict=True)
        ],
        dtype=np.int64,
    )
    asking = np.flatnonzero(wanted)
    found: list[list[int]] = [[]] * len(block)
    if not len(asking):
        return found
    rows, documents = block[asking], _documents(pool)
    texts = documents[draws(pool.ids[rows], len(documents), pool.rules.seed)]
    has = Lists.of([pool.marks(np.array([*mined.numbers[a], *mined.refused[a].tolist()], np.int64)) for a in asking])
    members = _members(rows, pool)
    known = Lists(members.starts, pool.texts.class_of[members.items])
    barred = {"known_positive": known.mask(pool.texts.class_of[texts], len(pool.texts.class_of))}
    barred |= _barred(rows, texts, pool)
    barred["repeated"] |= has.mask(pool.marks(texts), len(pool.texts.class_of))
    scores = _cosines_at(pool, rows, texts)
    listing = Listing(texts, texts.astype(np.uint64), scores, pool.lowest[rows], barred)
    choice = select(listing, wanted[asking], pool.ids[rows], pool.rules.for_filling(texts.shape[1]))
    account.filled(choice.counts)
    for place, columns, listed in zip(asking.tolist(), choice.columns, texts, strict=True):
        found[place] = listed[columns[columns >= 0]].tolist()
    return found


def _documents(pool: Pool) -> np.ndarray:
    """Return what rows are filled up from, as numbers of texts: all positives, with `random` given negatives too."""
    numbers = set(pool.documents.tolist())
    if pool.rules.fill == "random":
        numbers.update(number for listed in pool.given for number in listed)
    return np.array(sorted(numbers), dtype=np.int64)


def _cosines(texts: Texts, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosines of texts, given by number [n], float32 [n]."""
    found = np.empty(len(left), dtype=np.float32)
    # In blocks: the vectors of all pairs at once would take several times what the vectors of all texts do.
    for rows in (slice(start, start + _BLOCK_ROWS) for start in range(0, len(left), _BLOCK_ROWS)):
        one, other = (texts.vectors[texts.vector_of[numbers[rows]]] for numbers in (left, right))
        found[rows] = cosines_of(one, other)
    return found


def _cosines_at(pool: Pool, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the cosines of the rows' queries and of other texts, given by number [n, c], float32 [n, c]."""
    asked = pool.texts.vectors[pool.texts.vector_of[pool.queries[rows]]]
    return np.clip(scores_at(asked, pool.texts.vectors, pool.texts.vector_of[others]), -1, 1)


def _check(known: Known, texts: Texts, queries: np.ndarray, negatives: list[list[int]]) -> None:
    """Raise MediError where a negative is its query or a known positive of it; whatever chose it, none may pass."""
    owners = np.repeat(texts.class_of[queries], np.fromiter(map(len, negatives), dtype=np.int64))
    chosen = np.fromiter(chain.from_iterable(negatives), dtype=np.int64)
    if known.hold(owners, texts.class_of[chosen]).any():
        raise MediError(CHOSEN_POSITIVE)


def _pairs(
    rows: pa.Table, pool: Pool, positive_scores: np.ndarray, negatives: list[list[int]], origins: np.ndarray
) -> pa.Table:
    """Return the PAIRS, with cosines of query and positive, query and each negative.

    `origins` int64 [n, 3] says how many negatives of a row were given, mined and filled up, in this order.
    """
    text_of = np.array(list(pool.texts.number_of), dtype=object)
    lengths = [len(listed) for listed in negatives]
    flat = np.array([number for listed in negatives for number in listed], dtype=np.int64)
    owners = np.repeat(pool.texts.numbers(rows["query"].to_pylist()), lengths)
    scores = pa.array(_cosines(pool.texts, owners, flat))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32))
    origin_of = np.repeat(np.tile(np.arange(3), len(rows)), origins.reshape(-1).astype(np.int64))
    columns = {name: rows[name] for name in ("id", "task", "query", "positive", "label", "origin", "rank")}
    columns |= {
        "kind": pa.array(["pair"] * len(rows), pa.string()),
        "negatives": pa.ListArray.from_arrays(offsets, pa.array(text_of[flat].tolist(), pa.string())),
        "negative_labels": pa.array([[]] * len(rows), pa.list_(pa.string())),
        "positive_score": pa.array(positive_scores),
        "negative_scores": pa.ListArray.from_arrays(offsets, scores),
        "negative_origins": pa.ListArray.from_arrays(offsets, pa.array(_ORIGINS).take(pa.array(origin_of))),
    }
    return pa.table([columns[name] for name in PAIRS.names], schema=PAIRS)
