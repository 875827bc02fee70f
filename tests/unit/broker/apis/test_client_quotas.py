"""DescribeClientQuotas: filters; and quotas on a whole node, from the request that sets them to throttled clients."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntryData, OpData
from kio.schema.alter_client_quotas.v1.request import EntityData as AlteredPart
from kio.schema.describe_client_quotas.v1.request import ComponentData, DescribeClientQuotasRequest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import f64, i8
from memory_node import World, create_topic, describe, produce, run
from metadata_cluster import Cluster
from produce_requests import produce_request

from penstock.broker.apis.client_quotas import describe_client_quotas
from penstock.client.connection import Connection, connect
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.records import Record, write_batch
from penstock.quorum.decisions.client_quotas import alter_client_quotas

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
ENTITIES: tuple[dict[str, str | None], ...] = (
    {"user": "alice"},
    {"user": None},
    {"user": "alice", "client-id": "app"},
    {"user": "alice", "client-id": None},
    {"client-id": "app"},
    {"ip": "10.0.0.1"},
    {"ip": None},
)


def entry(entity: dict[str, str | None], **quotas: float | None) -> EntryData:
    return EntryData(
        entity=tuple(AlteredPart(entity_type=kind, entity_name=name) for kind, name in entity.items()),
        ops=tuple(OpData(key=key, value=f64(value or 0.0), remove=value is None) for key, value in quotas.items()),
    )


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    cluster = Cluster()
    entries = tuple(
        entry(entity, **{"connection_creation_rate" if "ip" in entity else "producer_byte_rate": 5.0})
        for entity in ENTITIES
    )
    cluster.submit(alter_client_quotas, AlterClientQuotasRequest(entries=entries, validate_only=False))
    return cluster


def request(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=kind, match_type=i8(match_type), match=match)
            for kind, match_type, match in components
        ),
        strict=strict,
    )


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ((), False, range(7)),
        ((), True, ()),
        ((("user", EXACT, "alice"),), False, (0, 2, 3)),
        ((("user", EXACT, "alice"),), True, (0,)),
        ((("user", DEFAULT, None),), False, (1,)),
        ((("user", SPECIFIED, None),), False, (0, 1, 2, 3)),
        ((("user", SPECIFIED, None), ("client-id", SPECIFIED, None)), True, (2, 3)),
        ((("user", EXACT, "alice"), ("client-id", DEFAULT, None)), True, (3,)),
        ((("ip", SPECIFIED, None),), True, (5, 6)),
        ((("ip", DEFAULT, None),), False, (6,)),
        ((("client-id", EXACT, "none"),), False, ()),
    ],
)
def test_filters(cluster: Cluster, components: Any, strict: bool, expected: Any) -> None:
    response = describe_client_quotas(cluster.image, request(*components, strict=strict))
    assert response.entries is not None
    found = [{part.entity_type: part.entity_name for part in one.entity} for one in response.entries]
    assert sorted(map(ENTITIES.index, found)) == [*expected]
    assert all([value.value for value in one.values] == [5.0] for one in response.entries)


@pytest.mark.parametrize(
    ("components", "error", "message"),
    [
        ((("", EXACT, "a"),), ErrorCode.INVALID_REQUEST, "Invalid empty entity type."),
        (
            (("user", EXACT, "a"), ("user", SPECIFIED, None)),
            ErrorCode.INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
        ),
        ((("group", EXACT, "g"),), ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type group"),
        (
            (("user", EXACT, None),),
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            (("user", DEFAULT, "a"),),
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            (("user", SPECIFIED, "a"),),
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ((("user", 9, None),), ErrorCode.INVALID_REQUEST, "Unknown match type 9"),
        (
            (("ip", SPECIFIED, None), ("user", EXACT, "a")),
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component.",
        ),
    ],
)
def test_filters_that_are_refused(cluster: Cluster, components: Any, error: ErrorCode, message: str) -> None:
    with pytest.raises(KafkaError) as caught:
        describe_client_quotas(cluster.image, request(*components))
    assert (caught.value.code, caught.value.message) == (error, message)


async def alter(connection: Connection, entity: dict[str, str | None], **quotas: float | None) -> None:
    message = AlterClientQuotasRequest(entries=(entry(entity, **quotas),), validate_only=False)
    response: Any = await connection.call(message)
    assert [one.error_code for one in response.entries] == [ErrorCode.NONE]


async def produced(connection: Connection) -> int:
    """The throttle time of a Produce of a thousand bytes, in milliseconds."""
    topic_id = (await describe(connection, "t")).topics[0].topic_id
    batch = write_batch([Record(offset=0, timestamp_ms=0, key=None, value=bytes(1000))])
    response: Any = await connection.call(produce_request(topic_id, 0, batch))
    return int(response.throttle_time.total_seconds() * 1000)


def test_a_quota_holds_for_connections_that_are_open_and_ends_when_it_is_removed() -> None:
    async def scenario() -> None:
        async with World(quota_window_num="2").running() as (node, administrator):
            await create_topic(administrator, "t")
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"], client_id="limited") as client:
                assert await produce(client, "t", b"v") == ErrorCode.NONE
                # Two windows of a second: a batch of 1,000 bytes waits for a few hundredths of one.
                await alter(administrator, {"client-id": "limited"}, producer_byte_rate=1000.0)
                assert await produced(client) > 0
                await alter(administrator, {"client-id": "limited"}, producer_byte_rate=None)
                assert await produced(client) == 0
            assert not await produced(administrator)

    run(scenario)


def test_request_time_throttles_other_requests() -> None:
    async def scenario() -> None:
        async with World().running() as (node, administrator):
            await alter(administrator, {"user": "ANONYMOUS", "client-id": "slow"}, request_percentage=1e-6)
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"], client_id="slow") as client:
                response: Any = await client.call(DescribeClientQuotasRequest(components=(), strict=False))
                assert response.throttle_time.total_seconds() == 1.0
                assert [value.key for value in response.entries[0].values] == ["request_percentage"]

    run(scenario)


def test_connections_above_the_rate_of_their_address_are_closed() -> None:
    async def scenario() -> None:
        # Without a whole sample the first connection is a thousand a second: it waits for a millisecond.
        async with World(quota_window_num="1").running() as (node, administrator):
            await alter(administrator, {"ip": "127.0.0.1"}, connection_creation_rate=500.0)
            with pytest.raises(ConnectionError):
                await connect("127.0.0.1", node.bound_ports["PLAINTEXT"])
            statistics = node.parts.listeners.statistics()
            assert (statistics.connections_throttled, statistics.connections_refused) == (1, 1)
            # What is open stays open.
            assert (await describe(administrator)).brokers
            await alter(administrator, {"ip": "127.0.0.1"}, connection_creation_rate=None)
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as another:
                assert (await describe(another)).brokers


def test_connections_above_the_rate_of_the_node_wait() -> None:
    async def scenario() -> None:
        rate = {"quota.window.num": "1", "max.connection.creation.rate": "500"}
        async with World(**rate).running() as (node, connection):
            assert (await describe(connection)).brokers
            assert node.parts.listeners.statistics().connections_throttled == 1
            assert node.parts.listeners.statistics().connections_refused == 0

    run(scenario)


@pytest.mark.parametrize(
    "key", ["max.connection.creation.rate", "listener.name.plaintext.max.connection.creation.rate"]
)
def test_the_rate_of_connections_changes_while_the_node_runs(key: str) -> None:
    async def scenario() -> None:
        async with World(**{"quota.window.num": "1"}).running() as (node, administrator):
            config = AlterableConfig(name=key, config_operation=i8(0), value="500")
            resource = AlterConfigsResource(resource_type=i8(4), resource_name="", configs=(config,))
            response: Any = await administrator.call(
                IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
            )
            assert response.responses[0].error_message is None
            async with await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as late:
                assert (await describe(late)).brokers
            assert node.parts.listeners.statistics().connections_throttled == 1

    run(scenario)


def test_a_node_that_starts_again_has_the_quotas_of_the_metadata() -> None:
    async def scenario() -> None:
        world = World()
        async with world.running() as (_, administrator):
            await alter(administrator, {"user": None}, request_percentage=1e-6)
        async with world.running() as (_, client):
            response: Any = await client.call(DescribeClientQuotasRequest(components=(), strict=False))
            assert response.throttle_time.total_seconds() == 1.0

    run(scenario)
