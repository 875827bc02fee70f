"""The bugs that `penstock chaos calibrate` has no runs for are caught by the unit tests that it names."""

from contextlib import AbstractContextManager

import pytest
from directed_tests import failures_with

from penstock.chaos.mutants.forms import UNIT_TESTS
from penstock.chaos.mutants.known_bugs import NAMES, applied
from penstock.chaos.mutants.quorum_mutants import mutant_named


def _patch(name: str) -> AbstractContextManager[None]:
    return applied(name) if name in NAMES else mutant_named(name).applied()


@pytest.mark.parametrize("name", UNIT_TESTS)
def test_the_test_that_is_about_a_bug_catches_it(name: str) -> None:
    assert failures_with(_patch(name), UNIT_TESTS[name])
