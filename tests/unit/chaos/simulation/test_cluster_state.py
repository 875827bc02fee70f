"""When a simulated cluster is whole, and on which of its nodes what is committed has to be."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.chaos.simulation.cluster.cluster_state import ClusterState

PLACES = {"leader": -1, "isr": (), "elr": (), "last_known_elr": ()}


def state_of(*registrations: SimpleNamespace) -> ClusterState:
    judge: Any = SimpleNamespace(registration=lambda _, index: registrations[index])
    machine: Any = SimpleNamespace(serves=True)
    return ClusterState({2: machine}, judge, lambda: [("topic", index) for index in range(len(registrations))])


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


def test_a_node_has_caught_up_when_it_is_in_each_isr() -> None:
    first = SimpleNamespace(**{**PLACES, "leader": 1, "isr": (1, 2), "replicas": (1, 2)})
    second = SimpleNamespace(**{**PLACES, "leader": 1, "isr": (1,), "replicas": (1, 2)})
    without_it = SimpleNamespace(**{**PLACES, "leader": 1, "isr": (1,), "replicas": (1, 3)})
    assert state_of(first, without_it).has_caught_up(2)
    assert not state_of(first, second).has_caught_up(2)


@pytest.mark.parametrize(("place", "has_caught_up"), [({"last_known_elr": (1,)}, True), ({"elr": (2, 1)}, False)])
def test_a_node_is_not_waited_for_where_no_leader_lets_it_catch_up(place: dict[str, Any], has_caught_up: bool) -> None:
    """Who cannot be elected meanwhile need not be waited for: the one that can may be waiting to be started again."""
    waiting = SimpleNamespace(**{**PLACES, **place, "replicas": (1, 2)})
    assert state_of(waiting).has_caught_up(2) is has_caught_up
