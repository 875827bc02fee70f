"""Calibration counts a bug as caught only where a run breaks what that bug is known to break."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.chaos.mutants import calibration
from penstock.chaos.mutants.forms import BUGS, FORMS, SPECIFIED, STORIES, UNIT_TESTS, BrokenStory, caught_by
from penstock.chaos.mutants.known_bugs import NAMES
from penstock.chaos.mutants.quorum_mutants import MUTANTS
from penstock.chaos.runs.calibrate_command import calibrate

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


@pytest.mark.thorough
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
