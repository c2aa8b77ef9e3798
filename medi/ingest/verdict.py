"""First outputs of a Super-NI task -> label task or text task, by a written rule, with the evidence it rests on.

Label task: few distinct outputs (at most 20, and a fifth of the instances) that the definition names, or at most 10
that it does not; or a larger set whose outputs stand in the definition, nine in ten of them, each twice on average.
More unnamed answers than that are words to find, not classes: several fit one input, and they do not exclude each
other (in the bard analogies, 11 to 17 answers, up to 40% of the questions have two). Outputs are compared as `normal`
makes them. Answers that name choices of the input are replaced by the choices' texts first.
"""

import re
from collections import Counter
from dataclasses import dataclass

from medi.ingest.choices import choice_texts, symbol_of
from medi.schema import fold

MAX_LABELS = 20
MAX_UNNAMED_LABELS = 10
MAX_LABEL_SHARE = 0.2
RESOLVED_SHARE = 0.9
_NAMED_SHARE = 0.5
_SPELLED_SHARE = 0.9
_CHOICE_SHARE = 0.5
_LABELS_SHOWN = 20


@dataclass(frozen=True)
class Choices:
    """The outputs of a task whose answers name choices; None where a choice was not found; how many answers did so."""

    outputs: list[str | None]
    named: int

    @property
    def resolved_share(self) -> float:
        """Return which share of the answers that name a choice was found in its input."""
        return 1 - self.outputs.count(None) / self.named

    @property
    def evidence(self) -> dict[str, object]:
        """Return what the manifest says of them."""
        return {"choices": self.named, "choices_resolved_share": round(self.resolved_share, 4)}


def normal(output: str) -> str:
    """Return an output as labels are compared: folded, lower-case, without a full stop at the end."""
    return fold(output).lower().rstrip(".").rstrip()


def find_choices(examples: list[tuple[str, str]]) -> Choices | None:
    """Return the outputs of (input, output) examples with choices as texts; None where the task is not of that kind.

    It is of that kind where half of its outputs name one of several choices and half of those stand in the input. A
    symbol that no input lists is a class: the 3 of labels 1 to 3 beside "Sentence 1" and "Sentence 2".
    """
    symbols = [symbol_of(output) for _, output in examples]
    named = sum(map(bool, symbols))
    if len(set(symbols) - {""}) < 2 or named < _CHOICE_SHARE * len(examples):
        return None
    texts = choice_texts([text for text, _ in examples], symbols)
    listed = {symbol for symbol, text in zip(symbols, texts, strict=True) if text}
    unlisted = sum(symbol not in listed for symbol in symbols if symbol)
    outputs = [
        (text or None) if symbol else output for text, symbol, (_, output) in zip(texts, symbols, examples, strict=True)
    ]
    found = Choices(outputs, named)
    return found if found.resolved_share >= _CHOICE_SHARE and unlisted <= (1 - RESOLVED_SHARE) * named else None


def judge(outputs: list[str], definition: str) -> tuple[str, dict[str, object]]:
    """Return "label" or "text" for the outputs of a task, and the evidence: counts, shares and the rule that held.

    For label tasks the evidence has their commonest labels with counts, at most 20.
    """
    counted = Counter(normal(output) for output in outputs)
    total = max(len(outputs), 1)
    share = len(counted) / total
    words = f" {_words(definition)} "
    spelled_share = sum(n for label, n in counted.items() if (bare := _words(label)) and f" {bare} " in words) / total
    rule = "none"
    if len(counted) <= MAX_LABELS and share <= MAX_LABEL_SHARE:
        is_set = len(counted) <= MAX_UNNAMED_LABELS or spelled_share >= _NAMED_SHARE
        rule = "small_label_set" if is_set else "none"
    elif spelled_share >= _SPELLED_SHARE and share <= 0.5:
        rule = "labels_in_definition"
    evidence: dict[str, object] = {
        "instances": len(outputs),
        "distinct_outputs": len(counted),
        "distinct_share": round(share, 4),
        "spelled_share": round(spelled_share, 4),
        "rule": rule,
    }
    if rule == "none":
        return "text", evidence
    commonest = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:_LABELS_SHOWN]
    return "label", evidence | {"labels": dict(commonest)}


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
