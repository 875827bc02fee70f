"""Random runs find each known bug of drains and of cluster events, by what it breaks."""

import re
import subprocess

import pytest

from penstock.chaos.mutants.drain_mutants import BUGS
from penstock.chaos.mutants.forms import FORMS, SMALL_CLUSTER
from penstock.chaos.simulation.cluster.command import child_command, child_environment

SHAPE = (*SMALL_CLUSTER, "--members", "0", "--no-transactions")
SEED_COUNT = 40
BROKEN_RUNS = {name: FORMS[name].breaks for name in BUGS}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BROKEN_RUNS)
def test_random_runs_find_a_bug(name: str) -> None:
    options = ["--seeds", str(SEED_COUNT), "--faults-s", "8", "--profile", "drains", "--until-failure", *SHAPE]
    command = child_command(*options, "--mutant", name)
    child = subprocess.run(command, env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 1, child.stdout + child.stderr
    assert re.search(BROKEN_RUNS[name], child.stdout), child.stdout + child.stderr
