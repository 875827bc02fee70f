"""Who clients of HTTP are, and what they may: by a password, a token or nothing, and the ACLs."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from admin_http import asked
from authorized_node import AuthorizedNode
from memory_node import World, run
from waiting import loop_until

from penstock.broker.admin.operations import OPERATIONS
from penstock.broker.admin.rules.operation_permissions import Needed, needed
from penstock.broker.security import password_hashing
from penstock.protocol.acls import AclOperation, ResourceType
from penstock.protocol.scram import SCRAM_SHA_512, ScramMechanism
from penstock.quorum.decisions.context import ControllerResult
from penstock.quorum.metadata.security_image import ScramUser
from penstock.quorum.permissions.scram_credentials import credential_record

PLAIN = {
    "listener_name_admin_sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener_name_admin_plain_sasl_jaas_config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_alice="wonder land" user_admin="secret";',
    "connection_failed_authentication_delay_ms": "0",
}
AUTHORIZED = {
    **PLAIN,
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:admin;User:ANONYMOUS",
}
OPEN = ("/health", "/ready", "/metrics", "/openapi.json", "/")


def basic(name: str, password: str) -> Mapping[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


ALICE = basic("alice", "wonder land")


async def status(
    session: aiohttp.ClientSession, path: str, headers: Mapping[str, str] | None = None, **more: Any
) -> int:
    method = more.pop("method", "GET")
    async with session.request(method, path, headers=headers or {}, **more) as answer:
        await answer.read()
        return answer.status


@pytest.mark.thorough
@pytest.mark.parametrize(
    "header",
    [
        None,
        "Basic",
        "Basic !",
        "Basic " + base64.b64encode(b"alice").decode(),
        "Basic " + base64.b64encode(b"alice:").decode(),
        "Basic " + base64.b64encode(b"alice:wonder").decode(),
        "Basic " + base64.b64encode(b"bob:wonder land").decode(),
        "Basic " + base64.b64encode(b"alice\0:wonder land").decode(),
        "Basic " + base64.b64encode(b"\xff:x").decode(),
        "Bearer abc",
        "Digest x",
        "Basic " + "x" * 8_050,
    ],
)
def test_nothing_is_done_for_a_client_that_has_proved_nothing(header: str | None) -> None:
    async def scenario() -> None:
        async with asked(World(**PLAIN)) as (_, _, session):
            headers = {} if header is None else {"Authorization": header}
            async with session.get("/v3/clusters", headers=headers) as answer:
                assert answer.status == 401
                assert answer.headers["WWW-Authenticate"] == 'Basic realm="penstock", charset="UTF-8"'
                assert "wonder" not in await answer.text()
            for path in OPEN:
                assert await status(session, path, headers) == 200

    run(scenario)


def test_a_password_of_plain_or_scram_is_a_proof() -> None:
    async def scenario() -> None:
        async with asked(World(**PLAIN)) as (node, _, session):
            assert await status(session, "/v3/clusters", ALICE) == 200
            assert node.quorum is not None
            assert await status(session, "/v3/clusters", basic("scott", "pencil")) == 401
            await _add_scott(node, 4096)
            for _ in range(2):
                assert await status(session, "/v3/clusters", basic("scott", "pencil")) == 200
                assert await status(session, "/v3/clusters", basic("scott", "pen")) == 401

    run(scenario)


async def _add_scott(node: Any, iterations: int) -> None:
    salted = SCRAM_SHA_512.salted_password("pencil", b"salt", iterations)
    user = ScramUser("scott", SCRAM_SHA_512.number)
    await _commit(node, credential_record(user, salt=b"salt", salted_password=salted, iterations=iterations))


def test_a_user_that_does_not_exist_costs_as_many_iterations_as_one_that_does(monkeypatch: Any) -> None:
    hashed: list[tuple[int, int]] = []

    def salted_password(_mechanism: ScramMechanism, _password: str, salt: bytes, iterations: int) -> bytes:
        hashed.append((len(salt), iterations))
        return bytes(64)

    async def scenario() -> None:
        async with asked(World(**PLAIN)) as (node, _, session):
            await _add_scott(node, 9_000)
            monkeypatch.setattr(ScramMechanism, "salted_password", salted_password)
            for name in ("scott", "bob", "alice"):
                assert await status(session, "/v3/clusters", basic(name, "wrong")) == 401
            assert hashed == [(4, 9_000)] * 3

    run(scenario)


def test_a_login_too_many_can_be_tried_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(password_hashing, "WAITING_MAX", 0)
    may_hash, hashes = threading.Event(), threading.Event()

    def salted_password(*_arguments: Any) -> bytes:
        hashes.set()
        may_hash.wait(20)
        return bytes(64)

    async def scenario() -> None:
        async with asked(World(**PLAIN)) as (_, _, session):
            monkeypatch.setattr(ScramMechanism, "salted_password", salted_password)
            first = asyncio.create_task(status(session, "/v3/clusters", basic("bob", "one")))
            try:
                await loop_until(hashes.is_set, "the first login is hashed")
                async with session.get("/v3/clusters", headers=basic("bob", "two")) as answer:
                    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
                # PLAIN's users are not hashed, and so never wait.
                assert await status(session, "/v3/clusters", ALICE) == 200
            finally:
                may_hash.set()
            assert await first == 401

    run(scenario)


async def _commit(node: Any, record: Any) -> None:
    controller = node.quorum._controller
    await controller.submit(lambda *_: ControllerResult(records=(record,), response=None), None)


def test_each_operation_needs_its_permission() -> None:
    async def scenario() -> None:
        async with asked(World(**AUTHORIZED)) as (node, connection, session):
            one = AuthorizedNode(node, connection)
            await one.create_topic("mine")
            await one.create_topic("other")
            root = f"/v3/clusters/{node.metadata.image.cluster_id}"
            admin = basic("admin", "secret")
            assert await status(session, f"{root}/topics/mine", ALICE) == 403
            assert await status(session, f"{root}/topics", ALICE) == 403
            await one.allow(ResourceType.TOPIC, "mine", AclOperation.WRITE, AclOperation.ALTER_CONFIGS)
            assert await status(session, f"{root}/topics/mine", ALICE) == 200
            assert await status(session, f"{root}/topics/other", ALICE) == 403
            assert await status(session, f"{root}/topics/other", admin) == 200
            record = {"value": {"type": "STRING", "data": "v"}}
            sent = f"{root}/topics/mine/records"
            assert await status(session, sent, ALICE, method="POST", json=record) == 200
            assert await status(session, sent.replace("mine", "other"), ALICE, method="POST", json=record) == 403
            assert await status(session, sent, ALICE) == 403
            assert await status(session, f"{root}/topics/mine/configs", ALICE) == 200
            assert await status(session, f"{root}/topics/mine", ALICE, method="DELETE") == 403
            assert await status(session, "/v1/quorum", ALICE) == 403
            await one.allow_in_cluster(AclOperation.DESCRIBE)
            assert await status(session, "/v1/quorum", ALICE) == 200
            assert await status(session, "/v1/quorum/snapshots", ALICE, method="POST", json={}) == 403
            # The handler asks for what stands in the body.
            new = {"topic_name": "made"}
            assert await status(session, f"{root}/topics", ALICE, method="POST", json=new) == 403
            await one.allow(ResourceType.TOPIC, "made", AclOperation.CREATE)
            assert await status(session, f"{root}/topics", ALICE, method="POST", json=new) == 201
            assert "made" in node.metadata.image.topics.by_name

    run(scenario)


def test_acls_are_told_to_who_may_describe_the_cluster_and_changed_by_who_may_alter_it() -> None:
    acl = {
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "LITERAL",
        "principal": "User:ada",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }

    async def scenario() -> None:
        async with asked(World(**AUTHORIZED)) as (node, connection, session):
            one = AuthorizedNode(node, connection)
            acls = f"/v3/clusters/{node.metadata.image.cluster_id}/acls"
            deletion = f"{acls}?resource_type=ANY&pattern_type=ANY&operation=READ&permission=ANY"
            before = node.metadata.image.acls
            assert await status(session, acls, ALICE) == 403
            for _ in range(2):
                assert await status(session, acls, ALICE, method="POST", json=acl) == 403
                assert await status(session, f"{acls}:batch", ALICE, method="POST", json={"data": [acl]}) == 403
                assert await status(session, deletion, ALICE, method="DELETE") == 403
                assert [str(one) for one in node.metadata.image.acls.by_id.values()] == [
                    str(one) for one in before.by_id.values()
                ]
                await one.allow_in_cluster(AclOperation.DESCRIBE)
                before = node.metadata.image.acls
            assert await status(session, acls, ALICE) == 200
            await one.allow_in_cluster(AclOperation.ALTER)
            assert await status(session, acls, ALICE, method="POST", json=acl) == 201
            assert await status(session, deletion, ALICE, method="DELETE") == 200
            assert not [one for one in node.metadata.image.acls.by_id.values() if one.principal == "User:ada"]

    run(scenario)


def test_without_mechanisms_a_client_of_http_is_anonymous() -> None:
    async def scenario() -> None:
        properties = {**AUTHORIZED, "super_users": "User:admin"}
        for name in PLAIN:
            del properties[name]
        async with asked(World(**properties)) as (_, _, session):
            assert await status(session, "/v3/clusters") == 403
            # 401 would have to name a header that proves something (RFC 9110 §15.5.2).
            async with session.get("/v3/clusters", headers=ALICE) as answer:
                assert (answer.status, answer.headers.get("WWW-Authenticate")) == (403, None)
                assert "Authorization" in (await answer.json())["detail"]
            for path in OPEN:
                assert await status(session, path) == 200

    run(scenario)


def test_every_operation_is_open_or_needs_something() -> None:
    wanted = {one.name: needed(one.name, one.method, one.path) for one in OPERATIONS if not one.is_open}
    assert [name for name, permission in wanted.items() if permission is None] == ["createTopic"]
    for name in ("drainBroker", "transferQuorum", "abortTransaction", "reassign", "updateFeatures"):
        assert wanted[name] == Needed(AclOperation.ALTER)
    assert wanted["alterBrokerConfigs"] == wanted["alterConfigs"] == Needed(AclOperation.ALTER_CONFIGS)
    assert wanted["getConsumerGroup"] == Needed(AclOperation.DESCRIBE, ResourceType.GROUP, "consumer_group_id")
    assert all(permission is None or permission.parameter != "" for permission in wanted.values())
    for one in OPERATIONS:
        permission = wanted.get(one.name)
        if permission is not None and permission.parameter is not None:
            assert f"{{{permission.parameter}}}" in one.path
