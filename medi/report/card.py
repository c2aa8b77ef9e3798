"""A manifest becomes README.md: the dataset card, with front matter by which the Hub and `datasets` find the shards.

Licences, task names and citations come from other people's files: they are quoted before they reach YAML or Markdown.
"""

import json
import re
import textwrap
from collections import Counter

from medi.licences import identifiers, may_be_handed_on
from medi.release.known import SUPER_NI
from medi.release.manifest import FORMAT, POSITIVES_FILE, REPORT, Manifest, task_licence
from medi.schema import EXAMPLES
from medi.screen import many, shown

_COLUMNS = {
    "id": "`<source>/` and 16 hex digits over the row's task and texts; never a position",
    "source": "one of the sources below",
    "task": "what a training batch is drawn from: the source, one of its clusters, or a Super-NaturalInstructions task",
    "kind": "`pair` (given pairs), `label` (same label or not) or `text` (scored by input and output)",
    "query_instruction": "put before the query, with nothing between",
    "query": "the text that is searched with",
    "document_instruction": "put before the positive and the negatives, with nothing between",
    "positive": "the text that should be found",
    "label": "the query's label, where kind is `label`",
    "negatives": "hard negatives: given ones in their file's order, then mined ones, best first",
    "negative_labels": "their labels, where kind is `label`; else empty",
    "positive_score": "cosine of query and positive (kind `text`: the sum of two cosines)",
    "negative_scores": "the same for each negative (kind `text`: a difference of two cosines)",
    "negative_origins": "`given` by the source, `mined`, or `random`",
    "licence": "the licence of the text",
    "origin": "file and line (or key) the row was read from",
}

# What Markdown acts on; an underscore inside a word is only that.
_ACTS = re.compile(r"[\\`*\[\]<>|#&~]|(?<![^\W_])_|_(?![^\W_])")

_PAPER = """@inproceedings{su-etal-2023-one,
    title = {One Embedder, Any Task: Instruction-Finetuned Text Embeddings},
    author = {Su, Hongjin and Shi, Weijia and Kasai, Jungo and Wang, Yizhong and Hu, Yushi and Ostendorf, Mari and
              Yih, Wen-tau and Smith, Noah A. and Zettlemoyer, Luke and Yu, Tao},
    booktitle = {Findings of the Association for Computational Linguistics: ACL 2023},
    year = {2023},
    url = {https://arxiv.org/abs/2212.09741}
}"""


def dataset_card(manifest: Manifest) -> str:
    """Return the text of README.md for a manifest whose `files` need not be known yet."""
    rows = sum(entry["got"] for entry in manifest["tasks"])
    params = [[f"`{key}`", _code(value)] for key, value in sorted(manifest["params"].items())]
    parts = [
        _front_matter(manifest, rows),
        _opening(manifest, rows),
        _loading(),
        _table("Columns", ["column", "what it is"], [[f"`{name}`", _COLUMNS[name]] for name in EXAMPLES.names]),
        _sources(manifest),
        _table("Parameters", ["name", "value"], params),
        _limits(manifest),
        _citation(),
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(manifest: Manifest, rows: int) -> str:
    """Return the YAML block; JSON strings and lists are YAML, so no text can break out of its place."""
    return "\n".join(
        [
            "---",
            *(["language: " + json.dumps(["en"])] if _has_english(manifest) else []),
            "license: " + json.dumps(_licences(manifest)),
            "pretty_name: " + json.dumps("MEDI, rebuilt"),
            "size_categories: " + json.dumps([_size_category(rows)]),
            "task_categories: " + json.dumps(["sentence-similarity", "feature-extraction", "text-retrieval"]),
            "tags: " + json.dumps(["medi", "instructor", "text-embeddings", "hard-negatives"]),
            "configs:",
            "- config_name: default",
            "  data_files:",
            "  - split: train",
            '    path: "data/train-*.parquet"',
            "---",
        ]
    )


def _has_english(manifest: Manifest) -> bool:
    """Return whether some rows are of medi's own sources, which are English; of others nobody said."""
    own = manifest["params"].get("own_sources")
    return any(e["got"] and not (isinstance(own, dict) and e["name"] in own) for e in manifest["sources"])


def _licences(manifest: Manifest) -> list[str]:
    """Return the Hub's identifiers of all rows' licences, sorted; those of Super-NI's rows are their tasks'."""
    sources = {entry["name"]: entry["licence"] for entry in manifest["sources"]}
    stated = {task_licence(e) or sources.get(e["source"], "") for e in manifest["tasks"] if e["got"]}
    return sorted({name for licence in stated for name in identifiers(licence)}) or ["other"]


def _size_category(rows: int) -> str:
    """Return the Hub's name for a number of rows: n<1K, 1K<n<10K, ... 1B<n<10B."""
    names = ["1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B"]
    step = sum(rows >= 10**power for power in range(3, 10))
    return "n<1K" if step == 0 else f"{names[step - 1]}<n<{names[step]}"


def _opening(manifest: Manifest, rows: int) -> str:
    rows_of_tasks = f"{many(rows, 'row')} of {many(sum(entry['got'] > 0 for entry in manifest['tasks']), 'task')}"
    sources = sum(entry["got"] > 0 for entry in manifest["sources"])
    return f"""# MEDI, rebuilt

Instructions, queries, positives and hard negatives for training text embedding models: {rows_of_tasks}
from {many(sources, "source")}, in the manner of MEDI, the training set of InstructOR (arXiv 2212.09741).

{_imported(manifest) if "imported" in manifest["params"] else _built(manifest)}

`manifest.json` ({FORMAT}) says for every source and task what was planned, what came, what was dropped and why, and
names every file read with its SHA-256; `{POSITIVES_FILE}` holds the known positives that no negative may be.
`medi verify` checks all of it. `{REPORT}` shows it in a browser.

Content digest: `{manifest["content_digest"]}`"""


def _built(manifest: Manifest) -> str:
    """Return how the rows came to be, with what was chosen where there was a choice."""
    params = manifest["params"]
    drawn = "as they stand" if params.get("take") == "first" else "by a seeded hash"
    encoder = params.get("encoder")
    name = encoder.get("name", "") if isinstance(encoder, dict) else encoder or "an encoder"
    profile, scale = (cell(str(params.get(key, "?"))) for key in ("profile", "scale"))
    has_super_ni = any(entry["name"] == SUPER_NI and entry["got"] for entry in manifest["sources"])
    paired = ";\nSuper-NaturalInstructions is paired by cosine too" if has_super_ni else ""
    return f"""Built by `medi`: rows are drawn from each source {drawn}, embedded without any instruction by
{cell(str(name))}, given hard negatives by cosine where they bring none (profile {profile}),
cut to the source's quota (scale {scale}), and joined with their instructions{paired}."""


def _imported(manifest: Manifest) -> str:
    """Return where the rows of an imported release are from: what was drawn, mined or scored, its makers know."""
    named = sorted({file["name"] for entry in manifest["sources"] for file in entry["files"]})
    files = ", ".join(map(cell, named)) or "a file"
    return f"""Imported by `medi` from {files}: pairs, negatives and instructions are as they
stand there. How they were drawn and mined the file does not say; it has no scores and no labels, and a licence only
where a task is named as a source that `medi` knows."""


def _limits(manifest: Manifest) -> str:
    """Return what a person should know before training on the rows, with what nobody says may be handed on."""
    sources = {entry["name"]: entry["licence"] for entry in manifest["sources"]}
    closed = Counter(
        (entry["source"], task_licence(entry) is not None)
        for entry in manifest["tasks"]
        if entry["got"] and not may_be_handed_on(task_licence(entry) or sources.get(entry["source"], ""))
    )
    parts = [cell(name) + (f" ({many(tasks, 'task')})" if by_task else "") for (name, by_task), tasks in closed.items()]
    named = textwrap.fill(", ".join(parts), 118, subsequent_indent="  ", break_on_hyphens=False)
    return f"""## Limits

- Texts are as their sources have them: of the web, of encyclopedias, of people. They hold errors, names, opinions and
  bias; nothing was filtered but what the manifest counts.
- A mined negative is a text that is near and not known to be a positive. Some answer the query all the same.
- {"English, apart from what sources hold by chance." if _has_english(manifest) else "No language is stated."}
- Evaluation sets may share texts with these sources; nothing was taken out for one.
- Licences differ by row (column `licence`). No licence that lets them be handed on is stated for:
  {named or "none"}."""


def _loading() -> str:
    return """## Loading

```python
from datasets import load_dataset

rows = load_dataset("path/to/this/folder", split="train")
```

```python
import pandas

rows = pandas.read_parquet("path/to/this/folder/data")
```

```sql
SELECT task, count(*) FROM 'path/to/this/folder/data/*.parquet' GROUP BY task
```

Rows stand by source, task and id; an id is a hash, so the rows of a task are already shuffled. A row group holds rows
of one task only."""


def _sources(manifest: Manifest) -> str:
    rows = [
        [*map(cell, (entry["name"], entry["licence"], entry["variant"])), f"{entry['planned']:,}", f"{entry['got']:,}",
         cell(entry["citation"])]
        for entry in manifest["sources"]
    ]  # fmt: skip
    return _table("Sources", ["source", "licence", "variant", "planned", "rows", "cite"], rows)


def _table(title: str, header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return f"## {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    """Return the text on one line, with nothing in it that Markdown or a screen would act on."""
    return _ACTS.sub(r"\\\g<0>", shown(" ".join(text.split())))


def _code(value: object) -> str:
    """Return a value's JSON as code inside a table cell; the characters that would end either are escaped."""
    text = json.dumps(value, sort_keys=True)
    return f"`{text.replace('`', chr(92) + 'u0060').replace('|', chr(92) + 'u007c')}`"


def _citation() -> str:
    return f"""## Citation

Name the content digest above, the paper below, and the sources you train on, as the table has them.

```bibtex
{_PAPER}
```"""
