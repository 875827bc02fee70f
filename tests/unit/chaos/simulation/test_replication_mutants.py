"""The simulation finds each known bug of replication."""

import os
import subprocess

import pytest

from penstock.chaos.mutants.replication_mutants import BUGS
from penstock.chaos.simulation.cluster.command import child_command, child_environment

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
# A seed that finds it, where to begin; another way of drawing may take another.
SEEDS = {
    "truncate-to-high-watermark": 0,
    "acknowledge-at-append": 0,
    "no-broker-epoch-check": 0,
    "no-partition-epoch-compare": 0,
    "committed-isr-only": 0,
    "follower-not-fenced": 0,
}
# Within a few runs.
FOUND_SOON = ("acknowledge-at-append", "committed-isr-only", "follower-not-fenced", "truncate-to-high-watermark")


def test_every_mutant_is_tried() -> None:
    assert sorted(SEEDS) == sorted(BUGS)


@pytest.mark.simulation
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SEEDS if IS_SOAK else FOUND_SOON)
def test_random_runs_find_a_bug(name: str) -> None:
    options = ["--first", str(SEEDS[name]), "--seeds", "200", "--faults-s", "8", "--mutant", name, "--until-failure"]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 1, child.stdout + child.stderr
    assert "replay: penstock simulate --seed" in child.stdout
    assert "broke off" not in child.stdout, child.stdout + child.stderr
