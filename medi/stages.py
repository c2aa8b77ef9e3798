"""The stages of a build and their versions, in the order of the data's route.

A change of code that changes what a stage gives must raise the stage's version here: the golden test
(`tests/test_golden.py`) fails until that is done.
"""

VERSIONS = {
    "ingest": 3,
    "tokens": 1,
    "embed": 1,
    "candidates": 1,
    "near": 1,
    "rescore": 1,
    "mine": 2,
    "audit": 2,
    "sample": 1,
    "instruct": 2,
}
