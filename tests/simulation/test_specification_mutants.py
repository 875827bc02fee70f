"""Directed runs find bugs that specifications show, by what they break (`chaos/mutants/forms.py`)."""

import os

import pytest

from penstock.chaos.mutants.calibration import calibrate
from penstock.chaos.mutants.forms import FORMS
from penstock.chaos.mutants.specification_mutants import BUGS

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
SEED_COUNT = 200
# Those that are found by the first run.
SAMPLE = ("unheard-follower-counts", "join-below-the-high-watermark", "unsynced-leader-counts")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [name for name in BUGS if name in FORMS] if IS_SOAK else SAMPLE)
def test_directed_runs_find_a_bug(name: str) -> None:
    caught = calibrate(name, seeds_max=SEED_COUNT)
    assert caught.is_caught, caught
