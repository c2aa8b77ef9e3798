"""Invented news: each event of `news.txt`, with people, towns and numbers filled in, told by four kinds of paper."""

from typing import NamedTuple

from sample_facts import rng_of, table
from sample_facts.world import ENDS, FIRST, LAST, STARTS

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
COMPANIES = "Norvane Pelagic Tessaro Quillon Harwick Dunmore Ostrava-Lenz Brightmere Calloway Solstead".split()


class Story(NamedTuple):
    """One event: two titles, the lead, details in order, a one-sentence summary, its town and its topic."""

    title: str
    other_title: str
    lead: str
    details: list[str]
    summary: str
    town: str
    topic: str

    def body(self) -> str:
        """Return the article in one string."""
        return " ".join([self.lead, *self.details])


def stories(name: str, count: int) -> list[Story]:
    """Return `count` stories for the set of that name; each kind of event comes round in turn, details vary."""
    rng, kinds, out = rng_of(f"news {name}"), table("news"), []
    towns = [a + b for a in STARTS.split() for b in ENDS.split()]
    rng.shuffle(towns)
    for i in range(count):
        _, topic, title, other, lead, details, summary = kinds[i % len(kinds)]
        values = {
            "p": f"{rng.choice(FIRST.split())} {rng.choice(LAST.split())}",
            "t": towns[(2 * i) % len(towns)],
            "u": towns[(2 * i + 1) % len(towns)],
            "n": str(rng.choice([120, 240, 310, 460, 580, 730, 840, 960]) + rng.randrange(40)),
            "m": str(rng.randrange(11, 29)),
            "d": rng.choice(DAYS),
            "c": rng.choice(COMPANIES),
        }
        kept = details.split(" ~ ")
        kept.pop(rng.randrange(len(kept)))
        texts = [text.format(**values) for text in (title, other, lead, summary, *kept)]
        out.append(Story(texts[0], texts[1], texts[2], texts[4:], texts[3], values["t"], topic))
    return out
