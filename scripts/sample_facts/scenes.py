"""Invented pictures, each described by five people: a scene of `scenes.txt` with somebody in it."""

from sample_facts import cap, rng_of, table

WHO = {
    "p": (
        ("A man in a green jacket", "A man", "Someone"),
        ("A woman with a straw hat", "A woman", "A person in a hat"),
        ("An old man with a white beard", "A bearded man", "An elderly person"),
        ("A girl in a striped shirt", "A young girl", "A child"),
        ("A boy wearing red boots", "A boy", "A kid in boots"),
        ("A woman with grey hair", "An older woman", "A lady"),
    ),
    "g": (
        ("Four friends in blue shirts", "Several friends", "People in matching shirts"),
        ("Three women in raincoats", "Three women", "A few people"),
        ("A group of children", "Some kids", "Many children"),
        ("Two old men and a boy", "Two men with a child", "Three people"),
    ),
    "d": (
        ("A brown dog with a white chest", "A brown dog", "The animal"),
        ("A black dog with a blue collar", "A dark dog", "A dog with a collar"),
        ("A small spotted dog", "A little dog", "A puppy"),
    ),
}
# A verb that agrees with one is turned to agree with many where a group acts.
FORMS = (
    "{a} {does} {where}.",
    "{b} {does}.",
    "{c} {other} {place}.",
    "{Place}, {low_b} {other}.",
    "{b} {other} {where}.",
)


def caption_sets() -> list[list[str]]:
    """Return 68 sets of five captions; the scenes come twice, with other people in them."""
    rng, out = rng_of("flickr"), []
    for turn in (0, 1):
        for i, (head, other, where, place) in enumerate(table("scenes")):
            kind, does = head.split(" ~ ")
            a, b, c = WHO[kind][(i + turn * 5) % len(WHO[kind])]
            many = not does.startswith("is ")
            c = c if many == (kind == "g") else b
            words = {"a": a, "b": b, "c": c, "does": does, "other": other, "where": where, "place": place}
            low = b[0].lower() + b[1:]
            captions = [form.format(**words, Place=cap(place), low_b=low) for form in FORMS]
            head_of_set = captions.pop(rng.randrange(2) * 2)
            out.append([head_of_set, *captions])
    return out
