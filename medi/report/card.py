"""A manifest becomes README.md: the dataset card, with front matter by which the Hub and `datasets` find the shards.

Licences, task names and citations come from other people's files: they are quoted before they reach YAML or Markdown.
"""

import json
import re

from medi.release.manifest import FORMAT, POSITIVES_FILE, Manifest, SourceEntry
from medi.schema import EXAMPLES
from medi.screen import shown

# The identifiers of the Hub that a source of ours may carry; anything else is `other` there and spelt out in the table.
_HUB_LICENCES = frozenset(
    "apache-2.0 mit bsd-2-clause bsd-3-clause bsd cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 "
    "cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 "
    "cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl-3.0 mpl-2.0 odbl odc-by pddl unknown".split()
)

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
        _citation(manifest["sources"]),
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(manifest: Manifest, rows: int) -> str:
    """Return the YAML block; JSON strings and lists are YAML, so no text can break out of its place."""
    found = {_hub_licence(entry["licence"]) for entry in manifest["sources"] if entry["got"]}
    return "\n".join(
        [
            "---",
            "language: " + json.dumps(["en"]),
            "license: " + json.dumps(sorted(found) or ["other"]),
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


def _hub_licence(licence: str) -> str:
    """Return the Hub's identifier: `CC BY-SA 4.0` is cc-by-sa-4.0 there, `ODC-By 1.0` is odc-by, most else is other."""
    name = "-".join(licence.lower().split())
    return next((known for known in (name, name.removesuffix("-1.0")) if known in _HUB_LICENCES), "other")


def _size_category(rows: int) -> str:
    """Return the Hub's name for a number of rows: n<1K, 1K<n<10K, ... 1B<n<10B."""
    names = ["1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B"]
    step = sum(rows >= 10**power for power in range(3, 10))
    return "n<1K" if step == 0 else f"{names[step - 1]}<n<{names[step]}"


def _opening(manifest: Manifest, rows: int) -> str:
    tasks = sum(entry["got"] > 0 for entry in manifest["tasks"])
    sources = sum(entry["got"] > 0 for entry in manifest["sources"])
    drawn = "as they stand" if manifest["params"].get("take") == "first" else "by a seeded hash"
    return f"""# MEDI, rebuilt

Instructions, queries, positives and hard negatives for training text embedding models: {rows:,} rows of {tasks:,} tasks
from {sources:,} sources, in the manner of MEDI, the training set of InstructOR (arXiv 2212.09741).

Built by `medi`: rows are drawn from each source {drawn}, embedded without any instruction, given hard
negatives by cosine where they bring none, cut to the source's quota, and joined with the instructions of the paper;
Super-NaturalInstructions is paired by cosine too. `manifest.json`
({FORMAT}) says for every source and task what was planned, what came and what was dropped and why, and names
every file read with its SHA-256; `{POSITIVES_FILE}` holds the known positives that no negative may be.
`medi verify` checks all of it.

Content digest: `{manifest["content_digest"]}`"""


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
        [*map(cell, (entry["name"], entry["licence"], entry["variant"])), f"{entry['planned']:,}", f"{entry['got']:,}"]
        for entry in manifest["sources"]
    ]
    return _table("Sources", ["source", "licence", "variant", "planned", "rows"], rows)


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


def _citation(sources: list[SourceEntry]) -> str:
    used = [entry for entry in sources if entry["got"] and entry["citation"]]
    cited = [f"- {cell(entry['name'])}: {cell(entry['citation'])}" for entry in used]
    return f"""## Citation

Name the content digest above, the paper below, and the sources you train on.

```bibtex
{_PAPER}
```

""" + "\n".join(cited)
