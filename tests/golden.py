"""Runs every stage on small inputs with an encoder of exact numbers, and prints the digest of each stage's table.

`python -m tests.golden` writes tests/golden.json; do that after raising the version of a stage on purpose.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from medi import mine
from medi.embed import embed, tokens
from medi.ingest import IngestParams, ingest, ingest_task
from medi.instruct import Clusters, instruct, load_instructions
from medi.sample import sample
from medi.schema import digest_of, digest_table
from medi.source import RawBatch
from medi.sources import by_name
from medi.stages import VERSIONS

GOLDEN = Path(__file__).with_name("golden.json")


def tokenize(texts: Sequence[str]) -> list[list[int]]:
    """Return the UTF-8 bytes of the lower-cased words as token ids, at most 64."""
    return [list(" ".join(text.lower().split()).encode())[:64] for text in texts]


class ExactEncoder:
    """Gives vectors of 16 numbers, each 1/4 or -1/4: unit length and every sum exact on any machine."""

    def encode(self, token_ids: Sequence[Sequence[int]]) -> np.ndarray:
        """Return float32 [n, 16], by the bits of a hash of the token ids."""
        bits = [np.frombuffer(hashlib.sha256(bytes(ids)).digest()[:2], dtype=np.uint8) for ids in token_ids]
        return (np.unpackbits(np.array(bits), axis=1).astype(np.float32) - 0.5) / 2


def digests() -> dict[str, dict[str, object]]:
    """Return stage -> its version and the digest over its results for pairs, triplets, a label and a text task."""
    found: dict[str, list[str]] = {stage: [] for stage in VERSIONS}
    units = [("gooaq_pairs", _pool("gooaq_pairs", _PAIRS)), ("AllNLI", _pool("AllNLI", _TRIPLETS))]
    units += [(f"task1_{kind}", _task(kind)) for kind in ("label", "text")]
    units.append(("msmarco", _pool("msmarco", _QUERIES)))
    for name, (rows, facts) in units:
        kind = str(facts.get("kind", "pair"))
        encoded = mine.texts_to_encode(rows, kind, 4)
        token_table, _ = tokens(mine.texts_to_tokenize(rows, kind), tokenize, 64)
        vectors = embed(encoded, tokenize, ExactEncoder(), "float32")
        texts = mine.Texts.of(mine.texts_to_tokenize(rows, kind), token_table, encoded, vectors)
        pairs = _mined(name, kind, rows, texts)
        sampled, _ = sample(pairs, 9)
        words = load_instructions()
        unit = (
            words.for_task(name, str(facts["definition"]), "CC0") if kind != "pair" else words.for_source(name, "CC0")
        )
        clusters = Clusters(np.arange(len(sampled)) % 2, ["sport", "food"]) if name == "msmarco" else None
        results = {
            "ingest": rows, "tokens": token_table, "mine": pairs, "sample": sampled,
            "audit": mine.audit(name, rows, pairs), "instruct": instruct(sampled, unit, clusters)[0],
        }  # fmt: skip
        for stage, table in results.items():
            found[stage].append(digest_table(table))
        found["embed"].append(hashlib.sha256(vectors.tobytes()).hexdigest())
    return {stage: {"version": VERSIONS[stage], "digest": digest_of(found[stage])} for stage in VERSIONS}


def _mined(name: str, kind: str, rows: pa.Table, texts: mine.Texts) -> pa.Table:
    if kind == "pair":
        return mine.mine_pairs(rows, texts, mine.PairRules(symmetric=name == "AllNLI", clusters=False))[0]
    return (mine.mine_label_task if kind == "label" else mine.mine_text_task)(rows, texts)[0]


def _pool(name: str, lines: list[str]) -> tuple[pa.Table, dict[str, object]]:
    source = by_name(name)
    raw = [line.encode() for line in lines]
    batch = RawBatch(f"{name}.jsonl", True, list(range(1, len(raw) + 1)), [0] * len(raw), raw)
    table, counts = ingest(IngestParams(10), source, source.variants[0], lambda: iter([batch]))
    return table, counts.facts


def _task(kind: str) -> tuple[pa.Table, dict[str, object]]:
    instances = [
        {"id": f"task1-{n}", "input": f"input {n} about {n % 5}", "output": ["yes" if n % 3 else "no"]}
        if kind == "label"
        else {"id": f"task1-{n}", "input": f"input {n}", "output": [f"an answer of its own, number {n}", f"other {n}"]}
        for n in range(30)
    ]
    english = {name: ["English"] for name in ("Input_language", "Output_language", "Instruction_language")}
    task = {"Definition": ["Answer yes or no." if kind == "label" else "Write it."], **english, "Instances": instances}
    table, counts = ingest_task(IngestParams(10), f"super_ni/tasks/task1_{kind}.json", json.dumps(task).encode())
    return table, counts.facts


_PAIRS = [json.dumps([f"question {n}?", f"answer {n % 17} to it"]) for n in range(40)] + [
    '["question 3?", 5]',
    '["a", ""]',
]
_TRIPLETS = [json.dumps([f"premise {n % 20}", f"implied {n}", f"denied {n}"]) for n in range(40)]
_QUERIES = [
    json.dumps({"query": f"query {n}", "pos": [f"passage {n}"], "neg": [f"passage {n + 1}"]}) for n in range(40)
]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(digests(), indent=1, sort_keys=True) + "\n")
