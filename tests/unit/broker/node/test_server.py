"""A whole node on a disk in memory, asked over the loopback: starts, stops, crashes, and what it refuses."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v18.response import FetchResponse
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64
from memory_node import MINUTE, World, create_topic, describe, end_offset, produce, run
from waiting import loop_until

from penstock.broker.network.handlers import Load, Register
from penstock.broker.node.handlers.table import LATER
from penstock.client.connection import connect
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ConfigError, ErrorCode


def test_node_on_port_0_tells_clients_the_port_it_got() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            (broker,) = (await describe(connection)).brokers
            assert (broker.node_id, broker.host) == (1, "127.0.0.1")
            assert broker.port == node.bound_ports["PLAINTEXT"] != 0

    run(scenario)


def test_each_listener_is_told_its_own_addresses() -> None:
    async def scenario() -> None:
        world = World(
            listeners="PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
            advertised_listeners="PLAINTEXT://127.0.0.1:0,OUTSIDE://proxy.example:7777",
        )
        async with world.running() as (node, connection):
            (inside,) = (await describe(connection)).brokers
            assert inside.port == node.bound_ports["PLAINTEXT"]
            async with await connect("127.0.0.1", node.bound_ports["OUTSIDE"]) as other:
                (outside,) = (await describe(other)).brokers
                assert (outside.host, outside.port) == ("proxy.example", 7777)

    run(scenario)


def test_stopped_node_comes_back_as_it_was_without_recovery(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        world = World()
        async with world.running() as (_, connection):
            assert await create_topic(connection, "t", 2) == ErrorCode.NONE
            for number in range(10):
                assert await produce(connection, "t", b"%d" % number) == ErrorCode.NONE
            before = await describe(connection, "t")
        caplog.clear()
        async with world.running() as (_, connection):
            after = await describe(connection, "t")
            assert after.cluster_id == before.cluster_id
            assert after.topics[0].topic_id == before.topics[0].topic_id
            assert [one.leader_id for one in after.topics[0].partitions] == [1, 1]
            # The broker is another incarnation, so its leadership is a new one.
            assert after.topics[0].partitions[0].leader_epoch > before.topics[0].partitions[0].leader_epoch
            assert await end_offset(connection, "t") == 10
            assert await produce(connection, "t", b"more") == ErrorCode.NONE
            assert await end_offset(connection, "t") == 11

    with caplog.at_level(logging.INFO):
        run(scenario)
    assert "recovered=False" in caplog.text


@pytest.mark.parametrize("seed", range(5))
def test_acknowledged_records_and_topics_survive_a_loss_of_power(seed: int) -> None:
    async def scenario() -> None:
        world = World()
        world.random.seed(seed)
        async with world.losing_power() as (_, connection):
            assert await create_topic(connection, "t", flush_messages="1") == ErrorCode.NONE
            for number in range(20):
                assert await produce(connection, "t", b"%d" % number) == ErrorCode.NONE
        async with world.running() as (_, connection):
            # The only replica was not stopped cleanly; it comes back leading all the same.
            assert (await describe(connection, "t")).topics[0].partitions[0].leader_id == 1
            assert await end_offset(connection, "t") == 20

    run(scenario)


def test_parked_fetch_is_answered_when_the_node_stops() -> None:
    async def scenario() -> None:
        world = World()
        node = world.node()
        await node.start()
        async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as connection:
            assert await create_topic(connection, "t") == ErrorCode.NONE
            topic_id = (await describe(connection, "t")).topics[0].topic_id
            partition = FetchPartition(partition=i32(0), fetch_offset=i64(0), partition_max_bytes=i32(1000))
            fetching = asyncio.create_task(
                connection.call(
                    FetchRequest(
                        max_wait=MINUTE,
                        min_bytes=i32(1),
                        isolation_level=i8(0),
                        topics=(FetchTopic(topic_id=topic_id, partitions=(partition,)),),
                        forgotten_topics_data=(),
                        session_epoch=i32(-1),
                    )
                )
            )
            await loop_until(lambda: node.parts.data_path.fetches.statistics().parked_count > 0, "a fetch that waits")
            await node.stop()
            response = await fetching
            assert isinstance(response, FetchResponse)
            assert response.error_code == 0

    run(scenario)


def test_clients_are_told_of_a_broker_until_the_only_one_has_stopped() -> None:
    """librdkafka asks never again when it was told of topics and of no broker (its issue 5301)."""

    async def scenario() -> None:
        answers: list[MetadataResponse] = []

        async def ask_on(port: int) -> None:
            with suppress(ConnectionError):
                async with await connect("127.0.0.1", port) as connection:
                    while True:
                        answers.append(await describe(connection, "t"))

        async with World().running() as (node, connection):
            assert await create_topic(connection, "t") == ErrorCode.NONE
            asking = asyncio.create_task(ask_on(node.bound_ports["PLAINTEXT"]))
            await loop_until(lambda: len(answers) > 0, "an answer")
        await asking
        assert all(answer.brokers for answer in answers)
        # It says that it goes, and is asked until its connections are closed: mostly until after it is fenced.
        assert answers[-1].topics[0].partitions[0].leader_id == -1

    run(scenario)


def test_disk_of_another_node_is_refused_and_let_go() -> None:
    async def scenario() -> None:
        world = World()
        async with world.running():
            pass
        with pytest.raises(ConfigError, match=r"belongs to node 1, not to node 2\.$"):
            await world.node(node_id="2").start()
        async with world.running():
            with pytest.raises(ConfigError, match="is in use by another node"):
                await world.node().start()

    run(scenario)


def test_port_in_use_is_one_sentence_and_everything_is_let_go() -> None:
    async def scenario() -> None:
        world, other = World(), World()
        async with other.running() as (neighbour, _):
            port = neighbour.bound_ports["PLAINTEXT"]
            with pytest.raises(ConfigError, match=f"PLAINTEXT://127.0.0.1:{port} cannot be bound"):
                await world.node(listeners=f"PLAINTEXT://127.0.0.1:{port}").start()
        async with world.running():
            pass

    run(scenario)


def test_failed_log_directory_takes_its_partitions_and_not_the_node() -> None:
    async def scenario() -> None:
        world = World(log_dirs="/data,/more")
        async with world.running() as (node, connection):
            assert await create_topic(connection, "t", 2) == ErrorCode.NONE
            directories = {
                partition.index: partition.log.directory.rpartition("/")[0]
                for partition in node.parts.partitions.hosted
            }
            assert sorted(directories.values()) == ["/data", "/more"]
            (lost,) = [index for index, directory in directories.items() if directory == "/more"]
            world.files.fail(under="/more", count=None)
            assert await produce(connection, "t", b"x", lost) == ErrorCode.KAFKA_STORAGE_ERROR
            assert await produce(connection, "t", b"x", 1 - lost) == ErrorCode.NONE
            # The controller hears of it with a heartbeat.
            await loop_until(lambda: len(node.metadata.image.brokers[1].directories) == 1, "the loss of a directory")
            assert not node.failure.done()

    run(scenario)


def test_node_fails_with_its_last_log_directory() -> None:
    async def scenario() -> None:
        world = World()
        node = world.node()
        await node.start()
        async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as connection:
            assert await create_topic(connection, "t") == ErrorCode.NONE
            world.files.fail(under="/data/t-0", count=None)
            assert await produce(connection, "t", b"x") == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await node.failure).startswith("No log directory is left; /data: ")
        await node.stop()

    run(scenario)


def test_topics_are_made_by_metadata_only_where_that_is_configured() -> None:
    async def scenario() -> None:
        request = MetadataRequest(
            topics=(MetadataRequestTopic(topic_id=None, name=TopicName("new")),),
            allow_auto_topic_creation=True,
            include_topic_authorized_operations=False,
        )
        async with World(auto_create_topics_enable="false").running() as (_, connection):
            refused = await connection.call(request)
        async with World(num_partitions="3").running() as (_, connection):
            made = await connection.call(request)
        assert isinstance(refused, MetadataResponse)
        assert isinstance(made, MetadataResponse)
        assert (refused.topics[0].error_code, len(refused.topics[0].partitions)) == (3, 0)
        assert (made.topics[0].error_code, len(made.topics[0].partitions)) == (0, 3)

    run(scenario)


def test_what_is_loaded_later_is_what_was_told_before() -> None:
    async def in_thread(load: Load) -> Register:
        return load()

    async def scenario() -> None:
        async with World().running() as (node, connection):
            handlers = node.parts.handlers
            await handlers.load_all(in_thread)
            assert set(connection.versions) == {api.key for api in handlers.built}
            assert {int(key) for keys in LATER.values() for key in keys} < {
                *handlers.by_bytes, *handlers.by_message, *handlers.by_reply
            }  # fmt: skip

    run(scenario)


def test_what_is_built_is_what_is_told() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            assert set(connection.versions) == {api.key for api in node.parts.handlers.built}
            assert set(connection.versions) == {
                ApiKey.PRODUCE,
                ApiKey.DESCRIBE_CLIENT_QUOTAS,
                ApiKey.ALTER_CLIENT_QUOTAS,
                ApiKey.CREATE_DELEGATION_TOKEN,
                ApiKey.RENEW_DELEGATION_TOKEN,
                ApiKey.EXPIRE_DELEGATION_TOKEN,
                ApiKey.DESCRIBE_DELEGATION_TOKEN,
                ApiKey.FETCH,
                ApiKey.LIST_OFFSETS,
                ApiKey.METADATA,
                ApiKey.OFFSET_COMMIT,
                ApiKey.OFFSET_FETCH,
                ApiKey.FIND_COORDINATOR,
                ApiKey.JOIN_GROUP,
                ApiKey.HEARTBEAT,
                ApiKey.LEAVE_GROUP,
                ApiKey.SYNC_GROUP,
                ApiKey.DESCRIBE_GROUPS,
                ApiKey.LIST_GROUPS,
                ApiKey.DELETE_GROUPS,
                ApiKey.OFFSET_DELETE,
                ApiKey.TXN_OFFSET_COMMIT,
                ApiKey.WRITE_TXN_MARKERS,
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                ApiKey.CONSUMER_GROUP_DESCRIBE,
                ApiKey.API_VERSIONS,
                ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
                ApiKey.PUSH_TELEMETRY,
                ApiKey.CREATE_TOPICS,
                ApiKey.DELETE_TOPICS,
                ApiKey.DELETE_RECORDS,
                ApiKey.INIT_PRODUCER_ID,
                ApiKey.ADD_PARTITIONS_TO_TXN,
                ApiKey.ADD_OFFSETS_TO_TXN,
                ApiKey.END_TXN,
                ApiKey.DESCRIBE_TRANSACTIONS,
                ApiKey.LIST_TRANSACTIONS,
                ApiKey.OFFSET_FOR_LEADER_EPOCH,
                ApiKey.DESCRIBE_ACLS,
                ApiKey.CREATE_ACLS,
                ApiKey.DELETE_ACLS,
                ApiKey.DESCRIBE_CONFIGS,
                ApiKey.ALTER_CONFIGS,
                ApiKey.ALTER_REPLICA_LOG_DIRS,
                ApiKey.DESCRIBE_LOG_DIRS,
                ApiKey.CREATE_PARTITIONS,
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                ApiKey.DESCRIBE_QUORUM,
                ApiKey.SASL_HANDSHAKE,
                ApiKey.SASL_AUTHENTICATE,
                ApiKey.DESCRIBE_CLUSTER,
                ApiKey.ELECT_LEADERS,
                ApiKey.ALTER_PARTITION_REASSIGNMENTS,
                ApiKey.LIST_PARTITION_REASSIGNMENTS,
                ApiKey.UPDATE_FEATURES,
                ApiKey.UNREGISTER_BROKER,
                ApiKey.DESCRIBE_PRODUCERS,
                ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
                ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
                ApiKey.LIST_CONFIG_RESOURCES,
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            }
            # A request that only controllers serve: the connection ends, and nothing else.
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as other:
                other.versions = {ApiKey.ALLOCATE_PRODUCER_IDS: (0, 0)}
                with pytest.raises(ConnectionError):
                    await other.call(AllocateProducerIdsRequest(broker_id=BrokerId(1), broker_epoch=i64(1)))
            assert (await describe(connection)).brokers

    run(scenario)
