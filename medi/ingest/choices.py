"""Answers that only name a choice written in the input ("B", "2", "Response 1") -> the text of that choice.

The same letter does not mean the same class, so such answers are no labels. An option list is found by its markers:
one style, symbols in unbroken order from a, 1 or 0, and of several such lists the last that holds the answer.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_ANSWER = re.compile(r"(?:[a-z]+\s+)?[(\[]?([a-z]|\d{1,2})[)\]]?[.:]?", re.IGNORECASE)
_SYMBOL = r"([A-Za-z]|\d{1,2})"
# Words that may stand before a marker with no blank between, as in "Sentence1:".
_GLUED = r"(?:option|choice|response|answer|sentence|statement|title|ending)"
# The word before a marker that may be part of it: "Response 1:", "Middle 2:", "option A)".
_WORD_BEFORE = re.compile(rf"(?:\b(?i:{_GLUED})|\b[A-Z][a-z]+)\s*\Z")
_LOOK_BACK_CHARACTERS = 40
# In order of how seldom they are anything but a marker; "2:15" is a time.
_STYLES = tuple(
    re.compile(rf"(?:(?<!\w)|\b{_GLUED})({mark})\s*", re.IGNORECASE)
    for mark in (rf"\({_SYMBOL}\)", rf"\[{_SYMBOL}\]", rf"{_SYMBOL}\s?\)", rf"{_SYMBOL}\.(?=\s)", rf"{_SYMBOL}:(?!\d)")
)
# What may follow the last option on its line: the next field of the input.
_NEXT_FIELD = re.compile(
    r"\n|[\s,;]+(?:<sep>\s*)?,?\s*"
    r"(?:question|answer|premise|context|passage|fact|story|beginning|ending|explanation|pronoun)\b[^:\n]{0,20}:",
    re.IGNORECASE,
)
_EDGES = re.compile(r"(?:<sep>|[\s,;])+$")


class _Mark(NamedTuple):
    """A marker of an option list: its symbol in lower case, where it starts, where the option's text starts."""

    symbol: str
    start: int
    end: int


def symbol_of(answer: str) -> str:
    """Return the lower-case letter or digits that an answer names, alone or behind one word; "" where it says more."""
    found = _ANSWER.fullmatch(answer.strip())
    return found[1].lower() if found else ""


def choice_texts(inputs: Sequence[str], symbols: Sequence[str]) -> list[str]:
    """Return the text of the choice that stands behind its symbol in each input, "" where there is none.

    A task writes its lists in one style, so the style that finds most choices goes first: in another one, what looks
    like a list may be part of the text.
    """
    named = set(symbols) - {""}
    first = "0" if "0" in named else "1" if any(symbol.isdigit() for symbol in named) else "a"
    pairs = list(zip(inputs, symbols, strict=True))
    by_style = [[_choice(style, text, symbol, first) if symbol else "" for text, symbol in pairs] for style in _STYLES]
    by_style.sort(key=lambda texts: -sum(map(bool, texts)))
    return [next(filter(None, texts), "") for texts in zip(*by_style, strict=True)]


def _choice(style: re.Pattern[str], text: str, symbol: str, first: str) -> str:
    """Return a choice's text by lists of one style; `first` is the symbol that a list begins with."""
    marks = [_Mark(found[2].lower(), found.start(1), found.end()) for found in style.finditer(text)]
    for start in reversed(range(len(marks))):
        if marks[start].symbol == first and (option := _option(text, list(_run(marks[start:])), symbol)):
            return option
    return ""


def _run(marks: list[_Mark]) -> Iterator[_Mark]:
    """Yield the marks that go on in order, a to b to c; others between them are part of an option's text."""
    wanted = marks[0].symbol
    for mark in marks:
        if mark.symbol == wanted:
            yield mark
            wanted = str(int(wanted) + 1) if wanted.isdigit() else chr(ord(wanted) + 1)


def _option(text: str, run: list[_Mark], symbol: str) -> str:
    symbols = [mark.symbol for mark in run]
    if len(run) < 2 or symbol not in symbols:
        return ""
    index = symbols.index(symbol)
    start = run[index].end
    if index + 1 < len(run):
        end = run[index + 1].start
        end -= _word_length(text, run)
    else:
        following = _NEXT_FIELD.search(text, start)
        end = following.start() if following else len(text)
    return _EDGES.sub("", text[start:end]).strip()


def _word_length(text: str, run: list[_Mark]) -> int:
    """Return the characters of the word that stands before every mark ("Response 1:"), which is part of the marker.

    A word that stands before some marks only is the end of an option: "(B)choice (C)will".
    """
    before = [_WORD_BEFORE.search(text, max(0, mark.start - _LOOK_BACK_CHARACTERS), mark.start) for mark in run]
    words = [found[0] if found else "" for found in before]
    return len(words[-1]) if words[0] and len({word.strip().lower() for word in words}) == 1 else 0
