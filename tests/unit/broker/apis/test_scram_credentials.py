"""DescribeUserScramCredentials and AlterUserScramCredentials of a whole node, and clients that use what they set."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.schema.alter_user_scram_credentials.v0.response import AlterUserScramCredentialsResponse
from kio.schema.describe_user_scram_credentials.v0.request import DescribeUserScramCredentialsRequest, UserName
from kio.schema.describe_user_scram_credentials.v0.response import DescribeUserScramCredentialsResponse
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.static.primitive import i8, i32
from memory_node import World, create_topic, run

from penstock.client.connection import Connection, connect
from penstock.protocol.errors import ErrorCode
from penstock.protocol.scram import SCRAM_SHA_512

REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-{bits}"


def world(**properties: str) -> World:
    return World(
        **{
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "connection.failed.authentication.delay.ms": "0",
            "cluster.scram.credentials": "SCRAM-SHA-256=[name=admin,password=hunter2]",
            **properties,
        },
    )


async def describe(connection: Connection, *names: str) -> dict[str, tuple[int, dict[int, int]]]:
    response = await connection.call(
        DescribeUserScramCredentialsRequest(users=tuple(UserName(name=name) for name in names))
    )
    assert isinstance(response, DescribeUserScramCredentialsResponse)
    assert not response.error_code
    return {
        result.user: (
            int(result.error_code),
            {int(info.mechanism): int(info.iterations) for info in result.credential_infos},
        )
        for result in response.results
    }


async def alter(connection: Connection, request: AlterUserScramCredentialsRequest) -> dict[str, str]:
    response = await connection.call(request)
    assert isinstance(response, AlterUserScramCredentialsResponse)
    return {result.user: result.error_code.name for result in response.results}


def with_password(name: str, password: str) -> AlterUserScramCredentialsRequest:
    salted = SCRAM_SHA_512.salted_password(password, b"salt", 8192)
    upsertion = ScramCredentialUpsertion(
        name=name, mechanism=i8(2), iterations=i32(8192), salt=b"salt", salted_password=salted
    )
    return AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,))


async def log_in(port: int, digest: str, name: str, password: str) -> str | None:
    """Why a client is refused that authenticates by SCRAM; None when it is not."""

    async def exchange(token: bytes) -> SaslAuthenticateResponse:
        answer = await connection.call(SaslAuthenticateRequest(auth_bytes=token))
        assert isinstance(answer, SaslAuthenticateResponse)
        return answer

    async with await connect("127.0.0.1", port) as connection:
        await connection.call(SaslHandshakeRequest(mechanism=f"SCRAM-SHA-{digest.removeprefix('sha')}"))
        bare = f"n={name},r=nonce"
        server_first = (await exchange(f"n,,{bare}".encode())).auth_bytes.decode()
        fields = dict(part.split("=", 1) for part in server_first.split(","))
        salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
        client_key = hmac.digest(
            hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations), b"Client Key", digest
        )
        without_proof = f"c=biws,r={fields['r']}"
        signature = hmac.digest(
            hashlib.new(digest, client_key).digest(), f"{bare},{server_first},{without_proof}".encode(), digest
        )
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        answer = await exchange(f"{without_proof},p={base64.b64encode(proof).decode()}".encode())
        if not answer.error_code:
            assert answer.auth_bytes.startswith(b"v=")
            # A topic that is there already is an answer, too.
            assert await create_topic(connection, "t") in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        return answer.error_message


def test_a_cluster_begins_with_the_credentials_that_it_is_told() -> None:
    there = world()

    async def first() -> None:
        async with there.running() as (node, connection):
            port = node.bound_ports["SASL"]
            assert await describe(connection) == {"admin": (0, {1: 4096})}
            assert await log_in(port, "sha256", "admin", "hunter2") is None
            assert await log_in(port, "sha256", "admin", "hunter3") == REFUSED.format(bits=256)
            assert await log_in(port, "sha512", "admin", "hunter2") == REFUSED.format(bits=512)
            assert await log_in(port, "sha256", "root", "hunter2") == REFUSED.format(bits=256)

    async def second() -> None:
        # They are of the first start alone.
        changed = {"cluster.scram.credentials": "SCRAM-SHA-256=[name=admin,password=other]"}
        async with there.running(**changed) as (node, _):
            assert await log_in(node.bound_ports["SASL"], "sha256", "admin", "hunter2") is None

    run(first)
    run(second)


def test_a_password_counts_from_its_answer_on_until_it_is_deleted() -> None:
    async def scenario() -> None:
        async with world().running() as (node, connection):
            port = node.bound_ports["SASL"]
            assert await alter(connection, with_password("bob", "b-1")) == {"bob": "none"}
            assert await log_in(port, "sha512", "bob", "b-1") is None
            assert await alter(connection, with_password("bob", "b-2")) == {"bob": "none"}
            assert await log_in(port, "sha512", "bob", "b-1") == REFUSED.format(bits=512)
            assert await log_in(port, "sha512", "bob", "b-2") is None
            assert await describe(connection, "bob", "admin", "eve", "bob") == {
                "bob": (ErrorCode.DUPLICATE_RESOURCE, {}),
                "admin": (0, {1: 4096}),
                "eve": (ErrorCode.RESOURCE_NOT_FOUND, {}),
            }
            deletion = AlterUserScramCredentialsRequest(
                deletions=(ScramCredentialDeletion(name="bob", mechanism=i8(2)),), upsertions=()
            )
            assert await alter(connection, deletion) == {"bob": "none"}
            assert await log_in(port, "sha512", "bob", "b-2") == REFUSED.format(bits=512)
            assert await describe(connection) == {"admin": (0, {1: 4096})}

    run(scenario)


@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
def test_who_may_not_alter_the_cluster_neither_sees_nor_sets_credentials(listener: str) -> None:
    async def scenario() -> None:
        there = world(
            **{
                "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
                "controller.quorum.voters": "1@127.0.0.1:1",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            },
        )
        async with there.running() as (node, _), await connect("127.0.0.1", node.bound_ports[listener]) as connection:
            seen = await connection.call(DescribeUserScramCredentialsRequest(users=None))
            assert isinstance(seen, DescribeUserScramCredentialsResponse)
            assert (seen.error_code.name, seen.results) == ("cluster_authorization_failed", ())
            assert await alter(connection, with_password("eve", "x")) == {"eve": "cluster_authorization_failed"}

    run(scenario)
