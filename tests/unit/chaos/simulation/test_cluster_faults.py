"""Which machines the simulated faults leave their power, because nobody else has what is committed."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chaos.simulation.cluster.cluster_run import _Simulation

PLACES = {"leader": -1, "isr": (), "elr": (), "last_known_elr": ()}


@pytest.mark.parametrize("place", [{"leader": 2}, {"isr": (2,)}, {"elr": (2,)}, {"last_known_elr": (2,)}])
def test_whoever_may_be_elected_counts(place: dict[str, Any]) -> None:
    simulation: Any = SimpleNamespace(_registrations=lambda: [SimpleNamespace(**{**PLACES, **place})])
    assert _Simulation._counts(simulation, 2)
    assert not _Simulation._counts(simulation, 3)
