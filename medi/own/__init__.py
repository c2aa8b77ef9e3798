"""A person's own source: a Python file, or a file of pairs with the names of its fields, becomes what a build reads.

A built-in source is a declaration and its instruction slots; a source of one's own is both in one place. What is kept
of it between processes is a Spec, which names it; `load` makes the rest of it again.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from medi.errors import UsageError
from medi.own.declared import Own
from medi.own.spec import Pairs, SourceFile
from medi.source import Json

__all__ = [
    "Own",
    "Pairs",
    "SourceFile",
    "Spec",
    "load",
    "own_again",
    "pairs",
    "source_file",
    "spec_from",
    "spec_json",
    "united",
]

Spec = SourceFile | Pairs


@cache
def load(spec: Spec) -> Own:
    """Return what a Spec names, with a Source, its instruction slots, and what the manifest says of it.

    Raises:
        UsageError: the file changed since it was named, or declares something that cannot be built.
    """
    # Imported here, because few calls of the command have a source of their own, and Arrow takes its time.
    from medi.own.pair_file import load_pairs
    from medi.own.python_file import load_file

    return load_file(spec) if isinstance(spec, SourceFile) else load_pairs(spec)


def source_file(path: Path) -> SourceFile:
    """Return the Spec of a Python file. Raises UsageError where it cannot be read."""
    from medi.own.python_file import spec_of

    return spec_of(path)


def pairs(place: str, fields: Mapping[str, str], name: str = "", rows: int | None = None) -> Pairs:
    """Return the Spec of a file of pairs, or of a data set on the Hub; `fields` are those of Pairs by their names.

    Raises UsageError where there is no such place, or a field is not named or not in the first record.
    """
    from medi.own.pair_file import spec_of

    return spec_of(place, fields, name, rows)


def united(specs: Sequence[Spec]) -> tuple[Spec, ...]:
    """Return the specs by the names of their sources. Raises UsageError where two have one name."""
    by_name: dict[str, Spec] = {}
    for spec in specs:
        own = load(spec)
        if own.source.name in by_name:
            raise UsageError(f"{own.what}: another source of your own is named {own.source.name!r}; rename one")
        by_name[own.source.name] = spec
    return tuple(by_name[name] for name in sorted(by_name))


def own_again(name: str, declared: Json, given: Sequence[Own]) -> Own:
    """Return the source that a manifest says was `declared` so: of pairs by their fields, else the one that is given.

    Raises UsageError where it is in a Python file that is not given, or is another by now: a release runs no code.
    """
    told = {key: str(value) for key, value in declared.items()} if isinstance(declared, dict) else {}
    if "pairs" in told:
        fields = [told.get(key, "") for key in ("query", "positive", "negatives", "label")]
        # A set of the Hub has its owner's name before it, a file is named without its folder.
        return load(Pairs(told["pairs"] if "/" in told["pairs"] else f"/{told['pairs']}", *fields, name=name))
    same = [own for own in given if own.source.name == name and own.declared == declared]
    if not same:
        file, other = told.get("file"), any(own.source.name == name for own in given)
        how = "as it was when the release was built" if other else "with --source FILE"
        raise UsageError(f"{name} is declared in {file}, whose code a release does not bring; give that file {how}")
    return same[0]


def spec_json(spec: Spec) -> dict[str, object]:
    """Return a Spec as what was asked for, with a JSON form: run.json and Prefect keep it."""
    if isinstance(spec, SourceFile):
        return {"file": str(spec.path)}
    return {"pairs": spec.place, **{name: value for name, value in spec.asked() if value}}


def spec_from(told: Mapping[str, object]) -> Spec:
    """Return the Spec of what `spec_json` gave, with the file as it is now. Raises UsageError as the makers do."""
    if "file" in told:
        return source_file(Path(str(told["file"])))
    fields = {name: str(told[name]) for name in Pairs.FIELDS if told.get(name)}
    rows = told.get("rows")
    return pairs(str(told.get("pairs", "")), fields, str(told.get("name") or ""), int(str(rows)) if rows else None)
