"""Every mutant still fits the function that it changes: a renamed one would be found only by the slow tests."""

import pytest

from penstock.chaos.mutants.known_bugs import NAMES, applied
from penstock.chaos.mutants.mutant import Mutant
from penstock.chaos.mutants.quorum_mutants import MUTANTS


@pytest.mark.parametrize("name", NAMES)
def test_mutant_of_the_cluster_fits(name: str) -> None:
    with applied(name):
        pass


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_of_the_quorum_fits(mutant: Mutant) -> None:
    with mutant.applied():
        pass
