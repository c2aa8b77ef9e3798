"""`--source FILE` and `--pairs FILE --query-field Q ...`: what was asked for becomes the Specs of a build."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from medi.errors import UsageError
from medi.own import Spec, source_file
from medi.own import pairs as pairs_spec


def own_sources(
    files: Sequence[Path] | None, pairs: str | None, fields: Mapping[str, str | None], name: str | None,
    rows: int | None,
) -> tuple[Spec, ...] | None:  # fmt: skip
    """Return the sources of a person's own, None where there is none; `fields` are those of --pairs.

    Raises UsageError where one is wrong, or an option of --pairs stands without it.
    """
    given = {field: value for field, value in fields.items() if value is not None}
    specs: list[Spec] = [source_file(path) for path in files or ()]
    if pairs is not None:
        specs.append(pairs_spec(pairs, given, name or "", rows))
    elif stray := [*given, *(["name"] if name is not None else []), *(["rows"] if rows is not None else [])]:
        raise UsageError(f"--{stray[0].replace('_', '-')}: says something of --pairs FILE, which is not given")
    return tuple(specs) or None
