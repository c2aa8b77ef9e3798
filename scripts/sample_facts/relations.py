"""How each relation of the invented world is asked about, and how it is claimed."""

# Relation -> questions about subject {s}; the first is the shortest.
QUESTIONS = {
    "located in the administrative territorial entity": [
        "which region is {s} in",
        "in what part of the country does {s} lie",
    ],
    "located in or next to body of water": ["what river runs through {s}", "which river does {s} lie on"],
    "population": ["how many people live in {s}", "what is the population of {s}"],
    "inception": ["when was {s} founded", "in which year was the town of {s} founded"],
    "industry": ["what industry made {s} rich", "what did the wealth of {s} come from"],
    "festival": ["what fair is held in {s} every year", "which festival does {s} celebrate"],
    "occupation": ["what did {s} do for a living", "what was the profession of {s}"],
    "date of birth": ["when was {s} born", "in what year was {s} born"],
    "place of birth": ["where was {s} born", "which town does {s} come from"],
    "educated at": ["where did {s} study", "which academy did {s} go to"],
    "award received": ["what prize did {s} win", "which award was {s} given"],
    "creator": ["who made {s}", "who is the creator of {s}"],
    "publication date": ["when did {s} come out", "in which year was {s} first shown to the public"],
    "narrative location": ["where does {s} take place", "in which town is {s} set"],
    "main subject": ["what is {s} about", "what story does {s} tell"],
    "headquarters location": ["where is {s} based", "where is the head office of {s}"],
    "product": ["what does {s} make", "which goods is {s} known for"],
    "founded by": ["who founded {s}", "who is the founder of {s}"],
    "year founded": ["when was {s} set up", "how long has the firm {s} been registered"],
    "employees": ["how many people work for {s}", "how many employees does {s} have"],
    "location": ["where is the {s}", "in which town does the {s} stand"],
    "architect": ["who designed the {s}", "who drew the plans for the {s}"],
    "date of official opening": ["when did the {s} open", "in what year was the {s} opened"],
    "measure": ["how big is the {s}", "what does the {s} measure"],
    "material": ["what is the {s} built of", "which material was used for the {s}"],
}

# Relation -> a claim that is true for value {v} and false for another's.
CLAIMS = {
    "located in the administrative territorial entity": "{s} lies in {v}.",
    "located in or next to body of water": "{s} is a town on the river {v}.",
    "inception": "{s} was founded in the year {v}.",
    "industry": "{s} owes its wealth to {v}.",
    "occupation": "{s} earned a living as {a_v}.",
    "date of birth": "{s} was born in {v}.",
    "place of birth": "{s} comes from {v}.",
    "award received": "{s} won the {v}.",
    "creator": "{s} was created by {v}.",
    "publication date": "{s} came out in {v}.",
    "narrative location": "{s} is set in {v}.",
    "headquarters location": "{s} is based in {v}.",
    "product": "{s} makes {v}.",
    "founded by": "{v} founded {s}.",
    "location": "The {s} can be found in {v}.",
    "architect": "{v} designed the {s}.",
    "material": "The {s} is made of {v}.",
}
