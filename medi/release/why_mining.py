"""The artifacts of a workspace -> what became of one row's candidates: mining's own rules, run again for this row.

A manifest names every artifact by its key, with the params it was made with, so nothing else has to be asked.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from medi.errors import MediError
from medi.mine.why import Choice
from medi.schema import digest_of, text_id
from medi.store import Record, Store

if TYPE_CHECKING:
    from medi.mine import Texts

_AGAIN = "run `medi build` with the same options, and they are made again"


@dataclass(frozen=True)
class Mined:
    """The ROWS of a unit, the number of the row in there, and what became of its candidates (None: not known)."""

    rows: pa.Table
    number: int
    choice: Choice | None


def mined_of(
    records: dict[str, Record], row: dict[str, object], workspace: Path | None, absent: list[str]
) -> Mined | None:
    """Return what the workspace knows of a row, None where it is not there; `absent` then gets a line that says why."""
    if "mine" not in records:
        absent.append("candidates: the manifest names no artifacts of this row, so nothing of its mining is known")
        return None
    if workspace is None or not workspace.is_dir():
        where = "run.json does not name the workspace" if workspace is None else f"the workspace {workspace} is gone"
        absent.append(f"candidates and pool: {where}; name it with --workspace, or {_AGAIN}")
        return None
    store = Store(workspace / "store")
    try:
        rows = store.open(records["ingest"])
        number = pc.index(rows["id"], row["id"]).as_py()
        if number < 0:
            absent.append(f"candidates and pool: {row['id']} is not in the pool that the manifest names; `medi verify`")
            return None
    except MediError:
        absent.append(f"candidates and pool: {workspace} lacks artifacts of this release; {_AGAIN}")
        return None
    try:
        return Mined(rows, number, _choice(records, store, rows, number))
    except MediError:
        absent.append(f"candidates: {workspace} lacks artifacts or vectors of this release; {_AGAIN}")
        return Mined(rows, number, None)


def _choice(records: dict[str, Record], store: Store, rows: pa.Table, number: int) -> Choice:
    """Return what became of the candidates of a row, given by number. Raises MediError where an artifact is gone."""
    from medi.mine import Hints, PairRules, Rules, near_of
    from medi.mine.why import why_pair, why_task

    params = records["mine"].params
    given = PairRules(**params["relation"]) if "relation" in params else None
    tokens, candidates = (store.open(records[stage]) for stage in ("tokens", "candidates"))
    texts = _texts(records["mine"], store, rows, tokens)
    near, rescored = (store.open(records[s]) if s in records else None for s in ("near", "rescore"))
    how = Rules(**params["rules"]), Hints(None if near is None else near_of(texts, near), rescored)
    if given:
        return _scored(why_pair(number, rows, texts, candidates, given, how), rows["query"][number].as_py(), texts)
    return why_task(params["kind"], number, rows, texts, candidates, how)


def _scored(choice: Choice, query: str, texts: "Texts") -> Choice:
    """Return the choice with the cosine of each given negative that is encoded: those that a row may keep."""

    def cosine(text: str) -> float | None:
        """Return the cosine of the query and a text, None where mining never encoded it."""
        number = texts.number_of.get(text, -1)
        if number < 0 or texts.vector_of[number] < 0:
            return None
        one, other = texts.vectors_of([query, text])
        return float(one @ other)

    return replace(choice, given=[replace(one, score=cosine(one.text)) for one in choice.given])


def _texts(mined: Record, store: Store, rows: pa.Table, tokens: pa.Table) -> "Texts":
    """Return the texts of a unit with their vectors, as mining has them."""
    from medi.mine import PairRules, Texts, texts_to_encode, texts_to_tokenize
    from medi.vectors import VectorStore, id_numbers

    params = mined.params
    given = PairRules(**params["relation"]) if "relation" in params else None
    encoded = texts_to_encode(rows, params["kind"], given, tokens)
    vectors = VectorStore(store.root / "vectors", digest_of(params["encoder"])[:32])
    found = vectors.gather(id_numbers([text_id(text) for text in encoded]))
    return Texts.of(texts_to_tokenize(rows, params["kind"], given), tokens, encoded, found)
