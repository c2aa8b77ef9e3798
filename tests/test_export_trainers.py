"""Exports read back by what they are for: sentence-transformers' own trainer, and the readers of two other trainers.

FlagEmbedding and tevatron do not import beside this stack (both need an older transformers), so what their readers do
with a row is written down here: of FlagEmbedding 1.4.2 `abc/finetune/embedder/AbsDataset.py`, whose classes were run by
hand on such a folder, of tevatron `retriever/dataset.py` at commit 0a9626f, where `positive_passages` is in the row.
"""

import json
import math
import random
from collections import Counter
from pathlib import Path

import datasets
import pytest

from medi.export import export
from medi.release import open_release
from medi.schema import text_id
from tests.release_builder import Builder, pair_row, tiny


@pytest.fixture
def builder() -> Builder:
    """Return the builder of a release with a cluster, whose rows have 0, 1, 2, 2 and 2 negatives."""
    made = tiny(5)
    cluster = {("asks", "asks/07"): [pair_row("asks", number, "asks/07") for number in range(10, 15)]}
    made.rows = {("asks", "asks"): made.rows["asks", "asks"], **cluster, **made.rows}
    made.sources[0] = {**made.sources[0], "planned": 10, "got": 10, "drawn": 13}
    made.tasks.insert(1, {**made.tasks[0], "task": "asks/07"})
    for index, kept in ((0, 0), (1, 1)):
        row = made.row("asks/07", index)
        for name in ("negatives", "negative_scores", "negative_origins"):
            row[name] = row[name][:kept]  # type: ignore[index]
    return made


@pytest.fixture
def rows(builder: Builder, tmp_path: Path) -> list[dict[str, object]]:
    """Write the release to `r` and return its rows."""
    builder.write(tmp_path / "r")
    return [row for table in open_release(tmp_path / "r").tables() for row in table.to_pylist()]


def test_sentence_transformers_has_every_row_and_every_negative(rows: list[dict[str, object]], tmp_path: Path) -> None:
    tally = export(tmp_path / "r", "sentence-transformers", tmp_path / "st")
    assert (tally.tasks, tally.rows, tally.left_out, tally.negatives_left_out) == (5, 25, {}, 0)
    sets = datasets.load_from_disk(str(tmp_path / "st"))
    columns = ["anchor", "positive", "negative_1", "negative_2"]
    assert {name: (found.column_names, len(found)) for name, found in sets.items()} == {
        "asks": (columns, 5), "asks-07": (columns, 3), "asks-07.2": (columns[:2], 1), "asks-07.3": (columns[:3], 1),
        "twins": (columns, 5), "task001_yes_or_no": (columns[:3], 5), "task002_rewrite": (columns[:3], 5),
    }  # fmt: skip
    found = Counter(tuple(row.values()) for part in sets.values() for row in part.to_list())
    assert found == Counter((row["query"], row["positive"], *row["negatives"]) for row in rows)  # type: ignore[misc]
    prompts = json.loads((tmp_path / "st" / "prompts.json").read_bytes())
    assert set(prompts) == set(sets)
    answer = "Represent the answer for retrieval:"
    assert prompts["asks-07.3"] == {
        "anchor": "Represent the question for retrieving answers:", "positive": answer, "negative_1": answer,
    }  # fmt: skip


def test_the_trainer_of_sentence_transformers_trains_on_it(
    rows: list[dict[str, object]], tiny_encoder: Path, tmp_path: Path
) -> None:
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    export(tmp_path / "r", "sentence-transformers", tmp_path / "st")
    model = SentenceTransformer(str(tiny_encoder), device="cpu")
    before = [weight.detach().clone() for weight in model.parameters()]
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path / "out"), max_steps=3, per_device_train_batch_size=4, learning_rate=1e-2, report_to=[],
        prompts=json.loads((tmp_path / "st" / "prompts.json").read_bytes()), use_cpu=True, disable_tqdm=True,
        save_strategy="no", logging_steps=1,
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=datasets.load_from_disk(str(tmp_path / "st")),
        loss=MultipleNegativesRankingLoss(model),
    )
    seen = set()
    for batch in trainer.get_train_dataloader():
        for column in ("anchor", "positive"):
            seen |= {(column, text) for text in model.tokenizer.batch_decode(batch[f"{column}_input_ids"], True)}
    # The tokenizer of the tiny model sets punctuation apart.
    expected = {
        (column, f"{row[instruction]}{row[text]}".lower())
        for row in rows
        for column, instruction, text in (
            ("anchor", "query_instruction", "query"),
            ("positive", "document_instruction", "positive"),
        )
    }
    assert {(c, t.replace(" ", "")) for c, t in seen} == {(c, t.replace(" ", "")) for c, t in expected}
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert trainer.state.global_step == 3 and len(losses) == 3 and all(map(math.isfinite, losses))
    assert any((old != new).any() for old, new in zip(before, model.parameters(), strict=True))


def flag_groups(folder: Path, group_size: int, cache: Path) -> list[tuple[str, list[str]]]:
    """Return (query, passages) of every row as FlagEmbedding 1.4 makes them of a folder in --train_data.

    Each .json or .jsonl file in it is loaded by `datasets`, then all are concatenated; the prompt stands before the
    query, one positive and `group_size - 1` negatives are drawn, repeated where the row has fewer.
    """
    files = sorted(path for path in folder.iterdir() if path.suffix in (".json", ".jsonl"))
    read = [datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(cache)) for path in files]
    groups = []
    for row in datasets.concatenate_datasets(read).to_list():
        assert row["type"] == "normal"
        times = math.ceil((group_size - 1) / len(row["neg"]))
        negatives = random.Random(0).sample(row["neg"] * times, group_size - 1)
        groups.append((f"{row['prompt']}{row['query']}", [random.Random(0).choice(row["pos"]), *negatives]))
    return groups


def test_flagembedding_reads_its_folders(rows: list[dict[str, object]], tmp_path: Path) -> None:
    tally = export(tmp_path / "r", "flagembedding", tmp_path / "flag")
    assert (tally.tasks, tally.rows, tally.left_out) == (5, 24, {"no_negative": 1})
    assert sorted(path.relative_to(tmp_path / "flag").as_posix() for path in (tmp_path / "flag").rglob("*.jsonl")) == [
        "in_batch/asks-07.jsonl", "in_batch/asks.jsonl", "in_batch/task002_rewrite.jsonl", "in_batch/twins.jsonl",
        "no_in_batch_neg/task001_yes_or_no.jsonl",
    ]  # fmt: skip
    groups = [
        group
        for folder in ("in_batch", "no_in_batch_neg")
        for group in flag_groups(tmp_path / "flag" / folder, 3, tmp_path / "c")
    ]
    with_negatives = [row for row in rows if row["negatives"]]
    assert len(groups) == len(with_negatives) == 24
    by_query = {f"{row['query_instruction']}{row['query']}": row for row in with_negatives}
    for query, (positive, *negatives) in groups:
        row = by_query.pop(query)
        assert positive == f"{row['document_instruction']}{row['positive']}"
        assert set(negatives) == {f"{row['document_instruction']}{text}" for text in row["negatives"]}  # type: ignore[union-attr]
    (first, *_) = [json.loads(line) for line in (tmp_path / "flag" / "in_batch" / "asks.jsonl").open()]
    assert (first["pos_scores"], first["neg_scores"]) == ([0.75], [0.5, 0.25])


def tevatron_group(row: dict[str, list[dict[str, str]]], group_size: int) -> list[str]:
    """Return the passages that tevatron makes of a row: a positive, and as many negatives as the group has room for.

    A title, where there is one, comes before the text with a blank; where there are too few negatives, some are drawn
    again.
    """
    negatives = row["negative_passages"]
    if len(negatives) < group_size - 1:
        chosen = random.Random(0).choices(negatives, k=group_size - 1)
    else:
        chosen = random.Random(0).sample(negatives, group_size - 1)
    passages = [row["positive_passages"][0], *chosen]
    return [f"{one['title']} {one['text']}" if "title" in one else one["text"] for one in passages]


def test_tevatron_reads_its_file(rows: list[dict[str, object]], tmp_path: Path) -> None:
    tally = export(tmp_path / "r", "tevatron", tmp_path / "t.jsonl")
    assert (tally.tasks, tally.rows, tally.left_out) == (5, 24, {"no_negative": 1})
    read = datasets.load_dataset("json", data_files=str(tmp_path / "t.jsonl"), split="train", cache_dir=str(tmp_path))
    by_id = {row["id"]: row for row in rows if row["negatives"]}
    for record in read.to_list():  # type: ignore[union-attr]
        row = by_id.pop(record["query_id"])
        assert record["query"] == f"{row['query_instruction']}{row['query']}"
        positive, *negatives = tevatron_group(record, 3)
        assert positive == f"{row['document_instruction']}{row['positive']}"
        assert set(negatives) == {f"{row['document_instruction']}{text}" for text in row["negatives"]}  # type: ignore[union-attr]
        passages = [*record["positive_passages"], *record["negative_passages"]]
        assert [passage["docid"] for passage in passages] == [text_id(passage["text"]) for passage in passages]
    assert not by_id
