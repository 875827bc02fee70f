"""What the tests of this package start from."""

import os
from collections.abc import Iterator

import pytest
from metadata_cluster import Cluster

from penstock.chaos.mutants.quorum_mutants import mutant_named


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster without brokers."""
    return Cluster()


@pytest.fixture(autouse=True)
def mutant() -> Iterator[None]:
    """Let `PENSTOCK_TEST_MUTANT` name a known bug to run the tests with: those that are about it must fail."""
    name = os.environ.get("PENSTOCK_TEST_MUTANT")
    if name is None:
        yield
    else:
        with mutant_named(name).applied():
            yield
