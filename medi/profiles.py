"""How negatives are chosen, as one value: every choice a person can make, and the two named sets of them, the profiles.

Each field is a param of the stages that look at it, so it stands in the records and in the manifest. Scores are
cosines in [-1, 1]: of query and document, of the two inputs in label tasks, and in text tasks the mean of the cosines
of the inputs and of the outputs (half of s_pos).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from medi.errors import UsageError

# Kept of every row with their scores, so that another choice needs no other search.
CANDIDATES_KEPT = 64
MOST_NEGATIVES = 16
# Fewer documents are searched exactly in seconds; more than the other nobody has.
_LEAST_IVF, _MOST_IVF = 10_000, 1_000_000_000
CHOICES = {
    "strategy": ("passage", "s_neg"),
    "sampling": ("top", "random"),
    "fill": ("none", "other_rows", "random"),
}


@dataclass(frozen=True)
class Rules:
    """The choices of mining; the defaults are profile `paper`.

    Attributes:
        negatives: a row that has fewer is filled up to this number by mining.
        given_negatives: how many of its own a row keeps at most, in file order.
        given_looked_at: how many of those that pass by folded text are tokenized, so that the encoder can tell them
            from the row's positives; half as many are encoded.
        strategy: what the candidates of a pair source are nearest by: `passage`, cos(query, document); `s_neg`,
            cos(query, query') - cos(document, document'), the paper's rule for text tasks carried over.
        skip_top: how many of the nearest candidates are passed over.
        window: how many of the nearest candidates are looked at, those passed over included.
        min_score: the least score of a mined negative.
        max_score: the highest one.
        absolute_margin: it must be lower than the lowest positive of the query by more than this.
        relative_margin: it must be lower than the lowest positive s of the query by more than |s| x this.
        sampling: `top` takes the nearest of what is left in the window, `random` a seeded choice.
        fill: where a row is still short: nothing, positives of `other_rows`, or `random` documents of the source.
        rescore: what describes the cross-encoder whose scores take the place of cosines within the window.
        collapse_near_duplicates: documents of pair sources that nearly repeat each other count as one.
        bar_equal_outputs: in text tasks, examples with equal folded outputs are no negatives of each other.
        max_positive_score: Super-NI examples with a higher cosine of inputs are passed over as positives.
        ivf_from: where a pair source has so many documents or more, the candidates are looked for in an inverted file,
            which finds at least 0.99 of them; None for an exact search however many there are.
        balanced: Super-NI rows are taken from the better half of each label by keyed hash, labels in turn, instead of
            best first.
        seed: of `random` sampling, of filling up and of balanced rows.
    """

    negatives: int = 1
    given_negatives: int = 4
    given_looked_at: int = 8
    strategy: str = "passage"
    skip_top: int = 0
    window: int = CANDIDATES_KEPT
    min_score: float | None = None
    max_score: float | None = None
    absolute_margin: float | None = None
    relative_margin: float | None = None
    sampling: str = "top"
    fill: str = "none"
    rescore: Mapping[str, object] | None = None
    collapse_near_duplicates: bool = False
    bar_equal_outputs: bool = False
    max_positive_score: float | None = None
    ivf_from: int | None = None
    balanced: bool = False
    seed: int = 0

    @property
    def compares_scores(self) -> bool:
        """Return whether a candidate's score decides about it, beside its place."""
        return (self.min_score, self.max_score, self.absolute_margin, self.relative_margin) != (None,) * 4

    def for_filling(self, draws: int) -> "Rules":
        """Return what decides about seeded draws: upper limits alone, and with a cross-encoder, whose scores they do
        not have, not even these.
        """
        rules = replace(self, skip_top=0, window=draws, min_score=None, sampling="top")
        if rules.rescore is None:
            return rules
        return replace(rules, max_score=None, absolute_margin=None, relative_margin=None)

    def to_json(self) -> dict[str, object]:
        """Return every choice by its name, with a JSON form; `ivf_from` only where it is given."""
        choices = asdict(self)
        if self.ivf_from is None:
            # It came after the others: what was built without it keeps its keys.
            del choices["ivf_from"]
        return choices


# Design and measurements: in 51% of the anchors of label tasks the nearest example of another label is nearer than the
# positive, so the label decides there, without a margin.
PROFILES = {
    "paper": Rules(),
    "clean": Rules(
        negatives=4,
        relative_margin=0.05,
        collapse_near_duplicates=True,
        bar_equal_outputs=True,
        max_positive_score=0.98,
        balanced=True,
    ),
}


def check_rules(rules: Rules) -> Rules:
    """Return the rules. Raises UsageError where nothing can come of them; the message names the options."""
    for name, choices in CHOICES.items():
        if getattr(rules, name) not in choices:
            raise UsageError(f"--{name} {getattr(rules, name)}: give one of {', '.join(choices)}")
    _within("--negatives", rules.negatives, 1, MOST_NEGATIVES)
    _within("--window", rules.window, 1, CANDIDATES_KEPT)
    _within("--skip-top", rules.skip_top, 0, CANDIDATES_KEPT - 1)
    for name in ("min_score", "max_score"):
        if (score := getattr(rules, name)) is not None:
            # A cross-encoder's scores have no bound that would be known.
            _within(f"--{name.replace('_', '-')}", score, *((-1, 1) if rules.rescore is None else (-1e9, 1e9)))
    for name, most in (("absolute_margin", 2), ("relative_margin", 1)):
        if (margin := getattr(rules, name)) is not None:
            _within(f"--{name.replace('_', '-')}", margin, 0, most)
    if rules.ivf_from is not None and not _LEAST_IVF <= rules.ivf_from <= _MOST_IVF:
        raise UsageError(
            f"--ivf-from {rules.ivf_from}: give a number of documents, from {_LEAST_IVF:,} to {_MOST_IVF:,}"
        )
    if rules.skip_top >= rules.window:
        raise UsageError(
            f"--skip-top {rules.skip_top} and --window {rules.window}: the window holds the candidates that are passed "
            "over, and no other; make the window larger"
        )
    if rules.negatives > rules.window - rules.skip_top:
        raise UsageError(
            f"--negatives {rules.negatives} and --window {rules.window}: after --skip-top {rules.skip_top} the window "
            f"has room for {rules.window - rules.skip_top}; make it larger or ask for fewer negatives"
        )
    if rules.min_score is not None and rules.max_score is not None and rules.min_score >= rules.max_score:
        raise UsageError(
            f"--min-score {rules.min_score} and --max-score {rules.max_score}: no score lies between them; "
            "make --min-score the smaller one"
        )
    return rules


def _within(name: str, value: float, low: float, high: float) -> None:
    """Raise UsageError unless the value lies between the two, which NaN does not."""
    if not low <= value <= high:
        raise UsageError(f"{name} {value}: give a number from {low:g} to {high:g}")
