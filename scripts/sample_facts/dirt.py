"""The dirt that the sample has on purpose: how much of each kind lies in which source, and how it is put there.

`PLANTED` is the one table; what ingest counts must equal it, reason by reason. `DROPPED` kinds add a line that gives
no row, `MENDED` ones change a line that stays, `FILE` ones change the bytes between lines, and `NEGATIVES` add a given
negative that cannot stand.
"""

import json
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from sample_facts import rng_of

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Planted(NamedTuple):
    """So many of a kind in a source (for `crlf`: so many lines at the end of the file)."""

    source: str
    kind: str
    times: int


PLANTED = tuple(
    Planted(source, kind, times)
    for source, kinds in {
        "gooaq_pairs": {"bom": 1, "empty_text": 2, "duplicate": 1},
        "yahoo_answers_title_answer": {"crlf": 20, "empty_text": 1, "identity_pair": 1},
        "stackexchange": {"identity_pair": 2, "duplicate": 1, "duplicate_folded": 1},
        "eli5_question_answer": {"blank_line": 2, "null": 1, "lone_surrogate": 1},
        "squad_pairs": {"duplicate": 2},
        "NQ": {"pos_in_neg": 2, "no_positive": 1, "identity_pair": 1},
        "amazon-qa": {"text_for_list": 3, "number_as_text": 2, "null": 1},
        "WikiAnswers": {"set_of_one": 3, "identity_pair": 1},
        "agnews": {"no_final_newline": 1, "duplicate": 2},
        "AllNLI": {"pos_in_neg": 2, "neg_is_query": 1, "duplicate": 1},
        "npr": {"null": 1, "empty_text": 1},
        "specter_train_triples": {"duplicate_folded": 2, "identity_pair": 1},
        "ccnews_title_text": {"empty_text": 2, "crlf": 5},
        "triviaqa": {"null": 1, "pos_in_neg": 1},
        "zero_shot_re": {"no_provenance": 2, "no_page": 1},
        "flickr30k_captions": {"set_of_one": 1, "duplicate": 1},
        "xsum": {"bom": 1, "crlf": 30, "blank_line": 1},
        "code_search": {"lone_surrogate": 2, "empty_text": 1},
        "msmarco": {"pos_in_neg": 3, "neg_is_query": 2, "text_for_list": 1, "duplicate_folded": 1},
        "hotpotqa": {"duplicate": 1, "empty_text": 1},
        "fever": {"no_provenance": 4, "no_page": 1, "duplicate": 1},
        "amazon_review_2018": {"number_as_text": 3, "duplicate": 2},
        "S2ORC_title_abstract": {"null": 2, "empty_text": 1},
        "PAQ_pairs": {"blank_line": 3, "no_final_newline": 1, "duplicate_folded": 1},
        "wow": {"null": 1, "identity_pair": 1},
        "trex": {"no_provenance": 1, "no_page": 2, "crlf": 8},
        "pubmed": {"text_for_list": 2, "coerced_keys": 1, "empty_text": 1},
        "medmcqa": {"no_explanation": 8, "lone_surrogate": 1},
        "wikihow": {"empty_text": 1, "identity_pair": 1},
        "simple_wiki": {"identity_pair": 2, "set_of_one": 1, "no_final_newline": 1},
    }.items()
    for kind, times in kinds.items()
)


def planted(source: str) -> dict[str, int]:
    """Return kind -> times for a source."""
    return {p.kind: p.times for p in PLANTED if p.source == source}


def _object(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict), value
    return value


def _array(value: Json) -> list[Json]:
    assert isinstance(value, list), value
    return value


def _text(value: Json) -> str:
    assert isinstance(value, str), value
    return value


def _query(record: Json) -> str:
    if isinstance(record, list):
        return _text(record[0])
    members = _object(record)
    if "set" in members:
        return _text(_array(members["set"])[0])
    return _text(next(members[key] for key in ("query", "question", "QUESTION", "input") if key in members))


def _context(record: Json, text: Json) -> Json:
    """Return the record's first positive context without a title, with another text."""
    return {**_object(_array(_object(record)["positive_ctxs"])[0]), "title": "", "text": text}


def _with_positive(record: Json, text: str | None) -> Json:
    """Return the record with another positive text, whatever its layout."""
    if isinstance(record, list):
        return [record[0], text, *record[2:]]
    members = _object(record)
    if "set" in members:
        return {"set": [_query(record), text]}
    if "positive_ctxs" in members:
        return {**members, "positive_ctxs": [_context(record, text)]}
    if "CONTEXTS" in members:
        return {**members, "CONTEXTS": [text]}
    if "exp" in members:
        return {**members, "exp": text}
    return {**members, "pos": text if isinstance(members["pos"], str) else [text]}


def _spread(text: str) -> str:
    """Return the text with other white space: another string, the same text when folded."""
    return "  ".join(text.split(" ")) + " "


def _folded_again(record: Json) -> Json:
    spread = _spread(_query(record))
    return [spread, *record[1:]] if isinstance(record, list) else {**_object(record), "query": spread}


def _other(record: Json, ending: str, **members: Json) -> Json:
    """Return the record under another id, with other members."""
    return {**_object(record), "id": f"{_object(record)['id']}{ending}", **members}


def _without_provenance(record: Json) -> Json:
    answers: list[Json] = [{"answer": _object(output)["answer"]} for output in _array(_object(record)["output"])]
    return _other(record, "0", output=answers)


def _without_page(record: Json) -> Json:
    output = _object(_array(_object(record)["output"])[0])
    place = {**_object(_array(output["provenance"])[0]), "wikipedia_id": "99999999"}
    return _other(record, "1", output=[{**output, "provenance": [place]}])


INVISIBLE = ("", " \n\t", "\u200b\u200b", "\u2060 \u00a0")

# Each makes from a good record and a running number one that gives no row.
DROPPED: dict[str, Callable[[Json, int], Json]] = {
    "empty_text": lambda record, n: _with_positive(record, INVISIBLE[n % len(INVISIBLE)]),
    "null": lambda record, n: _with_positive(record, None),
    "identity_pair": lambda record, n: _with_positive(record, _spread(_query(record))),
    "duplicate": lambda record, n: record,
    "duplicate_folded": lambda record, n: _folded_again(record),
    "set_of_one": lambda record, n: {"set": [_query(record)]},
    "no_provenance": lambda record, n: _without_provenance(record),
    "no_page": lambda record, n: _without_page(record),
    "no_explanation": lambda record, n: _other(record, f"-{n}", exp=None),
    "no_positive": lambda record, n: {**_object(record), "positive_ctxs": []},
}


def _number(record: Json, n: int) -> Json:
    value: Json = (5, True, 4.5)[n % 3]
    return [value, *record[1:]] if isinstance(record, list) else {**_object(record), "pos": [value]}


def _bare_text(record: Json, n: int) -> Json:
    members = _object(record)
    key = "CONTEXTS" if "CONTEXTS" in members else "pos"
    return {**members, key: _array(members[key])[0]}


def _half_emoji(record: Json, n: int) -> Json:
    """Cut an emoji in half, as programs do that count UTF-16 units."""
    if isinstance(record, list):
        return [record[0], f"{record[1]} \ud83d", *record[2:]]
    return {**_object(record), "exp": f"{_object(record)['exp']} \ud83d"}


def _lower_key(record: Json, n: int) -> Json:
    return {key.lower() if key == "QUESTION" else key: value for key, value in _object(record).items()}


# Each makes from a good record and a running number one that has to be mended, and stays.
MENDED: dict[str, Callable[[Json, int], Json]] = {
    "number_as_text": _number,
    "text_for_list": _bare_text,
    "lone_surrogate": _half_emoji,
    "coerced_keys": _lower_key,
}


def _given(record: Json, text: str) -> Json:
    """Put a given negative in front; of a triplet it takes the place of the only one."""
    if isinstance(record, list):
        return [*record[:2], text]
    return {**_object(record), "neg": [text, *_array(_object(record)["neg"])]}


def _positive_again(record: Json, n: int) -> Json:
    """Give the positive, with other white space, as the first negative."""
    if isinstance(record, list):
        return _given(record, _spread(_text(record[1])))
    members = _object(record)
    if "pos" in members:
        return _given(record, _spread(_text(_array(members["pos"])[0])))
    first = _object(_array(members["positive_ctxs"])[0])
    again: Json = {**first, "text": _spread(_text(first["text"]))}
    return {**members, "hard_negative_ctxs": [again, *_array(members["hard_negative_ctxs"])]}


# Each adds a given negative that cannot stand beside the query and the positive.
NEGATIVES: dict[str, Callable[[Json, int], Json]] = {
    "pos_in_neg": _positive_again,
    "neg_is_query": lambda record, n: _given(record, _query(record)),
}
# What lies between the lines of a file.
FILE = ("bom", "crlf", "blank_line", "no_final_newline")


def soiled(source: str, records: list[Json]) -> list[Json]:
    """Return the records with the planted dirt: changed ones keep their place, others come in anywhere but in front."""
    rng, kinds = rng_of(f"dirt {source}"), planted(source)
    out = list(records)
    # The first record shows the shape of its file and stays clean; no record is soiled twice.
    free = rng.sample(range(1, len(records)), len(records) - 1)
    for kind, change in {**MENDED, **NEGATIVES}.items():
        for n in range(kinds.get(kind, 0)):
            index = free.pop()
            out[index] = change(records[index], n)
    added = [make(records[free.pop()], n) for kind, make in DROPPED.items() for n in range(kinds.get(kind, 0))]
    for record in added:
        out.insert(rng.randrange(1, len(out) + 1), record)
    return out


def lines_of(source: str, records: list[Json]) -> bytes:
    """Return the bytes of a line file of these records, with the dirt that lies between lines."""
    rng, kinds = rng_of(f"lines {source}"), planted(source)
    lines = [dumped(record) for record in records]
    first_crlf = len(lines) - kinds.get("crlf", 0)
    lines = [line + b"\r" if i >= first_crlf else line for i, line in enumerate(lines)]
    for _ in range(kinds.get("blank_line", 0)):
        lines.insert(_gap(rng, lines), b"")
    end = b"" if "no_final_newline" in kinds else b"\n"
    return (b"\xef\xbb\xbf" if "bom" in kinds else b"") + b"\n".join(lines) + end


def _gap(rng: Random, lines: list[bytes]) -> int:
    return rng.randrange(1, len(lines))


def dumped(record: object) -> bytes:
    """Return a record as one line of JSON."""
    return escaped(json.dumps(record, ensure_ascii=False))


def escaped(text: str) -> bytes:
    """Return JSON text as UTF-8, in which a lone surrogate can only stand as an escape."""
    return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text).encode()
