"""Calibration: every known bug is put into runs of its form, which must find it, by what it breaks.

A run that finds something else than what the bug breaks does not count, nor does one that breaks off, nor one that is
not clean without the bug.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from msgspec import Struct

from ..simulation.cluster.command import child_command, child_environment
from .forms import BUGS, FORMS, SMALL_CLUSTER, STORIES, UNIT_TESTS, Form, caught_by

_SHAPE: Final = (*SMALL_CLUSTER, "--faults-s", "8")
_QUORUM_RUN: Final = "penstock.chaos.simulation.quorum_run"
_TESTS: Final = Path(__file__).parents[2] / "tests"
_UNIT_TESTS: Final = _TESTS / "mutants" / "test_calibrated_bugs.py"
_STORY_PROGRAM: Final = _TESTS / "helpers" / "story_program.py"
_NO_TESTS: Final = "the tests are not here"


class Caught(Struct, frozen=True, kw_only=True):
    """What came of one bug. `by` says what was tried; `runs` counts the seeds from 0 on until it was found, or all."""

    mutant: str
    bug: str
    is_caught: bool
    by: str
    runs: int | None
    broken: str
    """What the run says that found it; otherwise why it counts as not caught."""


def calibrate(name: str, *, seeds_max: int) -> Caught:
    """Look for one bug, for at most so many seeds. Takes up to some seconds a seed. KeyError for an unknown name."""
    bug = BUGS[name]
    if name in UNIT_TESTS:
        return _by_unit_test(name, bug)
    if name in STORIES:
        return _by_story(name, bug)
    form = FORMS[name]
    command = _command(name, form, first=0, seeds=seeds_max)
    child = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=False)
    count = re.search(r"^(\d+) runs ", child.stdout, re.MULTILINE)
    runs = None if count is None else int(count[1])
    by = caught_by(name)
    first = re.search(r"^seed (\d+): (.*)$", child.stdout, re.MULTILINE)
    if child.returncode == 0:
        reason = "survived"
    elif first is None:
        reason = f"the runs failed: {child.stderr.strip()[-500:]}"
    elif re.search(form.breaks, first[2]) is None or "broke off" in first[2]:
        reason = f"found as something else: {first[2]}"
    elif subprocess.run(
        _command(None, form, first=int(first[1]), seeds=1), env=child_environment(), capture_output=True, check=False
    ).returncode:
        reason = f"seed {first[1]} is not clean without it either"
    else:
        return Caught(mutant=name, bug=bug, is_caught=True, by=by, runs=runs, broken=first[2])
    return Caught(mutant=name, bug=bug, is_caught=False, by=by, runs=runs, broken=reason)


def _command(mutant: str | None, form: Form, *, first: int, seeds: int) -> list[str]:
    options = ["--first", str(first), "--seeds", str(seeds), "--until-failure"]
    options += [] if mutant is None else ["--mutant", mutant]
    if form.engine == "quorum":
        return [sys.executable, "-P", "-m", _QUORUM_RUN, *options, *form.options.split()]
    return [*child_command(*options, *_SHAPE, *form.options.split())]


def _by_story(name: str, bug: str) -> Caught:
    """Stories are told by the tests, as unit tests are."""
    story = STORIES[name]
    by = caught_by(name)
    if not _STORY_PROGRAM.exists():
        return Caught(mutant=name, bug=bug, is_caught=False, by=by, runs=None, broken=_NO_TESTS)
    told = _tell(story.name, name)
    found = re.search(story.breaks, told.stdout + told.stderr)
    without = _tell(story.name)
    is_clean = without.returncode == 0 and re.search(story.breaks, without.stdout) is None
    if found is None:
        reason = "survived" if told.returncode == 0 else f"found as something else: {told.stderr.strip()[-500:]}"
    else:
        reason = found[0] if is_clean else "the story is not clean without it either"
    return Caught(mutant=name, bug=bug, is_caught=found is not None and is_clean, by=by, runs=1, broken=reason)


def _tell(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**child_environment(), "PYTHONPATH": str(_STORY_PROGRAM.parent)}
    command = [sys.executable, "-W", "ignore", str(_STORY_PROGRAM), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def _by_unit_test(name: str, bug: str) -> Caught:
    """Where the tests are, the one that is about it runs; an installed package has none, and cannot say."""
    by = caught_by(name)
    if not _UNIT_TESTS.exists():
        return Caught(mutant=name, bug=bug, is_caught=False, by=by, runs=None, broken=_NO_TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command.append(f"{_UNIT_TESTS}::test_the_test_that_is_about_a_bug_catches_it[{name}]")
    child = subprocess.run(command, cwd=_TESTS.parent, capture_output=True, text=True, check=False)
    is_caught = child.returncode == 0
    broken = "the test fails" if is_caught else child.stdout.strip()[-500:]
    return Caught(mutant=name, bug=bug, is_caught=is_caught, by=by, runs=None, broken=broken)
