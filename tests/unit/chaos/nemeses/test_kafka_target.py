"""What several nodes of Apache Kafka say of a partition, some of them behind the others."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from penstock.chaos.nemeses.kafka_target import KafkaTarget, KnownPartition
from penstock.chaos.nemeses.target import NodeState
from penstock.local.apache_kafka.cluster import KafkaCluster
from penstock.local.local_node import LocalNode


class Asked(KafkaTarget):
    """Nodes that run, and what each of them says; None for one that does not answer."""

    def __init__(self, *told: tuple[KnownPartition, tuple[int, int] | None] | None) -> None:
        self.nodes = {
            number: LocalNode(id=number, port=number, data=Path(f"node-{number}"), environment={})
            for number in range(len(told))
        }
        super().__init__(cast(KafkaCluster, self), ["t"])
        self._told = told

    def state(self, node: int) -> NodeState:  # noqa: ARG002 - as every target
        return "up"

    async def _ask_node(
        self,
        host: str,  # noqa: ARG002 - as every target
        port: int,
    ) -> tuple[dict[str, KnownPartition], tuple[int, int] | None] | None:
        told = self._told[port]
        return None if told is None else ({"t-0": told[0]}, told[1])


IN_SYNC = KnownPartition(leader_epoch=5, leader=1, is_in_sync=True)
BEHIND = KnownPartition(leader_epoch=4, leader=0, is_in_sync=False)


@pytest.mark.parametrize(
    ("target", "leader", "controller", "is_in_sync"),
    [
        (Asked((IN_SYNC, (7, 2)), (BEHIND, (6, 0)), None), 1, 2, True),
        (Asked((BEHIND, (6, 0)), (IN_SYNC, (7, 2))), 1, 2, True),
        # A replica that left the ISR under the same leader: one of the two does not know it yet.
        (Asked((IN_SYNC, None), (IN_SYNC._replace(is_in_sync=False), None)), 1, None, False),
        (Asked((IN_SYNC._replace(is_in_sync=False), None), (IN_SYNC, None)), 1, None, False),
        (Asked(None, None), None, None, False),
    ],
)
def test_the_latest_epoch_counts_and_in_sync_is_what_all_who_know_it_say(
    target: Asked, leader: int | None, controller: int | None, is_in_sync: bool
) -> None:
    view = target.view()
    assert (view.leaders.get("t-0"), view.controller) == (leader, controller)
    assert target.is_in_sync() == is_in_sync
