"""Ragged tokens are taken and padded without changing an id, on either side."""

import numpy as np
import pytest

from medi.train.tokens import Tokens, pad

# Token 9 opens an instruction of one token; 1 closes each text. Pooled from the text's first token on.
TOKENS = Tokens.of([[9, 7, 5, 1], [9, 1], [9, 8, 4, 3, 2, 1]], [2, 1, 2])


def test_texts_keep_their_ids_and_their_places_whatever_is_taken() -> None:
    taken = Tokens.concat([TOKENS, TOKENS.take(np.array([2, 0]))]).take(np.array([3, 1, 4, 1]))
    assert [taken.ids[a:b].tolist() for a, b in zip(taken.offsets, taken.offsets[1:], strict=False)] == [
        [9, 8, 4, 3, 2, 1], [9, 1], [9, 7, 5, 1], [9, 1],
    ]  # fmt: skip
    assert taken.pooled_from.tolist() == [2, 1, 2, 1] and taken.lengths.tolist() == [6, 2, 4, 2]
    assert len(TOKENS.take(np.array([], dtype=int))) == 0 and len(Tokens.of([], [])) == 0


@pytest.mark.parametrize(
    ("side", "ids", "attended", "pooled"),
    [
        ("right", [[9, 7, 5, 1, 0, 0], [9, 8, 4, 3, 2, 1]], [[1, 1, 1, 1, 0, 0], [1] * 6],
         [[0, 0, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1]]),
        ("left", [[0, 0, 9, 7, 5, 1], [9, 8, 4, 3, 2, 1]], [[0, 0, 1, 1, 1, 1], [1] * 6],
         [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]]),
    ],
)  # fmt: skip
def test_only_the_text_and_its_closing_token_are_pooled(side: str, ids: list, attended: list, pooled: list) -> None:
    padded = pad(TOKENS, np.array([0, 2]), pad_id=0, side=side)  # type: ignore[arg-type]
    assert [part.tolist() for part in padded] == [ids, attended, pooled]


def test_widths_are_rounded_up_to_a_multiple() -> None:
    padded = pad(TOKENS, np.array([0, 1]), pad_id=3, multiple=8)
    assert padded.input_ids.tolist() == [[9, 7, 5, 1, 3, 3, 3, 3], [9, 1, 3, 3, 3, 3, 3, 3]]
