"""Stages `tokens` and `embed`: texts into token keys and unit vectors, each distinct text once.

Equal token keys mean that the encoder cannot tell two texts apart; mining treats them as one text.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import xxhash

from medi.encoder import Encoder, Seen, Tokenize, unseen
from medi.errors import MediError
from medi.schema import TOKENS, Counts, text_id

_TOKENIZE_ROWS = 2_048


def tokens(texts: Sequence[str], tokenize: Tokenize, max_length_tokens: int) -> tuple[pa.Table, Counts]:
    """Return TOKENS of the distinct texts, sorted by text_id.

    `facts.full_texts` counts the texts that fill the encoder's maximum length: all that were cut are among them.
    """
    ids, keys, lengths = [], [], []
    for start in range(0, len(texts), _TOKENIZE_ROWS):
        batch = texts[start : start + _TOKENIZE_ROWS]
        for text, tokens_of_text in zip(batch, tokenize(batch), strict=True):
            ids.append(text_id(text))
            keys.append(xxhash.xxh3_64_intdigest(np.asarray(tokens_of_text, dtype="<i4").tobytes()))
            lengths.append(len(tokens_of_text))
    table = pa.table({"text_id": ids, "token_key": pa.array(keys, pa.uint64()), "length_tokens": lengths})
    table = table.cast(pa.schema([f.with_nullable(True) for f in TOKENS])).cast(TOKENS).sort_by("text_id")
    full = int(np.sum(np.asarray(lengths) >= max_length_tokens)) if lengths else 0
    facts: dict[str, object] = {"texts": len(ids), "tokens": int(sum(lengths)), "full_texts": full}
    return table, Counts(rows_in=len(ids), rows_out=len(ids), facts=facts)


def chunks(texts: Sequence[str], lengths_tokens: np.ndarray, chunk_rows: int) -> Iterator[list[str]]:
    """Yield the texts in chunks of at most `chunk_rows`, alike in length, so that few tokens are padding.

    Short and long chunks come mixed, so that the time so far tells the time to come.
    """
    order = np.argsort(lengths_tokens, kind="stable")
    for start in np.random.default_rng(0).permutation(range(0, len(order), chunk_rows)).tolist():
        yield [texts[int(i)] for i in order[start : start + chunk_rows]]


def embed(texts: Sequence[str], tokenize: Tokenize, encoder: Encoder, dtype: str, seen: Seen = unseen) -> np.ndarray:
    """Return the unit vectors of one chunk of texts, [n, D], float16 where the encoder computes in bfloat16.

    `seen` is told how many more texts are encoded, again and again.

    Raises:
        MediError: a vector is zero or not finite; the line names the first such text.
    """
    vectors = encoder.encode(tokenize(texts), seen)
    bad = np.flatnonzero(np.isnan(vectors).any(axis=1))
    if len(bad):
        text = texts[int(bad[0])]
        other = "use --dtype float32" if dtype != "float32" else "name another --encoder"
        raise MediError(
            f"the encoder gave vectors that are zero or not finite for {len(bad):,} of {len(texts):,} texts, the first "
            f"is {text_id(text)} ({text[:60]!r}); {other}"
        )
    return vectors.astype(np.float16) if dtype == "bfloat16" else vectors
