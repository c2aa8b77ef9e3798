"""What a plan is reckoned from: figures and their basis, lengths, the cost of a model, a look at files, rates."""

import gzip
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medi.encoder import read_settings
from medi.fetch import LocalFile
from medi.plan.counted import integers_of, numbers_of
from medi.plan.figures import COUNTED, EXACT, GUESSED, Figure, total
from medi.plan.lengths import batches, counter_of, mean_tokens, tokens_of, typical, whole_batches
from medi.plan.model import KNOWN, Model, model_of
from medi.plan.peek import peek, peek_task
from medi.plan.rates import Rate, counted_rate, pace, pace_of, search_rate, table_rate
from medi.plan.work import Left, Machine, Part, merged, stages
from medi.sources import by_name
from pipelines.presets import usable_cores

MINILM = Model(6, 384, 384, 1_536)
MINILM_SHAPES = ((32, 64), (64, 32), (96, 20), (128, 16), (192, 10), (256, 8))


def test_a_sum_is_as_sure_as_its_least_sure_part() -> None:
    assert total([Figure(3, EXACT), Figure(4, COUNTED)]) == Figure(7, COUNTED)
    assert total([Figure(3, EXACT), Figure(4, GUESSED), Figure(1, COUNTED)]) == Figure(8, GUESSED)
    # Nothing, guessed, changes nothing.
    assert total([Figure(3, EXACT), Figure(0, GUESSED)]) == Figure(3, EXACT)
    assert total([]) == Figure(0, EXACT)
    assert [Figure(1_234, basis).shown() for basis in (EXACT, COUNTED, GUESSED)] == ["1,234", "'1,234", "~1,234"]


def test_batches_are_filled_by_bucket_and_their_last_one_with_blanks() -> None:
    lengths = np.array([10, 32, 33, 300])
    parts = batches(lengths, 400, MINILM_SHAPES)
    # 200 texts of up to 32 tokens, 64 a batch; 100 of up to 64, 32 a batch; 100 cut at 256, 8 a batch.
    assert parts.tolist() == [200 / 64, 100 / 32, 0, 0, 0, 100 / 8]
    assert whole_batches(parts).tolist() == [4, 4, 0, 0, 0, 13]
    assert whole_batches(batches(lengths, 4, MINILM_SHAPES)).tolist() == [1, 1, 0, 0, 0, 1]
    assert mean_tokens(lengths, MINILM_SHAPES) == (10 + 32 + 33 + 256) / 4
    assert (batches(np.zeros(0), 5, MINILM_SHAPES).sum(), mean_tokens(np.zeros(0), MINILM_SHAPES)) == (0, 0)


def test_lengths_of_sources_are_those_measured() -> None:
    assert typical("WikiAnswers", "query").mean() == pytest.approx(11.5, abs=0.2)
    assert typical("pubmed", "document").mean() == pytest.approx(307.7, abs=0.5)
    # Too few texts of it, or none: all sources together, without Super-NI.
    others = typical("npr", "document")
    assert (typical("wikihow", "document") == others).all() and len(others) % 20 == 0
    assert 60 < others.mean() < 150


def test_characters_tell_tokens() -> None:
    assert tokens_of(["", "a" * 100, "a" * 9_999]).tolist() == [3, 25, 512]


def test_the_encoder_s_own_tokenizer_counts_where_it_is_here(tiny_encoder: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    # One of letters: some three times the tokens.
    texts = [f"sentence {'quartz ' * (n % 11)}number {n}" for n in range(300)]
    counted = [len(e.ids) for e in Tokenizer.from_file(str(tiny_encoder / "tokenizer.json")).encode_batch(texts)]
    assert counter_of(tiny_encoder)(texts).mean() == pytest.approx(np.mean(counted), rel=0.1)
    assert counter_of(tmp_path)(texts).tolist() == tokens_of(texts).tolist()
    assert counter_of(tiny_encoder)([]).tolist() == []


def test_the_cost_of_a_model_is_that_of_its_products() -> None:
    assert MINILM.parameters == 6 * (4 * 384**2 + 2 * 384 * 1_536) == 10_616_832
    one = np.array([1.0, 0, 0, 0, 0, 0])
    assert MINILM.flops(one, MINILM_SHAPES) == 64 * 32 * (2 * 10_616_832 + 4 * 6 * 384 * 32)
    # Sentence-T5 large: 335 million weights, 33 million of which are its embeddings.
    large, longest = KNOWN["sentence-transformers/sentence-t5-large"]
    assert (large.parameters, longest) == (301_989_888, 256)


@pytest.mark.parametrize("kind", ["tiny_encoder", "tiny_t5_encoder"])
def test_the_cost_is_what_torch_counts(kind: str, request: pytest.FixtureRequest) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import AutoModel

    folder = request.getfixturevalue(kind)
    settings = read_settings(folder / "config.json")
    model = model_of(settings)
    assert model is not None
    whole = AutoModel.from_pretrained(folder, attn_implementation="eager")
    encoder = whole.encoder if settings["model_type"] == "t5" else whole
    ids = torch.ones((4, 64), dtype=torch.long)
    with FlopCounterMode(display=False) as counted, torch.inference_mode():
        encoder(input_ids=ids, attention_mask=torch.ones_like(ids))
    pooler = 2 * 4 * 32 * 32 if settings["model_type"] == "bert" else 0
    assert model.flops(np.array([1.0]), [(64, 4)]) == counted.get_total_flops() - pooler


def test_settings_that_tell_no_shape_are_no_model() -> None:
    assert model_of({"hidden_size": 384}) is None
    gated = {"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "d_kv": 8, "feed_forward_proj": "gated-gelu"}
    assert model_of(gated) == Model(1, 8, 16, 16, True, 32_000)


def local(folder: Path, name: str, data: bytes) -> LocalFile:
    """A raw file with these bytes."""
    (folder / name).write_bytes(data)
    return LocalFile(folder / name, name, len(data), "")


def pairs(rows: int) -> bytes:
    """Lines of two texts each, of 40 and 200 characters."""
    return b"".join(b'["%040d", "%0200d"]\n' % (n, n) for n in range(rows))


@pytest.mark.parametrize(("rows", "basis"), [(300, EXACT), (50_000, GUESSED)])
def test_a_look_at_the_beginning_tells_lines_texts_and_lengths(tmp_path: Path, rows: int, basis: str) -> None:
    file = local(tmp_path, "gooaq_pairs.jsonl.gz", gzip.compress(pairs(rows)))
    seen = peek([file], by_name("gooaq_pairs").variants[0])
    assert seen.lines.basis == basis and seen.lines.value == pytest.approx(rows, rel=0.02)
    assert seen.unpacked_bytes == pytest.approx(len(pairs(rows)), rel=0.02)
    assert seen.texts_of_line == 2 and set(seen.lengths.tolist()) == {12, 48}


def test_texts_that_repeat_are_one_text(tmp_path: Path) -> None:
    data = b'["what", "an answer"]\n' * 10
    seen = peek([local(tmp_path, "a.jsonl", data)], by_name("gooaq_pairs").variants[0])
    assert (seen.lines.value, seen.texts_of_line) == (10, 0.2)


def test_a_passage_that_is_to_be_looked_up_is_as_long_as_passages_are(repo_root: Path) -> None:
    variant = by_name("fever").variant("kilt")
    path = repo_root / "data" / "sample" / "kilt" / "fever-train-kilt.jsonl"
    seen = peek([LocalFile(path, path.name, path.stat().st_size, "")], variant)
    # A claim and a passage a row, but for few claims that stand twice.
    assert 1.9 < seen.texts_of_line <= 2 and np.median(seen.lengths[seen.lengths > 100]) == 141


def test_parquet_says_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"question": ["q"] * 7_000, "cop": [1] * 7_000}), path)
    file = LocalFile(path, "a.parquet", path.stat().st_size, "")
    assert peek([file], by_name("medmcqa").variants[0]).lines == Figure(7_000, EXACT)


@pytest.mark.parametrize("data", [b"", b"<html>", b"\x1f\x8bnot gz", b'["cut'])
def test_a_damaged_file_ends_the_look_quietly(tmp_path: Path, data: bytes) -> None:
    seen = peek([local(tmp_path, "a.jsonl.gz", data)], by_name("gooaq_pairs").variants[0])
    assert seen.texts_of_line == 0 and len(seen.lengths) == 0


def task(instances: Iterable[tuple[str, str]]) -> bytes:
    """A Super-NI task file."""
    listed = [{"id": str(n), "input": x, "output": [y]} for n, (x, y) in enumerate(instances)]
    shown = {"Positive Examples": [{"input": "an example", "output": "of what is wanted"}]}
    return json.dumps(shown | {"Definition": ["Do it."], "Instances": listed}, indent=4).encode()


def test_of_a_label_task_inputs_are_encoded_of_a_text_task_outputs_too(tmp_path: Path) -> None:
    labels = peek_task(local(tmp_path, "a.json", task((f'say "{n}"', "yes") for n in range(40))))
    assert (labels.lines, labels.texts_of_line) == (Figure(40, EXACT), 1)
    texts = peek_task(local(tmp_path, "b.json", task((f"input {n}", f"output {n}") for n in range(40))))
    assert (texts.lines, texts.texts_of_line) == (Figure(40, EXACT), 2)


def test_a_large_task_is_told_from_its_beginning(tmp_path: Path) -> None:
    seen = peek_task(local(tmp_path, "a.json", task((f"{n} {'x' * 400}", str(n)) for n in range(4_000))))
    assert seen.lines.basis == GUESSED and seen.lines.value == pytest.approx(4_000, rel=0.03)


def test_the_rate_is_the_median_of_chunks_that_came_one_after_another() -> None:
    table = Rate(1e11)
    # 10 s each; one behind a pause of hours, one too small to tell.
    chunks = [(100.0, 4_096, 2e12), (110.0, 4_096, 1e12), (120.0, 4_096, 2e12), (130.0, 4_096, 3e12)]
    assert counted_rate([*chunks, (9_999.0, 4_096, 9e12), (9_999.5, 3, 1e3)], table) == Rate(2e11, True)
    assert counted_rate(chunks[:3], table) == table
    # As after a copy: all at once.
    assert counted_rate([(100 + n / 1000, 4_096, 1e12) for n in range(9)], table) == table


def test_rates_by_device() -> None:
    one, two = (table_rate("cpu-avx512", "float32", 384, cores).flops for cores in (1, 2))
    assert one == 95e9 and 1.7 < two / one < 2
    slow, fast = (table_rate(name, "bfloat16", 1_024, 2).flops for name in ("cuda-sm80", "cuda-sm90"))
    assert 1e13 < slow < fast < 1e15
    # Without instructions for bfloat16 it is slower than float32, with them faster.
    assert table_rate("cpu-avx512", "bfloat16", 384, 1).flops < one / 3
    assert table_rate("cpu-amxbf16", "bfloat16", 384, 1).flops > one * 3
    assert search_rate("cpu-amxbf16", 1) > 2 * search_rate("cpu-avx512", 1)


def test_the_pace_is_that_of_the_reference_where_products_are_as_fast_and_greater_where_they_are_slower() -> None:
    # What a Xeon with AMX and one of 2.0 GHz gave, two cores each; the latter encoded 0.53 times as fast.
    assert pace_of(254e9, 2) == pytest.approx(1.0, abs=0.01)
    assert 1 / pace_of(96e9, 2) == pytest.approx(0.53, abs=0.01)
    assert 0.3 < pace(usable_cores()) < 50


def test_ids_and_lengths_are_read_without_a_loop() -> None:
    assert numbers_of(pa.chunked_array([["00000000000000ff"], ["ff00000000000000"]])).tolist() == [255, 0xFF << 56]
    column = pa.chunked_array([pa.array([7, 8, 9], pa.int32()).slice(1), pa.array([], pa.int32()), [1]])
    assert integers_of(column.cast(pa.int32())).tolist() == [8, 9, 1]


def part(source: str, texts: Figure, left: Left) -> Part:
    """A source of which so much is left."""
    rows = Figure(left.mine_rows, EXACT)
    return Part(source, "v", rows, rows, rows, texts, Figure(0, EXACT), left=left)


def test_stages_take_what_is_left_and_nothing_where_nothing_is() -> None:
    machine = Machine(Rate(1e9, True), MINILM, MINILM_SHAPES, runner="none")
    full = Left(texts=Figure(64, EXACT), batches=np.array([1.0, 0, 0, 0, 0, 0]), mine_rows=32, release_rows=32)
    found = {s.name: s for s in stages([part("a", Figure(64, EXACT), full)], machine)}
    assert found["embed"].seconds == Figure(MINILM.flops(full.batches, MINILM_SHAPES) / 1e9, COUNTED)
    assert found["embed"].disk_bytes.value == 64 * 384 * 4
    assert [found[name].seconds for name in ("fetch", "ingest", "tokens")] == [Figure(0, EXACT)] * 3
    assert (found["embed"].amount, found["mine"].of) == (Figure(64, EXACT), "rows")
    guessed = stages([part("a", Figure(64), replace(full, texts=Figure(64)))], machine)
    assert [s.seconds.basis for s in guessed if s.name == "embed"] == [GUESSED]
    idle = stages([part("a", Figure(64, EXACT), Left())], machine)
    assert all(s.seconds == s.memory_bytes == s.disk_bytes == Figure(0, EXACT) for s in idle)


def test_units_of_a_source_fill_batches_together_sources_do_not() -> None:
    machine = Machine(Rate(1e9), MINILM, MINILM_SHAPES)
    few = Left(texts=Figure(8), batches=np.array([8 / 64, 0, 0, 0, 0, 0]))
    parts = [part("super_ni", Figure(8), few) for _ in range(8)]
    seconds = [next(s.seconds.value for s in stages(p, machine) if s.name == "embed") for p in ([merged(parts)], parts)]
    assert seconds[1] == 8 * seconds[0]
    assert merged(parts).units == 8 and merged(parts).left.texts == Figure(64)
