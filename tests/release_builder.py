"""Two sources and two Super-NI tasks become the contents of a good, tiny release; tests break one thing at a time."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from medi.release.manifest import SourceEntry, TaskEntry
from medi.schema import EXAMPLES, POSITIVES, fold, row_id, table_of, text_id
from medi.shards import Contents, write_release

Row = dict[str, object]


def pair_row(source: str, number: int, task: str = "") -> Row:
    """Return a row of an embedding source."""
    query, positive = f"query {number} of {source}", f"positive {number} of {source}"
    return {
        "id": row_id(source, source, query, positive),
        "source": source,
        "task": task or source,
        "kind": "pair",
        "query_instruction": "Represent the question for retrieving answers:",
        "query": query,
        "document_instruction": "Represent the answer for retrieval:",
        "positive": positive,
        "label": None,
        "negatives": [f"negative {number} of {source}", f"other negative {number} of {source}"],
        "negative_labels": [],
        "positive_score": 0.75,
        "negative_scores": [0.5, 0.25],
        "negative_origins": ["given", "mined"],
        "licence": "cc-by-4.0",
        "origin": f"{source}.jsonl.gz:{number}",
    }


def task_row(task: str, kind: str, number: int) -> Row:
    """Return a row of a Super-NI task of kind `label` or `text`."""
    row = pair_row("super_ni", number, task)
    query, positive = f"input {number} of {task}", f"input {number} of {task}, chosen"
    label = kind == "label"
    return row | {
        "id": row_id("super_ni", task, query, None, "yes" if label else f"output {number}"),
        "kind": kind,
        "query": query,
        "positive": positive,
        "label": "yes" if label else None,
        "negatives": [f"input {number} of {task}, against"],
        "negative_labels": ["no"] if label else [],
        "positive_score": 0.875 if label else 1.5,
        "negative_scores": [0.5 if label else -0.25],
        "negative_origins": ["mined"],
    }


def source_entry(name: str, got: int, **changes: object) -> SourceEntry:
    """Return a manifest entry of a source that drew three rows more than it kept."""
    entry = {
        "name": name,
        "licence": "cc-by-4.0",
        "symmetric": False,
        "clusters": False,
        "given_negatives": True,
        "variant": "jsonl",
        "citation": f"The makers of {name}.",
        "files": [{"name": f"{name}.jsonl.gz", "size": 100, "sha256": "0" * 64, "commit": ""}],
        "planned": got,
        "got": got,
        "drawn": got + 3,
        "dropped": {"duplicate": 2, "equal_pair": 1},
        "mended": {},
    }
    return entry | changes  # type: ignore[return-value]


def task_entry(source: str, task: str, kind: str, got: int) -> TaskEntry:
    """Return a manifest entry of a task that dropped nothing."""
    return {
        "task": task,
        "source": source,
        "kind": kind,
        "symmetric": source != "asks",
        "planned": got,
        "got": got,
        "drawn": got,
        "dropped": {},
        "slots": {"query": {"text_type": "question"}, "document": {"text_type": "answer"}},
        "evidence": {},
    }


@dataclass
class Builder:
    """Rows by (source, task), in final order but for the ids, which are sorted when the tables are made.

    `sort` False keeps the rows as they stand, `extra_positives` are further known (source, query, positive) texts.
    """

    rows: dict[tuple[str, str], list[Row]]
    sources: list[SourceEntry]
    tasks: list[TaskEntry]
    extra_positives: list[tuple[str, str, str]] = field(default_factory=list)
    sort: bool = True

    def examples(self) -> Iterable[object]:
        """Yield one EXAMPLES table a task."""
        for rows in self.rows.values():
            yield table_of(sorted(rows, key=lambda row: str(row["id"])) if self.sort else rows, EXAMPLES)

    def positives(self) -> Iterable[object]:
        """Yield one POSITIVES table a task: each row's own pair, and the further ones of its source."""
        for (source, task), rows in self.rows.items():
            pairs = [(str(row["query"]), str(row["positive"])) for row in rows]
            pairs += [(query, positive) for name, query, positive in self.extra_positives if name == source]
            scope = task if source == "super_ni" else source
            ids = [(text_id(fold(query)), text_id(fold(positive))) for query, positive in pairs]
            yield table_of(({"source": source, "task": scope, "query": q, "positive": p} for q, p in ids), POSITIVES)

    def contents(self) -> Contents:
        """Return what write_release takes."""
        return Contents(
            params={"seed": 0, "encoder": "stub"},
            sources=self.sources,
            tasks=self.tasks,
            records=[{"stage": "ingest", "key": "00"}],
            examples=self.examples,  # type: ignore[arg-type]
            positives=self.positives,  # type: ignore[arg-type]
            run={"seconds": 1.0},
        )

    def write(self, out: Path, shard_bytes: int = 1 << 20) -> str:
        """Write the release and return its content digest."""
        return write_release(out, self.contents(), shard_bytes)

    def row(self, task: str, index: int = 0) -> Row:
        """Return a row of a task, to be changed in place."""
        return next(rows for (_, name), rows in self.rows.items() if name == task)[index]


def tiny(rows: int = 4) -> Builder:
    """Return the builder of a good release: `asks` (pairs), `twins` (clusters), a label task, a text task."""
    label, text = "task001_yes_or_no", "task002_rewrite"
    return Builder(
        rows={
            ("asks", "asks"): [pair_row("asks", n) for n in range(rows)],
            ("twins", "twins"): [pair_row("twins", n) for n in range(rows)],
            ("super_ni", label): [task_row(label, "label", n) for n in range(rows)],
            ("super_ni", text): [task_row(text, "text", n) for n in range(rows)],
        },
        sources=[
            source_entry("asks", rows),
            source_entry("twins", rows, symmetric=True, clusters=True),
            source_entry("super_ni", 2 * rows, symmetric=True, licence="Apache-2.0"),
        ],
        tasks=[
            task_entry("asks", "asks", "pair", rows),
            task_entry("twins", "twins", "pair", rows),
            task_entry("super_ni", label, "label", rows),
            task_entry("super_ni", text, "text", rows),
        ],
    )
