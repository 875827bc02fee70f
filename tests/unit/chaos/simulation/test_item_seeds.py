"""A test that is run with many seeds fails with the first seed that fails, as if that had been the only one."""

from __future__ import annotations

import os

import pytest

from penstock.chaos.simulation.application.item_seeds import call_with_seeds
from penstock.chaos.simulation.application.simulation import Simulation


def test_the_first_seed_that_fails_is_raised_here() -> None:
    simulation = Simulation()
    called = []

    def call() -> None:
        called.append(simulation.seed)
        assert simulation.seed < 3, "too high"

    with pytest.raises(AssertionError, match="too high"):
        call_with_seeds(call, simulation, range(6))
    assert simulation.seed == 3
    # The others were run in forks, whose memory is gone.
    assert called == [3]


def test_every_seed_is_run_where_none_fails() -> None:
    simulation = Simulation()
    reading, writing = os.pipe()
    call_with_seeds(lambda: os.write(writing, b"%d" % simulation.seed), simulation, range(4))
    os.close(writing)
    with os.fdopen(reading) as told:
        assert told.read() == "0123"


def test_a_seed_that_fails_only_once_fails_the_test() -> None:
    simulation = Simulation()
    own = os.getpid()

    def call() -> None:
        assert os.getpid() == own, "only in a fork"

    with pytest.raises(pytest.fail.Exception, match=r"(?s)depends on more than the seed.*only in a fork"):
        call_with_seeds(call, simulation, range(2))


def test_one_seed_is_run_here() -> None:
    simulation = Simulation()
    called = []
    call_with_seeds(lambda: called.append(simulation.seed), simulation, (7,))
    assert called == [7]
