"""Finished units -> the numbers that a release's report needs beside its rows, from what the workspace keeps."""

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from medi.errors import MediError
from medi.release.manifest import Json
from medi.report.measures import Measured, Pool, measure, measures_of
from medi.schema import text_id
from medi.vectors import id_numbers
from pipelines.build.contents import Finished
from pipelines.build.context import Context
from pipelines.build.mining import kind_of
from pipelines.build.steps import Chain, encode_texts


def measures(context: Context, done: Sequence[Finished]) -> dict[str, Json] | None:
    """Return the content of a release's audit/measures.json, or None where no unit has rows."""
    tasks = [measured for unit in done if unit.chain for measured in _of_unit(context, unit.chain)]
    return measures_of(tasks, context.spec.max_length_tokens) if tasks else None


def _of_unit(context: Context, chain: Chain) -> list[Measured]:
    """Return what is measured of each task of a unit, tasks by name."""
    store = context.store
    rows, candidates, tokens = (store.open(r) for r in (chain.rows, chain.mined.candidates, chain.tokens))
    pool = Pool(kind_of(chain.rows), rows, candidates, tokens, lambda texts: _vectors(context, texts))
    examples = store.open(chain.instructed)
    names = sorted(pc.unique(examples["task"]).to_pylist())
    if len(names) == 1:  # Nothing is copied from the file.
        return [measure(examples, pool)]
    return [measure(examples.filter(pc.equal(examples["task"], name)), pool) for name in names]


def _vectors(context: Context, texts: list[str]) -> np.ndarray:
    """Return the vectors of texts, float32 [n, D]; those that someone removed from the workspace are encoded again."""
    ids = id_numbers([text_id(text) for text in texts])
    try:
        return context.vectors.gather(ids)
    except MediError:
        encode_texts(context, dict.fromkeys(texts, 1))
        return context.vectors.gather(ids)
