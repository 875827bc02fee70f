"""A drain that was to last until a restart ends by itself, once the broker has caught up (decision 19)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from admin_http import asked
from drained_brokers import drain
from memory_node import World, create_topic, run
from metadata_cluster import Cluster
from replicated_topics import make_topic
from typed_ids import node_ids
from waiting import loop_until

from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.broker.node import drain_end
from penstock.broker.node.drain_end import end_drain
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.configs.own_keys import DRAINED_UNTIL_RESTART
from penstock.quorum.decisions.configs import incremental_alter_configs
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.metadata.records import PartitionChangeRecord
from penstock.quorum.planning.maintenance import has_caught_up

OWN = NodeId(2)


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_end, "LOOK_INTERVAL_S", 0.01)


@pytest.mark.parametrize("until_restart", ["true", "false"])
def test_only_a_drain_until_a_restart_ends_with_the_next_start(until_restart: str) -> None:
    async def scenario() -> None:
        world = World()
        async with asked(world) as (node, connection, http):
            await create_topic(connection, "t", 2)
            path = f"/v1/brokers/{node.config.node_id}/maintenance"
            state = await (await http.put(f"{path}?until_restart={until_restart}", json={})).json()
            assert (state["is_drained"], state["is_until_restart"]) == (True, until_restart == "true")
            assert state["is_last"]
        async with world.running() as (node, connection):
            if until_restart == "true":
                await loop_until(lambda: not node.metadata.image.configs.drained_brokers, "the drain has ended")
            else:
                await create_topic(connection, "u", 1)
                assert node.metadata.image.configs.drained_brokers == {node.config.node_id}

    run(scenario)


def test_a_drain_for_good_is_not_shortened_and_one_until_a_restart_can_be_made_one() -> None:
    async def scenario() -> None:
        async with asked(World()) as (node, _, http):
            path = f"/v1/brokers/{node.config.node_id}/maintenance"
            told = [
                (await (await http.put(path + query, json={})).json())["is_until_restart"]
                for query in ("?until_restart=true", "", "?until_restart=true")
            ]
            assert told == [True, False, False]

    run(scenario)


class Controller:
    """Carries requests out on a cluster of brokers 1 to 3, after refusals."""

    def __init__(self, cluster: Cluster, view: MetadataCache) -> None:
        self.refusals: list[KafkaError] = []
        self.asked = 0
        self._cluster = cluster
        self._view = view

    async def submit(self, _request: object, message: Any, *, requester: object = None) -> Any:  # noqa: ARG002
        self.asked += 1
        if self.refusals:
            raise self.refusals.pop()
        response = self._cluster.submit(incremental_alter_configs, message)
        self._view.image = self._cluster.image
        return response


def rejoining() -> tuple[Cluster, MetadataCache, Controller]:
    """Broker 2, which prefers 't' and is drained until its restart, is not in sync yet."""
    cluster = Cluster()
    cluster.add_brokers(1, 2, 3)
    make_topic(cluster, "t", (2, 1, 3))
    drain(cluster, OWN, value=DRAINED_UNTIL_RESTART)
    assert leader(cluster) != OWN
    set_isr(cluster, 1, 3)
    view = MetadataCache(OWN)
    view.image = cluster.image
    return cluster, view, Controller(cluster, view)


def leader(cluster: Cluster) -> NodeId:
    return cluster.image.topics.by_name["t"].partitions[0].leader


def set_isr(cluster: Cluster, *isr: int) -> None:
    topic_id = cluster.image.topics.by_name["t"].topic_id
    cluster.replay([PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=node_ids(*isr))])


def run_end(scenario: Callable[[asyncio.Task[None]], Any], view: MetadataCache, controller: Controller) -> None:
    async def running() -> None:
        ending = asyncio.create_task(end_drain(view, controller, OWN))
        await scenario(ending)
        await asyncio.wait_for(ending, 30)

    asyncio.run(running())


def test_the_drain_lasts_until_the_replicas_are_in_sync_and_leaderships_come_back_with_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, view, controller = rejoining()
    looks = []

    def looked(image: MetadataImage, broker_id: NodeId) -> bool:
        looks.append(broker_id)
        return has_caught_up(image, broker_id)

    monkeypatch.setattr(drain_end, "has_caught_up", looked)

    async def scenario(ending: asyncio.Task[None]) -> None:
        await loop_until(lambda: len(looks) > 3, "it has looked several times")
        assert (controller.asked, ending.done()) == (0, False)
        set_isr(cluster, 1, 3, 2)
        view.image = cluster.image

    run_end(scenario, view, controller)
    assert leader(cluster) == OWN
    assert not cluster.image.configs.drained_brokers


def test_the_end_is_asked_for_again_when_the_controller_cannot_be_asked() -> None:
    cluster, view, controller = rejoining()
    set_isr(cluster, 1, 3, 2)
    view.image = cluster.image
    controller.refusals = [KafkaError(ErrorCode.NOT_CONTROLLER, "no controller")] * 2

    async def scenario(_ending: asyncio.Task[None]) -> None:
        pass

    run_end(scenario, view, controller)
    assert controller.asked == 3
    assert leader(cluster) == OWN


def test_an_operator_who_ends_the_drain_ends_the_wait() -> None:
    cluster, view, controller = rejoining()

    async def scenario(_ending: asyncio.Task[None]) -> None:
        drain(cluster, OWN, is_drained=False)
        view.image = cluster.image

    run_end(scenario, view, controller)
    assert controller.asked == 0


def test_a_replica_that_does_not_catch_up_does_not_keep_the_drain_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, view, controller = rejoining()
    monkeypatch.setattr(drain_end, "CATCH_UP_MAX_S", 0.0)

    async def scenario(_ending: asyncio.Task[None]) -> None:
        pass

    run_end(scenario, view, controller)
    assert not cluster.image.configs.drained_brokers
