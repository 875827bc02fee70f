"""Random runs of the metadata quorum catch its known bugs."""

import pytest

from penstock.chaos.mutants.quorum_mutants import mutant_named
from penstock.chaos.simulation.quorum_run import run_quorum

# Those that random runs find within some tens of seeds, with one that does.
SEEDS = {
    "truncate-always": 4,
    "send-before-sync": 26,
    "vote-not-on-disk": 155,
    "local-reads": 44,
    "snapshot-without-log-match": 3,
    "new-disk-votes": 0,
    "decides-too-early": 0,
}
NEED_CONTROLLERS = {"decides-too-early"}


@pytest.mark.parametrize("name", SEEDS)
def test_random_runs_catch_a_bug(name: str) -> None:
    with mutant_named(name).applied():
        for seed in range(SEEDS[name], SEEDS[name] + 60):
            run = run_quorum(seed, faults_s=12, has_controllers=name in NEED_CONTROLLERS)
            if run.violations or not run.is_live:
                return
    raise AssertionError(f"no run found {name}")
