"""Each known bug of replication breaks the story that is about it, and random runs find it, by what it breaks."""

import os
import re
import subprocess

import pytest
from replication_stories import STORIES
from story_program import told

from penstock.chaos.mutants import forms
from penstock.chaos.mutants.replication_mutants import BUGS
from penstock.chaos.simulation.cluster.command import child_command, child_environment

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
SEED_COUNT = 200
SHAPE = (*forms.SMALL_CLUSTER, "--profile", "faults")

# The story that is about it, and what the judge says of that, or what is told otherwise than it should be.
# `forms.STORIES` has it of the others.
BROKEN_STORIES = {
    "truncate-to-high-watermark": (
        "kip_101_followers_do_not_cut_what_may_be_committed",
        r"Committed: t-0 of node \d leads epoch 2 and lacks what was committed up to offset 4: its log ends at 3",
    ),
    "acknowledge-at-append": (
        "a_leader_is_isolated_with_its_clients",
        r"cannot reach other nodes any more\na client sends 1 record with acks=all to A: acknowledged at 3",
    ),
    "no-partition-epoch-compare": (
        "alter_partition_that_arrives_again_changes_nothing",
        r"MaximalIsr: node \d, the leader of t-0, counts .*StrongIsr: ",
    ),
    "committed-isr-only": (
        "high_watermark_waits_for_the_maximal_isr",
        r"StrongIsr: node \d is in the ISR .*, but lacks what is below 5, .* its log ends at 3",
    ),
    "follower-not-fenced": (
        "kip_279_logs_part_in_epochs_that_the_leader_never_had",
        r"Committed: t-0 of node \d has committed up to offset 5, with other batches than others have.*StrongIsr: ",
    ),
}
# What the first random run that finds it says (`replica_judge.py`, `clients.py`).
BROKEN_RUNS = {name: forms.FORMS[name].breaks for name in BROKEN_STORIES}
# Within a few runs.
FOUND_SOON = ("acknowledge-at-append", "committed-isr-only")


def test_every_mutant_is_tried() -> None:
    assert sorted(BROKEN_STORIES) == sorted(BUGS.keys() - forms.STORIES.keys())
    assert {story for story, _ in BROKEN_STORIES.values()} <= {story.__name__ for story in STORIES}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BROKEN_STORIES)
def test_a_bug_breaks_the_story_that_is_about_it(name: str) -> None:
    story, broken = BROKEN_STORIES[name]
    child = told(story, name)
    assert re.search(broken, child.stdout + child.stderr), child.stdout + child.stderr


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", BROKEN_RUNS if IS_SOAK else FOUND_SOON)
def test_random_runs_find_a_bug(name: str) -> None:
    options = ["--seeds", str(SEED_COUNT), "--members", "0", "--faults-s", "20" if IS_SOAK else "8"]
    options += ["--no-transactions", "--until-failure", *SHAPE]
    command = child_command(*options, "--mutant", name)
    child = subprocess.run(command, env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 1, child.stdout + child.stderr
    assert re.search(BROKEN_RUNS[name], child.stdout), child.stdout + child.stderr
    assert "replay: penstock simulate --seed" in child.stdout
    assert "broke off" not in child.stdout, child.stdout + child.stderr
