"""Random runs find each known bug of transactions, by what it breaks."""

import os
import re
import subprocess

import pytest

from penstock.chaos.mutants.transaction_mutants import BUGS
from penstock.chaos.simulation.cluster.command import child_command, child_environment

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
SEED_COUNT = 200
SHAPE = ("--nodes", "3", "--brokers", "0", "--log-dirs", "1", "--profile", "faults")

# What the first run that finds it says (`chaos/checkers/transactions.py`).
BROKEN_RUNS = {
    "marker-to-first-partition": r"TORN: |LOST: |STUCK: ",
    "open-transactions-are-stable": r"PRECOMMITTED_READ: |ABORTED_READ: ",
    "aborted-not-told": r"ABORTED_READ: ",
    "prepared-forgotten-at-load": r"LOST: |STUCK: |not live after healing",
    "zombie-not-fenced": r"LOST: |TORN: |PRECOMMITTED_READ: |ABORTED_READ: |INPUT_TWICE: |OFFSETS_TORN: ",
}
# Those that are found the soonest.
SAMPLE = ("open-transactions-are-stable", "aborted-not-told")


def test_every_mutant_is_tried() -> None:
    assert sorted(BROKEN_RUNS) == sorted(BUGS)


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
