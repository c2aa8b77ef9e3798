"""Rows of one task become violations: each rule looks at one thing and says, with the row's id, where it does not hold.

A rule is a function from a Portion to lines; RULES is all of them. A new invariant is one more function.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from medi.release.known import SUPER_NI, Known
from medi.release.manifest import Json, TaskEntry
from medi.schema import fold, is_visible, row_id, text_id

KINDS = ("pair", "label", "text")
ORIGINS = ("given", "mined", "random")


@dataclass
class Portion:
    """At most a row group of rows of one task, as Python lists, and what the release knows of that task."""

    table: pa.Table
    source: str
    task: str
    entry: TaskEntry | None
    licence: str | None
    known: Known | None

    @property
    def kind(self) -> str | None:
        """The kind that the manifest gives the task."""
        return self.entry and self.entry["kind"]

    @cached_property
    def ids(self) -> list[str]:
        """The row ids."""
        return self.column("id")

    @cached_property
    def texts(self) -> list[list[str]]:
        """The texts of each row: the query, the positive, the negatives (an absent one as an empty text)."""
        columns = (self.column(name) for name in ("query", "positive", "negatives"))
        return [
            [query, positive, *(text or "" for text in negatives)]
            for query, positive, negatives in zip(*columns, strict=True)
        ]

    @cached_property
    def text_ids(self) -> list[list[str]]:
        """The text ids of the folded texts, in the same places."""
        return [[text_id(fold(text)) for text in texts] for texts in self.texts]

    def column(self, name: str) -> list:
        """Return a column as a Python list."""
        return self.table.column(name).to_pylist()


Rule = Callable[[Portion], Iterator[str]]


def _ids(portion: Portion) -> Iterator[str]:
    """An id is the hash of the row's texts; a Super-NI id also covers the output, which is not in the shards.

    Of other sources' labelled texts that is the label; their positives are mined.
    """
    outputs = portion.column("label") if portion.kind == "label" else [None] * len(portion.ids)
    for found, (query, positive, *_), output in zip(portion.ids, portion.texts, outputs, strict=True):
        if portion.source == SUPER_NI:
            if not re.fullmatch(r"super_ni/[0-9a-f]{16}", found):
                yield f"{found}: the id is not super_ni/ and 16 hex digits"
        elif found != (right := _own_id(portion, query, positive, output)):
            yield f"{found}: the id is not the hash of the row's texts, {right}"


def _own_id(portion: Portion, query: str, positive: str, output: str | None) -> str:
    return row_id(portion.source, portion.source, query, positive if output is None else None, output)


def _visible(portion: Portion) -> Iterator[str]:
    plain = re.compile("[!-~]")  # nearly every text has a letter of ASCII, and this is ten times as fast
    for found, texts in zip(portion.ids, portion.texts, strict=True):
        for place, text in enumerate(texts):
            if not plain.search(text) and not is_visible(text):
                yield f"{found}: {_place(place)} has no visible character"


def _kinds(portion: Portion) -> Iterator[str]:
    for found, kind, label in zip(portion.ids, portion.column("kind"), portion.column("label"), strict=True):
        if kind not in KINDS:
            yield f"{found}: the kind is {kind!r}, not one of {', '.join(KINDS)}"
        elif portion.kind is not None and kind != portion.kind:
            yield f"{found}: the kind is {kind!r}, the manifest says {portion.kind!r}"
        elif kind == "label" and label is None:
            yield f"{found}: the kind is 'label' and there is no label"


def _lengths(portion: Portion) -> Iterator[str]:
    """Negatives, their scores and their origins are equally many; so are their labels, where the kind is `label`."""
    names = ("kind", "negatives", "negative_labels", "negative_scores", "negative_origins")
    for found, kind, texts, labels, scores, origins in zip(portion.ids, *map(portion.column, names), strict=True):
        if len(scores) != len(texts):
            yield f"{found}: {len(texts)} negatives and {len(scores)} negative_scores"
        if len(origins) != len(texts):
            yield f"{found}: {len(texts)} negatives and {len(origins)} negative_origins"
        if len(labels) != (len(texts) if kind == "label" else 0):
            yield f"{found}: kind {kind!r}, {len(texts)} negatives and {len(labels)} negative_labels"


def _origins(portion: Portion) -> Iterator[str]:
    for found, origins in zip(portion.ids, portion.column("negative_origins"), strict=True):
        for index, origin in enumerate(origins):
            if origin not in ORIGINS:
                yield f"{found}: negative_origins[{index}] is {origin!r}, not one of {', '.join(ORIGINS)}"


def _scores(portion: Portion) -> Iterator[str]:
    """Cosines lie in [-1, 1], sums and differences of two in [-2, 2]; null says that nothing was scored."""
    names = ("kind", "positive_score", "negative_scores")
    for found, kind, positive, negatives in zip(portion.ids, *map(portion.column, names), strict=True):
        bound = 2.0 if kind == "text" else 1.0
        named = [("positive_score", positive), *((f"negative_scores[{i}]", score) for i, score in enumerate(negatives))]
        for name, score in named:
            if score is not None and not -bound <= score <= bound:
                yield f"{found}: {name} is {score}, not between {-bound:g} and {bound:g}"


def _labels(portion: Portion) -> Iterator[str]:
    names = ("kind", "label", "negative_labels")
    for found, kind, label, others in zip(portion.ids, *map(portion.column, names), strict=True):
        for index, other in enumerate(others if kind == "label" else ()):
            if other is None or other == label:
                yield f"{found}: negatives[{index}] has the label {other!r}, the query's own is {label!r}"


def _pairs(portion: Portion) -> Iterator[str]:
    """The positive is another text than the query, and the audit file knows the pair."""
    for found, (query, positive, *_) in zip(portion.ids, portion.text_ids, strict=True):
        if query == positive:
            yield f"{found}: the positive is the query"
        elif portion.known and not portion.known.is_positive(portion.task, query, positive):
            yield f"{found}: the pair is not in the audit file of known positives"


def _negatives(portion: Portion) -> Iterator[str]:
    for found, (query, positive, *negatives) in zip(portion.ids, portion.text_ids, strict=True):
        for index, negative in enumerate(negatives):
            if negative == query:
                yield f"{found}: negatives[{index}] is the query"
            elif negative == positive:
                yield f"{found}: negatives[{index}] is the positive"
            elif portion.known and portion.known.is_positive(portion.task, query, negative):
                yield f"{found}: negatives[{index}] is a known positive of the query"


def _licences(portion: Portion) -> Iterator[str]:
    for found, licence in zip(portion.ids, portion.column("licence"), strict=True):
        if portion.licence is not None and licence != portion.licence:
            yield f"{found}: the licence is {licence!r}, the manifest says {portion.licence!r}"


def _instructions(portion: Portion) -> Iterator[str]:
    """An instruction, where there is one, says the words of the manifest's slots."""
    slots = portion.entry["slots"] if portion.entry else None
    for side in ("query", "document"):
        words = _words(slots.get(side)) if isinstance(slots, dict) else []
        texts = portion.column(f"{side}_instruction")
        for text in dict.fromkeys(filter(None, texts)):
            missing = [word for word in words if word not in fold(text)]
            if missing:
                found = portion.ids[texts.index(text)]
                yield f"{found}: the {side}_instruction does not say {missing[0]!r}, a slot of the manifest"


def _words(slots: Json) -> list[str]:
    return [fold(word) for word in slots.values() if isinstance(word, str)] if isinstance(slots, dict) else []


def _place(place: int) -> str:
    return ("the query", "the positive")[place] if place < 2 else f"negatives[{place - 2}]"


RULES: tuple[Rule, ...] = (
    _ids, _visible, _kinds, _lengths, _origins, _scores, _labels, _pairs, _negatives, _licences, _instructions,
)  # fmt: skip
