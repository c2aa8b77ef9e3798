"""First outputs of a Super-NI task -> label task or text task, by a written rule, with the evidence it rests on.

Label task: at most 20 distinct outputs that are at most a fifth as many as the instances; or, for larger label sets,
at least nine in ten outputs stand as words in the definition and each occurs twice on average. Outputs are compared
as `normal` makes them. Answers that name choices of the input are replaced by the choices' texts first.
"""

import re
from dataclasses import dataclass

from medi.ingest.choices import choice_text, symbol_of
from medi.schema import fold

MAX_LABELS = 20
MAX_LABEL_SHARE = 0.2
_SPELLED_SHARE = 0.9
_CHOICE_SHARE = 0.5
RESOLVED_SHARE = 0.9


@dataclass(frozen=True)
class Choices:
    """The outputs of a task whose answers name choices; None where a choice was not found; how many answers did so."""

    outputs: list[str | None]
    named: int

    @property
    def resolved_share(self) -> float:
        """Return which share of the answers that name a choice was found in its input."""
        return 1 - self.outputs.count(None) / self.named


def normal(output: str) -> str:
    """Return an output as labels are compared: folded, lower-case, without a full stop at the end."""
    return fold(output).lower().rstrip(".").rstrip()


def find_choices(examples: list[tuple[str, str]]) -> Choices | None:
    """Return the outputs of (input, output) examples with choices as texts; None where the task is not of that kind.

    It is of that kind where half of its outputs name one of several choices and half of those stand in the input.
    """
    symbols = [symbol_of(output) for _, output in examples]
    named = sum(map(bool, symbols))
    distinct = set(symbols) - {""}
    if len(distinct) < 2 or named < _CHOICE_SHARE * len(examples):
        return None
    first = "0" if "0" in distinct else "1" if min(distinct).isdigit() else "a"
    outputs = [
        (choice_text(text, symbol, first) or None) if symbol else output
        for (text, output), symbol in zip(examples, symbols, strict=True)
    ]
    found = Choices(outputs, named)
    return found if found.resolved_share >= _CHOICE_SHARE else None


def judge(outputs: list[str], definition: str) -> tuple[str, dict[str, object]]:
    """Return "label" or "text" for the outputs of a task, and the evidence: counts, shares and the rule that held."""
    normals = [normal(output) for output in outputs]
    distinct = set(normals)
    share = len(distinct) / max(len(normals), 1)
    words = f" {_words(definition)} "
    spelled = {output for output in distinct if (bare := _words(output)) and f" {bare} " in words}
    spelled_share = sum(output in spelled for output in normals) / max(len(normals), 1)
    rule = "none"
    if len(distinct) <= MAX_LABELS and share <= MAX_LABEL_SHARE:
        rule = "small_label_set"
    elif spelled_share >= _SPELLED_SHARE and share <= 0.5:
        rule = "labels_in_definition"
    evidence: dict[str, object] = {
        "instances": len(normals),
        "distinct_outputs": len(distinct),
        "distinct_share": round(share, 4),
        "spelled_share": round(spelled_share, 4),
        "rule": rule,
    }
    return ("text" if rule == "none" else "label"), evidence


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
