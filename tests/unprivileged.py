"""Runs a command that permissions hold for, also where the tests run as root, who passes them all."""

import os
import shutil
import subprocess

import pytest

_DROP = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


def as_a_person(call: list[str]) -> list[str]:
    """Return the call as one without root's right to read everything; skips the test where that cannot be had."""
    if os.geteuid() != 0:
        return call
    if shutil.which("setpriv") is None or subprocess.run([*_DROP, "true"], check=False).returncode:
        pytest.skip("root may read everything here: there is no setpriv, or it may not take rights away")
    return [*_DROP, *call]
