"""The whole cluster under faults, from seeds; and that a seed is one run."""

import os
import re
import signal
import subprocess
import sys

import pytest

from penstock.chaos.simulation.cluster.command import CHILD, child_command, child_environment

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
# `make soak` sets how many.
SEED_COUNT = int(os.environ.get("PENSTOCK_TEST_SEEDS", "4"))
SEEDS_PER_TEST = 50 if IS_SOAK else 2
# The small samples of groups and transactions have small clusters; in `make soak` all is drawn from the seed.
SHAPE = () if IS_SOAK else ("--nodes", "3", "--brokers", "0", "--log-dirs", "1")

# An interpreter whose memory lies elsewhere.
WITH_GARBAGE = f"""
import runpy, sys
garbage = [[number] for number in range(int(sys.argv.pop(1)))]
sys.argv[0] = {CHILD!r}
runpy.run_module({CHILD!r}, run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("first", range(0, SEED_COUNT, SEEDS_PER_TEST))
def test_no_fault_breaks_a_cluster_s_promises(first: int) -> None:
    options = ["--first", str(first), "--seeds", str(SEEDS_PER_TEST), "--faults-s", "20" if IS_SOAK else "6"]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr


@pytest.mark.parametrize("first", range(0, SEED_COUNT, 2 * SEEDS_PER_TEST))
def test_no_fault_breaks_what_a_group_told_its_members(first: int) -> None:
    options = ["--first", str(first), "--seeds", str(SEEDS_PER_TEST), "--members", "2", *SHAPE]
    options += ["--faults-s", "20" if IS_SOAK else "6"]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr


@pytest.mark.parametrize("first", range(0, SEED_COUNT, 2 * SEEDS_PER_TEST))
def test_no_fault_tears_a_transaction(first: int) -> None:
    options = ["--first", str(first), "--seeds", str(SEEDS_PER_TEST), "--members", "0", "--transactions", *SHAPE]
    options += ["--faults-s", "20" if IS_SOAK else "6"]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr


@pytest.mark.parametrize(
    ("profile", "happens"),
    [
        ("operator", r"\d+ operations: .*\d+ reassignment"),
        ("zombies", r"\d+ requests of zombies: .*\d+ zombie commit, (UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION)"),
    ],
)
def test_what_a_profile_is_about_happens(profile: str, happens: str) -> None:
    options = ["--first", "1", "--faults-s", "8", "--members", "2", "--no-transactions", "--profile", profile]
    options += ["--nodes", "3", "--brokers", "1", "--log-dirs", "2"]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr
    assert re.search(happens, child.stdout), child.stdout


def test_no_fault_takes_what_is_in_the_tier_alone() -> None:
    options = ["--first", "4", "--faults-s", "8", "--members", "0", "--no-compaction", "--tiers", "--profile", "tiers"]
    options += ["--seeds", "2", "--nodes", "3", "--brokers", "1", "--log-dirs", "1"]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr
    assert re.search(r"\d+ faults: .*\d+ tier error, \d+ tier outage", child.stdout), child.stdout
    assert re.search(r"[1-9]\d+ segments copied to the tier, [1-9]\d* segments deleted", child.stdout), child.stdout


def test_answers_come_late_and_clients_do_not_wait_for_them() -> None:
    options = ["--first", "6", "--faults-s", "8", "--members", "0", "--transactions", "--profile", "races"]
    options += ["--nodes", "3", "--brokers", "0", "--log-dirs", "1"]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr
    assert re.search(r"\d+ faults: .*\d+ late answer", child.stdout), child.stdout
    assert re.search(r"\d+ operations: .*\d+ batch given up.*\d+ mixed commits", child.stdout), child.stdout


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
                "--brokers",
                "1",
                "--log-dirs",
                "2",
                "--profile",
                "all",
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
    assert one[:-5] == other[:-5]
    assert sum(" arrive " in line for line in one) > 200
    assert any(line.startswith("seed 3: clean") for line in one)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_who_ends_the_command_early_is_told_of_the_runs_that_there_were(ending: signal.Signals) -> None:
    options = ["--seeds", "100000", "--faults-s", "1", "--members", "0", "--no-transactions", "--jobs", "2", "--trace"]
    options += ["--profile", "quiet", *SHAPE]
    command = [sys.executable, "-P", "-m", "penstock", "simulate", *options]
    # A shell lets what it runs in the background ignore SIGINT, and the command would ignore what this process does.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # It is the leader of a process group, which the runs are in too.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            # What two runs print at the same time may come in one line.
            if "seed 0: clean" in line:
                break
        child.send_signal(ending)
        rest = child.stdout.read()
        assert child.wait() == 0
    assert re.search(r"^[1-9]\d* runs in \d+ s: ", rest, re.MULTILINE), rest[-1000:]
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)
