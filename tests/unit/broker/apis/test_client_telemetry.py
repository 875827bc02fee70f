"""GetTelemetrySubscriptions and PushTelemetry of a node, with a real client as well (KIP-714)."""

import asyncio
from collections.abc import Iterable, Mapping
from uuid import UUID

import pytest
from confluent_kafka import Producer
from exposed_metrics import exposed
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.api_versions.v4.response import ApiVersionsResponse
from kio.schema.get_telemetry_subscriptions.v0.request import GetTelemetrySubscriptionsRequest
from kio.schema.get_telemetry_subscriptions.v0.response import GetTelemetrySubscriptionsResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.push_telemetry.v0.request import PushTelemetryRequest
from kio.schema.push_telemetry.v0.response import PushTelemetryResponse
from kio.static.primitive import i8, i32
from memory_node import World, create_topic, run
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from waiting import loop_until

from penstock.broker.node.server import Node
from penstock.client.connection import Connection, connect
from penstock.protocol.apis import ApiKey
from penstock.protocol.compression import Compression, compress
from penstock.protocol.errors import ErrorCode

CLIENT_METRICS = 16
SET = 0
DELETE = 1


async def subscribe(connection: Connection, **configs: str | None) -> ErrorCode:
    """Sets or, with None, deletes configs of one subscription."""
    changes = tuple(
        AlterableConfig(name=name.replace("_", "."), config_operation=i8(DELETE if value is None else SET), value=value)
        for name, value in configs.items()
    )
    resource = AlterConfigsResource(resource_type=i8(CLIENT_METRICS), resource_name="all", configs=changes)
    response = await connection.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
    assert isinstance(response, IncrementalAlterConfigsResponse)
    return ErrorCode(int(response.responses[0].error_code))


async def get(connection: Connection, instance_id: UUID | None = None) -> GetTelemetrySubscriptionsResponse:
    response = await connection.call(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id))
    assert isinstance(response, GetTelemetrySubscriptionsResponse)
    return response


async def push(
    connection: Connection,
    instance_id: UUID | None,
    subscription_id: int,
    metrics: bytes = b"",
    *,
    compression: int = Compression.NONE,
    is_terminating: bool = False,
) -> ErrorCode:
    response = await connection.call(
        PushTelemetryRequest(
            client_instance_id=instance_id,
            subscription_id=i32(subscription_id),
            terminating=is_terminating,
            compression_type=i8(compression),
            metrics=metrics,
        )
    )
    assert isinstance(response, PushTelemetryResponse)
    return ErrorCode(int(response.error_code))


def one_counter(value: int) -> bytes:
    message = MetricsData()
    metric = message.resource_metrics.add().scope_metrics.add().metrics.add(name="org.apache.kafka.test")
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = 1
    metric.sum.data_points.add(as_int=value)
    return bytes(message.SerializeToString())


def samples(node: Node) -> Mapping[str, float]:
    """Of all series, the sum by name."""
    found: dict[str, float] = {}
    for family in node.parts.telemetry.collect():
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


def labels(node: Node, name: str) -> Iterable[Mapping[str, str]]:
    return [
        sample.labels for family in node.parts.telemetry.collect() for sample in family.samples if sample.name == name
    ]


def test_both_apis_are_advertised() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            response = await connection.call(
                ApiVersionsRequest(client_software_name="test", client_software_version="1")
            )
            assert isinstance(response, ApiVersionsResponse)
            told = {int(api.api_key) for api in response.api_keys}
            assert {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY} <= told

    run(scenario)


def test_a_client_without_a_subscription_gets_an_id_and_nothing_to_do() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            told = await get(connection)
            assert ErrorCode(int(told.error_code)) is ErrorCode.NONE
            assert told.client_instance_id is not None
            assert told.client_instance_id.version == 4
            assert told.requested_metrics == ()
            assert told.push_interval.total_seconds() == 300
            assert told.telemetry_max_bytes == 1_048_576
            assert told.accepted_compression_types == (4, 3, 1, 2)
            assert told.delta_temporality
            again = await get(connection, told.client_instance_id)
            assert ErrorCode(int(again.error_code)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
            # A push without a subscription is not opened.
            assert await push(connection, told.client_instance_id, told.subscription_id, b"?") is ErrorCode.NONE
            statistics = node.parts.telemetry.statistics()
            assert (statistics.series, statistics.throttled) == (0, 1)

    run(scenario)


@pytest.mark.parametrize("compression", list(Compression))
def test_pushed_counters_are_added_up(compression: Compression) -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            assert await subscribe(connection, metrics="org.apache.kafka.", interval_ms="100") is ErrorCode.NONE
            told = await get(connection)
            assert told.requested_metrics == ("org.apache.kafka.",)
            data = compress(compression, one_counter(3))
            for _ in range(2):
                code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
                # A push each 100 ms.
                while code is ErrorCode.THROTTLING_QUOTA_EXCEEDED:
                    code = await push(
                        connection, told.client_instance_id, told.subscription_id, data, compression=compression
                    )
                    await asyncio.sleep(0.01)
                assert code is ErrorCode.NONE
            assert samples(node)["org_apache_kafka_test_total"] == 6
            (own,) = labels(node, "org_apache_kafka_test_total")
            assert own["client_instance_id"] == str(told.client_instance_id)

    run(scenario)


def test_what_is_wrong_with_a_push_is_told() -> None:
    async def scenario() -> None:
        async with World(telemetry_max_bytes="1000").running() as (node, connection):
            assert await subscribe(connection, metrics="*", interval_ms="3600000") is ErrorCode.NONE

            async def ask_and_push(metrics: bytes, compression: int = 0, subscription_id: int = 0) -> ErrorCode:
                told = await get(connection)
                wanted = subscription_id or told.subscription_id
                return await push(connection, told.client_instance_id, wanted, metrics, compression=compression)

            assert await ask_and_push(one_counter(1)) is ErrorCode.NONE
            assert await ask_and_push(b"\xff\xff") is ErrorCode.INVALID_RECORD
            assert await ask_and_push(b"no gzip", Compression.GZIP) is ErrorCode.INVALID_RECORD
            assert await ask_and_push(b"x" * 1001) is ErrorCode.TELEMETRY_TOO_LARGE
            bomb = compress(Compression.ZSTD, b"\0" * 1_000_000)
            assert len(bomb) < 1000
            assert await ask_and_push(bomb, Compression.ZSTD) is ErrorCode.TELEMETRY_TOO_LARGE
            assert await ask_and_push(b"", 9) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            assert await ask_and_push(b"", 0, 4711) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
            for reserved in (None, UUID(int=1)):
                assert await push(connection, reserved, 0) is ErrorCode.INVALID_REQUEST
            statistics = node.parts.telemetry.statistics()
            assert (statistics.pushes, statistics.unreadable, statistics.too_large) == (1, 2, 2)
            told = await exposed(node)
            assert told.value("kafka_server_client_metrics_unknown_subscription_request_count") == 1
            assert told.value("kafka_server_client_metrics_instance_count") == statistics.instances
            assert told.value("penstock_client_telemetry_too_large_total") == 2
            assert told.value("penstock_client_telemetry_pushes_total") == 1

    run(scenario)


@pytest.mark.parametrize("compression", [one for one in Compression if one is not Compression.NONE])
def test_a_push_is_too_large_if_it_is_so_uncompressed(compression: Compression) -> None:
    """The client may push fewer metrics: after INVALID_RECORD it would push no more."""

    async def scenario() -> None:
        async with World(telemetry_max_bytes="100000").running() as (node, connection):
            assert await subscribe(connection, metrics="*") is ErrorCode.NONE
            told = await get(connection)
            bomb = compress(compression, b"\0" * 100_001)
            assert len(bomb) < 100_000
            assert await push(
                connection, told.client_instance_id, told.subscription_id, bomb, compression=compression
            ) is (ErrorCode.TELEMETRY_TOO_LARGE)
            assert node.parts.telemetry.statistics().too_large == 1

    run(scenario)


def test_an_early_push_is_throttled_and_a_terminating_one_is_the_last() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            assert await subscribe(connection, metrics="*", interval_ms="3600000") is ErrorCode.NONE
            told = await get(connection)
            own = told.client_instance_id, told.subscription_id
            assert await push(connection, *own, one_counter(1)) is ErrorCode.NONE
            assert await push(connection, *own, one_counter(1)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert await push(connection, *own, one_counter(1), is_terminating=True) is ErrorCode.NONE
            assert await push(connection, *own, one_counter(1), is_terminating=True) is ErrorCode.INVALID_REQUEST
            assert samples(node)["org_apache_kafka_test_total"] == 2

    run(scenario)


def test_an_instance_is_forgotten_with_its_connection() -> None:
    async def scenario() -> None:
        async with World().running() as (node, connection):
            assert await subscribe(connection, metrics="*") is ErrorCode.NONE
            telemetry = node.parts.telemetry
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as other:
                told = await get(other)
                code = await push(other, told.client_instance_id, told.subscription_id, one_counter(1))
                assert code is ErrorCode.NONE
                assert telemetry.statistics().instances == 1
            await loop_until(lambda: telemetry.statistics().instances == 0, "the instance was forgotten")
            # What it pushed last is still to be scraped.
            assert telemetry.statistics().series == 1
            assert told.client_instance_id is not None
            assert not telemetry.has_instance(told.client_instance_id)

    run(scenario)


def test_a_subscription_that_changes_or_ends_is_noticed_at_once() -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            first = await get(connection)
            assert await subscribe(connection, metrics="*") is ErrorCode.NONE
            second = await get(connection, first.client_instance_id)
            assert second.requested_metrics == ("*",)
            assert await push(connection, first.client_instance_id, first.subscription_id) is (
                ErrorCode.UNKNOWN_SUBSCRIPTION_ID
            )
            assert await subscribe(connection, metrics=None) is ErrorCode.NONE
            third = await get(connection, first.client_instance_id)
            assert third.requested_metrics == ()

    run(scenario)


@pytest.mark.parametrize("match", ["client_id", "client_id=", "client_id=a=b", "color=red", "client_id=("])
def test_an_illegal_match_is_refused(match: str) -> None:
    async def scenario() -> None:
        async with World().running() as (_, connection):
            assert await subscribe(connection, metrics="*", match=match) is ErrorCode.INVALID_CONFIG

    run(scenario)


def test_librdkafka_pushes_what_it_is_asked_for() -> None:
    """`enable.metrics.push` is its default."""
    producers: list[Producer] = []

    def produce(port: int) -> None:
        producers.append(Producer({"bootstrap.servers": f"127.0.0.1:{port}", "client.id": "shop-7"}))
        producers[0].produce("orders", b"1")
        assert producers[0].flush(20) == 0

    async def scenario() -> None:
        async with World().running() as (node, connection):
            assert await create_topic(connection, "orders") is ErrorCode.NONE
            match = "client_id=shop-.*,client_software_name=confluent-kafka-python"
            assert await subscribe(connection, metrics="*", interval_ms="100", match=match) is ErrorCode.NONE
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, produce, node.bound_ports["PLAINTEXT"])
            name = "org_apache_kafka_producer_connection_creation_total"
            await loop_until(lambda: name in samples(node), f"{name} was pushed")
            assert {one["client_id"] for one in labels(node, name)} == {"shop-7"}
            # Its last push comes when it ends.
            await loop.run_in_executor(None, producers.pop().close)
            assert node.parts.telemetry.statistics().unreadable == 0

    run(scenario)
