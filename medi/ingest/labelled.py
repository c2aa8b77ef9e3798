"""ROWS whose positive is a label -> ROWS of a label task: a text and its class, from which pairs are mined."""

from collections import Counter, defaultdict

import pyarrow as pa

from medi.errors import MediError
from medi.schema import ROWS, Counts, fold, row_id, table_of


def labelled(table: pa.Table, counts: Counts, source_name: str) -> tuple[pa.Table, Counts]:
    """Return the rows with their label, sorted by id, and the counts; facts get the kind and the rows by label.

    Texts with two labels are left out (`conflicting_labels`).
    Raises MediError where fewer than two labels are left: nothing tells a positive from a negative then.
    """
    labels: defaultdict[str, set[str]] = defaultdict(set)
    rows = table.to_pylist()
    for row in rows:
        labels[fold(row["query"])].add(fold(row["positive"]))
    kept = [_row(row, source_name) for row in rows if len(labels[fold(row["query"])]) == 1]
    counts.dropped["conflicting_labels"] += len(rows) - len(kept)
    classes = Counter(row["label"] for row in kept)
    evidence = {"classes": len(classes), "rows_of_class": dict(sorted(classes.items()))}
    counts.facts |= {"kind": "label", "evidence": evidence}
    if len(classes) < 2:
        told = f"the one label {next(iter(classes))!r}" if classes else "no label of their own"
        raise MediError(
            f"{source_name}: its texts have {told} ({len(rows):,} in all); two are needed, name another --label-field"
        )
    counts.dropped = +counts.dropped
    counts.rows_out = len(kept)
    return table_of(kept, ROWS).sort_by("id"), counts.check(f"ingest of {source_name}")


def _row(row: dict[str, object], source_name: str) -> dict[str, object]:
    label = fold(str(row["positive"]))
    own = row_id(source_name, source_name, str(row["query"]), None, label)
    return row | {"id": own, "output": label, "label": label, "references": [label], "positive": None}
