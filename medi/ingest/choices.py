"""Answers that only name a choice written in the input ("B", "2", "Response 1") -> the text of that choice.

The same letter does not mean the same class, so such answers are no labels. An option list is found by its markers:
one style, symbols in unbroken order from a, 1 or 0, and of several such lists the last that holds the answer.
"""

import re
from collections.abc import Sequence
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
# What may follow the last option on its line: the next field of the input. No run of blanks is looked at twice.
_NEXT_FIELD = re.compile(
    r"\n|(?<![\s,;])[\s,;]++(?:<sep>\s*+)?,?\s*+"
    r"(?:question|answer|premise|context|passage|fact|story|beginning|ending|explanation|pronoun)\b[^:\n]{0,20}:",
    re.IGNORECASE,
)


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
    # From the last mark on: the run that begins at each, by the nearest mark behind it of each symbol.
    runs: dict[str, tuple[_Mark, ...]] = {}
    for mark in reversed(marks):
        runs[mark.symbol] = run = (mark, *runs.get(_next_symbol(mark.symbol), ()))
        if mark.symbol == first and (option := _option(text, run, symbol)):
            return option
    return ""


def _next_symbol(symbol: str) -> str:
    return str(int(symbol) + 1) if symbol.isdigit() else chr(ord(symbol) + 1)


def _option(text: str, run: Sequence[_Mark], symbol: str) -> str:
    symbols = [mark.symbol for mark in run]
    if len(run) < 2 or symbol not in symbols:
        return ""
    index = symbols.index(symbol)
    start = run[index].end
    if index + 1 < len(run):
        end = run[index + 1].start
        end -= _word_length(text, run)
    else:
        following = _NEXT_FIELD.search(text[start:])
        end = start + following.start() if following else len(text)
    while end > start and (text[end - 1].isspace() or text[end - 1] in ",;" or text.endswith("<sep>", start, end)):
        end -= 5 if text[end - 1] == ">" else 1
    return text[start:end].strip()


def _word_length(text: str, run: Sequence[_Mark]) -> int:
    """Return the characters of the word that stands before every mark ("Response 1:"), which is part of the marker.

    A word that stands before some marks only is the end of an option: "(B)choice (C)will".
    """
    before = [_WORD_BEFORE.search(text, max(0, mark.start - _LOOK_BACK_CHARACTERS), mark.start) for mark in run]
    words = [found[0] if found else "" for found in before]
    return len(words[-1]) if words[0] and len({word.strip().lower() for word in words}) == 1 else 0
