"""A whole node and clients that have no password: frames of SASL in any order, cut, twice, and between requests."""

from __future__ import annotations

import asyncio
import random
import struct
from contextlib import suppress

import pytest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32
from memory_node import MINUTE, World, run

from penstock.client.connection import connect
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import encode_request

SEED = 20
CONNECTIONS = 150
PLAIN_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="hunter2";'
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "PENSTOCK-CLUSTER", "GSSAPI", "")
TOKENS = (
    b"",
    b"\x01",
    b"\0alice\0guess",
    b"\0alice\0",
    b"n,,n=alice,r=nonce",
    b"c=biws,r=nonce,p=AAAA",
    b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.\x01\x01",
    bytes(5000),
)


def frames(source: random.Random) -> bytes:
    """What a client sends before it looks at an answer."""
    sent = b""
    for number in range(source.randrange(1, 8)):
        match source.randrange(6):
            case 0:
                request = SaslHandshakeRequest(mechanism=source.choice(MECHANISMS))
                frame = encode_request(ApiKey.SASL_HANDSHAKE, source.randrange(2), number, "x", request)
            case 1 | 2:
                authenticate = SaslAuthenticateRequest(auth_bytes=source.choice(TOKENS))
                frame = encode_request(ApiKey.SASL_AUTHENTICATE, source.randrange(3), number, "x", authenticate)
            case 3:
                topic = CreatableTopic(
                    name=TopicName("stolen"),
                    num_partitions=i32(1),
                    replication_factor=i16(1),
                    assignments=(),
                    configs=(),
                )
                creation = CreateTopicsRequest(topics=(topic,), timeout=MINUTE, validate_only=False)
                frame = encode_request(ApiKey.CREATE_TOPICS, 7, number, "x", creation)
            case 4:
                token = source.choice(TOKENS)
                frame = struct.pack(">i", len(token)) + token
            case _:
                frame = struct.pack(">i", source.choice((-1, 0, 3, 1 << 20, 1 << 30))) + source.randbytes(20)
        sent += frame[: source.randrange(len(frame) + 1)] if source.random() < 0.1 else frame
    return sent


@pytest.mark.thorough
def test_nothing_is_executed_for_clients_without_a_proof() -> None:
    source = random.Random(SEED)

    async def attack(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with suppress(ConnectionError):
            writer.write(frames(source))
            writer.write_eof()
            await reader.read()
        writer.close()

    async def scenario() -> None:
        there = World(
            **{
                "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
                "listener.name.sasl.plain.sasl.jaas.config": PLAIN_JAAS,
                "listener.name.sasl.oauthbearer.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer."
                'OAuthBearerLoginModule required unsecuredValidatorRequiredScope="never";',
                "connection.failed.authentication.delay.ms": "1",
                "connections.max.reauth.ms": "5",
                "cluster.secret": "hush",
            }
        )
        async with there.running() as (node, _):
            port = node.bound_ports["SASL"]
            await asyncio.gather(*(attack(port) for _ in range(CONNECTIONS)))
            assert "stolen" not in node.metadata.image.topics.by_name
            assert node.parts.dispatcher.unexpected_errors == 0
            counted = node.parts.listeners.statistics().authentications
            assert [kind for (_, kind), count in counted.items() if kind.is_successful and count] == []
            assert sum(counted.values()) > CONNECTIONS // 3
            # It serves on.
            async with await connect("127.0.0.1", port) as alice:
                await alice.call(SaslHandshakeRequest(mechanism="PLAIN"))
                await alice.call(SaslAuthenticateRequest(auth_bytes=b"\0alice\0hunter2"))

    run(scenario)
