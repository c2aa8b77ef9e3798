"""Lines of the KILT knowledge source -> the wanted pages only, in one pass over its 35 GB."""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import orjson

from medi.errors import MediError
from medi.read.records import raw_batches
from medi.source import Page

# A page's id stands at the start of its line; parsing only wanted lines makes the pass as fast as the disk.
_ID = re.compile(rb'"(?:_id|wikipedia_id)"\s*:\s*"?(\d+)"?')
_HEAD_BYTES = 200


def wanted_pages(files: Iterable[tuple[Path, str]], wanted: Collection[str]) -> Iterator[Page]:
    """Yield the pages whose `wikipedia_id` is wanted, as often as they stand in the files.

    Raises MediError where a file is damaged or a wanted line is not a page.
    """
    keep = {page_id.encode() for page_id in wanted}
    for batch in raw_batches(files):
        if batch.fault:
            raise MediError(f"{batch.file}: {batch.fault}")
        for key, line in zip(batch.keys, batch.lines, strict=True):
            found = _ID.search(line, 0, _HEAD_BYTES)
            if found is None or found[1] in keep:
                page = _page(line, f"{batch.file}:{key}")
                if page.page_id in wanted:
                    yield page


def _page(line: bytes, origin: str) -> Page:
    try:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = json.loads(line)
        page_id = record.get("wikipedia_id", record.get("_id"))
        paragraphs = record["text"]
        if not isinstance(paragraphs, list):
            raise TypeError("'text' is no array")
        return Page(str(page_id), _mended(record["wikipedia_title"]), tuple(map(_mended, paragraphs)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MediError(
            f"{origin} is not a page of the KILT knowledge source ({error}); fetch the file again"
        ) from error


def _mended(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate and a blank for each NUL: what follows keeps its place."""
    text = text.replace("\0", " ")
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
