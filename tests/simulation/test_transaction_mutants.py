"""Random runs find each known bug of transactions, by what it breaks."""

import os
import re
import subprocess

import pytest

from penstock.chaos.mutants.forms import FORMS, SMALL_CLUSTER
from penstock.chaos.mutants.transaction_mutants import BUGS
from penstock.chaos.simulation.cluster.command import child_command, child_environment

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
SEED_COUNT = 200
SHAPE = (*SMALL_CLUSTER, "--profile", "faults")

# What the first run that finds it says (`chaos/checkers/transactions.py`).
BROKEN_RUNS = {name: FORMS[name].breaks for name in BUGS}
# Those that are found the soonest.
SAMPLE = ("open-transactions-are-stable", "aborted-not-told")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", BROKEN_RUNS if IS_SOAK else SAMPLE)
def test_random_runs_find_a_bug(name: str) -> None:
    options = [
        "--seeds",
        str(SEED_COUNT),
        "--faults-s",
        "8",
        "--members",
        "0",
        "--transactions",
        "--until-failure",
        *SHAPE,
    ]
    child = subprocess.run(
        child_command(*options, "--mutant", name), env=child_environment(), capture_output=True, text=True
    )
    assert child.returncode == 1, child.stdout + child.stderr
    assert re.search(BROKEN_RUNS[name], child.stdout), child.stdout + child.stderr
    assert "replay: penstock simulate --seed" in child.stdout
    assert "broke off" not in child.stdout, child.stdout + child.stderr
