"""Metrics of a whole node: they change as what they tell of does, and are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from exposed_metrics import Samples, exposed
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.fetch.v18.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32, i64
from memory_node import MINUTE, World, create_topic, describe, produce, run
from open_transactions import leave_open
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics

from penstock.broker.configuration.penstock_keys import METRICS_PER_PARTITION
from penstock.broker.metrics.metrics import Metrics
from penstock.broker.metrics.topic_reader import TopicReader
from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode

BROKER_RESOURCE = 4
SET = 0


async def fetch_all(connection: Connection, topic: str) -> None:
    topic_id = (await describe(connection, topic)).topics[0].topic_id
    await connection.call(
        FetchRequest(
            max_wait=MINUTE,
            min_bytes=i32(1),
            isolation_level=i8(0),
            topics=(
                FetchTopic(
                    topic_id=topic_id,
                    partitions=(
                        FetchPartition(
                            partition=i32(0),
                            fetch_offset=i64(0),
                            last_fetched_epoch=i32(-1),
                            partition_max_bytes=i32(1_000_000),
                        ),
                    ),
                ),
            ),
            forgotten_topics_data=(),
        )
    )


async def set_per_partition(connection: Connection, value: str) -> None:
    await connection.call(
        IncrementalAlterConfigsRequest(
            resources=(
                AlterConfigsResource(
                    resource_type=i8(BROKER_RESOURCE),
                    resource_name="",
                    configs=(AlterableConfig(name=METRICS_PER_PARTITION, config_operation=i8(SET), value=value),),
                ),
            ),
            validate_only=False,
        )
    )


def test_records_bytes_and_requests_are_counted() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            await create_topic(connection, "t", 2)
            before = await exposed(node)
            for _ in range(3):
                assert await produce(connection, "t", b"x" * 100) == ErrorCode.NONE
            await fetch_all(connection, "t")
            after = await exposed(node)
            assert before.value("kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 0
            assert after.value("kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 3
            size = after.value("kafka_log_log_size") if after.labels("kafka_log_log_size") else 0
            assert size == 0, "series of partitions are switched off"
            bytes_in = after.value("kafka_server_brokertopicmetrics_bytesin_total", topic="t")
            assert bytes_in > 300
            assert after.value("kafka_server_brokertopicmetrics_bytesin_total") == bytes_in
            assert after.value("kafka_server_brokertopicmetrics_bytesout_total", topic="t") == bytes_in
            assert after.value("kafka_server_brokertopicmetrics_totalproducerequests_total", topic="t") == 3
            assert after.value("kafka_server_brokertopicmetrics_totalfetchrequests_total", topic="t") == 1
            name = "kafka_network_requestmetrics_requests_total"
            assert after.value(name, request="Produce", version="13") == 3
            assert after.value(name, request="FetchConsumer", version="18") == 1
            assert after.value(name, request="Fetch", version="18") == 1
            times = "kafka_network_requestmetrics_totaltimems"
            assert after.value(f"{times}_count", request="Produce") == 3
            assert after.value(times, request="Produce", quantile="0.99") > 0
            assert after.value("kafka_server_replicamanager_leadercount") == 2
            assert after.value("kafka_server_replicamanager_underreplicatedpartitions") == 0
            assert after.value("kafka_controller_kafkacontroller_activecontrollercount") == 1
            assert after.value("kafka_controller_kafkacontroller_globalpartitioncount") == 2
            assert after.value("kafka_server_raftmetrics_current_state", current_state="leader") == 1
            assert after.value("kafka_server_kafkaserver_brokerstate") == 3
            listener = {"listener": "PLAINTEXT", "networkProcessor": "0"}
            assert after.value("kafka_server_socket_server_metrics_connection_count", **listener) == 1
            assert after.value("penstock_metrics_expositions_total") == 2

    run(scenario)


def test_an_error_is_counted_by_api_and_code() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            await create_topic(connection, "t", 1, max_message_bytes="100")
            assert await produce(connection, "t", b"x" * 200) == ErrorCode.MESSAGE_TOO_LARGE
            samples = await exposed(node)
            name = "kafka_network_requestmetrics_errors_total"
            assert samples.value(name, request="Produce", error="MESSAGE_TOO_LARGE") == 1
            assert samples.value("kafka_server_brokertopicmetrics_bytesrejected_total", topic="t") > 200
            assert samples.value("kafka_server_brokertopicmetrics_failedproducerequests_total", topic="t") == 0

    run(scenario)


def test_totals_keep_what_a_deleted_topic_had() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            await create_topic(connection, "t")
            await produce(connection, "t", b"x")
            state = DeleteTopicState(name=TopicName("t"), topic_id=None)
            await connection.call(DeleteTopicsRequest(topics=(state,), timeout=MINUTE))
            samples = await exposed(node)
            name = "kafka_server_brokertopicmetrics_messagesin_total"
            assert samples.labels(name) == [{}]
            assert samples.value(name) == 1
            assert samples.value("kafka_controller_kafkacontroller_globaltopiccount") == 0

    run(scenario)


def test_partitions_have_series_only_while_that_is_switched_on() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            await create_topic(connection, "t", 3)
            await produce(connection, "t", b"x", 1)
            assert (await exposed(node)).labels("kafka_log_log_logendoffset") == []
            await set_per_partition(connection, "true")
            samples = await exposed(node)
            ends = [samples.value("kafka_log_log_logendoffset", topic="t", partition=str(one)) for one in range(3)]
            assert ends == [0, 1, 0]
            assert samples.value("kafka_cluster_partition_replicascount", topic="t", partition="0") == 1
            await set_per_partition(connection, "false")
            assert (await exposed(node)).labels("kafka_log_log_logendoffset") == []

    run(scenario)


def test_a_transaction_is_late_five_minutes_after_the_longest_that_is_allowed() -> None:
    """As Apache Kafka's PartitionsWithLateTransactionsCount (KIP-664)."""
    late = "kafka_server_replicamanager_partitionswithlatetransactionscount"

    async def scenario() -> None:
        world = World(transaction_partition_verification_enable="false", transaction_max_timeout_ms="60000")
        async with world.running() as (node, connection):
            await create_topic(connection, "t", 2)
            await leave_open(connection, "t", timestamp_ms=world.now_ms)
            world.now_ms += 6 * 60_000
            assert (await exposed(node)).value(late) == 0
            world.now_ms += 1
            assert (await exposed(node)).value(late) == 1

    run(scenario)


def test_topics_beyond_the_bound_are_in_the_total_alone() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            for name in ("first", "second", "third"):
                await create_topic(connection, name)
                await produce(connection, name, b"x")
            metrics = Metrics(asyncio.get_running_loop(), 1)
            metrics.add_reader(TopicReader(node.parts.partitions, topics_max=2))
            samples = Samples((await metrics.exposition(None))[0].decode())
            name = "kafka_server_brokertopicmetrics_messagesin_total"
            assert [one.get("topic") for one in samples.labels(name)] == [None, "first", "second"]
            assert samples.value(name) == 3
            assert samples.value("penstock_metrics_hidden_topics") == 1

    run(scenario)


def test_both_formats_have_the_same_families_and_those_of_added_sources() -> None:
    class Source:
        def collect(self) -> Iterable[Family]:
            return [GaugeMetricFamily("client_lag", "What a client says.", value=7)]

    async def scenario() -> None:
        async with World().running() as (node, connection):
            await create_topic(connection, "t")
            node.metrics.add_source(Source())
            text = await exposed(node)
            body, content_type = await node.metrics.exposition("application/openmetrics-text;version=1.0.0")
            assert content_type.startswith("application/openmetrics-text; version=1.0.0")
            opened = {family.name for family in parse_open_metrics(body.decode())}
            assert {family.name for family in text.families} == opened
            assert text.value("client_lag") == 7
            assert text.value("process_open_fds") > 0

    run(scenario)


@pytest.mark.thorough
@pytest.mark.parametrize("partition_count", [2_000])
def test_an_exposition_of_many_partitions_lets_others_have_their_turn(partition_count: int) -> None:
    async def scenario() -> None:
        async with World(metrics_per_partition="true").running() as (node, connection):
            await create_topic(connection, "t", partition_count)
            await node.parts.partitions.settled()
            await node.metrics.exposition(None)
            turns = 0
            done = asyncio.Event()

            def count() -> None:
                nonlocal turns
                turns += 1
                if not done.is_set():
                    asyncio.get_running_loop().call_soon(count)

            count()
            samples = await exposed(node)
            done.set()
            assert len(samples.labels("kafka_log_log_size")) == partition_count
            # Nine families of 2,000 samples, 500 in a turn, and the walks over the partitions.
            assert turns > 40

    run(scenario)


@pytest.mark.thorough
def test_the_library_is_not_loaded_before_the_first_exposition() -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec(
            __import__("sys").executable,
            "-c",
            "import sys, penstock.broker.node.main, penstock.broker.node.voter_link\n"
            "sys.exit('prometheus_client' in sys.modules)",
        )
        assert await process.wait() == 0

    asyncio.run(scenario())
