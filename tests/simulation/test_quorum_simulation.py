"""Many seeds of the quorum under every fault that the simulation knows."""

import os
import subprocess
import sys

import pytest

from penstock.chaos.simulation.quorum_run import QuorumRun, run_quorum

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
RUNS_PER_TEST = 10


def check(run: QuorumRun, options: str) -> None:
    replay = f"replay: python -m penstock.chaos.simulation.quorum_run --first {run.seed} --seeds 1 {options}"
    assert not run.violations, f"{run.violations}\n{replay}"
    assert run.is_live, f"not live after healing\n{replay}"


@pytest.mark.parametrize("first", range(0, 1_000 if IS_SOAK else 60, RUNS_PER_TEST))
def test_no_fault_breaks_three_voters_on_a_hostile_network(first: int) -> None:
    for seed in range(first, first + RUNS_PER_TEST):
        check(run_quorum(seed, faults_s=20 if IS_SOAK else 8), "")


@pytest.mark.parametrize("first", range(10_000, 10_300 if IS_SOAK else 10_020, RUNS_PER_TEST))
def test_no_fault_breaks_three_voters_on_streams(first: int) -> None:
    for seed in range(first, first + RUNS_PER_TEST):
        check(run_quorum(seed, is_hostile=False, faults_s=20 if IS_SOAK else 8), "--streams")


@pytest.mark.parametrize("first", range(20_000, 20_300 if IS_SOAK else 20_020, RUNS_PER_TEST))
def test_no_fault_breaks_five_voters(first: int) -> None:
    for seed in range(first, first + RUNS_PER_TEST):
        check(run_quorum(seed, voter_count=5, faults_s=20 if IS_SOAK else 6), "--voters 5")


@pytest.mark.parametrize("first", range(60_000, 60_300 if IS_SOAK else 60_020, RUNS_PER_TEST))
def test_no_fault_breaks_controllers(first: int) -> None:
    """Images are equal at the end, and nothing was decided on an old one."""
    for seed in range(first, first + RUNS_PER_TEST):
        check(run_quorum(seed, has_controllers=True, faults_s=20 if IS_SOAK else 8), "--controllers")


FAULTS = {
    "kill", "power loss", "torn writes", "blackout", "start", "cut", "one-way cut", "partition", "isolate", "heal",
    "broken link", "pause", "save", "transfer", "disk error", "disk full", "swap", "dropped", "doubled", "overtaken",
}  # fmt: skip


@pytest.mark.parametrize("voter_count", [3, 5])
def test_every_fault_does_happen(voter_count: int) -> None:
    """One that never does shows nothing."""
    seen: set[str] = set()
    for seed in range(70_000, 70_040):
        run = run_quorum(seed, voter_count=voter_count, faults_s=20)
        check(run, f"--voters {voter_count}")
        assert run.acknowledged_count
        assert run.barrier_count
        seen |= run.counts.keys()
        if seen >= FAULTS:
            return
    raise AssertionError(f"never seen: {sorted(FAULTS - seen)}")


TRACE = """
import sys
garbage = [[] for _ in range(int(sys.argv[1]))]
from penstock.chaos.simulation.quorum_run import run_quorum
run = run_quorum(8, keeps_trace=True, faults_s=6)
sys.stdout.write("\\n".join([*run.trace, run.trace_hash]))
"""


def test_a_seed_gives_the_same_run_in_every_process() -> None:
    traces = {
        subprocess.run(
            [sys.executable, "-c", TRACE, garbage],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        ).stdout
        for garbage, hash_seed in (("1", "0"), ("100000", "1"), ("777", "2"))
    }
    assert len(traces) == 1
    assert traces.pop().count(b"message") > 200
