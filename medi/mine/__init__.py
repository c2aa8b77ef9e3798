"""Stages `candidates` and `mine`: ROWS and vectors into PAIRS, positives and hard negatives with their scores.

`search` finds exact nearest neighbours, `texts` knows which texts are one text and which are known positives,
`candidates` keeps the 64 nearest of each row, and `tasks` (Super-NI, paper 2.3) and `pairs` (the 30 embedding sets)
choose among them by the `rules`.
"""

from medi.mine.audit import audit
from medi.mine.candidates import label_candidates, pair_candidates, text_candidates
from medi.mine.hints import Hints, near_of
from medi.mine.pairs import mine_pairs
from medi.mine.search import Search
from medi.mine.tasks import choose_positives, mine_task
from medi.mine.texts import Groups, PairRules, Texts, texts_to_encode, texts_to_tokenize
from medi.profiles import PROFILES, Rules, check_rules

__all__ = [
    "PROFILES",
    "Groups",
    "Hints",
    "PairRules",
    "Rules",
    "Search",
    "Texts",
    "audit",
    "check_rules",
    "choose_positives",
    "label_candidates",
    "mine_pairs",
    "mine_task",
    "near_of",
    "pair_candidates",
    "text_candidates",
    "texts_to_encode",
    "texts_to_tokenize",
]
