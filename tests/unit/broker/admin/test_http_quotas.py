"""Changes of topics over HTTP count for the quota of the user that asks, together with those over Kafka's protocol."""

from __future__ import annotations

from typing import Any

import aiohttp
from admin_http import asked
from authorized_node import AuthorizedNode
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.types import TopicName
from kio.static.primitive import f64, i16, i32
from memory_node import World, run

from penstock.client.connection import Connection
from penstock.protocol.errors import ErrorCode

PLAIN = {
    "listener_name_admin_sasl_enabled_mechanisms": "PLAIN",
    "listener_name_admin_plain_sasl_jaas_config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_alice="a" user_bob="b";',
}
ALICE = {"Authorization": aiohttp.encode_basic_auth("alice", "a")}
BOB = {"Authorization": aiohttp.encode_basic_auth("bob", "b")}


async def set_rate(connection: Connection, user: str, rate: float) -> None:
    entry = EntryData(
        entity=(EntityData(entity_type="user", entity_name=user),),
        ops=(OpData(key="controller_mutation_rate", value=f64(rate), remove=False),),
    )
    answer: Any = await connection.call(AlterClientQuotasRequest(entries=(entry,), validate_only=False))
    assert answer.entries[0].error_code == ErrorCode.NONE


async def throttled_s(session: aiohttp.ClientSession, method: str, path: str, **more: Any) -> int:
    """How long alice is told to wait."""
    async with session.request(method, path, headers=ALICE, **more) as answer:
        problem = await answer.json(content_type=None)
        assert (answer.status, problem["error_code"]) == (429, ErrorCode.THROTTLING_QUOTA_EXCEEDED), problem
        return int(answer.headers["Retry-After"])


def test_a_user_beyond_the_rate_is_told_when_to_come_again_and_others_are_not() -> None:
    async def scenario() -> None:
        async with asked(World(**PLAIN)) as (node, connection, session):
            await set_rate(connection, "alice", 0.1)
            topics = f"/v3/clusters/{node.metadata.image.cluster_id}/topics"
            large = {"topic_name": "large", "partitions_count": 40}
            async with session.post(topics, headers=ALICE, json=large) as answer:
                assert answer.status == 201
            # More than eleven seconds bring: the debt is of 38.9 partitions.
            assert await throttled_s(session, "POST", topics, json={"topic_name": "small"}) == 389
            assert await throttled_s(session, "PATCH", f"{topics}/large", json={"partitions_count": 41}) == 389
            assert await throttled_s(session, "DELETE", f"{topics}/large") == 389
            assert list(node.metadata.image.topics.by_name) == ["large"]
            # The same rate holds where she asks by Kafka's protocol.
            more = CreatableTopic(
                name=TopicName("small"), num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
            )
            told = await AuthorizedNode(node, connection).ask(CreateTopicsRequest(topics=(more,)))
            assert told.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            async with session.post(topics, headers=BOB, json={"topic_name": "small"}) as answer:
                assert answer.status == 201

    run(scenario)
