"""A recipe -> the README.md of a trained model: how to load it, how to give an instruction, and how it was made.

Names come from other people's files, so everything is quoted before it reaches YAML or Markdown.
"""

import json
from collections.abc import Mapping

from medi.screen import shown


def model_card(recipe: Mapping[str, object], step: int, facts: Mapping[str, object]) -> str:
    """Return the text of README.md. `facts` are further lines of its table, such as the last loss."""
    rows = {**recipe, "steps done": step, **facts}
    table = "\n".join(f"| {name.replace('_', ' ')} | {_code(value)} |" for name, value in rows.items())
    return _CARD.format(base=_base(recipe.get("model")), table=table)


def _base(model: object) -> str:
    """Return the line that names the base model, where it has a name on the Hub."""
    name = str(model.get("name", "")) if isinstance(model, Mapping) else ""
    return f"base_model: {json.dumps(shown(name))}\n" if "/" in name else ""


def _code(value: object) -> str:
    """Return a value as a Markdown code span in one cell of a table."""
    text = shown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return f"`{text.replace('`', '´').replace('|', '/')}`"


_CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, sentence-similarity, feature-extraction, medi, instructor]
{base}---
# A text-embedding model that follows instructions

Trained with `medi train` on a release of MEDI: InfoNCE over cosines in both directions, one task a batch.
The instruction stands before the text, with nothing between, and is left out of the pooling:

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
instruction = "Represent the Wikipedia question for retrieving supporting documents:"
vector = model.encode("Who wrote Faust?", prompt=instruction)
```

Write instructions without a blank at the end.

## How it was made

| what | value |
|---|---|
{table}
"""
