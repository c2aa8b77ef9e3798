"""The words of a licence, as a source states them -> the Hub's identifiers, and whether texts may be handed on.

A source may stand under several; `other` is whatever has no identifier: terms of a site, news texts, what nobody said.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches

from medi.errors import UsageError

HUB_LICENCES = frozenset(
    "apache-2.0 mit bsd-2-clause bsd-3-clause bsd cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 "
    "cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 "
    "cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl-3.0 mpl-2.0 odbl odc-by pddl unknown".split()
)
# `cc` says not which; of works under ND only unchanged copies may be shared, and pairs are no copies.
_CLOSED = re.compile(r"cc|unknown|other|.*-nd-.*")
OPEN = frozenset(name for name in HUB_LICENCES if not _CLOSED.fullmatch(name))
# Words for several at once, as an allow-list knows them.
GROUPS = {"open": OPEN, "commercial": frozenset(name for name in OPEN if "-nc-" not in name)}


def identifiers(licence: str) -> tuple[str, ...]:
    """Return the Hub's identifiers of what a source states, sorted: `MIT (KILT); Reddit's texts` is mit and other."""
    parts = re.split(r"[;/,]", re.sub(r"\([^)]*\)", "", licence))
    # `SNLI: CC BY-SA 4.0` says of which part it speaks.
    named = [re.sub(r"^\s*[\w.-]+:", "", part) for part in parts if part.strip()]
    return tuple(sorted({_identifier(part) for part in named} or {"other"}))


def may_be_handed_on(licence: str) -> bool:
    """Return whether all that a source states lets others have its texts; who sells them must look further."""
    return all(name in OPEN for name in identifiers(licence))


def is_allowed(licence: str, allowed: Iterable[str]) -> bool:
    """Return whether all that a source states is among the allowed identifiers."""
    return set(identifiers(licence)) <= set(allowed)


def allow_list(text: str) -> tuple[str, ...]:
    """Return the identifiers of a comma-separated list, sorted; `open` and `commercial` stand for theirs.

    Raises UsageError for a list of nothing, or a word that is no identifier.
    """
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    if not words:
        raise UsageError("--licences: empty; give names of the Hub, such as mit,cc-by-4.0, or open, or commercial")
    known = {*HUB_LICENCES, *GROUPS, "other"}
    for word in words:
        if word not in known:
            close = ", ".join(get_close_matches(word, sorted(known), 3, 0.5)) or "mit, cc-by-4.0, open, commercial"
            raise UsageError(f"--licences {word}: the Hub has no such licence; near are {close}")
    return tuple(sorted({name for word in words for name in GROUPS.get(word, {word})}))


def _identifier(part: str) -> str:
    name = "-".join(part.lower().split())
    return next((known for known in (name, name.removesuffix("-1.0")) if known in HUB_LICENCES), "other")
