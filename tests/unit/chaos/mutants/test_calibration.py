"""Calibration counts a bug as caught only where a run breaks what that bug is known to break."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.chaos.mutants import calibration
from penstock.chaos.mutants.forms import BUGS, FORMS, SPECIFIED, UNIT_TESTS, Form, caught_by
from penstock.chaos.mutants.known_bugs import NAMES
from penstock.chaos.mutants.quorum_mutants import MUTANTS
from penstock.chaos.runs.calibrate_command import calibrate

FOUND_AT_ONCE = "snapshot-without-log-match"
PAGE = (Path(__file__).parents[4] / "docs" / "testing.md").read_text()
ROW = re.compile(r"^\| `([\w-]+)` \| `([^`]+)` \| (?:up to )?(\d*) \| (.+) \| 2\d{3}-\d\d-\d\d \|$", re.MULTILINE)


def test_every_bug_is_found_by_runs_or_by_a_unit_test() -> None:
    assert sorted(BUGS) == sorted({*NAMES, *(mutant.name for mutant in MUTANTS)})
    assert sorted(BUGS) == sorted([*FORMS, *UNIT_TESTS])
    assert all(BUGS.values())


def test_the_17_of_the_specifications_are_there() -> None:
    assert len(SPECIFIED) == len(set(SPECIFIED.values())) == 17
    assert set(SPECIFIED.values()) <= set(BUGS)


def test_the_page_says_how_each_bug_is_caught_and_after_how_many_runs() -> None:
    rows = {name: (by, runs, broken) for name, by, runs, broken in ROW.findall(PAGE)}
    assert {name: by for name, (by, _, _) in rows.items()} == {name: caught_by(name) for name in BUGS}
    for name, (_, runs, broken) in rows.items():
        assert runs or name in UNIT_TESTS or "make soak" in broken, name


def test_a_bug_that_is_found_is_a_row_and_exit_status_0() -> None:
    answer = CliRunner().invoke(calibrate, ["--only", FOUND_AT_ONCE, "--json"])
    assert answer.exit_code == 0, answer.output
    caught = json.loads(answer.output)
    assert (caught["mutant"], caught["is_caught"], caught["runs"]) == (FOUND_AT_ONCE, True, 1)
    assert caught["broken"].startswith("divergence: ")


def test_a_bug_that_survives_is_exit_status_1() -> None:
    # It takes more than one run.
    answer = CliRunner().invoke(calibrate, ["--only", "vote-not-on-disk", "--seeds-max", "1"])
    assert answer.exit_code == 1, answer.output
    assert "| 1 | NOT CAUGHT: survived |" in answer.output
    assert "0 of 1 are caught." in answer.output


def test_what_breaks_something_else_is_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "FORMS", {FOUND_AT_ONCE: Form("--faults-s 12", "another thing", "quorum")})
    caught = calibration.calibrate(FOUND_AT_ONCE, seeds_max=1)
    assert not caught.is_caught
    assert caught.broken.startswith("found as something else: divergence: ")


def test_runs_that_cannot_begin_are_not_taken_for_a_survivor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "FORMS", {FOUND_AT_ONCE: Form("--no-such-option", ".", "quorum")})
    caught = calibration.calibrate(FOUND_AT_ONCE, seeds_max=1)
    assert not caught.is_caught
    assert caught.broken.startswith("the runs failed: ")


def test_unknown_bug_is_told_with_those_that_there_are() -> None:
    answer = CliRunner().invoke(calibrate, ["--only", "no-such-bug"])
    assert answer.exit_code == 2
    assert "no such bug: no-such-bug (there are: " in answer.output
