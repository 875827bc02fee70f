"""The mixes of faults in which other brokers broke their promises, and the one without any (docs/known-bugs.md)."""

import re
import subprocess

import pytest

from penstock.chaos.mutants.forms import SMALL_CLUSTER
from penstock.chaos.simulation.cluster.command import child_command, child_environment


def run(*options: str) -> str:
    """What the runs say; they must be clean."""
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr
    return child.stdout


@pytest.mark.parametrize(
    ("profile", "seed", "happens"),
    [
        ("elections", "104", ("kill", "pause", "moved-leader")),
        ("operator", "100", ("kill", "reassignment", "moved-leader")),
    ],
    ids=["pause,kill", "kill,membership"],
)
def test_kills_beside_pauses_or_changed_replicas_break_no_promise(
    profile: str, seed: str, happens: tuple[str, ...]
) -> None:
    """Redpanda 21.10 under Jepsen's `pause,kill` and `kill,membership`: duplicates, lost and aborted records."""
    options = ("--first", seed, "--seeds", "1", "--faults-s", "8", "--members", "0", "--transactions")
    told = run(*options, *SMALL_CLUSTER, "--brokers", "1", "--profile", profile)
    for kind in happens:
        assert re.search(rf"[1-9]\d* {kind}\b", told), f"no {kind}: {told}"


def test_a_cluster_in_which_nothing_goes_wrong_loses_and_moves_nothing() -> None:
    """Bufstream 0.1.0 lost acknowledged records in a healthy cluster, and answered with offset 0 what lay elsewhere."""
    options = ("--first", "100", "--seeds", "1", "--faults-s", "8", "--members", "0", "--transactions")
    told = run(*options, *SMALL_CLUSTER, "--profile", "quiet")
    assert re.search(r"[1-9]\d* acknowledged records", told), told
    # All nodes end before their files are read.
    assert "1 faults: 1 kill of all" in told, told
