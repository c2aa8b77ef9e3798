"""What the invented world is made of: the sentences of a page of each kind, and the words that are drawn for them."""

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
PROFESSIONS = {
    "novelist": "writes",
    "poet": "writes",
    "composer": "writes",
    "film director": "writes",
    "architect": "builds",
    "civil engineer": "builds",
    "botanist": "",
    "astronomer": "",
    "chess master": "",
    "cellist": "",
    "physician": "",
    "cyclist": "",
    "glass artist": "",
    "explorer": "",
}
# What somebody of a profession is remembered for.
DEEDS = {
    "novelist": [
        "{n} wrote standing up and burned three finished books.",
        "Seven novels appeared, all under one title page.",
    ],
    "poet": ["{n} printed each poem on cloth.", "Most of the poems were first read aloud in taverns."],
    "composer": ["{n} wrote for brass band and choir.", "An unfinished symphony is played with a pause at its end."],
    "film director": ["{n} never filmed indoors.", "The early reels were shot with a borrowed camera."],
    "architect": ["{n} drew every plan by hand at one scale.", "Round windows became a kind of signature."],
    "civil engineer": [
        "{n} tested each beam with a cart full of wet sand.",
        "The method of loading piers is still taught.",
    ],
    "botanist": ["{n} described forty mosses new to science.", "The herbarium holds nine thousand sheets."],
    "astronomer": [
        "{n} measured the light of variable stars for thirty years.",
        "A small crater on the moon bears the name.",
    ],
    "chess master": [
        "{n} played sixty games at once without sight of a board.",
        "An opening with the queen's knight goes back to these years.",
    ],
    "cellist": ["{n} toured with an instrument that lacked one peg.", "Only two recordings survive."],
    "physician": [
        "{n} opened the first ward for children in the region.",
        "A handbook on fevers went through nine editions.",
    ],
    "cyclist": ["{n} won the mountain stage four times.", "A broken fork cost the title in the last year."],
    "glass artist": [
        "{n} melted bottles from the harbour into church windows.",
        "The blue of these windows has never been copied.",
    ],
    "explorer": [
        "{n} crossed the northern ice with eleven dogs.",
        "The diaries were found in a tin box decades later.",
    ],
}
CHRONICLE = (
    "In a hard winter the river froze to the bottom, and a market was held on the ice for five weeks.",
    "The first school was kept in the loft of the corn exchange, where pupils paid with firewood.",
    "A comet that was seen from the walls was taken as a warning, and the council gave up a tax on windows.",
    "Two regiments were quartered in the town at once, which led to a famous quarrel about soup.",
    "The railway reached the southern suburb with a delay of eleven years, because no one would sell the last field.",
    "After a flood the lower streets were raised by the height of a man, so that many cellars were once shops.",
    "A printing house brought out the first map of the district, on which the town itself was left out by mistake.",
    "For one summer the town had two mayors, who sat at the two ends of the same table.",
    "The old walls were pulled down and their stones used for a quay, where masons' marks can still be read.",
    "A travelling circus went bankrupt here, and its bear lived for years in the garden of the apothecary.",
    "Gas lamps were lit for the first time on the eve of a fair, and people came from three valleys to see them.",
    "When the mills closed, a cooperative of former workers bought the largest of them and made it a theatre.",
)
TRADES = (
    "glassmaking",
    "salt",
    "herring",
    "the wool trade",
    "paper mills",
    "slate",
    "clockmaking",
    "cider",
    "shipbuilding",
    "ceramics",
)
PRODUCTS = (
    "marine compasses",
    "oat biscuits",
    "church organs",
    "bicycle lamps",
    "surgical needles",
    "tractors",
    "fountain pens",
    "weather balloons",
    "piano strings",
    "rubber boots",
    "map paper",
    "sewing machines",
    "cheese knives",
    "telescopes",
)
PLOTS = (
    "two sisters who inherit a ferry and nothing else",
    "a clerk who is taken for a judge",
    "a winter in which no letter arrives",
    "a village that votes to move uphill",
    "an organist who goes deaf and tells nobody",
    "the search for a bell that sank with its ship",
    "a family that keeps a hotel without guests",
    "a mapmaker who draws an island that is not there",
    "three soldiers on their way home",
    "a gardener who is left a castle",
)
STRUCTURES = {
    "bridge": "It spans {size} metres of water on five piers.",
    "tower": "Its top stands {size} metres above the square.",
    "museum": "Its long hall measures {size} metres.",
    "lighthouse": "Its lamp burns {size} metres above the sea.",
    "theatre": "Its stage tunnel runs for {size} metres under the street.",
    "station": "Its roof covers {size} metres of platform.",
    "aqueduct": "It carries water over {size} metres of arches.",
}
# Kind of page -> words that are drawn from these, each on its own.
CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "town": {
        "region": REGIONS,
        "river": ("Tarn", "Ilver", "Wend", "Mirr", "Losk", "Addle", "Oster", "Quayne", "Rill", "Senn"),
        "bank": ("on the left bank of", "at a bend of", "where the old road crosses", "at the mouth of"),
        "founders": ("monks", "salt traders", "fishermen", "miners", "a bishop", "settlers"),
        "burnt": ("market hall", "old quarter", "upper town"),
        "trade": TRADES,
        "feast": tuple(f"{word} Fair" for word in "Lantern Herring Apple Bell Kite Plum Raft".split()),
        "month": tuple("March April May June July August September October".split()),
        "sight": ("a covered bridge", "a leaning clock tower", "a walled garden", "a museum of bells"),
        "spot": ("by the quay", "near the station", "on the hill"),
    },
    "person": {
        "month": ("May", "June", "October"),
        "parents": ("a miller", "a ferryman", "a teacher", "two actors", "a clockmaker", "a baker"),
        "obstacle": ("illness", "a lack of money", "the war", "a quarrel with the rector"),
        "prize": tuple(f"{word} Prize" for word in ("Golden Oar", "Halden", "Silver Compass", "Fenwick", "Ravel")),
    },
    "work": {
        "plot": PLOTS,
        "praise": ("quiet humour", "strange ending", "exact dialogue", "long silences"),
        "lack": ("bought it", "saw it", "understood it"),
    },
    "company": {"product": PRODUCTS, "shelter": ("barn", "boathouse", "cellar", "schoolroom")},
    "structure": {
        "form": tuple(STRUCTURES),
        "opener": ("the mayor", "a choir of children", "the minister of trade"),
        "stuff": ("yellow brick", "granite", "riveted iron", "larch wood", "pale limestone"),
        "quarry": REGIONS,
        "damage": ("a flood", "frost damage", "a lightning strike"),
    },
}

# Kind of page -> sections; of each its heading and its sentences: (relation, word that is its value, sentence).
# A sentence without a relation is only prose; sections whose heading begins with * are lists.
LAYOUTS: dict[str, list[tuple[str, list[tuple[str, str, str]]]]] = {
    "town": [
        (
            "",
            [
                ("located in the administrative territorial entity", "region", "{name} is a town in {region}."),
                ("located in or next to body of water", "river", "It lies {bank} the river {river}."),
                ("population", "people", "At the last census {name} had {people} inhabitants."),
            ],
        ),
        (
            "History",
            [
                ("inception", "year", "{name} was founded in {year} by {founders}."),
                ("", "", "A fire destroyed the {burnt} in {fire}."),
                ("industry", "trade", "From the nineteenth century on its wealth came from {trade}."),
            ],
        ),
        (
            "*Sights and customs",
            [
                ("festival", "feast", "The {feast} of {name} is held every {month}."),
                ("", "", "Visitors come for {sight} {spot}."),
            ],
        ),
    ],
    "person": [
        (
            "",
            [
                ("occupation", "job", "{name} (born {born}) was {a_job}."),
                ("date of birth", "born", "The date of birth is given as {day} {month} {born}."),
                ("place of birth", "town", "{name} was born in {town} as the child of {parents}."),
            ],
        ),
        (
            "Life",
            [
                ("educated at", "school", "After school came studies at the {school}, cut short by {obstacle}."),
                ("", "", "{deed}"),
                ("award received", "prize", "In {won} the {prize} brought {name} wider notice."),
            ],
        ),
    ],
    "work": [
        (
            "",
            [
                ("creator", "maker", "{name} is {a_form} by {maker}."),
                ("publication date", "year", "It first came before the public in {year}."),
            ],
        ),
        (
            "Plot",
            [
                ("narrative location", "place", "The story of {name} takes place in {place}."),
                ("main subject", "plot", "It tells of {plot}."),
                ("", "", "Critics praised its {praise}, though few {lack} at first."),
            ],
        ),
    ],
    "company": [
        (
            "",
            [
                ("headquarters location", "town", "{name} is a firm with its head office in {town}."),
                ("product", "product", "It is known for {product}, which it sells in {markets} countries."),
            ],
        ),
        (
            "History",
            [
                ("founded by", "founder", "{name} was founded by {founder} in a rented {shelter}."),
                ("year founded", "year", "The entry in the trade register dates from {year}."),
                ("employees", "staff", "In a good year the firm employs {staff} people."),
            ],
        ),
    ],
    "structure": [
        (
            "",
            [
                ("location", "town", "The {name} is {a_form} in {town}."),
                ("architect", "architect", "The plans for the {name} were drawn by {architect}."),
                ("date of official opening", "year", "It was opened in {year} by {opener}."),
            ],
        ),
        (
            "Building",
            [
                ("measure", "size", "{span}"),
                ("material", "stuff", "Most of it is built of {stuff} from {quarry}."),
                ("", "", "It was repaired in {repaired} after {damage}."),
            ],
        ),
    ],
}
