"""Times the encoder beside `SentenceTransformer.encode` at its defaults, over texts of the real files.

    python -m benchmarks.embed [--repeats 5] [--rows 20000]

The texts are drawn from ../shared/data/raw beside the project; where that is absent, from the bundled sample. Whether
bfloat16 finds the same positives is asked of each text's nearest other text.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import paired
from medi.embed import chunks, embed, tokens
from medi.encoder import describe, load
from medi.encoder_names import MINILM
from medi.errors import MediError
from medi.fetch.encoder import find_encoder
from medi.fetch.settings import Settings as FetchSettings
from medi.schema import text_id
from medi.vectors import CHUNK_ROWS
from pipelines.build.context import prepare as prepare_build
from pipelines.build.reading import run_ingest
from pipelines.build.units import plan_groups
from pipelines.presets import resolve

RAW = Path(__file__).resolve().parents[2] / "shared" / "data" / "raw"
THEIRS = "sentence-transformers, float32"
# How near to the best float32 score a positive must be to count as good as it.
_REGRET = 0.002


def prepare(texts: int, folder: Path) -> str:
    """Write the texts that are embedded, drawn by their hashes, and say whence they are."""
    options = {"raw": RAW, "super_ni_tasks": "all"} if RAW.exists() else {}
    found = sorted(set(pool(options)), key=lambda text: hashlib.sha256(text.encode()).digest())[:texts]
    (folder / "texts.json").write_text(json.dumps(found))
    whence = "the real files" if RAW.exists() else "the bundled sample, as ../shared/data/raw is not here"
    mean = np.mean([len(text) for text in found])
    return (
        f"{len(found):,} distinct queries and positives of {whence}, {mean:.0f} characters in the mean. A build's way: "
        "tokens, chunks of texts alike in length, fixed shapes. Equal positives: the nearest other text is the one that"
        " float32 finds; as good: its score in float32 is within 0.002 of that one."
    )


def pool(options: dict[str, object]) -> Iterable[str]:
    """Yield the queries and positives of every source and task of a build with these options."""
    with tempfile.TemporaryDirectory() as workspace:
        settings = resolve("full" if options else "sample", **options, workspace=Path(workspace), encoder=MINILM)
        settings = replace(settings, offline=True)
        for group in plan_groups(prepare_build(settings)).groups:
            for unit in group.units:
                # What a build would leave out as damaged is left out here too.
                with suppress(MediError):
                    rows, _ = run_ingest(settings, unit)
                    yield from rows["query"].to_pylist()
                    yield from rows["positive"].drop_null().to_pylist()


def minilm(_: Path) -> Path:
    """Return the folder of MiniLM."""
    return find_encoder(MINILM, None, FetchSettings(Path(tempfile.mkdtemp()), offline=True)).folder


def t5_base(folder: Path) -> Path:
    """Return a folder beside the texts with a random encoder of the shape of Sentence-T5 base, written once.

    It reads MiniLM's word pieces: what they are does not matter for the time.
    """
    made = folder / "t5-base"
    if made.exists():
        return made
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import AutoTokenizer, T5Config, T5EncoderModel

    torch.manual_seed(0)
    plain = folder / "t5-base-plain"
    config = T5Config(d_model=768, d_kv=64, d_ff=3_072, num_layers=12, num_heads=12)
    T5EncoderModel(config).save_pretrained(plain)
    AutoTokenizer.from_pretrained(minilm(folder)).save_pretrained(plain)
    body = Transformer(str(plain), max_seq_length=256)
    SentenceTransformer(modules=[body, Pooling(768, "mean"), Normalize()], device="cpu").save(str(made))
    return made


def theirs(model_of: Callable[[Path], Path], folder: Path) -> paired.Measured:
    """Embed as the library does by itself."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(model_of(folder)), device="cpu", local_files_only=True)
    texts = json.loads((folder / "texts.json").read_text())
    return embedded(folder, THEIRS, lambda: model.encode(texts, normalize_embeddings=True))


def ours(model_of: Callable[[Path], Path], dtype: str, folder: Path) -> paired.Measured:
    """Embed as a build does."""
    model = model_of(folder)
    encoder = load(describe("encoder", model, "", dtype), model)
    texts = json.loads((folder / "texts.json").read_text())

    def work() -> np.ndarray:
        """Return the vectors in the order of the texts."""
        lengths = tokens(texts, encoder.tokenize, 256)[0]
        length_of = dict(zip(lengths["text_id"].to_pylist(), lengths["length_tokens"].to_pylist(), strict=True))
        vectors = {}
        for chunk in chunks(texts, np.array([length_of[text_id(text)] for text in texts]), CHUNK_ROWS):
            vectors |= zip(chunk, embed(chunk, encoder.tokenize, encoder.encoder, dtype), strict=True)
        return np.stack([vectors[text] for text in texts])

    return embedded(folder, f"medi, {dtype}", work)


def embedded(folder: Path, way: str, work: Callable[[], np.ndarray]) -> paired.Measured:
    """Measure a way, keep its vectors, and compare its nearest texts with those of the library's vectors."""
    kept: list[np.ndarray] = []
    measured = paired.measure(lambda: kept.append(work()) or {})
    vectors = kept[0].astype(np.float32)
    if way == THEIRS:
        np.save(folder / "vectors.npy", vectors)
    exact = np.load(folder / "vectors.npy")
    best, found = nearest(exact), nearest(vectors)
    regret = (exact * exact[best]).sum(axis=1) - (exact * exact[found]).sum(axis=1)
    told = {
        "texts/s": round(len(vectors) / measured.seconds),
        "equal positives": f"{(best == found).mean():.2%}",
        "as good": f"{(regret <= _REGRET).mean():.2%}",
    }
    return replace(measured, found=told)


def nearest(vectors: np.ndarray) -> np.ndarray:
    """Return for each vector the place of the nearest other one, int64 [n]."""
    places = []
    for start in range(0, len(vectors), 1_024):
        scores = vectors[start : start + 1_024] @ vectors.T
        scores[np.arange(len(scores)), np.arange(start, start + len(scores))] = -np.inf
        places.append(scores.argmax(axis=1))
    return np.concatenate(places)


def sized(title: str, module: str, model_of: Callable[[Path], Path], texts: int) -> paired.Benchmark:
    """Return the benchmark of an encoder over so many texts."""
    ways: dict[str, paired.Way] = {THEIRS: partial(theirs, model_of)}
    ways |= {f"medi, {dtype}": partial(ours, model_of, dtype) for dtype in ("float32", "bfloat16")}
    ratios = [paired.Ratio(THEIRS, "medi, bfloat16", least=2.5), paired.Ratio(THEIRS, "medi, float32", least=1)]
    return paired.Benchmark(module, title, partial(prepare, texts), ways, ratios)


BENCHMARK = sized("Embed: MiniLM", "benchmarks.embed", minilm, 20_000)

if __name__ == "__main__":
    paired.main(BENCHMARK, partial(sized, BENCHMARK.title, BENCHMARK.module, minilm))
