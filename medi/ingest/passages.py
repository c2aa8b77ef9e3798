"""Pages of the KILT knowledge source -> the passages that provenances point at, as `title passage`.

The rule: the title paragraph is left out; `Section::::` paragraphs only start a section; each other paragraph is cut
into sentences (a sentence of over 100 words after each 100), which are packed in order into passages of at most 100
words, a paragraph's first passage going on in the section's last one where both together have at most 100 words
(then a line break stands between the paragraphs). A place belongs to the first passage that ends behind it.
"""

import re
from collections.abc import Collection, Iterable, Iterator

from medi.schema import fold
from medi.source import Page, Place

PASSAGE_WORDS = 100
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")


def passages_at(places: Collection[Place], pages: Iterable[Page]) -> dict[Place, str]:
    """Return the text at each place whose page is among the pages; only passages are kept, never pages."""
    by_page: dict[str, set[Place]] = {}
    for place in places:
        by_page.setdefault(place.page_id, set()).add(place)
    found: dict[Place, str] = {}
    for page in pages:
        passages = list(_passages(page.paragraphs))
        for place in by_page.get(page.page_id, ()):
            if place not in found and passages:
                text = next((text for end, text in passages if end > place[1:]), passages[-1][1])
                found[place] = f"{fold(page.title)} {text}"
    return found


def _passages(paragraphs: tuple[str, ...]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield each passage with the place (paragraph, character) where it ends."""
    text, words, end = "", 0, (0, 0)
    for number, paragraph in enumerate(paragraphs):
        if number == 0 or not paragraph.strip():
            continue
        if paragraph.startswith("Section::::"):
            if text:
                yield end, text
            text, words = "", 0
            continue
        for piece, (piece_end, piece_words, piece_text) in enumerate(_packed(paragraph)):
            if text and (piece or words + piece_words > PASSAGE_WORDS):
                yield end, text
                text, words = "", 0
            text = f"{text}\n{piece_text}" if text else piece_text
            words, end = words + piece_words, (number, piece_end)
    if text:
        yield end, text


def _packed(paragraph: str) -> Iterator[tuple[int, int, str]]:
    """Yield a paragraph's runs of whole sentences of at most 100 words: where each ends, its words, its text."""
    start, words, end = 0, 0, 0
    for piece_end, piece_words in _pieces(paragraph):
        if words and words + piece_words > PASSAGE_WORDS:
            yield end, words, paragraph[start:end].strip()
            start, words = end, 0
        words, end = words + piece_words, piece_end
    if words:
        yield end, words, paragraph[start:end].strip()


def _pieces(paragraph: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence ends and how many words it has; a sentence of over 100 words is cut."""
    cuts = [found.end() for found in _SENTENCE_END.finditer(paragraph)] + [len(paragraph)]
    start = 0
    for cut in cuts:
        ends = [start + word.end() for word in re.finditer(r"\S+", paragraph[start:cut])]
        for first in range(0, len(ends), PASSAGE_WORDS):
            block = ends[first : first + PASSAGE_WORDS]
            yield (cut if first + PASSAGE_WORDS >= len(ends) else block[-1]), len(block)
        start = cut
