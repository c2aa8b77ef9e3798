"""The rows of a step -> token ids and masks, made ready ahead of the step that needs them.

The joint: instruction and text follow each other with nothing between, and are tokenised once, together. Pooled are the
tokens behind those of the instruction, and the closing special token; without an instruction, all tokens. These are the
tokens that sentence-transformers pools for `encode(text, prompt=instruction)`. Behind an instruction that ends in a
blank, they are those that hold a character of the text.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from medi.errors import MediError
from medi.train.batches import Step, shares
from medi.train.data import Data, Instructions
from medi.train.loss import Masks, StepTexts, hash_labels, hash_texts, masks
from medi.train.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow as pa
    from tokenizers import Encoding, Tokenizer

LEAST_TEXT_TOKENS = 16
# About: it only decides which rank takes which row.
_CHARACTERS_A_TOKEN = 4
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class Collator:
    """All that a step is made with: the rows, what stands before them, the tokenizer, and whose share is made.

    `tasks` has the name and the instructions of each task by the plan's numbers; of a row's negatives the first
    `negatives` are taken, None for all.
    """

    data: Data
    tasks: Sequence[tuple[str, Instructions]]
    tokenizer: "Tokenizer"
    negatives: int | None = None
    mask_same_label: bool = False
    rank: int = 0
    world: int = 1


class Batch(NamedTuple):
    """A step, ready to run. `tokens` are this rank's queries, positives and negatives, one after the other.

    `rows` and `negatives` say how many each rank has; ids and masks are those of the whole step, rank after rank;
    `truncated` is how many of this rank's texts were cut.
    """

    task: str
    ids: list[str]
    rows: list[int]
    negatives: list[int]
    tokens: Tokens
    masks: Masks
    truncated: int


class Joined(NamedTuple):
    """Tokens of texts behind their instruction, and which of the texts were cut, bool [n]."""

    tokens: Tokens
    truncated: np.ndarray


def own_tokenizer(backend: "Tokenizer", longest_tokens: int) -> "Tokenizer":
    """Return a copy that cuts at the maximum length and never pads: a tokenizer holds the settings of its last user."""
    from tokenizers import Tokenizer

    copy = Tokenizer.from_str(backend.to_str())
    copy.no_padding()
    copy.enable_truncation(longest_tokens)
    return copy


def max_length_tokens(tokenizer: "Tokenizer") -> int:
    """Return where a tokenizer of ours cuts."""
    return int((tokenizer.truncation or {})["max_length"])


def join(tokenizer: "Tokenizer", instruction: str, texts: Sequence[str]) -> Joined:
    """Return the tokens of each text behind the instruction."""
    encodings = tokenizer.encode_batch([instruction + text for text in texts])
    if instruction[-1:].isspace():
        ends = [len(instruction) + len(text) for text in texts]
        pooled = [_pooled_from(e, len(instruction), end) for e, end in zip(encodings, ends, strict=True)]
    else:
        alone = len(tokenizer.encode(instruction, add_special_tokens=False).ids)
        pooled = [_pooled_behind(e, alone) for e in encodings]
    tokens = Tokens.of([encoding.ids for encoding in encodings], pooled)
    longest = max_length_tokens(tokenizer)
    is_cut = [length == longest and bool(e.overflowing) for length, e in zip(tokens.lengths, encodings, strict=True)]
    return Joined(tokens, np.array(is_cut, dtype=bool))


def _pooled_behind(encoding: "Encoding", alone: int) -> int:
    """Return the place behind as many tokens as the instruction has alone, as sentence-transformers counts.

    It counts them also where the instruction's last word grows into the text.
    """
    if alone == 0:
        return 0
    opening = encoding.special_tokens_mask.index(0) if 0 in encoding.special_tokens_mask else 0
    return min(opening + alone, len(encoding.ids) - 1)


def _pooled_from(encoding: "Encoding", joint: int, end: int) -> int:
    """Return the place of the first token that holds a character of the text; a text without one has the last token."""
    # A blank at the joint may belong to no token, or to the word behind it.
    places = (encoding.char_to_token(place) for place in range(joint, end))
    return next((token for token in places if token is not None), len(encoding.ids) - 1)


def long_instructions(tokenizer: "Tokenizer", tasks: Iterable[tuple[str, Instructions]]) -> dict[str, int]:
    """Return the tasks whose instruction leaves fewer than 16 tokens for text, and the tokens of the instruction."""
    longest = max_length_tokens(tokenizer)
    uncut = own_tokenizer(tokenizer, 1 << 30)
    found = {}
    for name, instructions in tasks:
        tokens = max(len(encoding.ids) for encoding in uncut.encode_batch(list(instructions)))
        if tokens + LEAST_TEXT_TOKENS > longest:
            found[name] = tokens
    return found


def refuse_long(found: dict[str, int], longest_tokens: int) -> None:
    """Pass where there is nothing to refuse. Raises MediError that names all tasks with too long an instruction."""
    if found:
        names = ", ".join(f"{name} ({tokens})" for name, tokens in sorted(found.items()))
        raise MediError(
            f"tasks whose instructions leave fewer than {LEAST_TEXT_TOKENS} of {longest_tokens} tokens for text: "
            f"{names}; give --skip-long-instructions to leave them out, or --level simple"
        )


def collate(collator: Collator, step: Step) -> Batch:
    """Return a step ready to run: this rank's tokens, and the masks of all its rows."""
    name, instructions = collator.tasks[step.task]
    taken = collator.data.take(step.rows)
    parts = shares(_characters(taken, instructions, collator), collator.world)
    rows = taken.take(np.concatenate(parts))
    queries, positives = rows["query"].to_pylist(), rows["positive"].to_pylist()
    negatives = [texts[: collator.negatives] for texts in rows["negatives"].to_pylist()]
    labels = [texts[: collator.negatives] for texts in rows["negative_labels"].to_pylist()]
    hashes = StepTexts(
        hash_texts(queries), hash_texts(positives), hash_texts(_flat(negatives)),
        hash_labels(rows["label"].to_pylist()),
        hash_labels(_flat([known or [None] * len(own) for known, own in zip(labels, negatives, strict=True)])),
    )  # fmt: skip
    counts = [len(part) for part in parts]
    slices = [slice(end - count, end) for count, end in zip(counts, accumulate(counts), strict=True)]
    own = slices[collator.rank]
    of_query = join(collator.tokenizer, instructions.query, queries[own])
    documents = positives[own] + _flat(negatives[own])
    of_document = join(collator.tokenizer, instructions.document, documents)
    return Batch(
        name,
        rows["id"].to_pylist(),
        counts,
        [sum(map(len, negatives[part])) for part in slices],
        Tokens.concat([of_query.tokens, of_document.tokens]),
        masks(hashes, collator.mask_same_label),
        int(of_query.truncated.sum() + of_document.truncated.sum()),
    )


def _characters(rows: "pa.Table", instructions: Instructions, collator: Collator) -> np.ndarray:
    """Return the characters of each row's texts with their instructions, int64 [n], but no more than are embedded."""
    most = max_length_tokens(collator.tokenizer) * _CHARACTERS_A_TOKEN

    def sized(instruction: str, texts: Sequence[str]) -> int:
        """Return the characters of some texts, each behind the instruction."""
        return sum(min(most, len(instruction) + len(text)) for text in texts)

    columns = (rows[name].to_pylist() for name in ("query", "positive", "negatives"))
    sizes = [
        sized(instructions.query, [query]) + sized(instructions.document, [positive, *others[: collator.negatives]])
        for query, positive, others in zip(*columns, strict=True)
    ]
    return np.array(sizes, dtype=np.int64)


def _flat(lists: Sequence[Sequence[T]]) -> list[T]:
    return [item for items in lists for item in items]


def ahead(make: Callable[[S], T], steps: Iterable[S], depth: int) -> Iterator[tuple[T, float]]:
    """Yield what `make` makes of each step, and the seconds waited for it; a thread makes up to `depth` ahead.

    What `make` or `steps` raises is raised here, in its turn.
    """
    rest = iter(steps)

    def work() -> tuple[T] | None:
        """Return the next step made ready, or None behind the last."""
        # The steps are also found in the thread: an epoch's plan takes a moment.
        for step in rest:
            return (make(step),)
        return None

    pool = ThreadPoolExecutor(1, "medi-collate")
    try:
        waiting = deque(pool.submit(work) for _ in range(depth))
        while True:
            began = time.perf_counter()
            made = waiting.popleft().result()
            waited_seconds = time.perf_counter() - began
            if made is None:
                return
            waiting.append(pool.submit(work))
            yield made[0], waited_seconds
    finally:
        pool.shutdown(cancel_futures=True)
