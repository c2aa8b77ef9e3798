"""`--pairs PLACE`: a file of pairs, triplets or labelled texts, or a data set of the Hub, becomes an Own.

JSON lines, an array of objects, CSV, TSV or Parquet; fields are named by their keys or columns, of arrays by number.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from medi.errors import UsageError
from medi.ingest.parse import parse
from medi.instruct import Sides, Slots
from medi.own.declared import Own, check_name
from medi.own.spec import MOST_ROWS, QUOTA_ROWS, Pairs
from medi.read import raw_batches
from medi.read.tables import delimiter_of, is_table
from medi.source import Bad, Fields, File, Json, Source, Variant, first_of, has_key, member, optional, text_of, texts_of

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+(/[\w.-]+)?", re.ASCII)
_ENDINGS = re.compile(r"(\.(jsonl|ndjson|json|csv|tsv|parquet))?(\.gz)?$", re.IGNORECASE)
_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_SIDES = Sides(Slots("query", objective="retrieving relevant documents"), Slots("document", objective="retrieval"))
_LABELLED = Sides(*[Slots("text", objective="classification")] * 2)


def spec_of(place: str, fields: Mapping[str, str], name: str = "", rows: int | None = None) -> Pairs:
    """Return the Spec of a file of pairs, or of a data set on the Hub; `fields` are those of Pairs by their names.

    Raises UsageError where there is no such place, a field is not named or not in the first record.
    """
    path = Path(place)
    is_file = path.is_file()
    if not is_file and (path.exists() or not _HUB_NAME.fullmatch(place) or _ENDINGS.search(place)[0]):  # type: ignore[index]
        what = "is no file" if path.exists() or path.is_symlink() else "no such file"
        raise UsageError(f"--pairs {place}: {what}; name one, or a data set of the Hub as OWNER/NAME")
    named = [fields.get(name, "") for name in Pairs.FIELDS]
    spec = Pairs(str(path.absolute()) if is_file else place, *named, rows=rows)
    if not spec.query_field:
        raise UsageError(f"{spec.what}: name the field of the query with --query-field")
    if bool(spec.positive_field) == bool(spec.label_field):
        raise UsageError(f"{spec.what}: name either --positive-field or, of labelled texts, --label-field")
    if spec.label_field and spec.negatives_field:
        raise UsageError(f"{spec.what}: labelled texts have no --negatives-field; their label decides")
    if rows is not None and not 1 <= rows <= MOST_ROWS:
        raise UsageError(f"--rows {rows}: give how many rows it may give, from 1 to {MOST_ROWS:,}")
    found = name or re.sub(r"[^A-Za-z0-9._-]+", "_", _ENDINGS.sub("", spec.place.rpartition("/")[2])).strip("._-")
    # A name that was asked for stays as it is, to be told again.
    check_name(found, spec.what if name else f"{spec.what} (name it with --name)")
    spec = replace(spec, name=found)
    return replace(spec, quota_rows=_rows_of(spec)) if is_file else replace(spec, quota_rows=rows or QUOTA_ROWS)


def load_pairs(spec: Pairs) -> Own:
    """Return the source of pairs: its slots are general words, its licence is unknown, its negatives are its own."""
    labelled = bool(spec.label_field)
    source = Source(
        spec.name, spec.quota_rows, labelled, "unknown", "", tuple(_variants(spec)), labelled=labelled
    )  # fmt: skip
    folder = Path(spec.place).parent if spec.is_file else None
    declared: dict[str, Json] = {"pairs": Path(spec.place).name if spec.is_file else spec.place, **spec.fields()}
    return Own(source, _LABELLED if labelled else _SIDES, folder, spec.what, declared)


def _variants(spec: Pairs) -> Iterator[Variant]:
    """Yield where the rows may be: the file, or on the Hub the set's own Parquet, then the one that the Hub makes."""
    sample = "{" + ", ".join(f'"{theirs}": "..."' for theirs in spec.fields().values()) + "}"
    form = ("labelled texts" if spec.label_field else "pairs", spec.fields(), _Reader(spec), sample)
    given = bool(spec.negatives_field)
    if spec.is_file:
        yield Variant("file", *form, "", (File(Path(spec.place).name),), given_negatives=given)
        return
    owner, name, *config = spec.place.split("/")
    place = f"hub:{owner}/{name}"
    own, made = (config[0], config[0]) if config else ("data", "default")
    files = (File(f"{owner}--{name}/train*.parquet", f"{own}/train*.parquet"),)
    yield Variant("hub", *form, place, files, given_negatives=given)
    converted = (File(f"{owner}--{name}/*.parquet", f"{made}/train/*.parquet"),)
    yield Variant("hub_converted", *form, place, converted, given_negatives=given, revision="refs/convert/parquet")


@dataclass(frozen=True)
class _Reader:
    """Reads one record of pairs, triplets or labelled texts: a label stands where the positive does."""

    spec: Pairs

    def __call__(self, record: Json) -> Fields:
        """Return the Fields of a record. Raises Bad and Drop as those of the built-in sources do."""
        spec, mends = self.spec, set[str]()
        query = text_of(_field(record, spec.query_field, mends), spec.query_field, mends)
        name = spec.positive_field or spec.label_field
        value = _field(record, name, mends)
        if spec.label_field:
            # A number is a label as good as a word.
            return Fields(query, text_of(value, name, set()), mended=tuple(sorted(mends)))
        texts = _texts(value, name, mends)
        negatives = _texts(_negatives(record, spec.negatives_field, mends), spec.negatives_field, mends)
        return Fields(query, first_of(texts, value, name), tuple(texts[1:]), tuple(negatives), tuple(sorted(mends)))


def _field(record: Json, name: str, mends: set[str]) -> Json:
    """Return a field of an object by its key, of an array by its number. Raises Bad where it is not there."""
    if not isinstance(record, list):
        return member(record, name, mends)
    if name.isdecimal() and len(name) < 10 and int(name) < len(record):
        return record[int(name)]
    raise Bad(f"expected a field {name!r}, found an array of {len(record)}")


def _negatives(record: Json, name: str, mends: set[str]) -> Json:
    """Return the negatives of a record: a row may have none."""
    if not name:
        return []
    value = _field(record, name, mends) if isinstance(record, list) else optional(record, name, mends)
    return [] if value is None else value


def _texts(value: Json, name: str, mends: set[str]) -> list[str]:
    """Return one text or a list of them as a list: either is right here."""
    return texts_of(value, name, mends) if isinstance(value, list) else [text_of(value, name, mends)]


def _rows_of(spec: Pairs) -> int:
    """Return how many rows a file may give: as many as are asked for, and no more than it has (or QUOTA_ROWS).

    Raises UsageError where a named field is not in the first record, or that of the negatives in none of these rows.
    """
    path, most_rows = Path(spec.place), spec.rows or QUOTA_ROWS
    lines = islice((line for batch in raw_batches([(path, path.name)]) for line in batch.lines), most_rows)
    first = next(lines, None)
    lacking = None if first is None else _lacking(spec, first)
    if lacking is not None and lacking.option != "negatives_field":
        raise lacking.told(spec)
    rows = 1
    for line in lines:
        rows += 1
        # A row may have no negatives: the first one says nothing of the others.
        if lacking is not None and _lacking(spec, line) is None:
            lacking = None
    if lacking is not None:
        raise lacking.told(spec)
    return rows


class _Lacking(NamedTuple):
    """A field that a record lacks, by the name of its option, and the fields that it has."""

    option: str
    there: list[str]

    def told(self, spec: Pairs) -> UsageError:
        """Return the error that says so."""
        has = f"{Path(spec.place).name} has no such field; it has {', '.join(self.there[:8]) or 'none'}"
        option = f"--{self.option.replace('_', '-')} {getattr(spec, self.option)}"
        return UsageError(f"{option}: {has}{_other_delimiter(spec.place, self.there)}")


def _lacking(spec: Pairs, line: bytes) -> _Lacking | None:
    """Return the first field that a record lacks, if any; what else is wrong with it, ingest says."""
    try:
        record = parse(line)[0]
    except Bad:
        return None
    named = ((option, getattr(spec, option)) for option in spec.FIELDS)
    there = _names(record)
    lacking = (option for option, name in named if name and name not in there and not has_key(record, name))
    return next((_Lacking(option, there) for option in lacking), None)


def _other_delimiter(place: str, columns: list[str]) -> str:
    """Return what to do with a table whose only column holds the names of several, "" for any other file."""
    wanted = delimiter_of(place) if is_table(place) else ""
    found = next((mark for mark in _DELIMITERS if wanted and len(columns) == 1 and mark in columns[0]), "")
    return f": its cells stand between {_DELIMITERS[found]}; save it with {_DELIMITERS[wanted]}" if found else ""


def _names(record: Json) -> list[str]:
    """Return how the fields of a record are named: by keys, or by numbers from 0."""
    if isinstance(record, list):
        return list(map(str, range(len(record))))
    return list(record) if isinstance(record, dict) else []
