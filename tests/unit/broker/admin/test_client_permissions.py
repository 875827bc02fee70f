"""What is asked of other brokers for a client of HTTP is asked by that client's permissions."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import pytest
from admin_http import served
from authorized_node import AuthorizedNode
from controller_and_broker import controller_and_broker
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.types import ProducerId, TransactionalId
from kio.static.primitive import i8, i16
from memory_node import MINUTE, produce
from rest_node import RestNode

from penstock.broker.admin.operations import OPERATIONS
from penstock.broker.network.rules.client_envelope import (
    ClientEnvelope,
    decode_answer,
    decode_envelope,
    encode_answer,
    encode_envelope,
    encode_refusal,
)
from penstock.broker.node.admin_ports import ports_of
from penstock.broker.security.wiring import authorizer_of
from penstock.client.connection import Connection, connect
from penstock.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from penstock.protocol.errors import CorruptData, ErrorCode, KafkaError
from penstock.protocol.own_apis import OwnApiKey
from penstock.protocol.structs import replace
from penstock.quorum.metadata.image import ConfigResourceType
from penstock.quorum.permissions.ruling import AuthorizerSettings

PROPERTIES: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The tests' own connections prove nothing.
    "super.users": "User:ANONYMOUS",
    "listener.name.admin.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.admin.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_alice="wonder land";',
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
ALICE: Final = {"Authorization": "Basic " + base64.b64encode(b"alice:wonder land").decode()}


class Asked:
    """A broker with the topics "mine" and "other", of two records each, and the HTTP of another node."""

    def __init__(self, broker: AuthorizedNode, http: aiohttp.ClientSession) -> None:
        self.broker = broker
        self.http = http
        self.root = f"/v3/clusters/{broker.node.metadata.image.cluster_id}"

    async def told(self, path: str, status: int = 200, **more: Any) -> Any:
        """The JSON that alice is told."""
        method = more.pop("method", "GET")
        path = path if path.startswith("/v1/") else self.root + path
        async with self.http.request(method, path, headers=ALICE, **more) as answer:
            assert answer.status == status, (path, await answer.text())
            return await answer.json(content_type=None)


@asynccontextmanager
async def asked() -> AsyncIterator[Asked]:
    async with (
        controller_and_broker(PROPERTIES) as (_, node, http),
        await connect("127.0.0.1", node.bound_ports["PLAINTEXT"]) as connection,
    ):
        broker = AuthorizedNode(node, connection)
        for topic in ("mine", "other"):
            await broker.create_topic(topic)
            for _ in range(2):
                assert await produce(connection, topic, b"x") is ErrorCode.NONE
        yield Asked(broker, http)


def test_lags_of_topics_that_the_client_may_not_describe_are_left_out() -> None:
    async def scenario() -> None:
        async with asked() as one:
            rest = RestNode(one.broker.node, one.broker.connection, one.http)
            for topic in ("mine", "other"):
                await rest.commit("g", topic, {0: 1})
            group = "/consumer-groups/g"
            await one.told(f"{group}/lags", 403)
            await one.broker.allow(ResourceType.GROUP, "g", AclOperation.DESCRIBE)
            assert (await one.told(f"{group}/lags"))["data"] == []
            await one.told(f"{group}/lag-summary", 404)
            await one.broker.allow(ResourceType.TOPIC, "mine", AclOperation.DESCRIBE)
            (lag,) = (await one.told(f"{group}/lags"))["data"]
            assert (lag["topic_name"], lag["lag"]) == ("mine", 1)
            assert (await one.told(f"{group}/lag-summary"))["total_lag"] == 1
            await one.told(f"{group}/lags/other/partitions/0", 404)
            await one.broker.allow(ResourceType.TOPIC, "other", AclOperation.DESCRIBE)
            assert [two["topic_name"] for two in (await one.told(f"{group}/lags"))["data"]] == ["mine", "other"]

    asyncio.run(scenario())


@pytest.mark.thorough
def test_pictures_and_events_of_the_cluster_have_the_topics_that_the_client_may_describe() -> None:
    async def scenario() -> None:
        async with asked() as one:

            async def seen() -> tuple[set[str], set[str]]:
                """Topics of the map and of events."""
                shown = (await one.told("/v1/partition-map"))["topics"]
                async with one.http.get("/v1/events?follow=false", headers=ALICE) as answer:
                    assert answer.status == 200
                    lines = (await answer.text()).split("\n")
                told = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
                assert "broker-registered" in {event["kind"] for event in told}
                return {topic["topic_name"] for topic in shown}, {event["topic"] for event in told if "topic" in event}

            await one.broker.allow_in_cluster(AclOperation.DESCRIBE)
            assert await seen() == (set(), set())
            await one.broker.allow(ResourceType.TOPIC, "mine", AclOperation.READ)
            assert await seen() == ({"mine"}, {"mine"})
            await one.broker.allow(ResourceType.TOPIC, "*", AclOperation.DESCRIBE)
            assert await seen() == ({"mine", "other"}, {"mine", "other"})

    asyncio.run(scenario())


def test_lists_show_what_the_client_may_describe() -> None:
    async def scenario() -> None:
        async with asked() as one:
            rest = RestNode(one.broker.node, one.broker.connection, one.http)
            for group in ("g", "h"):
                await rest.commit(group, "mine", {0: 1})
            await one.broker.allow_in_cluster(AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
            lists = {
                "/topics": "topic_name",
                "/topics/-/configs": "topic_name",
                "/topics/-/partitions/-/replica-status": "topic_name",
                "/consumer-groups": "consumer_group_id",
            }
            for path in lists:
                assert (await one.told(path))["data"] == [], path
            assert (await one.told("/v1/topics"))["topics"] == []
            await one.told("/v1/topics?topic=mine", 403)
            await one.told("/v1/topics?topic=none", 403)
            await one.broker.allow(
                ResourceType.TOPIC, "mine", AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.WRITE
            )
            await one.broker.allow(ResourceType.GROUP, "g", AclOperation.DESCRIBE)
            for path, name in lists.items():
                shown = {two[name] for two in (await one.told(path))["data"]}
                assert shown == {"g" if path == "/consumer-groups" else "mine"}, path
            (topic,) = (await one.told("/v1/topics"))["topics"]
            assert (topic["name"], topic["high_watermarks"]) == ("mine", 2)
            (status,) = (await one.told("/topics/mine/partitions/0/replica-status"))["data"]
            assert status["log_end_offset"] == 2
            told = await one.told("/topics/mine?include_authorized_operations=true")
            assert told["authorized_operations"] == ["WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"]

    asyncio.run(scenario())


def test_transactions_are_shown_to_who_may_describe_them() -> None:
    async def scenario() -> None:
        async with asked() as one:
            for name in ("paid", "sent"):
                await _init_producer(one.broker.connection, name)
            await one.broker.allow_in_cluster(AclOperation.DESCRIBE)
            assert (await one.told("/v1/transactions"))["transactions"] == []
            await one.broker.allow(ResourceType.TRANSACTIONAL_ID, "paid", AclOperation.DESCRIBE)
            (found,) = (await one.told("/v1/transactions"))["transactions"]
            assert found["transactional_id"] == "paid"
            await one.told("/v1/transactions/hanging?topic=mine", 403)
            await one.told("/v1/transactions/hanging?topic=none", 403)
            assert (await one.told("/v1/transactions/hanging?broker_id=2"))["transactions"] == []
            await one.broker.allow(ResourceType.TOPIC, "mine", AclOperation.READ)
            assert (await one.told("/v1/transactions/hanging?topic=mine"))["transactions"] == []

    asyncio.run(scenario())


async def _init_producer(connection: Connection, name: str) -> None:
    while True:
        await connection.call(FindCoordinatorRequest(key_type=i8(1), coordinator_keys=(name,)))
        answer: Any = await connection.call(
            InitProducerIdRequest(
                transactional_id=TransactionalId(name),
                transaction_timeout=MINUTE,
                producer_id=ProducerId(-1),
                producer_epoch=i16(-1),
            )
        )
        if answer.error_code == ErrorCode.NONE:
            return
        await asyncio.sleep(0)


def test_records_are_written_and_read_at_another_broker_by_the_clients_permissions() -> None:
    async def scenario() -> None:
        async with asked() as one:
            await one.broker.allow(ResourceType.TOPIC, "mine", AclOperation.WRITE, AclOperation.READ)
            record = {"value": {"type": "STRING", "data": "v"}}
            sent = await one.told("/topics/mine/records", method="POST", json=record)
            assert (sent["error_code"], sent["offset"]) == (200, 2)
            read = await one.told("/topics/mine/partitions/0/records?limit=10")
            assert len(read["data"]) == 3

    asyncio.run(scenario())


@pytest.mark.thorough
def test_a_stream_ends_when_its_client_may_not_have_it_any_more() -> None:
    async def scenario() -> None:
        async with asked() as one:
            await one.broker.allow_in_cluster(AclOperation.DESCRIBE)
            await one.broker.allow(ResourceType.TOPIC, "*", AclOperation.DESCRIBE)
            async with one.http.get("/v1/events", headers=ALICE) as events:
                assert events.status == 200
                assert (await events.content.readline()).startswith(b"retry")
                await one.broker.create_topic("third")
                while b"third" not in await events.content.readline():
                    assert not events.content.at_eof()
                deletion: Any = await one.broker.connection.call(_of_cluster())
                assert deletion.filter_results[0].error_code == ErrorCode.NONE
                await one.broker.create_topic("fourth")
                assert b"fourth" not in await events.content.read()

    asyncio.run(scenario())


def test_voters_check_once_more_what_a_client_may_ask_of_them() -> None:
    """The node that is asked may have ACLs that are older than the controller's: here it has none."""

    async def scenario() -> None:
        async with asked() as one:
            node = one.broker.node
            lagging = dataclasses.replace(
                node.config, authorizer=AuthorizerSettings(super_users=frozenset({"User:alice"}))
            )
            authorizer = authorizer_of(lagging, node.metadata, asyncio.get_running_loop())
            ports = replace(
                ports_of(node, node.config, asyncio.get_running_loop(), lambda: 0, started_ms=lambda: 0),
                authorizer=authorizer,
            )
            async with served(asyncio.get_running_loop(), OPERATIONS, ports) as http:
                asking = Asked(one.broker, http)
                refused = await asking.told("/v1/quorum/transfer", 403, method="POST", json={})
                assert refused["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                asked_for: tuple[dict[str, Any], ...] = ({"method": "GET"}, {"method": "POST", "json": {}})
                for request in asked_for:
                    told = await asking.told("/v1/quorum/snapshots", **request)
                    assert (told["snapshots"], len(told["unanswered"])) == ([], 1)
                await one.broker.allow_in_cluster(AclOperation.ALTER)
                # There is no other voter to lead.
                await asking.told("/v1/quorum/transfer", 409, method="POST", json={})
                assert (await asking.told("/v1/quorum/snapshots", method="POST", json={}))["unanswered"] == []
                # To alter is to describe.
                assert (await asking.told("/v1/quorum/snapshots"))["snapshots"] != []

    asyncio.run(scenario())


def test_defaults_of_a_topic_need_no_permission_to_create_one() -> None:
    """They are asked of the controller by a creation that is only validated."""

    async def scenario() -> None:
        async with asked() as one:
            await one.broker.connection.call(_retention("mine"))
            await one.broker.allow(ResourceType.TOPIC, "mine", AclOperation.DESCRIBE_CONFIGS)
            configs = (await one.told("/topics/mine/default-configs"))["data"]
            (retention,) = (config for config in configs if config["name"] == "retention.ms")
            assert (retention["value"], retention["is_default"]) == ("604800000", True)
            await one.told("/topics/other/default-configs", 403)

    asyncio.run(scenario())


def _of_cluster() -> DeleteAclsRequest:
    wanted = DeleteAclsFilter(
        resource_type_filter=i8(ResourceType.CLUSTER),
        resource_name_filter=None,
        pattern_type_filter=i8(PatternType.ANY),
        principal_filter=None,
        host_filter=None,
        operation=i8(AclOperation.ANY),
        permission_type=i8(PermissionType.ANY),
    )
    return DeleteAclsRequest(filters=(wanted,))


def _retention(topic: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name="retention.ms", config_operation=i8(0), value="5000")
    resource = AlterConfigsResource(resource_type=i8(ConfigResourceType.TOPIC), resource_name=topic, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


@pytest.mark.thorough
def test_configs_in_events_are_told_to_who_may_describe_them() -> None:
    async def scenario() -> None:
        async with asked() as one:
            await one.broker.allow_in_cluster(AclOperation.DESCRIBE)
            await one.broker.allow(ResourceType.TOPIC, "mine", AclOperation.DESCRIBE_CONFIGS)
            for topic in ("mine", "other"):
                await one.broker.connection.call(_retention(topic))
            async with one.http.get("/v1/events?follow=false", headers=ALICE) as events:
                text = await events.text()
            told = [line for line in text.splitlines() if line.startswith("data:") and "configs-changed" in line]
            assert len(told) == 1
            assert '"mine"' in told[0]

    asyncio.run(scenario())


def test_only_nodes_ask_for_clients() -> None:
    async def scenario() -> None:
        async with asked() as one:
            envelope = ClientEnvelope("User:ANONYMOUS", "127.0.0.1", False, b"")
            told = await one.broker.connection.call_own(
                OwnApiKey.ASK_FOR_CLIENT, encode_envelope(envelope), timeout_ms=10_000
            )
            with pytest.raises(KafkaError) as refusal:
                decode_answer(told)
            assert refusal.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    asyncio.run(scenario())


def test_an_envelope_is_read_as_it_was_written() -> None:
    envelope = ClientEnvelope("User:ada", "10.0.0.1", True, b"\0\1")
    assert decode_envelope(encode_envelope(envelope)) == envelope
    assert decode_answer(encode_answer(b"\2")) == b"\2"
    with pytest.raises(KafkaError, match="why"):
        decode_answer(encode_refusal(KafkaError(ErrorCode.NETWORK_EXCEPTION, "why")))


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x80", b"\x84\x01\x02\x03\x04", b"\x83\x19\x7f\xff\x60\x40", b"\xa0"])
def test_what_is_no_envelope_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_envelope(data)
    with pytest.raises(CorruptData):
        decode_answer(data)
