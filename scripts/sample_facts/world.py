"""An invented world: towns, people, works, companies and buildings that refer to each other, as pages and facts.

One engine feeds all sets that stand on an encyclopaedia. Every fact knows the sentence that states it and where that
sentence lies in its page, so that questions, claims and provenance come from the same place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from sample_facts import a, cap, rng_of
from sample_facts.layouts import CHOICES, CHRONICLE, DEEDS, LAYOUTS, PROFESSIONS, STRUCTURES

STARTS = "Velder Ostra Quill Merro Tolla Harn Brisk Ilver Kest Lorr Nand Orm Pell Rusk Sarn Tamm Urd Wend Yssel Zann"
ENDS = "mouth ford wick stead holm minster haven combe thorpe gate"
FIRST = (
    "Ada Bruno Celia Dmitri Elin Farid Greta Hamish Ines Jonas Katya Leopold Mirela Nadim Odile Piers Quentin Rosa "
    "Sven Thea Ursula Viktor Wanda Xavier Yara Zoltan Agnes Boris Clara Dorian Esther Felix Gwen Hugo Irma Janek"
)
LAST = (
    "Abendroth Bellweather Castellan Drummond Eskildsen Fairweather Galbraith Hollander Ivanek Jasperson Kowalczyk "
    "Lindqvist Marchetti Nightingale Oyelaran Pemberton Quist Rasmussen Szabolcsi Thorvald Underhill Vasquez Whitlock "
    "Yilmaz Zwicky Aldermoor Brannigan Cavendale Delacroft Ettinger"
)
TITLES_A = "The|The Salt|The Red|A Silent|Winter|The Glass|Paper|The Last|Hollow|A Northern|The Iron".split("|")
TITLES_B = "Road Garden Harbour Letters Mountain Clock Orchard Bridge Summer Mirror Sparrow Kingdom Window".split()
FORMS = {"novelist": "novel", "poet": "cycle of poems", "composer": "opera", "film director": "film"}
SUFFIXES = ("& Sons", "Works", "Brothers", "Manufactory", "Group", "Partners")
_CHRONICLE = "Section::::Chronicle.\n"


@dataclass(eq=False)
class Page:
    """A page of the encyclopaedia; `paragraphs` begins with the title, and `links` holds (paragraph, text, page)."""

    number: int
    title: str
    kind: str
    paragraphs: list[str] = field(default_factory=list)
    links: list[tuple[int, str, "Page"]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    about: dict[str, "Page"] = field(default_factory=dict)

    def passage(self) -> str:
        """Return the page's prose up to its chronicle in one string, without title and headings."""
        end = self.paragraphs.index(_CHRONICLE) if _CHRONICLE in self.paragraphs else None
        prose = [p.removeprefix("BULLET::::- ").strip() for p in self.paragraphs[1:end] if "Section::::" not in p]
        return " ".join(prose)


@dataclass(frozen=True)
class Fact:
    """One relation of a page: its value, and the sentence that states it at [start, end) of a paragraph."""

    page: Page
    relation: str
    value: str
    sentence: str
    paragraph: int
    start: int
    end: int


class World:
    """Pages and facts of one seed. `facts` lists every stated fact in the order of the pages."""

    def __init__(self, name: str, size: int) -> None:
        self.rng: Random = rng_of(f"world {name}")
        self.pages: list[Page] = []
        self.facts: list[Fact] = []
        self._towns = self._shuffled(STARTS.split(), ENDS.split(), "")
        self._people = self._shuffled(FIRST.split(), LAST.split(), " ")
        self._works = self._shuffled(TITLES_A, TITLES_B, " ")
        self.towns = [self._town(self._towns.pop()) for _ in range(size)]
        self.people = [self._person(self._people.pop()) for _ in range(2 * size)]
        self.works = [self._work(self._works.pop(), self._able("writes", i)) for i in range(size)]
        self.companies = [self._company(self.people[(3 * i + 1) % len(self.people)]) for i in range(size)]
        self.structures = [self._structure(self._able("builds", i)) for i in range(size)]
        for town in self.towns:
            self._residents(town)
            town.paragraphs += [_CHRONICLE, " ".join(self.rng.sample(CHRONICLE, 7)) + "\n"]

    def of(self, page: Page, relation: str) -> Fact:
        """Return the page's fact of that relation. Raises StopIteration where it has none."""
        return next(f for f in self.facts if f.page is page and f.relation == relation)

    def _shuffled(self, heads: Sequence[str], tails: Sequence[str], between: str) -> list[str]:
        names = [f"{head}{between}{tail}" for head in heads for tail in tails]
        self.rng.shuffle(names)
        return names

    def _able(self, ability: str, index: int) -> Page:
        able = [p for p in self.people if ability in PROFESSIONS[p.values["occupation"]]]
        return able[index % len(able)]

    def _words(self, kind: str, name: str) -> dict[str, str]:
        return {"name": name} | {word: self.rng.choice(options) for word, options in CHOICES[kind].items()}

    def _page(self, kind: str, title: str, words: dict[str, str]) -> Page:
        """Write a page by the layout of its kind, filled with the words."""
        number = 100_000 + 137 * len(self.pages) + self.rng.randrange(100)
        page = Page(number, title, kind, [f"{title}\n"])
        self.pages.append(page)
        for heading, sentences in LAYOUTS[kind]:
            if heading:
                page.paragraphs.append(f"Section::::{heading.removeprefix('*')}.\n")
            parts = [(relation, words.get(key, ""), text.format(**words)) for relation, key, text in sentences]
            if heading.startswith("*"):
                for part in parts:
                    self._write(page, [part], "BULLET::::- ")
            else:
                self._write(page, parts)
        return page

    def _write(self, page: Page, parts: list[tuple[str, str, str]], mark: str = "") -> None:
        """Append a paragraph of (relation, value, sentence); those with a relation become facts."""
        text = mark
        for relation, value, sentence in parts:
            start = len(text) if text == mark else len(text) + 1
            text += sentence if text == mark else f" {sentence}"
            if relation:
                page.values[relation] = value
                self.facts.append(
                    Fact(page, relation, value, sentence, len(page.paragraphs), start, start + len(sentence))
                )
        page.paragraphs.append(f"{text}\n")

    def _link(self, page: Page, relation: str, other: Page) -> None:
        page.about[relation] = other
        page.links.append((self.of(page, relation).paragraph, other.title, other))

    def _town(self, name: str) -> Page:
        year, people = self.rng.randrange(980, 1720), self.rng.randrange(21, 880) * 100
        words = {"year": str(year), "fire": str(year + 150), "people": f"{people:,}"}
        return self._page("town", name, self._words("town", name) | words)

    def _person(self, name: str) -> Page:
        r, words, town = self.rng, self._words("person", name), self.rng.choice(self.towns)
        # In turn, so that every world has somebody who writes and somebody who builds.
        job = list(PROFESSIONS)[len(self.pages) % len(PROFESSIONS)]
        # Nobody filmed or raced before there were cameras and bicycles.
        born = r.randrange(1890 if job in ("film director", "cyclist") else 1801, 1955)
        words |= {
            "job": job,
            "a_job": a(job),
            "born": str(born),
            "day": str(r.randrange(1, 29)),
            "won": str(born + r.randrange(31, 52)),
            "town": town.title,
            "school": f"{r.choice(self.towns).title} Academy",
            "deed": r.choice(DEEDS[job]).format(n=name),
        }
        page = self._page("person", name, words)
        self._link(page, "place of birth", town)
        return page

    def _years_after(self, person: Page, least: int, most: int) -> int:
        return int(person.values["date of birth"]) + self.rng.randrange(least, most)

    def _work(self, name: str, maker: Page) -> Page:
        form, place = FORMS[maker.values["occupation"]], self.rng.choice(self.towns)
        title = f"{name} ({form})" if self.rng.random() < 0.2 else name
        words = {"a_form": a(form), "maker": maker.title, "place": place.title}
        words["year"] = str(self._years_after(maker, 25, 60))
        page = self._page("work", title, self._words("work", name) | words)
        self._link(page, "creator", maker)
        self._link(page, "narrative location", place)
        return page

    def _company(self, founder: Page) -> Page:
        r, town = self.rng, self.rng.choice(self.towns)
        names = [f"{founder.title.split()[-1]} {suffix}" for suffix in SUFFIXES]
        name = r.choice(sorted(set(names) - {page.title for page in self.pages}))
        words = {"town": town.title, "founder": founder.title, "markets": str(r.randrange(6, 60))}
        words |= {"year": str(self._years_after(founder, 24, 45)), "staff": f"{r.randrange(4, 190) * 10:,}"}
        page = self._page("company", name, self._words("company", name) | words)
        self._link(page, "headquarters location", town)
        self._link(page, "founded by", founder)
        return page

    def _structure(self, architect: Page) -> Page:
        r, words, town = self.rng, self._words("structure", ""), self.rng.choice(self.towns)
        year, size = self._years_after(architect, 28, 60), r.randrange(20, 400)
        form, honoured = words["form"], f"{r.choice(FIRST.split())} {r.choice(LAST.split())}"
        words |= {"name": f"{honoured} {cap(form)}", "a_form": a(form), "town": town.title}
        words |= {"architect": architect.title, "year": str(year), "repaired": str(year + r.randrange(20, 60))}
        words |= {"size": f"{size} metres", "span": STRUCTURES[form].format(size=size)}
        page = self._page("structure", words["name"], words)
        self._link(page, "location", town)
        self._link(page, "architect", architect)
        return page

    def _residents(self, town: Page) -> None:
        born = [p for p in self.people if p.about["place of birth"] is town][:3]
        if born:
            town.paragraphs.append("Section::::People.\n")
        for person in born:
            town.links.append((len(town.paragraphs), person.title, person))
            job, year = person.values["occupation"], person.values["date of birth"]
            sentence = f"{person.title}, {job}, was born in {town.title} in {year}."
            self._write(town, [(f"resident {person.title}", person.title, sentence)], "BULLET::::- ")
