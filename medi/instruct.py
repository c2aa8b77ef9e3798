"""Stage `instruct`: PAIRS into EXAMPLES, each row with the sentence that says what its query and its document are for.

Every word comes from the data under `instructions/`. A stored instruction ends without a space; text follows at once.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from medi.errors import MediError, UsageError
from medi.schema import EXAMPLES, Counts, fold, is_visible

LEVELS = ("none", "tag", "simple", "detailed")
PARAPHRASES = ("01", "02", "03", "04", "05")

_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_CLUSTER = re.compile(r"[0-9]{2}")
# The forms of the files: tables by key ("" is any, one that is not named may be anything), arrays of one form, texts.
_TEXTS: dict[str, object] = {"": str}
_FORMS: dict[str, object] = {
    "templates.toml": {"sentence": str, "endings": _TEXTS},
    "super_ni.toml": {"slots": {"": _TEXTS}, "tasks": _TEXTS},
    "msmarco_domains.toml": {"domains": {}},
    "vocabulary.toml": {"": [str]},
    "embedding.toml": {"": {"": _TEXTS}},
    "evaluation.toml": {"": {"": {"": _TEXTS}}},
}
_WORDING: dict[str, object] = {"sentence": str, "words": _TEXTS}
# The paper's 4.3: two words at most, and they say only what the text is.
_SIMPLE = "[{domain} ]{text_type}"


@dataclass(frozen=True)
class Slots:
    """The words that fill one instruction: "Represent the {domain} {text_type} for {objective}:"."""

    text_type: str
    domain: str = ""
    objective: str = ""


class Sides(NamedTuple):
    """The slots of a source's queries and of its documents; equal in symmetric sources."""

    query: Slots
    document: Slots


class Clusters(NamedTuple):
    """A source cut into tasks: each row's cluster number, int [n], each cluster's domain word, and the evidence for it.

    The evidence goes into the facts as it is; there may be none.
    """

    of_row: np.ndarray
    words: Sequence[str]
    evidence: Sequence[dict[str, object]] = ()


@dataclass(frozen=True)
class Style:
    """How slots become a sentence; `asdict` of it is part of the stage's params."""

    sentence: str
    ending: str = ":"
    level: str = "detailed"


@dataclass(frozen=True)
class UnitInstructions:
    """All that the stage must know of one source or Super-NI task; `asdict` of it is the stage's params."""

    source: str
    tag: str
    licence: str
    sides: Sides
    style: Style


@dataclass(frozen=True)
class Instructions:
    """The instruction data of one folder, read and checked."""

    style: Style
    sources: dict[str, Sides]
    super_ni: Sides
    super_ni_tasks: dict[str, str]
    msmarco_domains: dict[str, str]
    vocabulary: tuple[str, ...]

    def for_source(self, source: str, licence: str) -> UnitInstructions:
        """Return what to say of an embedding source. Raises UsageError where `embedding.toml` lacks it."""
        if source not in self.sources:
            raise UsageError(f"source {source} has no instruction: add [{source}.query] to embedding.toml")
        return UnitInstructions(source, source, licence, self.sources[source], self.style)

    def for_task(self, task: str, definition: str, licence: str) -> UnitInstructions:
        """Return what to say of a Super-NI task: its definition, folded and otherwise as it stands.

        Raises:
            MediError: the definition has no text.
        """
        objective = fold(definition)
        if not objective:
            raise MediError(f"{task} has an empty definition, so nothing can be said of it: leave the task out")
        query, document = (
            replace(slots, objective=slots.objective.replace("{definition}", objective)) for slots in self.super_ni
        )
        return UnitInstructions("super_ni", task, licence, Sides(query, document), self.style)


def instruct(pairs: pa.Table, unit: UnitInstructions, clusters: Clusters | None = None) -> tuple[pa.Table, Counts]:
    """Return the pairs as EXAMPLES, sorted by task and id, and the counts; no row is dropped.

    With clusters, row i belongs to task `<source>/NN`, whose domain slot is the cluster's word; ids stay.
    `facts.slots` has the slots of each side; for clusters, `facts.slots_of_task` has the same for each task, and
    `facts.domain_of_task` what speaks for its word.
    """
    facts: dict[str, object] = {"slots": _slots_json(unit.sides)}
    if clusters is None:
        sides, of_row, tasks = [unit.sides], np.zeros(len(pairs), dtype=np.int64), pairs["task"]
    else:
        sides = [Sides(*(replace(slots, domain=word) for slots in unit.sides)) for word in clusters.words]
        of_row = np.asarray(clusters.of_row, dtype=np.int64)
        names = [f"{unit.source}/{number:02d}" for number in range(len(sides))]
        tasks = pa.array(names, pa.string()).take(pa.array(of_row))
        facts["slots_of_task"] = {name: _slots_json(side) for name, side in zip(names, sides, strict=True)}
        if clusters.evidence:
            facts["domain_of_task"] = dict(zip(names, clusters.evidence, strict=True))
    columns: dict[str, pa.Array | pa.ChunkedArray] = {name: pairs[name] for name in pairs.column_names}
    columns["task"] = tasks
    columns["source"] = pa.repeat(unit.source, len(pairs))
    columns["licence"] = pa.repeat(unit.licence, len(pairs))
    for column, side in (("query_instruction", 0), ("document_instruction", 1)):
        texts = pa.array([render(s[side], unit.style, unit.tag) for s in sides], pa.string())
        columns[column] = texts.take(pa.array(of_row))
    table = pa.Table.from_arrays([columns[name] for name in EXAMPLES.names], schema=EXAMPLES)
    table = table.sort_by([("task", "ascending"), ("id", "ascending")])
    return table, Counts(rows_in=len(pairs), rows_out=len(table), facts=facts)


def render(slots: Slots, style: Style, tag: str = "") -> str:
    """Return the instruction: one ending, no doubled blank, no space at its end; "" at level none.

    A part of the sentence in brackets stands only where the slots in it are filled. `tag` is the data set's name.
    """
    words = {"detailed": style.sentence, "simple": _SIMPLE, "tag": tag, "none": ""}[style.level]
    if style.level in ("detailed", "simple"):
        filled = asdict(slots)
        words = _OPTIONAL.sub(lambda part: part[1] if all(filled[s] for s in _SLOT.findall(part[1])) else "", words)
        words = _SLOT.sub(lambda slot: filled[slot[1]], words)
    text, ending = fold(words), style.ending.rstrip()
    return text if text.endswith(ending) or not text else text + ending


def load_instructions(
    folder: str | Path | None = None, *, ending: str = "paper", level: str = "detailed", paraphrase: str = ""
) -> Instructions:
    """Return the packaged instructions, or those of another folder with the same files.

    Raises:
        UsageError: the level, ending or paraphrase is unknown; a file is absent, is no TOML, or has an unknown slot.
    """
    root = _root(folder)
    templates = _read(root, "templates.toml", "sentence", "endings")
    super_ni = _read(root, "super_ni.toml", "slots", "tasks")
    domains = _read(root, "msmarco_domains.toml", "domains")["domains"]
    _one_of("instruction ending", ending, templates["endings"])
    _one_of("instruction level", level, LEVELS)
    _one_of("paraphrase", paraphrase, ("", *PARAPHRASES))
    wording = _read(root, f"paraphrases/{paraphrase}.toml") if paraphrase else {}
    sentence = wording.get("sentence", templates["sentence"])
    if not {"text_type"} <= set(_SLOT.findall(sentence)) <= set(Slots.__dataclass_fields__):
        raise UsageError(
            f"the sentence {sentence!r} needs {{text_type}} and knows only {{domain}}, {{objective}} beside"
        )
    if not all(_CLUSTER.fullmatch(number) for number in domains):
        raise UsageError(f'msmarco_domains.toml has {", ".join(domains)}: write cluster numbers as two digits, as "00"')
    if bad := [number for number, word in domains.items() if not (isinstance(word, str) and is_visible(word))]:
        raise UsageError(f"msmarco_domains.toml has no word for {', '.join(bad)}: write one, or take the line out")
    vocabulary = tuple(dict.fromkeys(word for part in _read(root, "vocabulary.toml").values() for word in part))
    if not vocabulary:
        raise UsageError(f"{root}/vocabulary.toml has no word: write some, a domain is chosen among them")
    sources = _sides(_read(root, "embedding.toml"), "embedding.toml")
    slots = _sides({"slots": super_ni["slots"]}, "super_ni.toml")["slots"]
    words = wording.get("words", {})
    return Instructions(
        style=Style(sentence, templates["endings"][ending], level),
        sources={name: _reworded(sides, words) for name, sides in sources.items()},
        super_ni=_reworded(slots, words),
        super_ni_tasks=super_ni["tasks"],
        msmarco_domains=domains,
        vocabulary=vocabulary,
    )


def load_evaluation(folder: str | Path | None = None) -> dict[str, Sides]:
    """Return the slots of the paper's 70 evaluation sets by name. Raises UsageError where the file is wrong."""
    sets = _read(_root(folder), "evaluation.toml")
    return {name: sides for category in sets.values() for name, sides in _sides(category, "evaluation.toml").items()}


def _root(folder: str | Path | None) -> Traversable:
    return resources.files("instructions") if folder is None else Path(folder)


def _read(root: Traversable, name: str, *keys: str) -> dict:
    """Return one TOML file, which must have these keys."""
    try:
        content = tomllib.loads(root.joinpath(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{root} has no {name}: copy the folder instructions/ of medi and change it there") from None
    except (ValueError, RecursionError) as wrong:
        raise UsageError(f"{root}/{name} is not TOML in UTF-8: {wrong}") from None
    for key in keys:
        if key not in content:
            raise UsageError(f"{root}/{name} has no {key!r}: add it, as in the file that medi brings")
    if strange := _strange(content, _FORMS.get(name, _WORDING), ""):
        raise UsageError(f"{root}/{name}: {strange}: write it as in the file that medi brings")
    return content


def _strange(value: object, form: object, where: str) -> str:
    """Return what the first part is that has another form, "" where there is none; "" in a form stands for any key."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return f"{where} is no table"
        parts = [(part, form.get(key, form.get("")), f"{where}.{key}".lstrip(".")) for key, part in value.items()]
    elif isinstance(form, list):
        if not isinstance(value, list):
            return f"{where} is no array"
        parts = [(part, form[0], f"{where}[{number}]") for number, part in enumerate(value)]
    else:
        return "" if form is None or isinstance(value, str) else f"{where} is no text"
    return next(filter(None, (_strange(*part) for part in parts)), "")


def _one_of(what: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise UsageError(f"no {what} {value!r}: choose one of {', '.join(filter(None, known))}")


def _sides(entries: dict[str, dict[str, dict[str, str]]], file: str) -> dict[str, Sides]:
    """Return the slots of both sides by name; an entry has `query` and `document`, or `both` where they are equal."""
    sides = {}
    for name, entry in entries.items():
        if set(entry) not in ({"both"}, {"query", "document"}):
            raise UsageError(f"{file}: {name} has {', '.join(entry)}: write `query` and `document`, or only `both`")
        for slots in entry.values():
            if not {"text_type"} <= set(slots) <= set(Slots.__dataclass_fields__):
                raise UsageError(f"{file}: {name} has the slots {', '.join(slots)}: text_type is needed, others are "
                                 "domain and objective")  # fmt: skip
        query, document = (Slots(**entry.get(side, entry.get("both", {}))) for side in Sides._fields)
        sides[name] = Sides(query, document)
    return sides


def _reworded(sides: Sides, words: dict[str, str]) -> Sides:
    """Return the slots with whole words put in place of others; what a definition says is not touched."""
    if not words:
        return sides
    whole = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b")
    return Sides(*(Slots(*(whole.sub(lambda w: words[w[0]], text) for text in astuple(slots))) for slots in sides))


def _slots_json(sides: Sides) -> dict[str, dict[str, str]]:
    return {name: asdict(slots) for name, slots in sides._asdict().items()}
