"""Every target with its seeds, with damaged seeds, and with what coverage makes of them.

Guided by coverage each target runs for `PENSTOCK_FUZZ_SECONDS` (1); with `PENSTOCK_FUZZ_CORPUS` what was found
interesting is kept in that folder and is where the next run begins.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutation import mutate
from targets import TARGETS

GUIDED = Path(__file__).with_name("guided.py")
SECONDS = int(os.environ.get("PENSTOCK_FUZZ_SECONDS", "1"))
# A reader that takes longer for 8 KiB is a way to stop a node.
INPUT_SECONDS_MAX = 20
MEMORY_MIB_MAX = 2048
EVERY_TARGET = pytest.mark.parametrize("name", TARGETS)


@cache
def seeds_of(name: str) -> list[bytes]:
    return TARGETS[name].seeds()


@EVERY_TARGET
def test_seeds_are_read(name: str) -> None:
    for seed in seeds_of(name):
        TARGETS[name].check(seed)


@pytest.mark.fuzz
@EVERY_TARGET
@given(seed=st.integers(0, 2**64 - 1))
def test_damaged_seeds_are_refused_or_read_as_what_they_are(name: str, seed: int) -> None:
    source = Random(seed)
    TARGETS[name].check(mutate(source.choice(seeds_of(name)), source))


@pytest.mark.fuzz
@pytest.mark.timeout(SECONDS + 300)
@EVERY_TARGET
def test_inputs_guided_by_coverage_are_refused_or_read_as_what_they_are(name: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("atheris") is None:
        # The seeds above are damaged at random all the same.
        sentence = "atheris is not installed: it has wheels for CPython 3.11 to 3.14 on Linux x86-64 only"
        if os.environ.get("CI") == "true" and (sys.platform, platform.machine()) == ("linux", "x86_64"):
            pytest.fail(sentence)
        pytest.skip(sentence)
    folder = Path(os.environ.get("PENSTOCK_FUZZ_CORPUS", tmp_path)).absolute()
    command = [sys.executable, "-P", str(GUIDED), name, str(folder)]
    limits = [
        f"-max_total_time={SECONDS}",
        f"-timeout={INPUT_SECONDS_MAX}",
        f"-rss_limit_mb={MEMORY_MIB_MAX}",
        "-verbosity=0",
        "-print_final_stats=1",
    ]
    result = subprocess.run([*command, *limits], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"replay: {' '.join(command)} {folder}/crash-…\n{result.stdout[-4000:]}")  # noqa: T201 - shown when it fails
    assert result.returncode == 0
