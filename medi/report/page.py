"""A release -> report.html: one file that a browser opens without a network, with all that is in it escaped.

It is made from the folder alone, and holds no time, path or host, so equal releases have equal pages. The page's own
script draws it from a block of JSON; nothing that data hold can end that block or run.
"""

import base64
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

from medi.profiles import Rules
from medi.release import Release, as_written
from medi.release.accounting import changed_rules, rules_of
from medi.release.manifest import MEASURES_FILE, Json, Manifest
from medi.report.entries import Measures, Report, entries_of
from medi.report.measures import COSINES, LENGTHS, RANKS, SUMS
from medi.report.rows import TaskRows, read_tasks
from medi.report.warnings import warnings_of
from medi.report.words import percent
from medi.screen import many, shown

_SLOT = re.compile(r"<!--slot (\w+)-->")
_SCRIPTS = {"d3": "vendor/d3.min.js", "plot": "vendor/plot.min.js", "plots": "plots.js", "page": "page.js"}
# In a block of JSON, what could end it or the line; each is the same text to a JSON parser.
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_NO_MEASURES = (
    "This release keeps no measures of its texts (it was built by an earlier medi, or elsewhere): lengths in tokens, "
    "places of negatives and the map are not shown."
)


def report_page(release: Release) -> str:
    """Return the text of report.html. Raises MediError where the release is not as medi writes one."""
    with as_written(release):
        data = json.dumps(_data(release), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Half of a character that JSON can spell and UTF-8 cannot.
    data = data.encode("utf-8", "replace").decode("utf-8")
    slots = {name: _asset(path) for name, path in _SCRIPTS.items()}
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {' '.join(map(_hash, slots.values()))}"
    slots |= {"policy": policy, "style": _asset("page.css"), "data": data.translate(_ESCAPED)}
    return _SLOT.sub(lambda slot: slots[slot[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return files("medi.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return a script's source as a Content-Security-Policy names it, so that a browser runs no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _data(release: Release) -> dict[str, Json]:
    """Return all that the page shows."""
    manifest, rows = release.manifest, read_tasks(release)
    measures, max_length_tokens = _read_measures(release.root / MEASURES_FILE)
    report = Report(manifest, rules_of(manifest["params"]) or Rules(), rows, measures)
    return {
        "lead": _lead(manifest),
        "digest": shown(manifest["content_digest"]),
        "numbers": _numbers(manifest, rows),
        "notice": "" if measures else _NO_MEASURES,
        "warnings": list(warnings_of(report)),
        "params": _params(manifest, report.rules),
        "edges": {"tokens": list(LENGTHS), "cosine": list(COSINES), "sum": list(SUMS), "rank": list(RANKS)},
        "max_length_tokens": max_length_tokens,
        "entries": list(entries_of(report)),
    }


def _lead(manifest: Manifest) -> str:
    """Return what was built, and from what, in a sentence."""
    params = manifest["params"]
    encoder = params.get("encoder")
    name = encoder.get("name") if isinstance(encoder, dict) else encoder
    by = f" with {name}" if isinstance(name, str) else ""
    profile = f" by profile {params['profile']}" if "profile" in params else ""
    read = sum(len(source["files"]) for source in manifest["sources"])
    told = f"{many(read, 'raw file')}, mined{by}{profile}"
    return shown(f"Instructions, pairs and hard negatives for training text embeddings: {told}.")


def _read_measures(path: Path) -> tuple[Measures, Json]:
    """Return the measures by (source, task) and the encoder's length in tokens; none where there is no such file."""
    if not path.is_file():
        return {}, None
    found = json.loads(path.read_bytes())
    return {(task["source"], task["task"]): task for task in found["tasks"]}, found["max_length_tokens"]


def _numbers(manifest: Manifest, rows: dict[tuple[str, str], TaskRows]) -> list[Json]:
    """Return [name, words] of the release as a whole."""
    total = sum(found.rows for found in rows.values())
    origins = {name: sum(found.origins[name] for found in rows.values()) for name in ("given", "mined", "random")}
    negatives = sum(origins.values())
    planned = sum(entry["planned"] for entry in manifest["sources"])
    sources = len({source for source, _ in rows})
    counted = (many(total, "row"), many(len(rows), "task"), many(sources, "source"))
    numbers: list[Json] = [[name, number] for number, name in map(str.split, counted)]
    numbers.insert(1, ["of planned", percent(total, planned)])
    numbers.append(["negatives a row", f"{negatives / max(1, total):.2f}"])
    return numbers + [[name, percent(count, negatives)] for name, count in origins.items() if count]


def _params(manifest: Manifest, rules: Rules) -> list[Json]:
    """Return [name, words] of what decided the bytes: the encoder, the rules of mining, the rest."""
    params = manifest["params"]
    encoder, tasks = params.get("encoder"), params.get("super_ni_tasks")
    told = ("encoder", "super_ni_tasks", "mining", "absent")
    lines = {name: _words(value) for name, value in sorted(params.items()) if name not in told}
    if isinstance(encoder, dict):
        lines |= {
            f"encoder {name}": _words(value) for name, value in encoder.items() if name != "shapes" and value != ""
        }
    elif encoder is not None:
        lines["encoder"] = _words(encoder)
    if isinstance(tasks, dict):
        lines["super_ni_tasks"] = _words(tasks.get("choice"))
    changed = ", ".join(f"{name} {value}" for name, value in changed_rules(rules).items())
    lines["mining"] = changed or "as in profile paper"
    files_read = sum(len(source["files"]) for source in manifest["sources"])
    lines["raw files"] = f"{files_read:,}, each with its SHA-256 in manifest.json"
    return [[shown(name), shown(words)] for name, words in lines.items()]


def _words(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
