"""Facts and sentences of our own (CC0) from which the bundled sample is made, and the one loader of the tables."""

from pathlib import Path
from random import Random

SEED = 2212


def rng_of(name: str) -> Random:
    """Return a generator of random numbers that belongs to this name alone: a change in one set moves no other."""
    return Random(f"{SEED}:{name}")


def table(name: str) -> list[list[str]]:
    """Return the rows of `NAME.txt`, each a list of its fields; lines that begin with # are comments."""
    lines = (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8").split("\n")
    return [line.replace("\\n", "\n").split(" | ") for line in lines if line and not line.startswith("#")]


def code_blocks() -> list[list[str]]:
    """Return [comment, code] for each function of `code.txt`."""
    text = (Path(__file__).parent / "code.txt").read_text(encoding="utf-8")
    return [[part.strip("\n") for part in block.split("\n>>\n")] for block in text.split("\n%%\n")]


def cap(text: str) -> str:
    """Return the text with its first letter as a capital."""
    return text[:1].upper() + text[1:]


def a(noun: str) -> str:
    """Return the noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
