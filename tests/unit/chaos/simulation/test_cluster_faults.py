"""When the simulated faults take a cluster for whole, and which machines they leave their power."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chaos.simulation.cluster.cluster_run import _Simulation

PLACES = {"leader": -1, "isr": (), "elr": (), "last_known_elr": ()}


@pytest.mark.parametrize("place", [{"leader": 2}, {"isr": (2,)}, {"elr": (2,)}, {"last_known_elr": (2,)}])
def test_every_electable_replica_counts(place: dict[str, Any]) -> None:
    simulation: Any = SimpleNamespace(_registrations=lambda: [SimpleNamespace(**{**PLACES, **place})])
    assert _Simulation._counts(simulation, 2)
    assert not _Simulation._counts(simulation, 3)


def test_a_cluster_is_whole_when_each_isr_has_the_topic_s_own_replicas() -> None:
    topic = SimpleNamespace(leader=1, isr=(1, 4, 2, 3), replicas=(1, 2, 3, 4))
    offsets_topic = SimpleNamespace(leader=1, isr=(1, 2, 4), replicas=(4, 2, 1))
    simulation: Any = SimpleNamespace(
        _machines={}, _replication_factor=4, _registrations=lambda: [topic, offsets_topic]
    )
    assert _Simulation._is_whole(simulation)
    offsets_topic.isr = (1, 2)
    assert not _Simulation._is_whole(simulation)
