"""One row of a release -> what a person reads of it in 80 columns: names on the left, texts on the right.

Every text is made harmless, and a long one is cut; `--json` of the commands gives it whole.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from medi.screen import shown

if TYPE_CHECKING:
    from rich.console import RenderableType

SHOWN_CHARACTERS = 400


class Line(NamedTuple):
    """A line of a row: its name, what is said of the text (score, origin, label), the text."""

    name: str
    note: str
    text: str


def draw(title: str, lines: "Iterable[Line]") -> "RenderableType":
    """Return lines under a rule with a title."""
    from rich.console import Group
    from rich.rule import Rule
    from rich.text import Text

    return Group(Rule(Text(shown(title), style="bold"), align="left", style="dim"), grid(lines))


def grid(lines: "Iterable[Line]", most_characters: int = SHOWN_CHARACTERS) -> "RenderableType":
    """Return lines as two columns: bold names, and texts that keep to the right of them."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, min_width=9)
    table.add_column(overflow="fold")
    for name, note, text in lines:
        told = Text(f"[{shown(note)}] " if note else "", style="dim")
        table.add_row(Text(shown(name), style="bold"), told.append(cut(text, most_characters), style="not dim"))
    return table


def lines_of(row: dict[str, object]) -> list[Line]:
    """Return what is shown of a row: instructions once, positive and negatives with score, origin and label."""
    lines = [
        Line("task", "", f"{row['task']} (kind {row['kind']})"),
        Line("from", "", f"{row['origin']} ({row['licence']})"),
        *instructions(str(row["query_instruction"]), str(row["document_instruction"])),
        *texts_of(row),
    ]
    return lines


def texts_of(row: dict[str, object]) -> list[Line]:
    """Return the query, the positive and the negatives of a row."""
    lines = [Line("query", label_of(row["label"]), str(row["query"]))]
    lines.append(Line("positive", score_of(row["positive_score"]), str(row["positive"])))
    texts, scores, origins = row["negatives"], row["negative_scores"], row["negative_origins"]
    labels = row["negative_labels"] or [None] * len(texts)  # type: ignore[arg-type]
    assert isinstance(texts, list) and isinstance(scores, list) and isinstance(origins, list)
    assert isinstance(labels, list)
    for text, score, origin, label in zip(texts, scores, origins, labels, strict=True):
        lines.append(Line("negative", ", ".join(filter(None, (score_of(score), origin, label_of(label)))), text))
    return lines


def instructions(query: str, document: str) -> list[Line]:
    """Return the lines of a row's instructions: one where both sides have the same."""
    if query == document:
        return [Line("instruction", "", query)]
    return [Line("for queries", "", query), Line("for documents", "", document)]


def score_of(score: object) -> str:
    """Return a score with three digits, or that there is none."""
    return f"{score:.3f}" if isinstance(score, float) else "no score"


def label_of(label: object) -> str:
    """Return what is said of a label, "" where there is none."""
    return "" if label is None else f"label {label}"


def cut(text: str, most_characters: int = SHOWN_CHARACTERS) -> str:
    """Return a text made harmless, at most so many characters of it, with its length where it is longer."""
    if len(text) <= most_characters:
        return shown(text)
    return f"{shown(text[:most_characters])}… ({len(text):,} characters)"
