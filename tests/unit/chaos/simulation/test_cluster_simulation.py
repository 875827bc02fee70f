"""The whole cluster under faults, from seeds; and that a seed is one run."""

import os
import subprocess
import sys

import pytest

from penstock.chaos.simulation.cluster.command import CHILD, child_command, child_environment

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
# `make soak` sets how many.
SEED_COUNT = int(os.environ.get("PENSTOCK_TEST_SEEDS", "4"))
SEEDS_PER_TEST = 50 if IS_SOAK else 2

# An interpreter whose memory lies elsewhere.
WITH_GARBAGE = f"""
import runpy, sys
garbage = [[number] for number in range(int(sys.argv.pop(1)))]
sys.argv[0] = {CHILD!r}
runpy.run_module({CHILD!r}, run_name="__main__", alter_sys=True)
"""


@pytest.mark.simulation
@pytest.mark.parametrize("first", range(0, SEED_COUNT, SEEDS_PER_TEST))
def test_no_fault_breaks_a_cluster_s_promises(first: int) -> None:
    options = ["--first", str(first), "--seeds", str(SEEDS_PER_TEST), "--faults-s", "20" if IS_SOAK else "6"]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr


@pytest.mark.simulation
@pytest.mark.parametrize("first", range(0, SEED_COUNT, 2 * SEEDS_PER_TEST))
def test_no_fault_breaks_what_a_group_told_its_members(first: int) -> None:
    options = ["--first", str(first), "--seeds", str(SEEDS_PER_TEST), "--members", "2"]
    options += ["--faults-s", "20" if IS_SOAK else "6"]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr


@pytest.mark.simulation
@pytest.mark.parametrize("first", range(0, SEED_COUNT, 2 * SEEDS_PER_TEST))
def test_no_fault_tears_a_transaction(first: int) -> None:
    options = ["--first", str(first), "--seeds", str(SEEDS_PER_TEST), "--members", "0", "--transactions"]
    options += ["--faults-s", "20" if IS_SOAK else "6"]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr


@pytest.mark.simulation
def test_a_seed_gives_the_same_run_in_every_process() -> None:
    children = [
        subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                WITH_GARBAGE,
                garbage,
                "--first",
                "3",
                "--faults-s",
                "4",
                "--members",
                "2",
                "--transactions",
                "--trace",
            ],
            env=child_environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        for garbage in ("1", "123456")
    ]
    one, other = (child.communicate()[0].splitlines() for child in children)
    # The last lines tell how long it took.
    assert one[:-3] == other[:-3]
    assert sum(" arrive " in line for line in one) > 200
    assert any(line.startswith("seed 3: clean") for line in one)
