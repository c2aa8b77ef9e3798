"""Tells which texts nearly repeat each other, so that a copy of a positive is not mined as its negative.

MinHash (datasketch) proposes pairs; the exact Jaccard index of their shingles decides, so that no two texts share a
group by accident of a hash. Shingles are runs of five characters of the lower-case words, sentence marks left out, a
blank at both ends; near are texts with an index of at least 0.9 and the same numbers in the same order.

Chosen by looking at the most alike pairs of 65,000 real texts. Runs of three characters merge short sentences and their
contraries ("the gao is (not) a model of ..."); with five, what merges below 60 characters is "great product(!!)",
"united state(s)", "(a) homeless man holding a sign", and nothing in S2ORC, SQuAD and xsum. The numbers part what a
template repeats: the football teams of 1963 and of 1964, two part numbers. Longer texts that differ in one word do
merge, be it a "not" (three pairs of AllNLI, one of code). So this bars candidates of mining; it must not judge
negatives that a source gave.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from medi.mine.texts import Groups

THRESHOLD = 0.9
_SHINGLE_CHARACTERS = 5
# Of pairs with an index of 0.9, this many bands of this many hashes miss one in 8,000; of 0.5, they propose 6 %.
_BANDS, _HASHES_OF_BAND = 16, 8
# What 128 hashes estimate is off by 0.027 (one standard deviation) at 0.9; this is three of them below.
_WORTH_CHECKING = 0.82
# Where a template makes thousands of texts equal in a band, each is checked against these next ones in the alphabet.
_MOST_NEIGHBOURS = 200
_MARKS = str.maketrans(dict.fromkeys(".,;:!?\"'`…“”‘’", " "))
_NUMBERS = re.compile(r"\d+")


def near_groups(texts: Sequence[str], seed: int = 0) -> np.ndarray:
    """Return a group for each text, int64 [n]: the smallest position of a text that it nearly repeats, or its own.

    Groups are the connected parts of near pairs. They are the same whatever the order of the texts, and in every
    process; `seed` is that of MinHash.
    """
    if not len(texts):
        return np.empty(0, dtype=np.int64)
    words = [_words(text) for text in texts]
    # In the order of the alphabet, so that nothing below depends on the order of `texts`.
    distinct = sorted(set(words))
    number_of = {text: number for number, text in enumerate(distinct)}
    groups, sketches = Groups(len(distinct)), _Sketches.of(distinct, seed)
    for band in range(_BANDS):
        for bucket in _buckets(sketches.hashes[:, band]):
            _join(bucket, band, sketches, groups)
    roots = groups.roots()[[number_of[text] for text in words]]
    _, first, group = np.unique(roots, return_index=True, return_inverse=True)
    return first[group].astype(np.int64)


def similarity(one: str, other: str) -> float:
    """Return the Jaccard index of two texts' shingles, repeated ones counted as often as they stand, in [0, 1]."""
    return _jaccard(*(Counter(_shingles(_words(text))) for text in (one, other)))


def _words(text: str) -> str:
    """Return the lower-case words of a text with single blanks between; the folded text where it is marks only."""
    lower = text.lower()
    return " ".join(lower.translate(_MARKS).split()) or " ".join(lower.split())


def _shingles(words: str) -> list[str]:
    """Return every run of five characters, a blank at both ends of the text; a shorter text is one run."""
    padded = f" {words} "
    return [padded[i : i + _SHINGLE_CHARACTERS] for i in range(max(1, len(padded) - _SHINGLE_CHARACTERS + 1))]


def _jaccard(one: Counter[str], other: Counter[str]) -> float:
    return (one & other).total() / (one | other).total()


@dataclass(frozen=True)
class _Sketches:
    """What pairs are found by, in the order of `texts`: `hashes` uint32 [n, bands, hashes of a band], `numbers` int64
    [n], equal for texts with the same numbers.
    """

    texts: list[str]
    hashes: np.ndarray
    numbers: np.ndarray

    @staticmethod
    def of(texts: list[str], seed: int) -> "_Sketches":
        """Return the sketches of the texts."""
        import xxhash
        from datasketch import MinHash

        shingles = ([shingle.encode() for shingle in _shingles(text)] for text in texts)
        count = _BANDS * _HASHES_OF_BAND
        made = MinHash.generator(shingles, num_perm=count, seed=seed % 2**32, hashfunc=xxhash.xxh32_intdigest)
        hashes = np.empty((len(texts), count), dtype=np.uint32)
        for number, minhash in enumerate(made):
            hashes[number] = minhash.hashvalues
        number_of: dict[tuple[str, ...], int] = {}
        numbers = [number_of.setdefault(tuple(_NUMBERS.findall(text)), len(number_of)) for text in texts]
        return _Sketches(texts, hashes.reshape(len(texts), _BANDS, _HASHES_OF_BAND), np.array(numbers))

    def worth_checking(self, one: int, others: np.ndarray, band: int) -> np.ndarray:
        """Return which of the others [m] may be near, and did not meet `one` in an earlier band already, bool [m]."""
        equal = self.hashes[others] == self.hashes[one]
        met_before = equal[:, :band].all(axis=2).any(axis=1)
        alike = (self.numbers[others] == self.numbers[one]) & (equal.mean(axis=(1, 2)) >= _WORTH_CHECKING)
        return alike & ~met_before


def _buckets(band: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the numbers of texts, int64 [m], rising, that are equal in a band [n, hashes], where two or more are."""
    order = np.lexsort(band.T)
    ordered = band[order]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    ends = np.r_[starts[1:], len(order)]
    for start, end in zip(starts[ends - starts > 1], ends[ends - starts > 1], strict=True):
        yield order[start:end]


def _join(bucket: np.ndarray, band: int, sketches: _Sketches, groups: Groups) -> None:
    """Join the near pairs of a bucket. Pairs that are of one group by now need no check: copies cost little."""
    roots = np.array([groups.root(number) for number in bucket.tolist()])
    for place, one in enumerate(bucket.tolist()):
        after = place + 1
        rest = np.flatnonzero(roots[after : after + _MOST_NEIGHBOURS] != roots[place]) + after
        rest = rest[sketches.worth_checking(one, bucket[rest], band)] if len(rest) else rest
        own = Counter(_shingles(sketches.texts[one])) if len(rest) else Counter()
        for other in rest.tolist():
            number = int(bucket[other])
            joined = roots[other] == roots[place]
            if not joined and _jaccard(own, Counter(_shingles(sketches.texts[number]))) >= THRESHOLD:
                roots[roots == roots[other]] = roots[place]
                groups.join(one, number)
