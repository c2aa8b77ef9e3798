"""Texts of other people -> what may stand on a terminal: whatever would act on one, or hide there, is spelt out.

And counts with their nouns, which every command tells.
"""

import unicodedata


def shown(text: str) -> str:
    """Return the text with everything that could act on a terminal spelt out: controls, bidi marks, line ends."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c == " " or unicodedata.category(c)[0] not in "CZ" else _spelt_out(c) for c in text)


def many(count: int, noun: str) -> str:
    """Return a count with its noun, as in "1 row" and "2,000 rows"."""
    return f"{count:,} {noun}" + "s" * (count != 1)


def _spelt_out(character: str) -> str:
    """Return a blank for any other blank, and the code point of what nobody sees."""
    if unicodedata.category(character) == "Zs":
        return " "
    return character.encode("unicode_escape").decode()
