"""Directed runs find bugs of one line, by what it breaks, in the form that docs/simulation.md tells."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from penstock.chaos.mutants.forms import FORMS, SMALL_CLUSTER
from penstock.chaos.mutants.line_mutants import BUGS
from penstock.chaos.simulation.cluster.command import child_command, child_environment

IS_SOAK = os.environ.get("PENSTOCK_TEST_PROFILE") == "soak"
SEED_COUNT = 500
SHAPE = (*SMALL_CLUSTER, "--faults-s", "8")
DOCUMENT = Path(__file__).parents[2] / "docs" / "simulation.md"
_ROW = re.compile(r"^\| `([a-z-]+)` \| `(--[^`|]+)` \|", re.MULTILINE)

# What the first run that finds it says (`replica_judge.py`, `chaos/checkers`).
BROKEN_RUNS = {name: FORMS[name].breaks for name in BUGS if name in FORMS}
# Those that are found by the first run.
SAMPLE = ("old-generation-commits", "one-batch-remembered")


def forms() -> dict[str, list[str]]:
    """The options by mutant, as the document has them."""
    return {name: shlex.split(options) for name, options in _ROW.findall(DOCUMENT.read_text())}


def test_the_document_has_the_form_of_every_mutant_that_runs_find() -> None:
    assert forms() == {name: shlex.split(FORMS[name].options) for name in BROKEN_RUNS}


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", BROKEN_RUNS if IS_SOAK else SAMPLE)
def test_directed_runs_find_a_bug(name: str) -> None:
    options = ["--seeds", str(SEED_COUNT), "--until-failure", *SHAPE, *forms()[name], "--mutant", name]
    child = subprocess.run(child_command(*options), env=child_environment(), capture_output=True, text=True)
    assert child.returncode == 1, child.stdout + child.stderr
    assert re.search(BROKEN_RUNS[name], child.stdout), child.stdout + child.stderr
    assert "replay: penstock simulate --seed" in child.stdout
    assert "broke off" not in child.stdout, child.stdout + child.stderr
