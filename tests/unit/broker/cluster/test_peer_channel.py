"""Requests from node to node, and of a node to itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import cast
from uuid import UUID

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.produce.v13.request import ProduceRequest
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import GroupId
from kio.static.primitive import i8, i16, i32, i32Timedelta
from metadata_cluster import Cluster

from penstock.broker.cluster import peer_channel
from penstock.broker.cluster.metadata_cache import MetadataCache
from penstock.broker.cluster.peer_channel import PeerChannel
from penstock.broker.cluster.peers import PeerConnector
from penstock.broker.configuration.node_config import load
from penstock.broker.node.server import Node
from penstock.chaos.simulation.virtual_loop import VirtualLoop
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import BrokerEpoch, NodeId
from penstock.quorum.links.rules.peer_proof import NONCE_BYTES, PeerHello
from penstock.quorum.metadata.image import BrokerRegistration, MetadataImage
from penstock.storage.disk.memory_files import MemoryFiles

NO_TIME = i32Timedelta.parse(timedelta())


class World:
    def __init__(self) -> None:
        self.random = Random(7)
        self.disks = {node_id: MemoryFiles() for node_id in (1, 2)}
        self.controller_port = 0

    async def start(self, node_id: int) -> Node:
        node = Node(
            load(
                {
                    "node.id": str(node_id),
                    "process.roles": "broker,controller" if node_id == 1 else "broker",
                    "listeners": "PLAINTEXT://127.0.0.1:0" + (",CONTROLLER://127.0.0.1:0" if node_id == 1 else ""),
                    "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port or 1}",
                    "cluster.secret": "hush",
                    "log.dirs": "/data",
                }
            ),
            self.disks[node_id],
            loop=asyncio.get_running_loop(),
            wall_clock_ms=lambda: 1_700_000_000_000,
            random=self.random,
        )
        await node.start()
        self.controller_port = self.controller_port or node.bound_ports["CONTROLLER"]
        return node


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await scenario(World())

    asyncio.run(main())


async def error_of(asked: Awaitable[object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await asked
    return caught.value.code


HEARTBEAT = HeartbeatRequest(group_id=GroupId(""), generation_id=i32(1), member_id="m")
"""It raises INVALID_GROUP_ID at once, before anything is looked up."""
QUESTION = FindCoordinatorRequest(key_type=i8(5), coordinator_keys=("key",))
"""It raises INVALID_REQUEST in a coroutine."""


def test_a_request_reaches_another_broker_and_this_one_alike() -> None:
    async def scenario(world: World) -> None:
        first = await world.start(1)
        second = await world.start(2)
        channel = first.parts.peer_channels[0]
        for broker_id in (1, 2, 2):
            beat = await channel.request(broker_id, HEARTBEAT)
            assert isinstance(beat, HeartbeatResponse)
            assert int(beat.error_code) == ErrorCode.INVALID_GROUP_ID
            found = await channel.request(broker_id, QUESTION)
            assert isinstance(found, FindCoordinatorResponse)
            assert int(found.coordinators[0].error_code) == ErrorCode.INVALID_REQUEST
        await second.stop()
        await first.stop()

    run(scenario)


@pytest.mark.parametrize("is_another_process", [True, False])
def test_a_request_to_a_process_that_was_replaced_between_two_looks_is_lost(
    monkeypatch: pytest.MonkeyPatch, *, is_another_process: bool
) -> None:
    monkeypatch.setattr(peer_channel, "FENCED_CHECK_MS", 1)

    def brokers(incarnation: int, *, is_fenced: bool) -> MetadataImage:
        broker = BrokerRegistration(
            id=NodeId(2), epoch=BrokerEpoch(1), incarnation_id=UUID(int=incarnation), is_fenced=is_fenced
        )
        return MetadataImage(brokers={broker.id: broker})

    async def main() -> None:
        loop = asyncio.get_running_loop()
        metadata = MetadataCache(NodeId(1))
        metadata.image = brokers(5, is_fenced=False)
        told: asyncio.Future[None] = loop.create_future()

        class Peer:
            """Takes a request, and answers none."""

            is_open = True

            async def call(self, *_: object, **__: object) -> None:
                told.set_result(None)
                await loop.create_future()

            async def close(self) -> None: ...

        channel = PeerChannel(
            metadata, cast(Callable[[], PeerConnector], None), node_id=NodeId(1), listener_name="X", loop=loop
        )

        async def connect(_broker_id: NodeId) -> Peer:
            return Peer()

        monkeypatch.setattr(channel, "_connect", connect)
        asked = asyncio.ensure_future(channel.request(2, HEARTBEAT))
        await told
        # Its session ends and another one begins, within one turn of the loop.
        metadata.image = brokers(5, is_fenced=True)
        metadata.image = brokers(9 if is_another_process else 5, is_fenced=False)
        if is_another_process:
            assert await error_of(asked) is ErrorCode.NETWORK_EXCEPTION
        else:
            done, _ = await asyncio.wait({asked}, timeout=0.05)
            assert not done
            asked.cancel()

    asyncio.run(main())


def test_a_broker_that_comes_back_elsewhere_is_found_and_one_that_is_gone_is_an_error() -> None:
    async def scenario(world: World) -> None:
        first = await world.start(1)
        second = await world.start(2)
        channel = first.parts.peer_channels[0]
        await channel.request(2, HEARTBEAT)
        await second.stop()
        assert await error_of(channel.request(2, HEARTBEAT)) is ErrorCode.NETWORK_EXCEPTION
        second = await world.start(2)
        await first.metadata.wait_for(second.metadata.image.offset)
        assert isinstance(await channel.request(2, HEARTBEAT), HeartbeatResponse)
        assert await error_of(channel.request(3, HEARTBEAT)) is ErrorCode.BROKER_NOT_AVAILABLE
        await second.stop()
        await first.stop()
        assert await error_of(channel.request(2, HEARTBEAT)) is ErrorCode.NETWORK_EXCEPTION

    run(scenario)


def test_what_is_served_by_bytes_is_asked_of_oneself_as_of_others() -> None:
    async def scenario(world: World) -> None:
        first = await world.start(1)
        channel = first.parts.peer_channels[0]
        produce = ProduceRequest(transactional_id=None, acks=i16(1), timeout=NO_TIME, topic_data=())
        answer = await channel.request(1, produce)
        assert isinstance(answer, ProduceResponse)
        assert answer.responses == ()
        await first.stop()

    run(scenario)


class SilentPeer:
    """Takes connections and requests, and answers nothing."""

    is_open = True

    async def connect(self, *_address: object, timeout_ms: int, node_id: int) -> tuple[SilentPeer, PeerHello]:
        assert timeout_ms
        assert node_id == 2
        hello = PeerHello(node_id=NodeId(2), directory_id=UUID(int=2), cluster_id=None, nonce=bytes(NONCE_BYTES))
        return self, hello

    async def call(self, _message: object, *, timeout_ms: int) -> object:
        await asyncio.sleep(timeout_ms / 1000)
        raise TimeoutError("it did not answer")

    async def close(self) -> None:
        """Nothing is held."""


def test_the_answer_of_a_broker_that_is_fenced_meanwhile_is_not_waited_for() -> None:
    async def main() -> None:
        cluster, view, peer = Cluster(), MetadataCache(NodeId(1)), SilentPeer()
        cluster.add_brokers(2)
        view.image = cluster.image
        channel = PeerChannel(
            view,
            lambda: cast(PeerConnector, peer),
            node_id=NodeId(1),
            listener_name="PLAINTEXT",
            loop=asyncio.get_running_loop(),
        )
        began_s = asyncio.get_running_loop().time()
        asking = asyncio.ensure_future(error_of(channel.request(2, QUESTION)))
        await asyncio.sleep(5)
        assert not asking.done(), "it is in, and may be slow"
        cluster.add_brokers(2, is_fenced=True)
        view.image = cluster.image
        assert await asking is ErrorCode.NETWORK_EXCEPTION
        assert asyncio.get_running_loop().time() - began_s < 6

    with VirtualLoop() as loop:
        loop.run(main())
