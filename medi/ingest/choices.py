"""Answers that only name a choice written in the input ("B", "2", "Response 1") -> the text of that choice.

The same letter does not mean the same class, so such answers are no labels. An option list is found by its markers:
one style, symbols in unbroken order from a, 1 or 0, and of several such runs the last that holds the answer.
"""

import re

_WORD = r"(?:option|choice|response|answer|sentence|statement|title|ending)"
_ANSWER = re.compile(rf"(?:{_WORD}\s*)?[(\[]?([a-z]|\d{{1,2}})[)\]]?[.:]?", re.IGNORECASE)
_SYMBOL = r"([A-Za-z]|\d{1,2})"
# In order of how seldom they are anything but a marker.
_STYLES = tuple(
    re.compile(rf"(?:\b{_WORD}\s*)?(?<!\w){mark}\s*|\b{_WORD}\s*{mark}\s*", re.IGNORECASE)
    for mark in (rf"\({_SYMBOL}\)", rf"\[{_SYMBOL}\]", rf"{_SYMBOL}\)", rf"{_SYMBOL}\.(?=\s)", rf"{_SYMBOL}:")
)
# What may follow the last option on its line: the next field of the input.
_NEXT_FIELD = re.compile(
    r"\n|[\s,;]+(?:<sep>\s*)?,?\s*(?:question|answer|premise|context|passage|fact|story|explanation|pronoun)\b[^:\n]{0,20}:",
    re.IGNORECASE,
)
_EDGES = re.compile(r"(?:<sep>|[\s,;])+$")


def symbol_of(answer: str) -> str:
    """Return the lower-case letter or digits that an answer consists of, "" where it says more."""
    found = _ANSWER.fullmatch(answer.strip())
    return found[1].lower() if found else ""


def choice_text(text: str, symbol: str, first: str) -> str:
    """Return the text of the choice that stands behind this symbol in an input, "" where there is none.

    `first` is the symbol that an option list of the task begins with: `a`, `1` or `0`.
    """
    for style in _STYLES:
        marks = [((found[1] or found[2]).lower(), found.start(), found.end()) for found in style.finditer(text)]
        for start in reversed(range(len(marks))):
            if marks[start][0] == first and (option := _option(text, _run(marks[start:]), symbol)):
                return option
    return ""


def _run(marks: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Return the marks that go on in order, a to b to c; others between them are part of an option's text."""
    run = [marks[0]]
    for mark in marks[1:]:
        if mark[0] == _after(run[-1][0]):
            run.append(mark)
    return run


def _after(symbol: str) -> str:
    return str(int(symbol) + 1) if symbol.isdigit() else chr(ord(symbol) + 1)


def _option(text: str, run: list[tuple[str, int, int]], symbol: str) -> str:
    symbols = [mark[0] for mark in run]
    if len(run) < 2 or symbol not in symbols:
        return ""
    index = symbols.index(symbol)
    start = run[index][2]
    if index + 1 < len(run):
        end = run[index + 1][1]
    else:
        following = _NEXT_FIELD.search(text, start)
        end = following.start() if following else len(text)
    return _EDGES.sub("", text[start:end]).strip()
