"""audit/positives.parquet becomes the answer to one question: may this text be a negative of that query? And its form.

Texts are compared by `text_id(fold(text))`. Only one source's pairs are in memory at a time.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from medi.errors import MediError
from medi.release import Release, open_parquet, read_group, reading
from medi.release.manifest import POSITIVES_FILE, SourceEntry
from medi.schema import POSITIVES

SUPER_NI = "super_ni"


class Known:
    """The known positives of one source (of each task apart for Super-NI, where pairs are mined and have a direction).

    In symmetric sources a pair holds both ways; in clusters also through other texts (a-b and b-c make a-c).
    """

    def __init__(self, pairs: pa.Table, source: SourceEntry) -> None:
        """Take the source's rows of the audit file (POSITIVES)."""
        self._by_task = source["name"] == SUPER_NI
        self._symmetric = source["symmetric"] and not self._by_task
        self._pairs: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        self._parents: dict[str, str] = {}
        columns = (pairs.column(name).to_pylist() for name in ("task", "query", "positive"))
        for task, query, positive in zip(*columns, strict=True):
            self._pairs[self._scope(task)].add((query, positive))
            if source["clusters"]:
                self._parents[self._root(query)] = self._root(positive)

    def is_positive(self, task: str, query: str, text: str) -> bool:
        """Return whether the text is a known positive of the query, both given as text ids of folded texts."""
        pairs = self._pairs[self._scope(task)]
        if (query, text) in pairs or (self._symmetric and (text, query) in pairs):
            return True
        return query in self._parents and text in self._parents and self._root(query) == self._root(text)

    def _scope(self, task: str) -> str:
        return task if self._by_task else ""

    def _root(self, text: str) -> str:
        """Return the text that stands for the cluster, halving the path on the way."""
        while self._parents.setdefault(text, text) != text:
            self._parents[text] = self._parents[self._parents[text]]
            text = self._parents[text]
        return text


def known_positives(root: Path, source: SourceEntry) -> Known:
    """Return the known positives of a source of the release in `root`. Raises MediError where they cannot be read."""
    with open_parquet(root / POSITIVES_FILE) as file:
        if not file.schema_arrow.equals(POSITIVES):
            raise MediError(
                f"{root / POSITIVES_FILE} has the columns {file.schema_arrow.names}; build the release again"
            )
    with reading(root / POSITIVES_FILE) as path:
        return Known(pq.read_table(path, filters=[("source", "==", source["name"])]), source)


def check_positives(release: Release) -> Iterator[str]:
    """Yield what is wrong with the form of the audit file, the first row of each fault; its columns are not looked at.

    Raises MediError where it cannot be read.
    """
    path = release.root / POSITIVES_FILE
    entry = next((entry for entry in release.manifest["files"] if entry["path"] == POSITIVES_FILE), None)
    if entry is None or not path.is_file():  # reported with the files
        return
    scopes = {(task["source"], task["task"] if task["source"] == SUPER_NI else task["source"]) for task in
              release.manifest["tasks"]}  # fmt: skip
    with open_parquet(path) as file:
        if not file.schema_arrow.equals(POSITIVES):  # reported where the positives are loaded
            return
        yield from uncompressed(POSITIVES_FILE, file)
        if file.metadata.num_rows != entry.get("rows"):
            yield f"{POSITIVES_FILE}: has {file.metadata.num_rows} rows, the manifest says {entry.get('rows')}"
        for index in range(file.num_row_groups):
            rows = read_group(file, index)
            for name in ("query", "positive"):
                wrong = rows.filter(pc.invert(pc.match_substring_regex(rows[name], "^[0-9a-f]{16}$")))
                for value in wrong[name].slice(0, 1).to_pylist():
                    yield f"{POSITIVES_FILE}: row group {index}: the {name} {value!r} is not 16 hex digits"
            for pair in rows.group_by(["source", "task"]).aggregate([]).to_pylist():
                if (pair["source"], pair["task"]) not in scopes:
                    yield f"{POSITIVES_FILE}: task {pair['task']} of {pair['source']} is not in the manifest"


def uncompressed(name: str, file: pq.ParquetFile) -> Iterator[str]:
    """Yield the first column of a Parquet file that is not compressed with zstd, if there is one."""
    for index in range(file.num_row_groups):
        group = file.metadata.row_group(index)
        for number in range(group.num_columns):
            column = group.column(number)
            if column.compression != "ZSTD":
                yield f"{name}: column {column.path_in_schema} is compressed as {column.compression}, not as ZSTD"
                return
