"""When a simulated cluster is whole, and on which of its nodes what is committed has to be."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chaos.simulation.cluster.cluster_state import ClusterState

PLACES = {"leader": -1, "isr": (), "elr": (), "last_known_elr": ()}


def state_of(*registrations: SimpleNamespace) -> ClusterState:
    judge: Any = SimpleNamespace(registration=lambda _, index: registrations[index])
    return ClusterState({}, judge, lambda: [("topic", index) for index in range(len(registrations))])


@pytest.mark.parametrize("place", [{"leader": 2}, {"isr": (2,)}, {"elr": (2,)}, {"last_known_elr": (2,)}])
def test_a_replica_that_may_be_elected_counts(place: dict[str, Any]) -> None:
    state = state_of(SimpleNamespace(**{**PLACES, **place}))
    assert state.counts(2)
    assert not state.counts(3)


def test_a_cluster_is_whole_when_each_isr_has_the_topic_s_own_replicas() -> None:
    topic = SimpleNamespace(leader=1, isr=(1, 4, 2, 3), replicas=(1, 2, 3, 4))
    offsets_topic = SimpleNamespace(leader=1, isr=(1, 2, 4), replicas=(4, 2, 1))
    state = state_of(topic, offsets_topic)
    assert state.is_whole()
    offsets_topic.isr = (1, 2)
    assert not state.is_whole()
