"""Files that disks damage among the faults of the whole cluster, and that runs find known bugs of it."""

import re
import subprocess

import pytest

from penstock.chaos.mutants.damage_mutants import BUGS
from penstock.chaos.mutants.forms import FORMS, SMALL_CLUSTER
from penstock.chaos.simulation.cluster.command import child_command, child_environment

SEED_COUNT = 100
# From seed 0 on they take 6 and 160 runs.
FIRST_SEEDS = {"findings-come-to-nothing": 5, "damage-is-copied-to-the-tier": 158}


def simulated(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)


@pytest.mark.parametrize(
    "options",
    [
        ("--no-tiers", "--members", "0", "--no-transactions", "--first", "5"),
        ("--tiers", "--members", "0", "--transactions", "--compaction", "--first", "6"),
    ],
    ids=["plain", "tiers, transactions and compaction"],
)
def test_what_a_disk_damages_is_made_good_and_neither_read_nor_replicated(options: tuple[str, ...]) -> None:
    child = simulated(*SMALL_CLUSTER, *options, "--profile", "damage", "--faults-s", "8")
    assert child.returncode == 0, child.stdout + child.stderr
    assert re.search(r"\d+ faults: .*\d+ (bit flip|lost file)", child.stdout), child.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BUGS)
def test_random_runs_find_a_bug(name: str) -> None:
    options = (*FORMS[name].options.split(), "--first", str(FIRST_SEEDS[name]), "--seeds", str(SEED_COUNT))
    child = simulated(*SMALL_CLUSTER, *options, "--faults-s", "8", "--until-failure", "--mutant", name)
    assert child.returncode == 1, child.stdout + child.stderr
    assert re.search(FORMS[name].breaks, child.stdout), child.stdout + child.stderr
