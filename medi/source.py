"""What a source of raw rows is: where its files are, what one raw line looks like, and how a line becomes a row.

Sources are declared as data in `medi/sources/`, one file a collection; a Variant is one plausible origin of a source.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from medi.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
NESTED_LEVELS = 64  # a record nested deeper is bad; Python's own limit depends on who calls
BAD_RECORD = b"\0bad: "  # begins a record that its reader calls bad, before the reason; JSON never begins so


class Mend(NamedTuple):
    """A repair of a file: `bom`, `crlf`, `blank_line` or `no_final_newline`, at a line and byte (None in tables)."""

    reason: str
    line: int
    offset: int | None


class RawBatch(NamedTuple):
    """Some consecutive raw records of one file, undecoded: what `medi.read` gives and ingest takes.

    `keys` are 1-based line numbers of a line file (`by_line`), else array indices, PMIDs or row numbers. `offsets` are
    byte positions in the unpacked file, int64 [n], or empty where records have none. `mended` are the repairs of these
    lines. A non-empty `fault` says how the file ends in damage here.
    """

    file: str
    by_line: bool
    keys: Sequence[int | str]
    offsets: "np.ndarray | Sequence[int]"
    lines: list[bytes]
    mended: Sequence[Mend] = ()
    fault: str = ""


class Page(NamedTuple):
    """One page of the KILT knowledge source: its paragraphs as found, the first of which is the title."""

    page_id: str
    title: str
    paragraphs: tuple[str, ...]


class Place(NamedTuple):
    """Where a KILT provenance starts: a page, a paragraph of it, a character of that."""

    page_id: str
    paragraph: int
    character: int


class Fields(NamedTuple):
    """What one raw line says, before cleaning: texts as found; `mended` names the repairs (`text_for_list in pos`).

    Where `places` stand, the positive is the passage at the first of them and the others are further positives.
    """

    query: str
    positive: str
    other_positives: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()


class Drop(Exception):
    """A line that is left out and counted; its message is the reason in snake_case (`set_of_one`, `null in pos`)."""


class Bad(Exception):
    """A line that fails its source (wrong shape or type); its message is the reason in plain words."""


@dataclass(frozen=True)
class File:
    """A raw file: `pattern` is a glob below the `--raw` folder; `remote` the path in the place's repository (or glob).

    `otherwise` are globs for the same content, tried in order where `pattern` finds nothing (a dev file where there is
    no train file). `keyed` files are one JSON object from key to record.
    """

    pattern: str
    remote: str = ""
    size_bytes: int | None = None
    otherwise: tuple[str, ...] = ()
    keyed: bool = False


@dataclass(frozen=True)
class Variant:
    """One origin of a source: a place, its files, their layout, and the callable that reads one record.

    `place` is `hub:OWNER/NAME` (a dataset repository), an https address, or "" where a person must fetch the files
    (`how` then says what and where). `sample` is an invented raw record in the true layout, as JSON.
    """

    name: str
    layout: str
    fields: dict[str, str]
    read: Callable[[Json], Fields]
    sample: str
    place: str
    files: tuple[File, ...]
    lines: int | None = None
    given_negatives: bool = False
    pages: File | None = None
    how: str = ""
    revision: str = "main"


@dataclass(frozen=True)
class Source:
    """A row of Table 5; the likeliest of its `variants` is first. Of a `labelled` one a label is read as positive."""

    name: str
    quota_rows: int
    symmetric: bool
    licence: str
    citation: str
    variants: tuple[Variant, ...]
    clusters: bool = False
    labelled: bool = False

    def variant(self, name: str) -> Variant:
        """Return the variant of that name. Raises KeyError where there is none."""
        return {v.name: v for v in self.variants}[name]


def text_of(value: Json, field_name: str, mends: set[str]) -> str:
    """Return the value as one text; numbers and booleans in JSON spelling, which is noted in `mends`.

    Raises Drop("null in FIELD") where it is null, Bad where it is a list or an object.
    """
    if isinstance(value, str):
        return value
    if value is None:
        raise Drop(f"null in {field_name}")
    if isinstance(value, list | dict):
        raise Bad(f"{field_name} is {kind_of(value)} where a text belongs")
    mends.add(f"number_as_text in {field_name}")
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise Bad(f"{field_name} is a number too large for JSON") from error


def texts_of(value: Json, field_name: str, mends: set[str]) -> list[str]:
    """Return the value as a list of texts: a lone text becomes a list of one, nulls inside are left out (both noted).

    Raises Drop("null in FIELD") where it is null, Bad where it is an object or holds a list or an object.
    """
    if isinstance(value, list):
        if None in value:
            mends.add(f"null_in_list in {field_name}")
        return [text_of(item, f"{field_name}[{i}]", mends) for i, item in enumerate(value) if item is not None]
    text = text_of(value, field_name, mends)
    mends.add(f"text_for_list in {field_name}")
    return [text]


def member(record: Json, key: str, mends: set[str]) -> Json:
    """Return a field of an object; a key in other case (`question` for `QUESTION`) is accepted and noted.

    Raises Bad where the record is no object, has no such key, or has it in two spellings.
    """
    if not isinstance(record, dict):
        raise Bad(f"expected an object with the key {key!r}, found {kind_of(record)}")
    if found := _found(record, key, mends):
        return found[0]
    raise Bad(f"the key {key!r} is missing; found {', '.join(map(repr, list(record)[:8])) or 'no keys'}")


def has_key(record: Json, key: str) -> bool:
    """Return whether the value is an object with such a key, in whatever case."""
    return isinstance(record, dict) and any(found.lower() == key.lower() for found in record)


def optional(record: Json, key: str, mends: set[str]) -> Json:
    """Return a field as `member` does, None where it is absent. Raises Bad where the key stands in two spellings."""
    found = _found(record, key, mends) if isinstance(record, dict) else []
    return found[0] if found else None


def _found(record: dict[str, Json], key: str, mends: set[str]) -> list[Json]:
    """Return an object's value of a key, however that is spelled, or nothing. Raises Bad where two spell it."""
    lowered = key.lower()
    spellings = [spelling for spelling in record if spelling.lower() == lowered]
    if len(spellings) > 1:
        raise Bad(f"the key {key!r} stands in two spellings: {', '.join(map(repr, spellings))}")
    if spellings and spellings[0] != key:
        mends.add(f"coerced_keys in {key}")
    return [record[spelling] for spelling in spellings]


def first_of(texts: list[str], value: Json, field_name: str) -> str:
    """Return a field's first text. Raises Drop: `null` where the list held only nulls, `empty_text` where nothing."""
    if texts:
        return texts[0]
    raise Drop(f"null in {field_name}" if value else "empty_text")


def pair(record: Json) -> Fields:
    """Read `[query, positive]`. Raises Bad for another shape."""
    query, positive = _array(record, 2)
    mends: set[str] = set()
    return Fields(text_of(query, "[0]", mends), text_of(positive, "[1]", mends), mended=tuple(sorted(mends)))


def triplet(record: Json) -> Fields:
    """Read `[query, positive, negative]`; a null negative is none, and noted. Raises Bad for another shape."""
    query, positive, negative = _array(record, 3)
    mends = {"null_in_list in [2]"} if negative is None else set()
    negatives = () if negative is None else (text_of(negative, "[2]", mends),)
    return Fields(text_of(query, "[0]", mends), text_of(positive, "[1]", mends), (), negatives, tuple(sorted(mends)))


def text_set(record: Json) -> Fields:
    """Read `{"set": [text, ...]}`: the first is the query, the second its positive, the rest further positives.

    Raises Drop("set_of_one") where there are fewer than two, Bad for another shape.
    """
    mends: set[str] = set()
    texts = texts_of(member(record, "set", mends), "set", mends)
    if len(texts) < 2:
        raise Drop("set_of_one")
    return Fields(texts[0], texts[1], tuple(texts[2:]), (), tuple(sorted(mends)))


def query_pairs(record: Json) -> Fields:
    """Read `{"query", "pos": [...]}`: one row, the first positive; the others are further positives. Raises Bad."""
    if has_key(record, "neg"):
        raise Bad("an object with 'neg' in a file of query and pos")
    return _query_fields(record)


def query_triplets(record: Json) -> Fields:
    """Read `{"query", "pos": [...], "neg": [...]}`: as `query_pairs`, the negatives in file order. Raises Bad."""
    mends: set[str] = set()
    negatives = member(record, "neg", mends)
    found = [] if negatives is None else texts_of(negatives, "neg", mends)
    return _query_fields(record, tuple(found), mends)


def task_instance(instance: Json) -> Fields:
    """Read an instance of a Super-NI task: its input and its first reference; the others are further positives.

    Raises Drop: `null`, or `empty_text` where it has no reference. Raises Bad for another shape.
    """
    mends: set[str] = set()
    query = text_of(member(instance, "input", mends), "input", mends)
    value = member(instance, "output", mends)
    references = texts_of(value, "output", mends)
    return Fields(query, first_of(references, value, "output"), tuple(references[1:]), mended=tuple(sorted(mends)))


def _query_fields(record: Json, negatives: tuple[str, ...] = (), mends: set[str] | None = None) -> Fields:
    mends = set() if mends is None else mends
    query = text_of(member(record, "query", mends), "query", mends)
    value = member(record, "pos", mends)
    positives = texts_of(value, "pos", mends)
    first = first_of(positives, value, "pos")
    return Fields(query, first, tuple(positives[1:]), negatives, tuple(sorted(mends)))


def _array(record: Json, length: int) -> list[Json]:
    if isinstance(record, list) and len(record) == length:
        return record
    raise Bad(f"expected an array of {length}, found {kind_of(record)}")


def kind_of(value: Json) -> str:
    """Say in words what a JSON value is, for a person who looks at the line."""
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        return f"an object with the keys {', '.join(map(repr, list(value)[:4]))}" if value else "an empty object"
    return "a text" if isinstance(value, str) else "null" if value is None else "a number or boolean"


def named(sources: Sequence[Source], name: str) -> Source:
    """Return the source of that name. Raises UsageError, with the names that come close, where there is none."""
    for source in sources:
        if source.name == name:
            return source
    close = get_close_matches(name.lower(), [source.name.lower() for source in sources], 3, 0.5)
    likely = [source.name for source in sources if source.name.lower() in close]
    hint = f"did you mean {', '.join(likely)}?" if likely else "`medi sources` lists all"
    raise UsageError(f"there is no source {name!r}; {hint}")
