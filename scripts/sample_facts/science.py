"""Invented papers and trials: titles, abstracts, related titles, and the questions of clinical studies."""

from random import Random

from sample_facts import cap, rng_of, table

TITLES = (
    "{Topic} studied with {method}: evidence from {setting}",
    "Using {method} to understand {topic}",
    "{Method} and {topic}: a case study of {setting}",
    "What {method} can tell us about {topic}",
)
CARE = (
    ("a nurse-led follow-up call", "re-admission within thirty days", "were back in hospital"),
    ("a weekly text message", "doses that are missed", "missed more than two doses"),
    ("home visits by a pharmacist", "unplanned visits to the clinic", "came to the clinic unplanned"),
    ("music during treatment", "anxiety before the next visit", "reported high anxiety"),
    ("a printed symptom diary", "delay before seeking help", "waited for more than three days"),
    ("group exercise twice a week", "days of sick leave", "were on sick leave at six months"),
    ("an early ultrasound scan", "time to a firm diagnosis", "were still without a diagnosis after two weeks"),
    ("a second opinion by video", "needless operations", "were operated on"),
)


def _abstract(row: list[str], rng: Random, method: str) -> str:
    field, topic, _, _, setting, finding = row
    opening = rng.choice(
        [
            f"Although {topic} has been studied in {field} for decades, field data remain scarce.",
            f"Little is known about {topic} outside of the laboratory.",
            f"Questions about {topic} have gained weight in {field}.",
            f"Recent work in {field} disagrees on {topic}.",
        ]
    )
    middle = rng.choice([f"We used {method} and report on {setting}.", f"Here we apply {method} to {setting}."])
    result = rng.choice([f"We found that {finding}.", f"Our main result is that {finding}."])
    end = rng.choice(
        [
            "The effect held when outliers were left out.",
            "We discuss limits of the sample and give all data and code.",
            f"Results suggest a simple and cheap way to follow {topic} over longer times.",
            "Further seasons are needed before this can be called general.",
        ]
    )
    return " ".join([opening, middle, result, end])


def _title(row: list[str], method: str, form: int) -> str:
    _, topic, _, _, setting, _ = row
    words = {"topic": topic, "method": method, "setting": setting, "Topic": cap(topic), "Method": cap(method)}
    return TITLES[form % len(TITLES)].format(**words)


def abstracts() -> list[list[str]]:
    """Return [title, abstract] for two papers on each topic, each with its own method."""
    rng, out = rng_of("S2ORC"), []
    for i, row in enumerate(table("papers")):
        for which in (2, 3):
            out.append([_title(row, row[which], i + which), _abstract(row, rng, row[which])])
    return out


def title_triples() -> list[list[str]]:
    """Return [title, title on the same topic, title that is only near] for two papers on each topic."""
    rows, out = table("papers"), []
    for i, row in enumerate(rows):
        near = rows[i + 1 if i % 2 == 0 else i - 1]
        far = rows[(i + 9) % len(rows)]
        out.append([_title(row, row[2], i), _title(row, row[3], i + 1), _title(near, row[2], i + 2)])
        out.append([f"{cap(row[1])} in {row[4]}", _title(row, row[2], i + 3), f"{cap(far[1])} in {far[4]}"])
    return out


def trials() -> list[tuple[str, list[str], str]]:
    """Return (question, sections of the abstract, decision) for a trial in each condition of `medicine.txt`."""
    rng, out = rng_of("pubmed"), []
    for i, (name, cause, sign, treatment, _) in enumerate(table("medicine")):
        care, outcome, event = CARE[i % len(CARE)]
        count, low = rng.randrange(60, 420), rng.randrange(6, 20)
        high = low + rng.choice([0, 1, 7, 9, 12, 15])
        decision = "yes" if high - low > 5 else "no"
        sections = [
            f"Patients with {name} often present with {sign}. Whether {care} reduces {outcome} is not clear.",
            f"{count} patients with {name}, caused by {cause}, were assigned at random to {care} or to usual care. "
            f"All of them received {treatment}.",
            f"After six months {low}% of patients in the first group {event}, compared with {high}% under usual care.",
        ]
        out.append((f"Does {care} reduce {outcome} in patients with {name}?", sections, decision))
    return out


def exam_questions() -> list[dict[str, object]]:
    """Return MedMCQA records: a question with four choices, the right one (1 to 4) and an explanation."""
    rng, rows, out = rng_of("medmcqa"), table("medicine"), []
    forms = (
        ("A patient presents with {sign}. What is the most likely diagnosis?", 0),
        ("{Name} is caused by", 1),
        ("Which of the following is characteristic of {name}?", 2),
        ("Treatment of choice in {name} is", 3),
    )
    for i, row in enumerate(rows):
        form, column = forms[i % len(forms)]
        name, cause, sign, treatment, subject = row
        others = [r[column] for r in rows if r[4] == subject and r is not row] + [r[column] for r in rows[-9:-1]]
        options = [row[column], *rng.sample([o for o in dict.fromkeys(others) if o != row[column]], 3)]
        rng.shuffle(options)
        right = options.index(row[column])
        leak = f"Ans. is '{'abcd'[right]}' i.e., {cap(row[column])}. " if i % 5 == 0 else ""
        exp = f"{leak}{cap(name)} results from {cause}. It shows itself by {sign} and is treated with {treatment}."
        out.append(
            {
                "question": form.format(name=name, Name=cap(name), sign=sign),
                "exp": exp,
                "cop": right + 1,
                **{f"op{letter}": cap(o) for letter, o in zip("abcd", options, strict=True)},
                "subject_name": subject,
                "topic_name": None if i % 4 == 0 else cap(name),
                "id": f"{rng.getrandbits(128):032x}"[:8] + f"-{rng.getrandbits(16):04x}-{rng.getrandbits(16):04x}",
                "choice_type": "multi" if i % 7 == 3 else "single",
            }
        )
    return out
