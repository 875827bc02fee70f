"""Calibration by whole runs: what is found, what survives, and what is no answer to either."""

import json

import pytest
from click.testing import CliRunner

from penstock.chaos.mutants import calibration
from penstock.chaos.mutants.forms import Form
from penstock.chaos.runs.calibrate_command import calibrate

FOUND_SOON = "snapshot-without-log-match"
"""In one of the first runs: in which, any change of what a node does moves."""
RUNS_MAX = 40


def test_a_bug_that_is_found_is_a_row_and_exit_status_0() -> None:
    answer = CliRunner().invoke(calibrate, ["--only", FOUND_SOON, "--seeds-max", str(RUNS_MAX), "--json"])
    assert answer.exit_code == 0, answer.output
    caught = json.loads(answer.output)
    assert (caught["mutant"], caught["is_caught"]) == (FOUND_SOON, True)
    assert 1 <= caught["runs"] <= RUNS_MAX
    assert caught["broken"].startswith("divergence: ")


def test_a_bug_that_survives_is_exit_status_1() -> None:
    # It takes more than one run.
    answer = CliRunner().invoke(calibrate, ["--only", "vote-not-on-disk", "--seeds-max", "1"])
    assert answer.exit_code == 1, answer.output
    assert "| 1 | NOT CAUGHT: survived |" in answer.output
    assert "0 of 1 are caught." in answer.output


def test_what_breaks_something_else_is_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "FORMS", {FOUND_SOON: Form("--faults-s 12", "another thing", "quorum")})
    caught = calibration.calibrate(FOUND_SOON, seeds_max=RUNS_MAX)
    assert not caught.is_caught
    assert caught.broken.startswith("found as something else: divergence: ")


def test_runs_that_cannot_begin_are_not_taken_for_a_survivor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "FORMS", {FOUND_SOON: Form("--no-such-option", ".", "quorum")})
    caught = calibration.calibrate(FOUND_SOON, seeds_max=1)
    assert not caught.is_caught
    assert caught.broken.startswith("the runs failed: ")
