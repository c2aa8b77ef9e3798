"""Code that changes what a stage gives must raise the stage's version: this test makes forgetting impossible."""

import json

import pytest

from medi.stages import VERSIONS
from tests.golden import GOLDEN, digests

NOW = digests()


@pytest.mark.parametrize("stage", VERSIONS)
def test_a_stage_gives_what_its_version_says(stage: str) -> None:
    golden = json.loads(GOLDEN.read_text())
    assert NOW[stage] == golden[stage], (
        f"stage {stage} gives something else than version {golden[stage]['version']} did: raise its version in "
        "medi/stages.py, then run `python -m tests.golden`"
    )


def test_every_stage_is_covered() -> None:
    assert NOW.keys() == VERSIONS.keys()
    assert len({str(entry["digest"]) for entry in NOW.values()}) == len(VERSIONS)
