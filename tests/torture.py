"""Kills `medi` at chosen moments, runs it again until it is done, and compares with a run that nothing interrupted.

`python -m tests.torture --kills 40` prints a table of the kills. A moment is the n-th change that a run makes to the
files of a stage, or some time after it (`tests/watched.py`); what a run computed that was there before is read from
its journal.
"""

import argparse
import gzip
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from tests.builds import cut_of_sample, options
from tests.tiny_encoders import make_tiny_bert
from tests.unharmed import finished, nothing_is_left, temporaries, whole_artifacts, whole_or_absent
from tests.watched import Moment, changes_of, end, start

# Groups of stages in the order of a build; a round kills one run in each. Beside a stage stands how many changes of
# files one artifact of it is.
ROUTE: tuple[dict[str, int], ...] = (
    {"digests": 80, "ingest": 3, "tokens": 3},
    {"embed": 5},
    {"candidates": 3, "mine": 3, "audit": 3, "sample": 3, "instruct": 3},
    {"release": 9},
    {"swap": 12},
)
CHOOSING: tuple[dict[str, int], ...] = ({"near": 3, "mine": 3, "audit": 3, "sample": 3, "instruct": 3}, *ROUTE[3:])
_STAGES = ["prefect", *(stage for group in (*ROUTE, *CHOOSING) for stage in group)]
RESELECTED = ("--profile", "clean", "--max-score", "0.99", "--fill", "other_rows")


class Kill(NamedTuple):
    """A run that was killed: what it was about, and what the next run found, made twice and left."""

    stage: str
    what: str
    kept: int
    temporaries: int
    recomputed: int = 0


@dataclass(frozen=True)
class Ground:
    """Where a round happens: the workspace, what is built there, and what must come of it."""

    workspace: Path
    raw: Path
    encoder: Path
    expected: Path

    def build(self, runner: str) -> list[str]:
        """Return the call that builds the release."""
        call = ["build", *map(str, options(self.raw, self.workspace, self.encoder)), "--workers", "2"]
        call[call.index("--runner") + 1] = runner
        return call

    @property
    def out(self) -> Path:
        """Return where the release lies."""
        return self.workspace / "out"


def interrupted(ground: Ground, args: Sequence[str], moment: Moment, old: Path | None = None) -> Kill | None:
    """Kill a run at the moment, and check what it left; None where it was done before."""
    before, journal = finished(ground.workspace), _journal(ground)
    code = end(start(ground.workspace, journal, args, moment), journal, moment)
    assert code in (0, -signal.SIGKILL), journal.with_suffix(".log").read_text()
    whole_artifacts(ground.workspace)
    whole_or_absent(ground.out, [release for release in (old, ground.expected) if release])
    twice = recomputed(ground, journal, before)
    if code == 0:
        return None
    what = f"{args[0]} {args[args.index('--runner') + 1]}" if "--runner" in args else args[0]
    return Kill(moment.stage, what, len(finished(ground.workspace)), len(temporaries(ground.workspace)), twice)


def completed(ground: Ground, args: Sequence[str]) -> int:
    """Run to the end and check everything; return how many artifacts were made that were there before."""
    before, journal = finished(ground.workspace), _journal(ground)
    code = end(start(ground.workspace, journal, args), journal)
    assert code == 0, journal.with_suffix(".log").read_text()
    whole_artifacts(ground.workspace)
    nothing_is_left(ground.workspace, ground.expected)
    return recomputed(ground, journal, before)


def recomputed(ground: Ground, journal: Path, before: dict[str, int]) -> int:
    """Return how many of the artifacts that were there before a run it made again, moved or lost."""
    store, now = ground.workspace / "store", finished(ground.workspace)
    made = {Path(change[-1]) for change in changes_of(journal) if change[1] == "os.rename"}
    return sum(store / name in made or now.get(name) != made_at for name, made_at in before.items())


def _journal(ground: Ground) -> Path:
    return Path(tempfile.mkstemp(prefix="journal-", dir=ground.workspace.parent)[1])


def moment_in(ground: Ground, group: dict[str, int], number: int, draw: random.Random) -> Moment:
    """Return a random moment in one stage of a group, the stages in turn."""
    stage = list(group)[number % len(group)]
    store = ground.expected.parent / "store"
    # Near enough: a run that goes on has less to do, and one in which the moment never comes is no kill.
    artifacts = {"embed": "vectors/*/*", "digests": "", "release": "", "swap": ""}.get(stage, "tokens/*")
    changes = group[stage] * (len(list(store.glob(artifacts))) if artifacts else 1)
    delay_seconds = draw.choice([0.0, 0.0, draw.uniform(0.001, 0.4)])
    return Moment(stage, draw.randint(1, changes), delay_seconds)


def kill_round(ground: Ground, calls: Sequence[list[str]], moments: Sequence[Moment], old: Path | None) -> list[Kill]:
    """Kill a run at each of the moments, one after the other, then let one come to its end. Returns the kills."""
    found = [interrupted(ground, calls[n % len(calls)], moment, old) for n, moment in enumerate(moments)]
    twice = completed(ground, calls[-1])
    kills = [kill for kill in found if kill]
    return [*kills[:-1], *(kill._replace(recomputed=kill.recomputed + twice) for kill in kills[-1:])]


def two_builds(ground: Ground, moment: Moment, runner: str) -> list[Kill]:
    """Kill a build while a second one works in the same workspace: the second must not notice."""
    first, second = _journal(ground), _journal(ground)
    doomed = start(ground.workspace, first, ground.build(runner), moment)
    while doomed.poll() is None and not changes_of(first):
        time.sleep(0.01)
    other = start(ground.workspace, second, ground.build("none"))
    code = end(doomed, first, moment)
    kept, left = len(finished(ground.workspace)), len(temporaries(ground.workspace))
    assert end(other, second) == 0, second.with_suffix(".log").read_text()
    twice = completed(ground, ground.build(runner))
    return [Kill(moment.stage, f"two builds {runner}", kept, left, twice)] if code == -signal.SIGKILL else []


def table(kills: Sequence[Kill]) -> str:
    """Return the kills by stage, as Markdown."""
    lines = ["| stage | kills | of what | artifacts kept | made again | temporaries at the kill | at the end |"]
    lines.append("|---|---:|---|---:|---:|---:|---:|")
    for stage in sorted({kill.stage for kill in kills}, key=_STAGES.index):
        part = [kill for kill in kills if kill.stage == stage]
        lines.append(_line(stage, part))
    return "\n".join([*lines, _line("all", kills)])


def _line(name: str, kills: Sequence[Kill]) -> str:
    what = ", ".join(f"{count} {what}" for what, count in sorted(Counter(kill.what for kill in kills).items()))
    kept, twice = sum(kill.kept for kill in kills), sum(kill.recomputed for kill in kills)
    return f"| {name} | {len(kills)} | {what} | {kept} | {twice} | {sum(kill.temporaries for kill in kills)} | 0 |"


def prepared(folder: Path) -> Ground:
    """Return what all rounds share: raw files, a tiny encoder, and a workspace whose builds nothing interrupted."""
    cut_of_sample(folder / "raw")
    make_tiny_bert(folder / "tiny-bert")
    ground = Ground(folder / "whole", folder / "raw", folder / "tiny-bert", folder / "whole" / "out")
    for args in (ground.build("none"), ["reselect", str(ground.out), *RESELECTED, "--out", f"{folder}/whole/chosen"]):
        journal = _journal(ground)
        assert end(start(ground.workspace, journal, args), journal) == 0, journal.with_suffix(".log").read_text()
    return ground


def older(ground: Ground, out: Path) -> Path:
    """Put a release that is not the expected one into a place, as if other options had built it; return a copy."""
    for place in (out, out.with_name("older")):
        shutil.copytree(ground.expected, place)
        manifest = json.loads((place / "manifest.json").read_bytes())
        manifest["params"]["seed"] = 1
        (place / "manifest.json").write_text(json.dumps(manifest))
    return out.with_name("older")


def round_of_kills(shared: Ground, folder: Path, number: int, draw: random.Random) -> list[Kill]:
    """Kill builds, then `reselect` in the place of what was built, then one of two builds at once."""
    folder.mkdir()
    ground = replace(shared, workspace=folder / "w")
    old = older(ground, ground.out) if number % 2 else None
    calls = [ground.build(runner) for runner in (("none", "threads"), ("threads", "none"))[number // 2 % 2]]
    moments = [moment_in(ground, group, number, draw) for group in ROUTE]
    # The first change to Prefect's home is followed by the seconds in which its server starts.
    moments.insert(3 - number // 2 % 2, Moment("prefect", 1, draw.uniform(0.5, 8.0)))
    kills = kill_round(ground, calls, moments, old)
    chosen = replace(ground, expected=shared.expected.with_name("chosen"))
    moments = [moment_in(chosen, group, number, draw) for group in CHOOSING]
    kills += kill_round(chosen, [["reselect", str(ground.out), *RESELECTED]], moments, shared.expected)
    both = replace(shared, workspace=folder / "both")
    moment = moment_in(both, ROUTE[number % len(ROUTE)], number, draw)
    # Two builds share the work: each makes fewer changes.
    early = moment._replace(number=moment.number // 4 + 1)
    return kills + two_builds(both, early, ("none", "threads")[number % 2])


def many_texts(folder: Path, rows: int) -> None:
    """Write a raw folder with one source of so many pairs of short texts."""
    path = folder / "embedding_training_data" / "gooaq_pairs.jsonl.gz"
    path.parent.mkdir(parents=True)
    lines = (json.dumps([f"what is {n} plus one", f"it is {n + 1}, of course"]) for n in range(rows))
    path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", 1))


def chunk_round(shared: Ground, folder: Path, draw: random.Random) -> tuple[list[Kill], list[int]]:
    """Kill a build in the second of a source's three chunks of texts, and the next one when it has encoded the rest.

    Returns the kills, and how many chunks the two runs encoded.
    """
    many_texts(folder / "raw", 4_500)
    ground = Ground(folder / "w", folder / "raw", shared.encoder, folder / "nothing")
    kills, encoded = [], []
    for moment in (Moment("embed", draw.randint(9, 13)), Moment("candidates", 1)):
        before = finished(ground.workspace)
        kills.append(interrupted(ground, ground.build("none"), moment))
        encoded.append(sum("vectors" in name for name in finished(ground.workspace).keys() - before.keys()))
    return [kill for kill in kills if kill], encoded


def main() -> None:
    """Kill until there were enough, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    draw, kills, began = random.Random(asked.seed), list[Kill](), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        shared = prepared(Path(name))
        number = 0
        kills, encoded = chunk_round(shared, Path(name, "chunks"), draw)
        print(f"a source of three chunks: {encoded[0]} encoded before a kill, {encoded[1]} after it", flush=True)
        while len(kills) < asked.kills:
            kills += round_of_kills(shared, Path(name, f"round-{number}"), number, draw)
            shutil.rmtree(Path(name, f"round-{number}"))
            number += 1
            print(f"{len(kills)} kills, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(table(kills))


if __name__ == "__main__":
    main()
