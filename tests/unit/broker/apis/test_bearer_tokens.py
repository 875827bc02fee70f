"""A whole node whose clients have tokens, and sessions that end with them."""

from __future__ import annotations

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from memory_node import World, create_topic, run
from tokens import NOW_S, jwk, key_set, rsa_key, token, unsigned

from penstock.client.connection import Connection, connect
from penstock.protocol.errors import ErrorCode

KEYS = {"sasl.oauthbearer.jwks.endpoint.url": "file:///keys", "sasl.oauthbearer.expected.audience": "kafka"}
HANDLER = "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class"
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


def world(**properties: str) -> World:
    there = World(
        **{
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "connection.failed.authentication.delay.ms": "0",
            **properties,
        }
    )
    there.files.write("/keys", key_set(jwk(rsa_key(), "one")))
    there.now_ms = 1000 * NOW_S
    return there


async def send(connection: Connection, auth_bytes: bytes) -> SaslAuthenticateResponse:
    answer = await connection.call(SaslAuthenticateRequest(auth_bytes=auth_bytes))
    assert isinstance(answer, SaslAuthenticateResponse)
    return answer


def first(text: str) -> bytes:
    return f"n,,\x01auth=Bearer {text}\x01\x01".encode()


def test_a_session_lasts_as_long_as_its_token() -> None:
    async def scenario() -> None:
        async with world(**KEYS).running() as (node, _), await connect("127.0.0.1", node.bound_ports["SASL"]) as alice:
            await alice.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"))
            answer = await send(alice, first(token(rsa_key())))
            assert (answer.error_code.name, answer.auth_bytes) == ("none", b"")
            assert answer.session_lifetime.total_seconds() == 300
            assert await create_topic(alice, "t") is ErrorCode.NONE

    run(scenario)


def test_a_token_that_is_refused_is_told_twice() -> None:
    async def scenario() -> None:
        async with world(**KEYS).running() as (node, _), await connect("127.0.0.1", node.bound_ports["SASL"]) as eve:
            await eve.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"))
            answer = await send(eve, first(unsigned(sub="root")))
            assert (answer.error_code.name, answer.auth_bytes) == ("none", b'{"status":"invalid_token"}')
            answer = await send(eve, b"\x01")
            assert answer.error_code.name == "sasl_authentication_failed"
            assert answer.error_message == '{"status":"invalid_token"}'

    run(scenario)


def test_unsigned_tokens_are_taken_where_the_configuration_says_so() -> None:
    async def scenario() -> None:
        async with (
            world(**{HANDLER: UNSECURED}).running() as (node, _),
            await connect("127.0.0.1", node.bound_ports["SASL"]) as alice,
        ):
            await alice.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"))
            answer = await send(alice, first(unsigned()))
            assert answer.session_lifetime.total_seconds() == 300
            assert await create_topic(alice, "t") is ErrorCode.NONE

    run(scenario)
