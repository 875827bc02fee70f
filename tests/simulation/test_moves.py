"""Moves between log directories among the faults of the whole cluster, and that runs find known bugs of them."""

import re
import subprocess

import pytest

from penstock.chaos.mutants.forms import FORMS
from penstock.chaos.mutants.move_mutants import BUGS
from penstock.chaos.simulation.cluster.command import child_command, child_environment

SHAPE = ("--nodes", "3", "--brokers", "0", "--log-dirs", "2", "--members", "0", "--no-transactions", "--no-tiers")
SEED_COUNT = 100
# From seed 0 on `cut-not-copied` takes 72 runs.
FIRST_SEEDS = {"takes-over-behind": 4, "cut-not-copied": 70, "safe-before-its-name": 29}


def simulated(*options: str) -> subprocess.CompletedProcess[str]:
    command = child_command(*options, "--profile", "moves")
    return subprocess.run(command, env=child_environment(), capture_output=True, text=True)


@pytest.mark.parametrize("options", [SHAPE, ("--nodes", "3", "--log-dirs", "3", "--members", "2", "--transactions")])
def test_no_fault_breaks_a_move(options: tuple[str, ...]) -> None:
    child = simulated(*options, "--first", "1", "--faults-s", "8", "--compaction")
    assert child.returncode == 0, child.stdout + child.stderr
    assert re.search(r"\d+ operations: .*\d\d directory-move, ", child.stdout), child.stdout


def test_nodes_of_one_log_directory_move_nothing() -> None:
    child = simulated("--nodes", "3", "--log-dirs", "1", "--members", "0", "--no-transactions", "--faults-s", "2")
    assert child.returncode == 0, child.stdout + child.stderr
    assert "directory-move" not in child.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BUGS)
def test_random_runs_find_a_bug(name: str) -> None:
    options = [
        "--first",
        str(FIRST_SEEDS[name]),
        "--seeds",
        str(SEED_COUNT),
        "--faults-s",
        "8",
        "--until-failure",
        "--no-compaction",
        *SHAPE,
    ]
    child = simulated(*options, "--mutant", name)
    assert child.returncode == 1, child.stdout + child.stderr
    assert re.search(FORMS[name].breaks, child.stdout), child.stdout + child.stderr
