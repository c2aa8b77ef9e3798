"""The facts of mining in a manifest's evidence -> numbers that add up, and for a shortage one line on what to change.

Facts are of a unit's whole pool, of which the release holds the rows within the quota. The clusters of msmarco are
mined together, so each has the facts of all in `evidence.cluster_of`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from medi.profiles import CANDIDATES_KEPT, Rules
from medi.release.manifest import Json, TaskEntry

# Of every spread that a release tells.
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
# Rules that an option loosens: its field in Rules, and which way.
_LOOSENED = {
    "beyond_window": ("window", "raise"),
    "below_min_score": ("min_score", "lower"),
    "above_max_score": ("max_score", "raise"),
    "absolute_margin": ("absolute_margin", "lower"),
    "relative_margin": ("relative_margin", "lower"),
    "skip_top": ("skip_top", "lower"),
}
# Rules without an option: what they strike out would be no other text, or no wrong answer. Known positives are not
# among them, as the search looks past these.
_BARRED = ("near_duplicate", "equal_output", "repeated")
# These strike out candidates of every row, short or not, so they are the reason where no other rule is.
_BY_PLACE = ("beyond_window", "skip_top")
_UPPER_LIMITS = ("above_max_score", "absolute_margin", "relative_margin")
# Filling up looks at everything, so these have not the last word where it was asked for.
_LIFTED_BY_FILLING = ("beyond_window", "below_min_score")


@dataclass(frozen=True)
class Tally:
    """How many were listed and chosen, and reason -> how many were dropped: listed = chosen + sum(dropped)."""

    listed: int
    chosen: int
    dropped: dict[str, int]


@dataclass(frozen=True)
class Mining:
    """What mining did in the pools of some units.

    `candidates` were found by the search, `given` negatives by the source, `draws` by filling up; `negatives` counts
    what rows got by origin. Scores are one for each of QUANTILES, and empty for more than one unit.
    """

    units: tuple[str, ...]
    candidates: Tally
    given: Tally
    draws: Tally
    negatives: dict[str, int]
    queries_short: int
    negatives_missing: int
    positive_scores: tuple[float, ...]
    negative_scores: tuple[float, ...]


def mining_by_unit(entries: Iterable[TaskEntry]) -> list[Mining] | None:
    """Return the account of each unit that was mined, or None where an earlier version of medi left no accounts."""
    facts_of: dict[tuple[str, str], dict[str, Json]] = {}
    for entry in entries:
        unit, evidence = unit_of(entry)
        if isinstance(facts := evidence.get("mine"), dict):
            facts_of[entry["source"], unit] = facts
    if not all(isinstance(facts.get("candidates"), dict) for facts in facts_of.values()):
        return None
    return [mining_of(unit, facts) for (_, unit), facts in facts_of.items()]


def unit_of(entry: TaskEntry) -> tuple[str, dict[str, Json]]:
    """Return the unit that a task was mined in, its own or that of all clusters, and the evidence of that unit."""
    evidence = _object(entry["evidence"])
    whole = _object(evidence.get("cluster_of"))
    return (str(whole["task"]), whole) if "task" in whole else (entry["task"], evidence)


def mining_of(unit: str, facts: Mapping[str, object]) -> Mining:
    """Return the account of one unit from the facts of its stage `mine`; what they lack counts as nothing."""
    return Mining(
        units=(unit,),
        candidates=_tally(facts.get("candidates")),
        given=_tally(facts.get("given")),
        draws=_tally(facts.get("draws")),
        negatives=_counts(facts.get("negatives")),
        queries_short=_count(facts.get("queries_short")),
        negatives_missing=_count(facts.get("negatives_missing")),
        positive_scores=_scores(facts.get("positive_scores")),
        negative_scores=_scores(facts.get("negative_scores")),
    )


def total_of(parts: list[Mining]) -> Mining:
    """Return the sum of accounts; of a single one, itself."""
    if len(parts) == 1:
        return parts[0]
    return Mining(
        units=tuple(unit for part in parts for unit in part.units),
        candidates=_sum(part.candidates for part in parts),
        given=_sum(part.given for part in parts),
        draws=_sum(part.draws for part in parts),
        negatives=_sum_counts(part.negatives for part in parts),
        queries_short=sum(part.queries_short for part in parts),
        negatives_missing=sum(part.negatives_missing for part in parts),
        positive_scores=(),
        negative_scores=(),
    )


def short_of(mining: Mining) -> str:
    """Return how many queries of the pool are short, as in "1 query short (15 negatives missing)", "" for none."""
    short, missing = mining.queries_short, mining.negatives_missing
    if not short:
        return ""
    queries = "1 query" if short == 1 else f"{short:,} queries"
    negatives = "1 negative" if missing == 1 else f"{missing:,} negatives"
    return f"{queries} short ({negatives} missing)"


def shortage_line(task: str, mine_facts: Mapping[str, object], rules: Rules) -> str:
    """Return who is short in a task and what to change, "" where nobody is.

    As in "asks: 1 query short (15 negatives missing); relative_margin struck out 40 candidates: lower --relative-margin
    0.05, or ask for fewer --negatives than 16".
    """
    return "".join(shortages([mining_of(task, mine_facts)], rules))


def shortages(parts: Iterable[Mining], rules: Rules) -> list[str]:
    """Return the line of `shortage_line` for each unit that is short, most missing negatives first."""
    short = [part for part in parts if part.queries_short]
    return [_shortage(part, rules) for part in sorted(short, key=lambda p: (-p.negatives_missing, p.units))]


def _shortage(mining: Mining, rules: Rules) -> str:
    struck = _struck(mining)
    # What struck out fewer than are missing cannot be the whole reason.
    able = [rule for rule, count in struck.items() if count >= max(1, mining.negatives_missing)]
    worst = max(able, key=lambda rule: (rule not in _BY_PLACE, struck[rule]), default="")
    ways = ", or ".join(_ways(worst, mining, rules)[:2])
    reason = "it has no other texts left"
    if worst:
        reason = f"{worst} struck out {struck[worst]:,} candidate{'' if struck[worst] == 1 else 's'}"
    return f"{mining.units[0]}: {short_of(mining)}; {reason}: {ways}"


def _struck(mining: Mining) -> Counter[str]:
    """Return how many candidates each rule struck out that may be the reason of a shortage."""
    struck = Counter({rule: mining.candidates.dropped.get(rule, 0) for rule in (*_LOOSENED, *_BARRED)})
    if mining.draws.listed:
        # To filling up, what mining struck out for good counts as repeated.
        struck.update({rule: mining.draws.dropped.get(rule, 0) for rule in struck if rule != "repeated"})
        struck.update({rule: -struck[rule] for rule in _LIFTED_BY_FILLING})
    return struck


def _ways(rule: str, mining: Mining, rules: Rules) -> list[str]:
    """Return what a person may change, the best first; `rule` is the reason, "" where texts run out."""
    ways = []
    if rule in _LOOSENED:
        name, way = _LOOSENED[rule]
        value = getattr(rules, name)
        # A margin cannot be lower than 0, which still bars what scores as high as the positive.
        way = "leave out" if name.endswith("margin") and value == 0 else way
        ways.append(f"{way} --{name.replace('_', '-')} {value}")
    if rule in _UPPER_LIMITS and rules.window < CANDIDATES_KEPT:
        ways.append(f"raise --window {rules.window}")
    # Filling up finds nothing new where a source has fewer texts than are kept for each row.
    if rule not in ("", "skip_top") and rules.fill == "none" and mining.candidates.listed > CANDIDATES_KEPT:
        ways.append("try --fill other_rows")
    if not rule and mining.given.chosen and rules.fill != "random":
        ways.append("try --fill random, which takes given negatives of other rows")
    if rules.negatives > 1:
        ways.append(f"ask for fewer --negatives than {rules.negatives}")
    return ways or ["only more rows of it would help"]


def rules_of(params: Mapping[str, Json]) -> Rules | None:
    """Return the rules of mining that a manifest's params name, or None where they name none that can be read."""
    found = params.get("mining")
    if not isinstance(found, dict):
        return None
    given = {field.name: found[field.name] for field in fields(Rules) if field.name in found}
    if not all(_fits(value, getattr(Rules(), name)) for name, value in given.items()):
        return None
    return Rules(**given)  # type: ignore[arg-type]


def changed_rules(rules: Rules) -> dict[str, object]:
    """Return the choices that differ from profile `paper`, by name; of a cross-encoder its name alone."""
    usual = Rules().to_json()
    changed = {name: value for name, value in rules.to_json().items() if value != usual.get(name)}
    if isinstance(described := changed.get("rescore"), dict):
        changed["rescore"] = described.get("name")
    return changed


def _fits(value: Json, default: object) -> bool:
    """Return whether a value has the form of a choice whose default is given."""
    if default is None:
        return value is None or isinstance(value, int | float | dict)
    return type(value) is type(default)


def _object(value: object) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _counts(value: object) -> dict[str, int]:
    return {name: _count(count) for name, count in _object(value).items()}


def _tally(value: object) -> Tally:
    found = _object(value)
    return Tally(_count(found.get("listed")), _count(found.get("chosen")), _counts(found.get("dropped")))


def _scores(value: object) -> tuple[float, ...]:
    numbers = [float(v) for v in value if isinstance(v, int | float)] if isinstance(value, list) else []
    return tuple(numbers) if len(numbers) == len(QUANTILES) else ()


def _sum_counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))


def _sum(parts: Iterable[Tally]) -> Tally:
    tallies = list(parts)
    return Tally(
        sum(t.listed for t in tallies), sum(t.chosen for t in tallies), _sum_counts(t.dropped for t in tallies)
    )


def searched_in_lists(records: Iterable[Mapping[str, Json]]) -> list[tuple[str, str]]:
    """Return (unit, how its documents were searched) of each of a manifest's records that `--ivf-from` had a say in."""
    found = []
    for record in records:
        # The records of an imported file have none.
        counts = record.get("counts")
        facts = counts["facts"] if isinstance(counts, Mapping) else {}
        if isinstance(facts, Mapping) and isinstance(ivf := facts.get("ivf"), Mapping) and "lists" in ivf:
            found.append((str(record["unit"]), _how(ivf)))
    return found


def _how(ivf: Mapping[str, Json]) -> str:
    documents = f"{int(str(ivf['documents'])):,} documents"
    if ivf["probes"] == ivf["lists"]:
        return f"{documents} searched exactly; an inverted file would have had to look at most of them"
    probes, lists, recall, sampled = (ivf[name] for name in ("probes", "lists", "recall", "sampled"))
    told = f"{documents} in an inverted file, {probes} of its {lists} lists a query"
    return f"{told}; recall {recall}, the mean of {sampled} queries"
