"""Copies share a group, texts that only look alike do not; the groups are those of brute force, in any order."""

import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from medi.mine.near import THRESHOLD, near_groups, similarity

STORY = (
    "The ferry to the northern islands leaves the old harbour every morning at six, and it carries the post, the milk "
    "and, in summer, more visitors than the islands have beds for; by noon it is back, empty but for the fishermen."
)


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("Great product", "great   product!!", True),
        ("A homeless man holding a sign.", "homeless man holding a sign", True),
        (STORY, STORY.replace("milk", "bread"), True),
        (STORY, STORY + " Every morning.", True),
        ("???", "!!!", False),
        ("", "!", False),
        ("which city is it in", "which city was it in", False),
        ("what is c", "what is c++", False),
        ("they have no tension between them", "they have tension between them", False),
        ("works great fast shipping", "fast shipping works great", False),
        (STORY, STORY.replace("at six", "at 6").replace("morning", "day"), False),
        (STORY + " In 1963.", STORY + " In 1964.", False),
        ("aaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaa", False),
    ],
)
def test_what_is_near(one: str, other: str, near: bool) -> None:
    assert near_groups([one, other]).tolist() == [0, 0 if near else 1]


def test_similarity_is_the_jaccard_index_of_shingles() -> None:
    # " abcd" and "abcd " against " abcd", "abcde", "bcde ": one of four.
    assert similarity("abcd", "ABCDE.") == 0.25
    # " aaaa", two "aaaaa" and "aaaa " against the same with three.
    assert similarity("aaaaaa", "aaaaaaa") == 0.8
    assert similarity("tea", "coffee") == 0.0


def variants(count: int, seed: int = 0) -> list[str]:
    """Return texts that differ from a few stories, and from one another, in some words."""
    draw = random.Random(seed)
    words = STORY.split()
    stories = [draw.sample(words, len(words)) for _ in range(4)]
    texts = []
    for _ in range(count):
        chosen = draw.choice(stories).copy()
        for _ in range(draw.randrange(5)):
            chosen[draw.randrange(len(chosen))] = draw.choice(words)
        texts.append(" ".join(chosen))
    return texts


def by_brute_force(texts: list[str]) -> list[int]:
    """Return the smallest position that each text is connected with."""
    group = list(range(len(texts)))
    for i, j in combinations(range(len(texts)), 2):
        if similarity(texts[i], texts[j]) >= THRESHOLD:
            low, high = sorted((group[i], group[j]))
            group = [low if g == high else g for g in group]
    return group


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_those_of_brute_force(seed: int) -> None:
    texts = variants(60, seed)
    expected = by_brute_force(texts)
    assert 10 < len(set(expected)) < 55
    assert near_groups(texts).tolist() == expected
    assert near_groups(texts, seed=2**40 + 5).tolist() == expected


def test_a_chain_is_one_group() -> None:
    chain = [STORY, STORY.replace("milk", "bread"), STORY.replace("milk", "bread").replace("summer", "winter")]
    assert similarity(chain[0], chain[2]) < THRESHOLD <= similarity(chain[0], chain[1])
    assert near_groups([chain[2], chain[0], "tea", chain[1]]).tolist() == [0, 0, 2, 0]


def parts(texts: list[str], groups: np.ndarray) -> set[frozenset[str]]:
    return {frozenset(texts[i] for i in np.flatnonzero(groups == g)) for g in np.unique(groups)}


def test_groups_do_not_depend_on_the_order_of_texts() -> None:
    texts = list(dict.fromkeys(variants(200, seed=7)))
    turned = texts[::-1]
    assert parts(texts, near_groups(texts)) == parts(turned, near_groups(turned))


def test_copies_without_number_are_one_group() -> None:
    """More than a bucket's neighbours: each copy has a word of its own in one place."""
    copies = [f"{STORY[:100]} {chr(97 + n % 26)}{chr(97 + n // 26)} {STORY[100:]}" for n in range(500)]
    assert set(near_groups(copies).tolist()) == {0}


def test_groups_do_not_depend_on_the_process() -> None:
    code = "from tests.test_near import *; print(near_groups(variants(150)).tolist())"
    printed = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True, cwd=Path(__file__).parent.parent,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert printed == [f"{near_groups(variants(150)).tolist()}\n"] * 2


def test_nothing_in_gives_nothing_out() -> None:
    groups = near_groups([])
    assert groups.shape == (0,) and groups.dtype == np.int64


def strings(value: object) -> Iterator[str]:
    """Yield every string of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


@pytest.mark.parametrize(
    ("name", "texts", "groups"),
    [("squad_pairs", 1_772, 1_772), ("WikiAnswers", 3_565, 3_556), ("AllNLI", 5_329, 5_318)],
)
def test_real_files(shared_raw: Path, name: str, texts: int, groups: int) -> None:
    """Judged by eye: "united state(s)", a comma more, three long sentences that differ in a "not"; none in SQuAD."""
    with gzip.open(shared_raw / "embedding_training_data" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        found = sorted({text for line in file for text in strings(json.loads(line))})
    assert (len(found), len(set(near_groups(found).tolist()))) == (texts, groups)
