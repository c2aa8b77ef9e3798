"""A release -> files of a JSON object a line: our own columns, or what FlagEmbedding or tevatron train on."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from medi.export.rows import Row, Tally, file_name, rows_of, tasks_of, write_lines
from medi.release import Release
from medi.schema import text_id

# The folders of a FlagEmbedding export; its trainer reads from a folder's ending whether other rows are negatives too.
FLAG_FOLDERS = ("in_batch", "no_in_batch_neg")


def write_jsonl(release: Release, path: Path) -> Tally:
    """Write one file with the columns of the shards, a row a line, in their order."""
    tally = Tally()

    def all_rows() -> Iterator[Row]:
        """Yield every row."""
        for _, tables in tasks_of(release):
            tally.tasks += 1
            yield from rows_of(tables)

    tally.rows = write_lines(path, all_rows())
    return tally


def write_flagembedding(release: Release, path: Path) -> Tally:
    """Write a folder for `--train_data OUT/in_batch OUT/no_in_batch_neg`, one file a task, of query, pos, neg, prompt.

    FlagEmbedding (1.4, `FlagEmbedding/abc/finetune/embedder/AbsDataset.py`) takes each file for a data set, whose rows
    meet in batches under `--same_dataset_within_batch True`; in a folder that ends in `no_in_batch_neg` other rows are
    no negatives, which is where tasks with labels stand. It puts `prompt` before the query once
    `--query_instruction_for_retrieval` is given (an empty one will do); documents have no field of their own for it,
    so the instruction is part of their text. `pos_scores` and `neg_scores` (null where nothing was scored) are for its
    `--knowledge_distillation`. Of a row without negatives it cannot make a group: left out as `no_negative`.
    """
    tally, taken = Tally(), set[str]()
    for folder in FLAG_FOLDERS:
        (path / folder).mkdir(parents=True)
    for entry, tables in tasks_of(release):
        folder = path / FLAG_FOLDERS[entry["kind"] == "label"]
        rows = _with_negatives(rows_of(tables), tally)
        count = write_lines(folder / f"{file_name(entry['task'], taken)}.jsonl", map(_flag_record, rows))
        tally.tasks += count > 0
        tally.rows += count
    return tally


def write_tevatron(release: Release, path: Path) -> Tally:
    """Write one file: query_id, query, positive_passages and negative_passages of docid and text.

    That is what tevatron reads in place (0.1, `tevatron/datasets/preprocessor.py`; later `retriever/dataset.py`, where
    `positive_passages` is in the row). A prefix is one for all tasks there, so instructions are part of the texts. A
    title is optional and not given, as it would be joined with a blank. Of a row without negatives it cannot draw any:
    left out as `no_negative`.
    """
    tally = Tally()

    def records() -> Iterator[Row]:
        """Yield the record of every row that has a negative."""
        for _, tables in tasks_of(release):
            rows = _with_negatives(rows_of(tables), tally)
            if first := next(rows, None):
                tally.tasks += 1
                yield from map(_tevatron_record, chain([first], rows))

    tally.rows = write_lines(path, records())
    return tally


def _with_negatives(rows: Iterable[Row], tally: Tally) -> Iterator[Row]:
    for row in rows:
        if row["negatives"]:
            yield row
        else:
            tally.left_out["no_negative"] += 1


def _documents(row: Row) -> list[str]:
    """Return the positive and the negatives, each behind the instruction."""
    return [f"{row['document_instruction']}{text}" for text in (row["positive"], *row["negatives"])]  # type: ignore[misc]


def _flag_record(row: Row) -> Row:
    positive, *negatives = _documents(row)
    record = {"id": row["id"], "query": row["query"], "pos": [positive], "neg": negatives}
    scores = {"pos_scores": [row["positive_score"]], "neg_scores": row["negative_scores"]}
    # Its trainer halves the batch of a type that is symmetric; batches of labels are told by the folder.
    return record | scores | {"prompt": row["query_instruction"], "type": "normal"}


def _tevatron_record(row: Row) -> Row:
    positive, *negatives = ({"docid": text_id(text), "text": text} for text in _documents(row))
    query = f"{row['query_instruction']}{row['query']}"
    return {"query_id": row["id"], "query": query, "positive_passages": [positive], "negative_passages": negatives}
