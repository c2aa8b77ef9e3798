"""An invented world: towns, people, works, companies and buildings that refer to each other, as pages and facts.

One engine feeds all sets that stand on an encyclopaedia. Every fact knows the sentence that states it and where that
sentence lies in its page, so that questions, claims and provenance come from the same place.
"""

from dataclasses import dataclass, field
from random import Random

from sample_facts import a, cap, rng_of
from sample_facts.relations import CHRONICLE, DEEDS, PLOTS, PRODUCTS, PROFESSIONS, STRUCTURES, TRADES

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
REGIONS = (
    "Westmere",
    "the Calder March",
    "Haldane",
    "Kirrin Vale",
    "the Lower Sarn",
    "Northrey",
    "the Orrin Isles",
    "Brackland",
)
RIVERS = ("Tarn", "Ilver", "Wend", "Mirr", "Losk", "Addle", "Oster", "Quayne", "Rill", "Senn")
TITLES_A = "The|The Salt|The Red|A Silent|Winter|The Glass|Paper|The Last|Hollow|A Northern|Borrowed|The Iron".split("|")
TITLES_B = "Road Garden Harbour Letters Mountain Clock Orchard Bridge Summer Mirror Station Sparrow Kingdom Window".split()

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
        self._names = self._shuffled([s + b for s in STARTS.split() for b in ENDS.split()])
        self._people = self._shuffled([f"{first} {last}" for first in FIRST.split() for last in LAST.split()])
        self._works = self._shuffled([f"{x} {y}" for x in TITLES_A for y in TITLES_B])
        self.towns = [self._town() for _ in range(size)]
        self.people = [self._person() for _ in range(2 * size)]
        self.works = [self._work(self._with("writes", i)) for i in range(size)]
        self.companies = [self._company(self.people[(3 * i + 1) % len(self.people)]) for i in range(size)]
        self.structures = [self._structure(self._with("builds", i)) for i in range(size)]
        self._residents()
        for town in self.towns:
            town.paragraphs += [_CHRONICLE, " ".join(self.rng.sample(CHRONICLE, 7)) + "\n"]

    def of(self, page: Page, relation: str) -> Fact:
        """Return the page's fact of that relation. Raises StopIteration where it has none."""
        return next(f for f in self.facts if f.page is page and f.relation == relation)

    def _shuffled(self, names: list[str]) -> list[str]:
        self.rng.shuffle(names)
        return names

    def _with(self, ability: str, index: int) -> Page:
        able = [p for p in self.people if ability in PROFESSIONS[p.values["occupation"]]]
        return able[index % len(able)]

    def _page(self, title: str, kind: str) -> Page:
        page = Page(100_000 + 137 * len(self.pages) + self.rng.randrange(100), title, kind, [title + "\n"])
        self.pages.append(page)
        return page

    def _write(self, page: Page, parts: list[str | tuple[str, str, str]]) -> None:
        """Append a paragraph; a part (relation, value, sentence) becomes a fact, a plain string is only prose."""
        text = ""
        for part in parts:
            sentence = part if isinstance(part, str) else part[2]
            start = len(text) + (1 if text else 0)
            text = f"{text} {sentence}".strip()
            if not isinstance(part, str):
                page.values[part[0]] = part[1]
                place = (len(page.paragraphs), start, start + len(sentence))
                self.facts.append(Fact(page, part[0], part[1], sentence, *place))
        page.paragraphs.append(text + "\n")

    def _link(self, page: Page, relation: str, other: Page) -> None:
        page.about[relation] = other
        page.links.append((self.of(page, relation).paragraph, other.title, other))

    def _town(self) -> Page:
        r, name = self.rng, self._names.pop()
        page, river, region = self._page(name, "town"), r.choice(RIVERS), r.choice(REGIONS)
        year, people = str(r.randrange(980, 1720)), f"{r.randrange(21, 880) * 100:,}"
        founders, trade = r.choice(["monks", "salt traders", "fishermen", "miners", "a bishop", "settlers"]), r.choice(TRADES)
        bank = r.choice(["on the left bank of", "at a bend of", "where the old road crosses", "at the mouth of"])
        self._write(
            page,
            [
                ("located in the administrative territorial entity", region, f"{name} is a town in {region}."),
                ("located in or next to body of water", f"{river}", f"It lies {bank} the river {river}."),
                ("population", people, f"At the last census {name} had {people} inhabitants."),
            ],
        )
        page.paragraphs.append("Section::::History.\n")
        fire = f"A fire destroyed the {r.choice(['market hall', 'old quarter', 'upper town'])} in {int(year) + 150}."
        self._write(
            page,
            [
                ("inception", year, f"{name} was founded in {year} by {founders}."),
                fire,
                ("industry", trade, f"From the nineteenth century on its wealth came from {trade}."),
            ],
        )
        page.paragraphs.append("Section::::Sights and customs.\n")
        feast = f"{r.choice(['Lantern', 'Herring', 'Apple', 'Bell', 'Kite', 'Plum', 'Raft'])} Fair"
        month = r.choice("March April May June July August September October".split())
        self._write(page, [("festival", feast, f"BULLET::::- The {feast} of {name} is held every {month}.")])
        sight = r.choice(["a covered bridge", "a leaning clock tower", "a walled garden", "a museum of bells"])
        page.paragraphs.append(f"BULLET::::- Visitors come for {sight} {r.choice(['by the quay', 'near the station', 'on the hill'])}.\n")
        return page

    def _person(self) -> Page:
        r, name = self.rng, self._people.pop()
        page, town, school = self._page(name, "person"), r.choice(self.towns), r.choice(self.towns)
        job = r.choice(list(PROFESSIONS))
        born = r.randrange(1890 if job in ("film director", "cyclist") else 1801, 1955)
        prize = f"{r.choice(['Golden Oar', 'Halden', 'Silver Compass', 'Fenwick', 'Blue Lantern', 'Ravel'])} Prize"
        self._write(
            page,
            [
                ("occupation", job, f"{name} (born {born}) was {a(job)}."),
                ("date of birth", str(born), f"The date of birth is given as {r.randrange(1, 29)} {r.choice(['May', 'June', 'October'])} {born}."),
                ("place of birth", town.title, f"{name} was born in {town.title} as the child of {r.choice(['a miller', 'a ferryman', 'a teacher', 'two actors', 'a clockmaker', 'a baker'])}."),
            ],
        )
        page.paragraphs.append("Section::::Life.\n")
        self._write(
            page,
            [
                ("educated at", f"{school.title} Academy", f"After school came studies at the {school.title} Academy, cut short by {r.choice(['illness', 'a lack of money', 'the war', 'a quarrel with the rector'])}."),
                r.choice(DEEDS[job]).format(n=name),
                ("award received", prize, f"In {born + r.randrange(31, 52)} the {prize} brought {name} wider notice."),
            ],
        )
        self._link(page, "place of birth", town)
        return page

    def _work(self, maker: Page) -> Page:
        r, name = self.rng, self._works.pop()
        job = maker.values["occupation"]
        kind = {"novelist": "novel", "poet": "cycle of poems", "composer": "opera", "film director": "film"}[job]
        title = f"{name} ({kind})" if r.random() < 0.2 else name
        page, year, place = self._page(title, "work"), str(int(maker.values["date of birth"]) + r.randrange(25, 60)), r.choice(self.towns)
        plot = r.choice(PLOTS)
        self._write(
            page,
            [
                ("creator", maker.title, f"{name} is {a(kind)} by {maker.title}."),
                ("publication date", year, f"It first came before the public in {year}."),
            ],
        )
        page.paragraphs.append("Section::::Plot.\n")
        self._write(
            page,
            [
                ("narrative location", place.title, f"The story of {name} takes place in {place.title}."),
                ("main subject", plot, f"It tells of {plot}."),
                f"Critics praised its {r.choice(['quiet humour', 'strange ending', 'exact dialogue', 'long silences'])}, though few {r.choice(['bought it', 'saw it', 'understood it'])} at first.",
            ],
        )
        self._link(page, "creator", maker)
        self._link(page, "narrative location", place)
        return page

    def _company(self, founder: Page) -> Page:
        r, town, product = self.rng, self.rng.choice(self.towns), self.rng.choice(PRODUCTS)
        name = f"{founder.title.split()[-1]} {r.choice(['& Sons', 'Works', 'Brothers', 'Manufactory', 'Group'])}"
        name = name if all(p.title != name for p in self.pages) else f"{name} of {town.title}"
        page, year = self._page(name, "company"), str(int(founder.values["date of birth"]) + r.randrange(24, 45))
        staff = f"{r.randrange(4, 190) * 10:,}"
        self._write(
            page,
            [
                ("headquarters location", town.title, f"{name} is a firm with its head office in {town.title}."),
                ("product", product, f"It is known for {product}, which it sells in {r.randrange(6, 60)} countries."),
            ],
        )
        page.paragraphs.append("Section::::History.\n")
        self._write(
            page,
            [
                ("founded by", founder.title, f"{name} was founded by {founder.title} in a rented {r.choice(['barn', 'boathouse', 'cellar', 'schoolroom'])}."),
                ("year founded", year, f"The entry in the trade register dates from {year}."),
                ("employees", staff, f"In a good year the firm employs {staff} people."),
            ],
        )
        self._link(page, "headquarters location", town)
        self._link(page, "founded by", founder)
        return page

    def _structure(self, architect: Page) -> Page:
        r, kind, town = self.rng, self.rng.choice(list(STRUCTURES)), self.rng.choice(self.towns)
        name = f"{r.choice(FIRST.split())} {r.choice(LAST.split())} {cap(kind)}"
        page, year, size = self._page(name, "structure"), str(int(architect.values["date of birth"]) + r.randrange(28, 60)), r.randrange(20, 400)
        self._write(
            page,
            [
                ("location", town.title, f"The {name} is {a(kind)} in {town.title}."),
                ("architect", architect.title, f"The plans for the {name} were drawn by {architect.title}."),
                ("date of official opening", year, f"It was opened in {year} by {r.choice(['the mayor', 'a choir of children', 'the minister of trade'])}."),
            ],
        )
        page.paragraphs.append("Section::::Building.\n")
        self._write(
            page,
            [
                ("measure", f"{size} metres", STRUCTURES[kind].format(size=size)),
                ("material", stuff := r.choice(["yellow brick", "granite", "riveted iron", "larch wood", "pale limestone"]), f"Most of it is built of {stuff} from {r.choice(REGIONS)}."),
                f"It was repaired in {int(year) + r.randrange(20, 60)} after {r.choice(['a flood', 'frost damage', 'a lightning strike'])}.",
            ],
        )
        self._link(page, "location", town)
        self._link(page, "architect", architect)
        return page

    def _residents(self) -> None:
        for town in self.towns:
            born = [p for p in self.people if p.about["place of birth"] is town][:3]
            if born:
                town.paragraphs.append("Section::::People.\n")
            for person in born:
                town.links.append((len(town.paragraphs), person.title, person))
                sentence = f"BULLET::::- {person.title}, {person.values['occupation']}, was born in {town.title} in {person.values['date of birth']}."
                self._write(town, [(f"resident {person.title}", person.title, sentence)])
