"""A whole node with a SASL listener, and what a client of each generation is answered there."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.primitive import i8
from memory_node import World, create_topic, run

from penstock.broker.node.server import Node
from penstock.client.connection import Connection, connect
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import Request, Response, decode_response, encode_request

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ALICE = b"\0alice\0hunter2"


def world(**properties: str) -> World:
    return World(
        listeners="PLAINTEXT://127.0.0.1:0,OPEN://127.0.0.1:0,SASL://127.0.0.1:0",
        **{
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OPEN:PLAINTEXT,SASL:SASL_PLAINTEXT,"
            "CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": f'{MODULE} required user_alice="hunter2" user_bob="b";',
            "connection.failed.authentication.delay.ms": "0",
            "cluster.secret": "hush",
            **properties,
        },
    )


@dataclass(slots=True)
class Client:
    """Frames, as a client of any generation sends them."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int = 0

    async def ask(self, api_key: ApiKey, version: int, request: Request) -> Response:
        self.number += 1
        self.writer.write(encode_request(api_key, version, self.number, "test", request))
        _, response = decode_response(api_key, version, await self.read())
        return response

    async def read(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
        response = await self.ask(ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism))
        assert isinstance(response, SaslHandshakeResponse)
        return response

    async def authenticate(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
        response = await self.ask(ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(auth_bytes=token))
        assert isinstance(response, SaslAuthenticateResponse)
        return response

    async def wait_closed(self) -> None:
        assert await self.reader.read() == b""


@asynccontextmanager
async def client(node: Node, listener: str = "SASL") -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", node.bound_ports[listener])
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


def scenario(steps: Callable[[Node], Awaitable[None]], **properties: str) -> None:
    async def main() -> None:
        async with world(**properties).running() as (node, _):
            await steps(node)

    run(main)


async def created(stream: Client, name: str) -> ErrorCode:
    """Whether the node does what the client asks: it creates a topic."""
    connection = Connection(stream.reader, stream.writer, peer="", client_id="test", timeout_ms=10_000)
    connection.versions = {ApiKey.CREATE_TOPICS: (2, 7)}
    return await create_topic(connection, name)


def test_a_client_proves_who_it_is_and_is_served() -> None:
    async def steps(node: Node) -> None:
        async with client(node) as alice:
            handshake = await alice.handshake()
            assert (handshake.error_code.name, handshake.mechanisms) == ("none", ("PLAIN",))
            answer = await alice.authenticate(ALICE)
            assert (answer.error_code.name, answer.auth_bytes, answer.session_lifetime.total_seconds()) == (
                "none",
                b"",
                0,
            )
            assert await created(alice, "t") is ErrorCode.NONE
            again = await alice.authenticate(ALICE)
            assert again.error_message == "SaslAuthenticate request received after successful authentication"
            # Where sessions do not end, there is no re-authentication.
            assert (await alice.handshake()).error_code.name == "illegal_sasl_state"
            assert await created(alice, "u") is ErrorCode.NONE

    scenario(steps)


@pytest.mark.parametrize("version", [0, 1])
def test_tokens_may_come_without_header(version: int) -> None:
    async def steps(node: Node) -> None:
        async with client(node) as alice:
            assert (await alice.handshake(version=version)).error_code.name == "none"
            if version:
                assert (await alice.authenticate(ALICE, version=0)).error_code.name == "none"
            else:
                alice.writer.write(struct.pack(">i", len(ALICE)) + ALICE)
                assert await alice.read() == b""
            assert await created(alice, "t") is ErrorCode.NONE
        async with client(node) as mallory:
            await mallory.handshake(version=version)
            if version:
                assert (await mallory.authenticate(b"\0alice\0no", version=0)).error_code.name.endswith("failed")
            else:
                mallory.writer.write(struct.pack(">i", 9) + b"\0alice\0no")
            await mallory.wait_closed()

    scenario(steps)


def test_a_wrong_password_is_told_and_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def steps(node: Node) -> None:
        async with client(node) as mallory:
            await mallory.handshake()
            answer = await mallory.authenticate(b"\0alice\0guess77")
            assert answer.error_code.name == "sasl_authentication_failed"
            assert answer.error_message == "Authentication failed: Invalid username or password"
            await mallory.wait_closed()

    with caplog.at_level(logging.INFO):
        scenario(steps)
    assert "listener=SASL client=test software=unknown reason=Authentication failed: Invalid username" in caplog.text
    assert "hunter2" not in caplog.text
    assert "guess77" not in caplog.text


def test_a_mechanism_that_is_not_there_is_answered_with_those_that_are() -> None:
    async def steps(node: Node) -> None:
        async with client(node) as mallory:
            answer = await mallory.handshake("GSSAPI")
            assert (answer.error_code.name, answer.mechanisms) == ("unsupported_sasl_mechanism", ("PLAIN",))
            await mallory.wait_closed()

    scenario(steps)


def test_a_second_handshake_during_an_exchange_is_refused() -> None:
    async def steps(node: Node) -> None:
        async with client(node) as mallory:
            await mallory.handshake()
            assert (await mallory.handshake()).error_code.name == "illegal_sasl_state"
            await mallory.wait_closed()

    scenario(steps)


@pytest.mark.parametrize("listener", ["OPEN", "SASL"])
def test_nodes_prove_themselves_on_every_listener(listener: str) -> None:
    async def steps(node: Node) -> None:
        async with client(node, listener) as peer:
            answer = await peer.handshake("PENSTOCK-CLUSTER")
            assert answer.error_code.name == "none"
            refused = await peer.authenticate(b"no hello")
            assert refused.error_code.name == "sasl_authentication_failed"
            if listener == "SASL":
                await peer.wait_closed()

    scenario(steps)


def test_a_listener_without_sasl_answers_as_kafkas() -> None:
    async def steps(node: Node) -> None:
        async with client(node, "OPEN") as one:
            assert (await one.handshake()).error_code.name == "illegal_sasl_state"
            assert (await one.authenticate(ALICE)).error_code.name == "illegal_sasl_state"
            assert await created(one, "t") is ErrorCode.NONE

    scenario(steps)


def test_a_session_tells_its_end_and_is_renewed_by_the_same_client_only() -> None:
    async def steps(node: Node) -> None:
        async with client(node) as alice:
            await alice.handshake()
            assert (await alice.authenticate(ALICE)).session_lifetime.total_seconds() == 3600
            await alice.handshake()
            assert (await alice.authenticate(ALICE)).session_lifetime.total_seconds() == 3600
            # Not more than once a second.
            assert (await alice.handshake()).error_code.name == "illegal_sasl_state"
            assert await created(alice, "t") is ErrorCode.NONE
        async with client(node) as alice:
            await alice.handshake()
            await alice.authenticate(ALICE)
            await alice.handshake()
            refused = await alice.authenticate(b"\0bob\0b")
            assert refused.error_message == (
                "Cannot change principals during re-authentication from User.alice: User.bob"
            )
            await alice.wait_closed()

    scenario(steps, **{"connections.max.reauth.ms": "3600000"})


def test_a_session_is_renewed_by_its_own_mechanism_only() -> None:
    async def steps(node: Node) -> None:
        async with client(node) as alice:
            await alice.handshake()
            await alice.authenticate(ALICE)
            assert (await alice.handshake("PENSTOCK-CLUSTER")).error_code.name == "none"
            refused = await alice.authenticate(b"")
            assert refused.error_message == (
                "SASL mechanism 'PENSTOCK-CLUSTER' requested by client is not supported for re-authentication of "
                "mechanism 'PLAIN'"
            )
            await alice.wait_closed()

    scenario(steps, **{"connections.max.reauth.ms": "3600000"})


def test_api_versions_are_told_once_before_the_proof() -> None:
    async def steps(node: Node) -> None:
        # It asks for the versions before anything else, as clients do.
        async with await connect("127.0.0.1", node.bound_ports["SASL"]) as connection:
            response = await connection.call(SaslHandshakeRequest(mechanism="PLAIN"))
            assert isinstance(response, SaslHandshakeResponse)
            assert response.error_code.name == "none"
        async with await connect("127.0.0.1", node.bound_ports["SASL"]) as connection:
            with pytest.raises(ConnectionError):
                await create_topic(connection, "t")

    scenario(steps)


def test_users_change_while_the_node_runs_and_their_passwords_are_not_told() -> None:
    key = "listener.name.sasl.plain.sasl.jaas.config"

    async def log_in(node: Node, token: bytes) -> str:
        async with client(node) as one:
            await one.handshake()
            return (await one.authenticate(token)).error_code.name

    async def alter(connection: Connection, value: str) -> str:
        config = AlterableConfig(name=key, config_operation=i8(0), value=value)
        resource = AlterConfigsResource(resource_type=i8(4), resource_name="1", configs=(config,))
        response = await connection.call(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))
        assert isinstance(response, IncrementalAlterConfigsResponse)
        (answer,) = response.responses
        assert "s-3" not in (answer.error_message or "")
        return answer.error_code.name

    async def main() -> None:
        async with world().running() as (node, connection):
            assert await alter(connection, f'{MODULE} required user_carol="s-3";') == "none"
            assert await log_in(node, b"\0carol\0s-3") == "none"
            assert await log_in(node, ALICE) == "sasl_authentication_failed"
            assert await alter(connection, f'{MODULE} required user_carol="s-3') == "invalid_request"
            assert await log_in(node, b"\0carol\0s-3") == "none"
            resource = DescribeConfigsResource(resource_type=i8(4), resource_name="1", configuration_keys=None)
            described = await connection.call(DescribeConfigsRequest(resources=(resource,)))
            assert isinstance(described, DescribeConfigsResponse)
            values = {one.name: one.value for result in described.results for one in result.configs}
            assert values[key] is None

    run(main)
