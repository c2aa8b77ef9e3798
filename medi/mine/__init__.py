"""Stage `mine`: ROWS and vectors into PAIRS, positives and hard negatives with their scores.

`search` finds exact nearest neighbours, `texts` knows which texts are one text and which are known positives, `tasks`
mines Super-NI by s_pos and s_neg (paper 2.3), `pairs` mines the 30 embedding sets.
"""

from medi.mine.pairs import mine_pairs
from medi.mine.tasks import mine_label_task, mine_text_task
from medi.mine.texts import PairRules, Texts, audit, texts_to_encode, texts_to_tokenize

__all__ = [
    "PairRules",
    "Texts",
    "audit",
    "mine_label_task",
    "mine_pairs",
    "mine_text_task",
    "texts_to_encode",
    "texts_to_tokenize",
]
