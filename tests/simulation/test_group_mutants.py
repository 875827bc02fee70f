"""Random runs find each known bug of group coordinators, by what it breaks."""

import re
import subprocess

import pytest

from penstock.chaos.mutants.group_mutants import BUGS
from penstock.chaos.simulation.cluster.command import child_command, child_environment

SEED_COUNT = 200
SHAPE = ("--nodes", "3", "--brokers", "0", "--log-dirs", "1", "--profile", "faults")

# What the first run that finds it says (`group_ownership.py`, `committed_offsets.py`).
BROKEN_RUNS = {
    "one-assignment-for-all": r"both have partition \d in epoch ",
    "generations-begin-anew": r"gets epoch \d+ after epoch \d+|both have partition \d in epoch ",
    "given-while-held": r"is given partition \d, which \S+ has and has not let go",
    "commit-answered-at-append": r"gets epoch|both have partition|the committed offset was fetched as",
    "first-offset-wins": r"partition \d: the committed offset was fetched as \d+, where only .* can be",
}


def test_every_mutant_is_tried() -> None:
    assert sorted(BROKEN_RUNS) == sorted(BUGS)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", BROKEN_RUNS)
def test_random_runs_find_a_bug(name: str) -> None:
    options = ["--seeds", str(SEED_COUNT), "--faults-s", "8", "--members", "3"]
    options += ["--no-transactions", "--until-failure", *SHAPE]
    child = subprocess.run(
        child_command(*options, "--mutant", name), env=child_environment(), capture_output=True, text=True
    )
    assert child.returncode == 1, child.stdout + child.stderr
    assert re.search(BROKEN_RUNS[name], child.stdout), child.stdout + child.stderr
    assert "replay: penstock simulate --seed" in child.stdout
    assert "broke off" not in child.stdout, child.stdout + child.stderr
