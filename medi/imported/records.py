"""One record of a medi-data.json -> an instructed pair and its negative: what is mended, what is left out, what is bad.

A record is `{"query": [instruction, text], "pos": [...], "neg": [...], "task_name": text}`; the later file of hard
negatives says `task_id`, a number, instead.
"""

from typing import NamedTuple

from medi.source import Bad, Drop, Json, kind_of, member, optional, text_of


class Example(NamedTuple):
    """What one record says; `negative` is None where it has none. Texts are as found, instructions stripped."""

    task: str
    query_instruction: str
    query: str
    document_instruction: str
    positive: str
    negative: str | None


class _Side(NamedTuple):
    """An instruction and a text."""

    instruction: str
    text: str


def example_of(record: Json, mends: set[str]) -> Example:
    """Return what a record says, and note its repairs in `mends`.

    Raises Bad for another shape; Drop("null in FIELD") where a text is null, Drop("instructions_differ") where positive
    and negative have different ones.
    """
    task = _task(record, mends)
    query, positive = (_side(_value(record, name, mends), name, mends) for name in ("query", "pos"))
    given = _value(record, "neg", mends, needed=False)
    if given in (None, []):
        mends.add("no_negative")
        return Example(task, *query, *positive, None)
    negative = _side(given, "neg", mends)
    if negative.instruction != positive.instruction:
        raise Drop("instructions_differ")
    return Example(task, *query, *positive, negative.text)


def _task(record: Json, mends: set[str]) -> str:
    """Return a task's name; one that has a number only is called by it."""
    found = _value(record, "task_name", mends, needed=False)
    if isinstance(found, str) and found.strip():
        return found.strip()
    number = _value(record, "task_id", mends, needed=False)
    if isinstance(number, int) and not isinstance(number, bool):
        return f"task_id_{number}"
    if isinstance(number, str) and number.strip():
        return number.strip()
    # Says what the first keys are, where it is no such record at all.
    member(record, "query", mends)
    raise Bad("neither 'task_name' nor 'task_id' names a task")


def _value(record: Json, key: str, mends: set[str], needed: bool = True) -> Json:
    """Return a field, None where it may be absent; one in other letters is looked for only where there is none."""
    if isinstance(record, dict) and key in record:
        return record[key]
    return (member if needed else optional)(record, key, mends)


def _side(value: Json, name: str, mends: set[str]) -> _Side:
    """Return an instruction and a text; of an array of one the instruction is empty, which is noted.

    Raises Bad for a text alone: other files have it so, whose `pos` are several texts.
    """
    if value is None:
        raise Drop(f"null in {name}")
    if not isinstance(value, list) or not 1 <= len(value) <= 2:
        raise Bad(f"{name!r} is {kind_of(value)}, not [instruction, text]")
    text = text_of(value[-1], name, mends)
    if len(value) == 1:
        mends.add(f"no_instruction in {name}")
        return _Side("", text)
    # The script that trains on these files strips them too.
    return _Side(text_of(value[0], name, mends).strip(), text)
