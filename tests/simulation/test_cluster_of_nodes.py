"""A controller and brokers that follow it, each on a disk of its own, over the loopback in one loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from errno import EMFILE, ENOMEM, ENOSPC
from random import Random
from uuid import UUID

import pytest
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_cluster.v2.response import DescribeClusterResponse
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.metadata.v13.request import MetadataRequest
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v2.response import UpdateFeaturesResponse
from kio.static.primitive import i8, i16, i32, i64
from waiting import loop_until

from penstock.broker.cluster.peers import PeerConnector
from penstock.broker.configuration.node_config import load
from penstock.broker.node.server import Node
from penstock.client.connection import Connection, connect
from penstock.protocol.errors import ConfigError, ErrorCode
from penstock.protocol.ids import NodeId
from penstock.quorum.links.rules.peer_proof import NONCE_BYTES, PeerHello
from penstock.storage.disk.memory_files import MemoryFiles
from penstock.storage.disk.memory_nodes import Operation

SECRET = "hush"


class World:
    """The disks of nodes 1 to 3. Node 1 is the controller; its port is known once it has started."""

    def __init__(self) -> None:
        self.random = Random(7)
        self.disks = {node_id: MemoryFiles() for node_id in (1, 2, 3)}
        self.controller_port = 0

    def node(self, node_id: int, **changed: str) -> Node:
        properties: Mapping[str, str] = {
            "node.id": str(node_id),
            "process.roles": "broker,controller" if node_id == 1 else "broker",
            "listeners": "PLAINTEXT://127.0.0.1:0"
            + (f",CONTROLLER://127.0.0.1:{self.controller_port}" if node_id == 1 else ""),
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port or 1}",
            "cluster.secret": SECRET,
            "log.dirs": "/data",
            **{name.replace("_", "."): value for name, value in changed.items()},
        }
        return Node(
            load(properties),
            self.disks[node_id],
            loop=asyncio.get_running_loop(),
            wall_clock_ms=lambda: 1_700_000_000_000,
            random=self.random,
        )

    async def start(self, node_id: int, **changed: str) -> Node:
        node = self.node(node_id, **changed)
        await node.start()
        if node_id == 1:
            self.controller_port = node.bound_ports["CONTROLLER"]
        return node


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await scenario(World())

    asyncio.run(main())


@asynccontextmanager
async def asking(node: Node, listener: str = "PLAINTEXT") -> AsyncIterator[Connection]:
    async with await connect("127.0.0.1", node.bound_ports[listener]) as connection:
        yield connection


async def create(connection: Connection, name: str, partition_count: int) -> ErrorCode:
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partition_count),
        replication_factor=i16(1),
        assignments=(),
        configs=(),
    )
    response = await connection.call(CreateTopicsRequest(topics=(topic,)))
    assert isinstance(response, CreateTopicsResponse)
    return ErrorCode(int(response.topics[0].error_code))


async def leaders(connection: Connection, name: str) -> set[int]:
    response = await connection.call(
        MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    )
    assert isinstance(response, MetadataResponse)
    return {
        int(partition.leader_id) for topic in response.topics if topic.name == name for partition in topic.partitions
    }


def test_a_topic_made_through_any_broker_is_seen_there_at_once_and_everywhere_soon() -> None:
    async def scenario(world: World) -> None:
        nodes = [await world.start(node_id) for node_id in (1, 2, 3)]
        async with asking(nodes[2]) as third:
            assert await create(third, "flights", 6) == ErrorCode.NONE
            assert await leaders(third, "flights") == {1, 2, 3}
        for node in nodes:
            await node.metadata.wait_for(nodes[2].metadata.image.offset)
            async with asking(node) as connection:
                assert await leaders(connection, "flights") == {1, 2, 3}
        assert len({node.metadata.image.cluster_id for node in nodes}) == 1
        for node in reversed(nodes):
            await node.stop()

    run(scenario)


def test_a_broker_comes_back_with_what_it_knew_and_learns_the_rest() -> None:
    async def scenario(world: World) -> None:
        first, second = await world.start(1), await world.start(2)
        async with asking(first) as connection:
            assert await create(connection, "before", 2) == ErrorCode.NONE
            await second.metadata.wait_for(first.metadata.image.offset)
            await second.stop()
            assert await create(connection, "meanwhile", 1) == ErrorCode.NONE
        second = await world.start(2)
        assert {"before", "meanwhile"} <= set(second.metadata.image.topics.by_name)
        async with asking(second) as connection:
            assert await leaders(connection, "before") == {1, 2}
        await second.stop()
        await first.stop()

    run(scenario)


def test_a_broker_far_behind_begins_with_a_snapshot() -> None:
    async def scenario(world: World) -> None:
        first = await world.start(1, metadata_log_max_record_bytes_between_snapshots="1000")
        async with asking(first) as connection:
            for number in range(30):
                assert await create(connection, f"topic-{number}", 2) == ErrorCode.NONE
        names = world.disks[1].list_directory("/data/__cluster_metadata-0")
        assert any(name.endswith(".checkpoint") for name in names), names
        second = await world.start(2)
        assert len(second.metadata.image.topics.by_name) == 30
        names = world.disks[2].list_directory("/data/__cluster_metadata-0")
        assert any(name.endswith(".checkpoint") for name in names), names
        await second.stop()
        second = await world.start(2)
        assert len(second.metadata.image.topics.by_name) == 30
        await second.stop()
        await first.stop()

    run(scenario)


def test_a_broker_keeps_snapshots_of_its_own_and_begins_with_them() -> None:
    async def scenario(world: World) -> None:
        first = await world.start(1)
        second = await world.start(2, metadata_log_max_record_bytes_between_snapshots="1000")
        async with asking(first) as connection:
            for number in range(30):
                assert await create(connection, f"topic-{number}", 2) == ErrorCode.NONE
        await second.metadata.wait_for(first.metadata.image.offset)
        await second.stop()
        names = world.disks[2].list_directory("/data/__cluster_metadata-0")
        assert any(name.endswith(".checkpoint") for name in names), names
        second = await world.start(2)
        assert second.metadata.image.topics.by_name.keys() == first.metadata.image.topics.by_name.keys()
        await second.stop()
        await first.stop()

    run(scenario)


@pytest.mark.parametrize("number", [EMFILE, ENOMEM, ENOSPC])
def test_a_broker_whose_disk_refuses_its_metadata_for_a_moment_goes_on_and_has_all_of_them(number: int) -> None:
    async def scenario(world: World) -> None:
        first = await world.start(1)
        second = await world.start(2, metadata_log_max_record_bytes_between_snapshots="1000")
        async with asking(first) as connection:
            for number_of_topic in range(10):
                operations: tuple[Operation, ...] = ("write", "create")
                for operation in operations:
                    world.disks[2].fail(operation, under="/data/__cluster_metadata-0", error=number, count=2)
                assert await create(connection, f"topic-{number_of_topic}", 2) == ErrorCode.NONE
                await second.metadata.wait_for(first.metadata.image.offset)
                world.disks[2].heal()
        assert second.metadata.image.topics.by_name == first.metadata.image.topics.by_name
        assert not second.failure.done()
        await second.stop()
        second = await world.start(2)
        assert second.metadata.image.topics.by_name == first.metadata.image.topics.by_name
        await second.stop()
        await first.stop()

    run(scenario)


def test_a_broker_of_another_cluster_or_secret_stays_outside() -> None:
    async def scenario(world: World) -> None:
        first, second = await world.start(1), await world.start(2)
        await second.stop()
        await first.stop()
        world.disks[1] = MemoryFiles()
        first = await world.start(1)
        for changed in ({}, {"cluster_secret": "other"}):
            stranger = world.node(2, initial_broker_registration_timeout_ms="300", **changed)
            with pytest.raises(ConfigError, match="cannot start"):
                await stranger.start()
        assert set(first.metadata.image.brokers) == {1}
        await first.stop()

    run(scenario)


@pytest.mark.parametrize("operation", ["list", "open"])
@pytest.mark.parametrize("node_id", [1, 2])
def test_a_node_that_cannot_open_its_metadata_says_so_and_starts_when_it_can(
    node_id: int, operation: Operation
) -> None:
    async def scenario(world: World) -> None:
        nodes = {1: await world.start(1), 2: await world.start(2)}
        await nodes[node_id].stop()
        world.disks[node_id].fail(operation, under="/data/__cluster_metadata-0", error=EMFILE, count=1)
        with pytest.raises(ConfigError, match=f"Node {node_id} cannot start: .*/data/__cluster_metadata-0"):
            await world.node(node_id).start()
        nodes[node_id] = await world.start(node_id)
        await nodes[2].stop()
        await nodes[1].stop()

    run(scenario)


def test_a_broker_whose_metadata_goes_another_way_stops() -> None:
    async def scenario(world: World) -> None:
        cluster_id = "kVg0FJXuTjOXMxXGnN9MPA"
        first = await world.start(1, cluster_id=cluster_id)
        second = await world.start(2)
        await first.stop()
        # Another log of the same cluster: the same offsets have later epochs.
        world.disks[1] = MemoryFiles()
        for _ in range(3):
            first = await world.start(1, cluster_id=cluster_id)
            await first.stop()
        first = await world.start(1, cluster_id=cluster_id)
        async with asking(first) as connection:
            for number in range(20):
                assert await create(connection, f"topic-{number}", 1) == ErrorCode.NONE
        sentence = await second.failure
        assert "The metadata log of this node goes another way than that of voter 1" in sentence
        await second.stop()
        await first.stop()

    run(scenario)


def fence_wish(node: Node) -> BrokerHeartbeatRequest:
    """With which a broker leaves."""
    return BrokerHeartbeatRequest(
        broker_id=BrokerId(1),
        broker_epoch=i64(node.parts.lifecycle.broker_epoch),
        current_metadata_offset=i64(100),
        want_fence=True,
        want_shut_down=False,
    )


@pytest.mark.parametrize("sender", [None, 2], ids=["who has proved nothing", "another node"])
def test_only_the_node_itself_speaks_for_its_broker(sender: int | None) -> None:
    async def scenario(world: World) -> None:
        first = await world.start(1)
        port = first.bound_ports["CONTROLLER"]
        if sender is None:
            connection = await connect("127.0.0.1", port)
        else:
            hello = PeerHello(
                node_id=NodeId(sender), directory_id=UUID(int=9), cluster_id=None, nonce=bytes(NONCE_BYTES)
            )
            peers = PeerConnector(secret=SECRET.encode(), hello=lambda: hello)
            connection, _ = await peers.connect("127.0.0.1", port, timeout_ms=10_000)
        async with connection:
            response = await connection.call(fence_wish(first))
            assert isinstance(response, BrokerHeartbeatResponse)
            assert response.error_code == int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert not first.metadata.image.brokers[1].is_fenced
        await first.stop()

    run(scenario)


def test_the_quorum_is_described_through_any_node() -> None:
    async def scenario(world: World) -> None:
        first, second = await world.start(1), await world.start(2)
        question = DescribeQuorumRequest(
            topics=(
                TopicData(
                    topic_name=TopicName("__cluster_metadata"), partitions=(PartitionData(partition_index=i32(0)),)
                ),
            )
        )
        for node, listener in ((first, "PLAINTEXT"), (first, "CONTROLLER"), (second, "PLAINTEXT")):
            async with asking(node, listener) as connection:
                response = await connection.call(question)
                assert isinstance(response, DescribeQuorumResponse)
                (partition,) = response.topics[0].partitions
                assert (partition.error_code, partition.leader_id) == (0, 1)
                assert [voter.replica_id for voter in partition.current_voters] == [1]
        await second.stop()
        await first.stop()

    run(scenario)


async def describe_cluster(connection: Connection, endpoint_type: int) -> tuple[int, set[int], int]:
    """Error code, the ids told of, the controller's id."""
    response = await connection.call(
        DescribeClusterRequest(
            include_cluster_authorized_operations=False,
            endpoint_type=i8(endpoint_type),
            include_fenced_brokers=False,
        )
    )
    assert isinstance(response, DescribeClusterResponse)
    ids = {int(broker.broker_id) for broker in response.brokers}
    return int(response.error_code), ids, int(response.controller_id)


def test_each_listener_tells_of_its_own_kind_of_node() -> None:
    """KIP-919: what a controller says of itself is a record, so a node that has the metadata knows all of them."""

    async def scenario(world: World) -> None:
        first, second = await world.start(1), await world.start(2)
        await second.metadata.wait_for(first.metadata.image.offset)
        mismatch = int(ErrorCode.MISMATCHED_ENDPOINT_TYPE)
        async with asking(first, "CONTROLLER") as controller, asking(second) as broker:
            await loop_until(lambda: first.metadata.image.controllers, "the registration of the controller")
            assert await describe_cluster(controller, 2) == (0, {1}, 1)
            assert await describe_cluster(controller, 1) == (mismatch, set(), -1)
            assert (await describe_cluster(broker, 1))[:2] == (0, {1, 2})
            assert await describe_cluster(broker, 2) == (mismatch, set(), -1)
        (registration,) = first.metadata.image.controllers.values()
        assert {feature.name for feature in registration.features} >= {"metadata.version", "group.version"}
        await second.stop()
        await first.stop()

    run(scenario)


async def update_features(connection: Connection, level: int, kind: int) -> ErrorCode:
    update = FeatureUpdateKey(feature="group.version", max_version_level=i16(level), upgrade_type=i8(kind))
    response = await connection.call(UpdateFeaturesRequest(feature_updates=(update,)))
    assert isinstance(response, UpdateFeaturesResponse)
    return ErrorCode(int(response.error_code))


def test_features_are_changed_through_any_node_and_all_hear_of_it() -> None:
    async def scenario(world: World) -> None:
        first, second = await world.start(1), await world.start(2)
        async with asking(second) as broker, asking(first, "CONTROLLER") as controller:
            assert await update_features(broker, 0, 2) == ErrorCode.NONE
            assert "group.version" not in first.metadata.image.features
            assert "group.version" not in second.metadata.image.features
            assert await update_features(broker, 2, 1) == ErrorCode.INVALID_UPDATE_VERSION
            assert await update_features(controller, 1, 1) == ErrorCode.NONE
            await second.metadata.wait_for(first.metadata.image.offset)
            assert second.metadata.image.features["group.version"] == 1
        await second.stop()
        await first.stop()

    run(scenario)


def test_an_unregistered_broker_is_no_part_of_the_cluster_until_it_starts_again() -> None:
    async def scenario(world: World) -> None:
        first, second = await world.start(1), await world.start(2)
        async with asking(first) as connection:
            assert await create(connection, "flights", 4) == ErrorCode.NONE
            await second.stop()
            response = await connection.call(UnregisterBrokerRequest(broker_id=BrokerId(2)))
            assert isinstance(response, UnregisterBrokerResponse)
            assert response.error_code == 0
            assert await describe_cluster(connection, 1) == (0, {1}, 1)
            assert await leaders(connection, "flights") == {1, -1}
            second = await world.start(2)
            assert await leaders(connection, "flights") == {1, 2}
        await second.stop()
        await first.stop()

    run(scenario)


def test_a_controller_writes_no_config_that_no_broker_could_read() -> None:
    """It is asked by clients too, and reads what it writes."""

    async def scenario(world: World) -> None:
        first = await world.start(1)
        config = AlterableConfig(name="min.insync.replicas", config_operation=i8(0), value="many")
        resource = AlterConfigsResource(resource_type=i8(4), resource_name="", configs=(config,))
        async with asking(first, "CONTROLLER") as connection:
            response = await connection.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
            assert isinstance(response, IncrementalAlterConfigsResponse)
            assert response.responses[0].error_code == int(ErrorCode.INVALID_REQUEST)
        await first.stop()

    run(scenario)


def test_the_levels_of_a_nodes_loggers_are_changed_on_either_of_its_listeners_and_through_no_other_node() -> None:
    """KIP-412, and KIP-919 for controllers."""
    name = "penstock.broker.configuration.loggers"

    async def change(node: Node, listener: str, node_id: int, level: str) -> ErrorCode:
        config = AlterableConfig(name=name, config_operation=i8(0), value=level)
        resource = AlterConfigsResource(resource_type=i8(8), resource_name=str(node_id), configs=(config,))
        async with asking(node, listener) as connection:
            response = await connection.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
        assert isinstance(response, IncrementalAlterConfigsResponse)
        return ErrorCode(int(response.responses[0].error_code))

    async def scenario(world: World) -> None:
        first, second = await world.start(1), await world.start(2)
        for node, listener, node_id in ((first, "PLAINTEXT", 1), (first, "CONTROLLER", 1), (second, "PLAINTEXT", 2)):
            for level, number in (("DEBUG", logging.DEBUG), ("WARN", logging.WARNING)):
                assert await change(node, listener, node_id, level) == ErrorCode.NONE
                assert logging.getLogger(name).level == number
            assert await change(node, listener, 3 - node_id, "DEBUG") == ErrorCode.INVALID_REQUEST
            assert logging.getLogger(name).level == logging.WARNING
        await second.stop()
        await first.stop()

    try:
        run(scenario)
    finally:
        logging.getLogger(name).setLevel(logging.NOTSET)
