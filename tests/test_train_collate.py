"""Steps become tokens: only the text is pooled, ranks share a step, what is too long is named, a thread works ahead."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer

from medi.errors import MediError
from medi.store import Store
from medi.train.batches import Step
from medi.train.collate import Collator, ahead, collate, join, long_instructions, own_tokenizer, refuse_long
from medi.train.data import Data, Instructions, open_data
from medi.train.model import load_model, tokenizer_of
from medi.train.tokens import Tokens
from tests.conftest import Once
from tests.training import write_release

INSTRUCTION = "Represent the question for retrieving answers:"


@pytest.fixture(scope="module", params=["wordpiece", "sentencepiece"])
def tokenizer(request: pytest.FixtureRequest, tiny_encoder: Path, tiny_t5_encoder: Path) -> Tokenizer:
    """A tokenizer with an opening and a closing special token, and one with a closing one only."""
    folder = tiny_encoder if request.param == "wordpiece" else tiny_t5_encoder
    return own_tokenizer(tokenizer_of(load_model("tiny", folder, None, "cpu")), 128)


@pytest.fixture(scope="module")
def data(once: Once, tmp_path_factory: pytest.TempPathFactory) -> Data:
    return open_data(once("train-release", write_release), Store(tmp_path_factory.mktemp("workspace")))


def pooled(tokenizer: Tokenizer, instruction: str, text: str) -> str:
    """Return what the pooled tokens say, the closing special token cut off."""
    tokens, _ = join(tokenizer, instruction, [text])
    ids = tokens.ids[tokens.pooled_from[0] :].tolist()
    assert tokenizer.id_to_token(ids[-1]) in ("[SEP]", "</s>")
    return tokenizer.decode(ids).strip()


@pytest.mark.parametrize("instruction", [INSTRUCTION, "Represent the sentence: ", "Represent the city of "])
@pytest.mark.parametrize("text", ["what is the city of water", "a", "  people that answer", "question title: document"])
def test_only_tokens_of_the_text_are_pooled(tokenizer: Tokenizer, instruction: str, text: str) -> None:
    assert pooled(tokenizer, instruction, text) == tokenizer.decode(tokenizer.encode(text).ids).strip()


def test_a_token_that_runs_over_the_joint_is_the_instruction_s_as_for_sentence_transformers(tiny_encoder: Path) -> None:
    tokenizer = own_tokenizer(tokenizer_of(load_model("tiny", tiny_encoder, None, "cpu")), 128)
    alone = len(tokenizer.encode("wat", add_special_tokens=False).ids)
    tokens, _ = join(tokenizer, "wat", ["er city people title year"])
    assert tokenizer.decode(tokens.ids.tolist()) == "water city people title year"
    assert alone == 3 and tokenizer.decode(tokens.ids[tokens.pooled_from[0] :].tolist()) == "title year"
    # Nothing of so short a text is left behind: the last token stands for it.
    tokens, _ = join(tokenizer, "wat", ["er"])
    assert tokens.pooled_from[0] == len(tokens.ids) - 1


def test_without_an_instruction_all_tokens_are_pooled(tokenizer: Tokenizer) -> None:
    tokens, _ = join(tokenizer, "", ["water", "the city"])
    assert tokens.pooled_from.tolist() == [0, 0]


def test_texts_are_cut_and_counted_and_the_closing_token_stays(tokenizer: Tokenizer) -> None:
    fitting = 128
    while len(tokenizer.encode(INSTRUCTION + " a" * fitting).overflowing):
        fitting -= 1
    tokens, truncated = join(tokenizer, INSTRUCTION, [" a" * fitting, " a" * (fitting + 1), " a" * 600])
    assert truncated.tolist() == [False, True, True]
    assert tokens.lengths.max() == 128
    assert {tokenizer.id_to_token(int(tokens.ids[end - 1])) for end in tokens.offsets[1:]} < {"[SEP]", "</s>"}


def test_instructions_that_leave_fewer_than_16_tokens_are_named_all_at_once(tokenizer: Tokenizer) -> None:
    # An opening and a closing special token, or a closing one only.
    special = len(tokenizer.encode("").ids)
    word = next(w for w in ("the", "water", "a", "of", "to") if len(tokenizer.encode(f"{w} {w}").ids) == 2 + special)

    def words(count: int) -> str:
        return " ".join([word] * count)

    room = 128 - 16 - special
    tasks = [
        ("fits", Instructions(words(room), words(3))),
        ("query", Instructions(words(room + 1), words(3))),
        ("document", Instructions(words(3), words(600))),
    ]
    found = long_instructions(tokenizer, tasks)
    assert found == {"query": 128 - 16 + 1, "document": 600 + special}
    told = r"tasks whose instructions leave fewer than 16 of 128 tokens for text: document \(60\d\), query \(113\)"
    with pytest.raises(MediError, match=told):
        refuse_long(found, 128)
    refuse_long({}, 128)


def of(tokens: Tokens) -> list[list[int]]:
    return [tokens.ids[start:end].tolist() for start, end in zip(tokens.offsets, tokens.offsets[1:], strict=False)]


def test_ranks_share_a_step_and_agree_on_the_whole_of_it(tokenizer: Tokenizer, data: Data) -> None:
    tasks = [(task.name, task.instructions) for task in data.tasks]
    step = Step(1, np.array([27, 20, 39, 31, 22]))
    whole = collate(Collator(data, tasks, tokenizer), step)
    assert (whole.task, whole.rows, whole.negatives) == ("twins", [5], [10])
    ids = data.take(step.rows)["id"].to_pylist()
    assert whole.ids == ids
    for world in (2, 3, 7):
        parts = [collate(Collator(data, tasks, tokenizer, None, False, rank, world), step) for rank in range(world)]
        assert sum(parts[0].rows) == 5 and max(parts[0].rows) - min(parts[0].rows) <= 1
        # The ranks deal the rows among them: the whole is that of a step whose rows come rank after rank.
        whole = collate(Collator(data, tasks, tokenizer), Step(1, step.rows[[ids.index(i) for i in parts[0].ids]]))
        assert sorted(whole.ids) == sorted(ids)
        columns: list[list[list[int]]] = [[], [], []]
        for rank, part in enumerate(parts):
            assert part.ids == whole.ids and part.rows == parts[0].rows and part.negatives == parts[0].negatives
            assert all(bool((a == b).all()) for a, b in zip(part.masks, whole.masks, strict=True))
            texts, rows = of(part.tokens), part.rows[rank]
            for column, piece in zip(columns, (texts[:rows], texts[rows : 2 * rows], texts[2 * rows :]), strict=True):
                column += piece
        assert columns[0] + columns[1] + columns[2] == of(whole.tokens)


def test_ranks_have_as_many_tokens_as_each_other_and_no_more_of_a_text_counts_than_is_embedded(
    tokenizer: Tokenizer, data: Data
) -> None:
    words, row = [5000, 60, 60, 5, 5, 120], data.take(np.arange(1)).to_pylist()[0]
    rows = [row | {"query": " water" * count, "positive": "the", "negatives": []} for count in words]
    long = replace(data, batches=(pa.RecordBatch.from_pylist(rows, data.batches[0].schema),), starts=np.zeros(1, int))
    tasks = [("asks", Instructions("", ""))]
    parts = [collate(Collator(long, tasks, tokenizer, rank=rank, world=2), Step(0, np.arange(6))) for rank in (0, 1)]
    lengths = [part.tokens.lengths[:3].tolist() for part in parts]
    queries = [join(tokenizer, "", [rows[number]["query"] for number in mine]) for mine in ([0, 1, 3], [2, 4, 5])]
    assert lengths == [tokens.lengths.tolist() for tokens, _ in queries] and lengths[0][0] == 128


def test_the_first_negatives_of_a_row_are_taken_and_their_labels_with_them(tokenizer: Tokenizer, data: Data) -> None:
    tasks = [(task.name, task.instructions) for task in data.tasks]
    twins = collate(Collator(data, tasks, tokenizer, negatives=1), Step(1, np.arange(20, 24)))
    first = [texts[0] for texts in data.take(np.arange(20, 24))["negatives"].to_pylist()]
    assert twins.negatives == [4]
    assert of(twins.tokens)[8:] == of(join(tokenizer, data.tasks[1].instructions.document, first).tokens)
    none = collate(Collator(data, tasks, tokenizer, negatives=0), Step(1, np.arange(20, 24)))
    assert none.negatives == [0] and none.masks.negatives.shape == (4, 0)
    # Every row of the label task is "yes" and every negative "no".
    label = collate(Collator(data, tasks, tokenizer, mask_same_label=True), Step(2, np.arange(40, 44)))
    assert label.masks.positives.sum() == 12 and not label.masks.negatives.any()


def test_a_thread_works_ahead_and_keeps_the_order() -> None:
    began = threading.Event()

    def slowly(number: int) -> int:
        time.sleep(0.02)
        if number == 2:
            began.set()
        return number * number

    waits = []
    for place, (value, waited_seconds) in enumerate(ahead(slowly, iter(range(6)), 3)):
        assert value == place * place
        # Whoever reads slower than the thread works waits for nothing.
        assert place or began.wait(5)
        time.sleep(0.06)
        waits.append(waited_seconds)
    assert len(waits) == 6 and max(waits[1:]) < 0.02


def test_what_the_thread_raises_comes_in_its_turn() -> None:
    def fails(number: int) -> int:
        if number == 2:
            raise MediError("row 2")
        return number

    made = ahead(fails, range(4), 2)
    assert [next(made)[0], next(made)[0]] == [0, 1]
    with pytest.raises(MediError, match="row 2"):
        next(made)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("medi-collate")]
