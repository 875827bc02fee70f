"""Calibration counts a bug as caught only where a run breaks what that bug is known to break."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.chaos.mutants import calibration
from penstock.chaos.mutants.forms import BUGS, FORMS, SPECIFIED, STORIES, UNIT_TESTS, BrokenStory, Form, caught_by
from penstock.chaos.mutants.known_bugs import NAMES
from penstock.chaos.mutants.quorum_mutants import MUTANTS
from penstock.chaos.runs.calibrate_command import calibrate

FOUND_AT_ONCE = "snapshot-without-log-match"
PAGE = (Path(__file__).parents[4] / "docs" / "testing.md").read_text()
ROW = re.compile(r"^\| `([\w-]+)` \| `([^`]+)` \| (?:up to )?(\d*) \| (.+) \| 2\d{3}-\d\d-\d\d \|$", re.MULTILINE)


def test_every_bug_is_found_by_runs_a_story_or_a_unit_test() -> None:
    assert sorted(BUGS) == sorted({*NAMES, *(mutant.name for mutant in MUTANTS)})
    assert sorted(BUGS) == sorted([*FORMS, *STORIES, *UNIT_TESTS])
    assert all(BUGS.values())


def test_the_17_of_the_specifications_are_there() -> None:
    assert len(SPECIFIED) == len(set(SPECIFIED.values())) == 17
    assert set(SPECIFIED.values()) <= set(BUGS)


def test_the_page_says_how_each_bug_is_caught_and_after_how_many_runs() -> None:
    rows = {name: (by, runs) for name, by, runs, _ in ROW.findall(PAGE)}
    assert {name: by for name, (by, _) in rows.items()} == {name: caught_by(name) for name in BUGS}
    for name, (_, runs) in rows.items():
        assert runs or name in UNIT_TESTS, name


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


@pytest.mark.parametrize(
    ("program", "is_caught", "broken"),
    [
        ("print('StrongIsr: node 1 lacks' if bugs else 'all is well')", True, "StrongIsr: "),
        ("print('all is well')", False, "survived"),
        ("print('StrongIsr: node 1 lacks')", False, "the story is not clean without it either"),
        ("print('StrongIsr: ' if bugs else ''); sys.exit(not bugs)", False, "the story is not clean without it either"),
        ("sys.exit('no such story' if bugs else 0)", False, "found as something else: no such story"),
    ],
)
def test_a_story_counts_where_only_the_bug_breaks_it_and_as_is_known(
    program: str, is_caught: bool, broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "story_program.py"
    path.write_text(f"import sys\nstory, *bugs = sys.argv[1:]\n{program}\n")
    monkeypatch.setattr(calibration, "_STORY_PROGRAM", path)
    monkeypatch.setattr(calibration, "STORIES", {"no-broker-epoch-check": BrokenStory("a_story", "StrongIsr: ")})
    caught = calibration.calibrate("no-broker-epoch-check", seeds_max=1)
    assert (caught.is_caught, caught.runs, caught.broken) == (is_caught, 1, broken)


def test_unknown_bug_is_told_with_those_that_there_are() -> None:
    answer = CliRunner().invoke(calibrate, ["--only", "no-such-bug"])
    assert answer.exit_code == 2
    assert "no such bug: no-such-bug (there are: " in answer.output
