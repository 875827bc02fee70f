"""Directed runs find each bug of one line, by what it breaks, in the form that docs/simulation.md tells."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from penstock.chaos.mutants.line_mutants import BUGS
from penstock.chaos.simulation.cluster.command import child_command, child_environment

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
SEED_COUNT = 500
SHAPE = ("--nodes", "3", "--brokers", "0", "--log-dirs", "1", "--faults-s", "8")
DOCUMENT = Path(__file__).parents[2] / "docs" / "simulation.md"
_ROW = re.compile(r"^\| `([a-z-]+)` \| `(--[^`|]+)` \|", re.MULTILINE)

# What the first run that finds it says (`replica_judge.py`, `chaos/checkers`).
BROKEN_RUNS = {
    "shrink-counts-when-proposed": r"MaximalIsr: ",
    "own-epoch-ignored": r"Uncut: |not live after healing",
    "oldest-transaction-ignored": r"PRECOMMITTED_READ: |ABORTED_READ: ",
    "producers-not-reloaded": r"Remembered: .* it remembers ",
    "epochs-not-cut": r"Remembered: .* its leader epochs ",
    "markers-before-the-decision": r"LOST: |TORN: |PRECOMMITTED_READ: |ABORTED_READ: |STUCK: |not live after healing",
    "old-generation-commits": r"a zombie was not refused: commit of ",
    "active-before-replay": r"MaximalIsr: |StrongIsr: |Monotone: |OneLeader: |Committed: ",
    "snapshot-forgets-transactions": r"Remembered: .* it remembers ",
    "transaction-index-not-cut": r"Remembered: .* its transaction index has ",
    "gap-between-segments": r"Remembered: .* its batches end at |Joining: |StrongIsr: ",
    "elr-does-not-count": r"MaximalIsr: ",
    "unclean-stop-taken-for-clean": r"StrongIsr: node \d is in the ELR ",
    "unsynced-follower-counts": r"Synced: ",
    "verification-survives-the-marker": r"ABORTED_READ: |STUCK: ",
    "one-batch-remembered": r"Remembered: .* it remembers ",
    "marker-taken-for-written": r"TORN: |LOST: |STUCK: |ABORTED_READ: |INPUT_TWICE: |no marker ends |"
    r"not live after healing",
    "pending-offset-wins": r"OFFSET: ",
    "older-member-epoch-commits": r"a zombie was not refused: commit of ",
    "join-behind-the-epoch-start": r"Joining: |StrongIsr: ",
    "refused-not-remembered": r"was told OUT_OF_ORDER_SEQUENCE_NUMBER of sequence ",
    "deleted-producers-unknown": r"Producers: .* knows None of producer |SEQUENCES: ",
    "gap-in-a-compacted-topic": r"Remembered: .* its batches end at |Joining: |StrongIsr: ",
}
# Those that are found by the first run.
SAMPLE = ("old-generation-commits", "one-batch-remembered")


def forms() -> dict[str, list[str]]:
    """The options by mutant, as the document has them."""
    return {name: shlex.split(options) for name, options in _ROW.findall(DOCUMENT.read_text())}


def test_every_mutant_has_its_form() -> None:
    assert sorted(BROKEN_RUNS) == sorted(forms()) == sorted(BUGS)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", BROKEN_RUNS if IS_SOAK else SAMPLE)
def test_directed_runs_find_a_bug(name: str) -> None:
    options = ["--seeds", str(SEED_COUNT), "--until-failure", *SHAPE, *forms()[name], "--mutant", name]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 1, child.stdout + child.stderr
    assert re.search(BROKEN_RUNS[name], child.stdout), child.stdout + child.stderr
    assert "replay: penstock simulate --seed" in child.stdout
    assert "broke off" not in child.stdout, child.stdout + child.stderr
