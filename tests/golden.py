"""Runs every stage on small inputs with an encoder of exact numbers, and prints the digest of each stage's table.

`python -m tests.golden` writes tests/golden.json; do that after raising the version of a stage on purpose.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from medi import mine
from medi.domains import cluster_queries
from medi.embed import embed, tokens
from medi.fixed_shapes import Seen, unit_length, unseen
from medi.ingest import IngestParams, ingest, ingest_task
from medi.instruct import Clusters, instruct, load_instructions
from medi.mine.near import near_groups
from medi.mine.rescoring import rescore
from medi.sample import sample
from medi.schema import Counts, digest_of, digest_table
from medi.source import Page, RawBatch, Source, Variant
from medi.sources import ALL, by_name
from medi.stages import VERSIONS

GOLDEN = Path(__file__).with_name("golden.json")


def tokenize(texts: Sequence[str]) -> list[list[int]]:
    """Return the UTF-8 bytes of the lower-cased words as token ids, at most 64."""
    return [list(" ".join(text.lower().split()).encode())[:64] for text in texts]


class ExactEncoder:
    """Gives vectors of 16 numbers, each 1/4 or -1/4: unit length and every sum exact on any machine."""

    def encode(self, token_ids: Sequence[Sequence[int]], seen: Seen = unseen) -> np.ndarray:
        """Return float32 [n, 16], by the bits of a hash of the token ids."""
        bits = [np.frombuffer(hashlib.sha256(bytes(ids)).digest()[:2], dtype=np.uint8) for ids in token_ids]
        return (np.unpackbits(np.array(bits), axis=1).astype(np.float32) - 0.5) / 2


def digests() -> dict[str, dict[str, object]]:
    """Return stage -> its version and the digest over all results: tables, and the counts that later stages read."""
    found: dict[str, list[str]] = {stage: [] for stage in VERSIONS}
    for source in ALL:
        # One line of every declared layout, so that a change of any reader or of what it mends is seen.
        for variant in source.variants if source.name != "super_ni" else ():
            found["ingest"].extend(_digests(_ingested(source, variant, [variant.sample])))
    units = [("gooaq_pairs", _pool("gooaq_pairs", _PAIRS)), ("AllNLI", _pool("AllNLI", _TRIPLETS))]
    units += [("msmarco", _pool("msmarco", _QUERIES)), ("WikiAnswers", _pool("WikiAnswers", _SETS))]
    units += [(f"task1_{kind}", _task(kind)) for kind in ("label", "text", "choice")]
    for name, (rows, counts) in units:
        found["ingest"].extend(_digests((rows, counts)))
        for stage, result in _results(name, rows, counts):
            found[stage].extend(_digests(result))
    nearly = near_groups(["a long text, twice" * 9, "another" * 9, "a long text, twice" * 9 + "."])
    found["near"].append(digest_of(nearly.tolist()))
    vectors = unit_length(np.random.default_rng(0).integers(1, 9, (80, 4)).astype(np.float32))
    clusters = cluster_queries(np.repeat(np.eye(4, dtype=np.float32), 40, axis=0), 0)
    found["embed"].append(hashlib.sha256(vectors.tobytes()).hexdigest())
    found["instruct"].append(digest_of([sorted(np.bincount(clusters).tolist()), len(set(clusters.tolist()))]))
    return {stage: {"version": VERSIONS[stage], "digest": digest_of(found[stage])} for stage in VERSIONS}


def _results(name: str, rows: pa.Table, counts: Counts) -> Iterator[tuple[str, tuple[pa.Table, Counts]]]:
    """Yield stage and result for the stages behind ingest."""
    kind = str(counts.facts.get("kind", "pair"))
    source = None if kind != "pair" else by_name(name)
    given = source and mine.PairRules(source.symmetric, source.clusters)
    known = mine.texts_to_tokenize(rows, kind, given)
    token_table, token_counts = tokens(known, tokenize, 64)
    yield "tokens", (token_table, token_counts)
    encoded = mine.texts_to_encode(rows, kind, given, token_table)
    vectors = embed(encoded, tokenize, ExactEncoder(), "float32")
    yield "embed", (pa.table({"bytes": [hashlib.sha256(vectors.tobytes()).hexdigest()]}), Counts())
    texts = mine.Texts.of(known, token_table, encoded, vectors)
    if given:
        yield "candidates", mine.pair_candidates(rows, texts, given, "s_neg", mine.Search())
        candidates = mine.pair_candidates(rows, texts, given, "passage", mine.Search())
    else:
        task = mine.label_candidates if kind == "label" else mine.text_candidates
        candidates = task(rows, texts, mine.Search())
    yield "candidates", candidates
    for rules in (_MANY, mine.PROFILES["paper"]):
        rescored = rescore(kind, rows, texts, candidates[0], (rules, given), _score)
        yield "rescore", rescored
        hints = mine.Hints(_near(texts), rescored[0]) if rules.rescore else mine.Hints()
        if given:
            mined = mine.mine_pairs(rows, texts, candidates[0], given, rules, hints)
        else:
            mined = mine.mine_task(kind, rows, texts, candidates[0], rules, hints)
        yield "mine", mined
        yield "audit", (mine.audit(name, rows, mined[0], texts), Counts())
    sampled = sample(mined[0], 9)
    yield "sample", sampled
    words = load_instructions()
    unit = words.for_source(name, "CC0") if given else words.for_task(name, str(counts.facts["definition"]), "CC0")
    clusters = Clusters(np.arange(len(sampled[0])) % 2, ["sport", "food"]) if name == "msmarco" else None
    yield "instruct", instruct(sampled[0], unit, clusters)


# Every choice away from its default.
_MANY = replace(
    mine.PROFILES["clean"], negatives=3, given_negatives=2, skip_top=1, window=20, min_score=-0.9, max_score=0.9,
    absolute_margin=0.1, sampling="random", fill="random", rescore={"name": "toy"}, seed=3,
)  # fmt: skip


def _score(pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Return float32 [n], by a hash of each pair."""
    bits = [hashlib.sha256("\n".join(pair).encode()).digest()[0] for pair in pairs]
    return (np.array(bits, dtype=np.float32) - 128) / 128


def _near(texts: mine.Texts) -> np.ndarray:
    """Return groups of near-duplicates: texts that begin alike."""
    first = {}
    return np.array([first.setdefault(text[:9], number) for number, text in enumerate(texts.number_of)])


def _digests(result: tuple[pa.Table, Counts]) -> list[str]:
    """Return the digests of a stage's table and of its counts."""
    return [digest_table(result[0]), digest_of(result[1].to_json())]


def _ingested(source: Source, variant: Variant, lines: list[str]) -> tuple[pa.Table, Counts]:
    """Return the pool of some lines of a variant; a knowledge source has one page for every id."""
    raw = [line.encode() for line in lines]
    batch = RawBatch("toy.jsonl", True, list(range(1, len(raw) + 1)), [0] * len(raw), raw)
    paragraphs = ("Title", "Section::::History.", *(f"Sentence {n} of the page. " * 9 for n in range(9)))
    return ingest(
        IngestParams(10), source, variant, lambda: iter([batch]),
        lambda wanted: (Page(page_id, "A page", paragraphs) for page_id in sorted(wanted)),
    )  # fmt: skip


def _pool(name: str, lines: list[str]) -> tuple[pa.Table, Counts]:
    return _ingested(by_name(name), by_name(name).variants[0], lines)


def _task(kind: str) -> tuple[pa.Table, Counts]:
    instances = [
        {"id": f"task1-{n}", "input": f"input {n}", "output": [f"an answer, number {n}", f"other {n}"]}
        for n in range(30)
    ]
    for n, instance in enumerate(instances):
        if kind == "label":
            instance |= {"input": f"input {n} about {n % 5}", "output": ["Yes." if n % 3 else "no"]}
        if kind == "choice":
            instance |= {"input": f"Which is {n}? (A) one more {n} (B) two less {n}", "output": ["AB"[n % 2]]}
    english = {name: ["English"] for name in ("Input_language", "Output_language", "Instruction_language")}
    task = {"Definition": ["Answer yes or no." if kind == "label" else "Write it."], **english, "Instances": instances}
    return ingest_task(IngestParams(10), f"super_ni/tasks/task1_{kind}.json", json.dumps(task).encode())


_PAIRS = [json.dumps([f"question {n}?", f"answer {n % 17} to it"]) for n in range(40)] + [
    '["question 3?", 5]',
    '["a", ""]',
]
_TRIPLETS = [json.dumps([f"premise {n % 20}", f"implied {n}", f"denied {n}"]) for n in range(40)]
_SETS = [json.dumps({"set": [f"how {n}", f"how is {n}", f"what of {n // 2}"]}) for n in range(40)]
_QUERIES = [
    json.dumps({"query": f"query {n}", "pos": [f"passage {n}"], "neg": [f"passage {n + 1}"]}) for n in range(40)
]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(digests(), indent=1, sort_keys=True) + "\n")
