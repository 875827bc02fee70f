"""The authorizer of a node: what it keeps, what it logs, and whom it lets pass."""

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

import pytest

from penstock.broker.network.peer_log import PeerLog
from penstock.broker.network.request import RequestContext
from penstock.broker.security import authorizer as module
from penstock.broker.security.authorizer import LOGGER, AclAuthorizer, logger
from penstock.protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.metadata.acls import Acl, AclsImage
from penstock.quorum.metadata.image import MetadataImage
from penstock.quorum.permissions.ruling import AuthorizerSettings, rule

TOPIC = ResourceType.TOPIC
READ = Acl(TOPIC, "t", PatternType.LITERAL, "User:a", "*", AclOperation.READ, PermissionType.ALLOW)


class Node:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.image = MetadataImage(offset=0)
        settings = AuthorizerSettings(super_users=frozenset({"User:admin"}))
        self.authorizer = AclAuthorizer(settings, lambda: self.image, PeerLog(loop, logger))

    def context(self, principal: str, *, node_id: NodeId | None = None) -> RequestContext:
        return RequestContext(
            listener_name="L", peer_host="10.0.0.1", client_id=None, principal=principal, node_id=node_id,
            authorizer=self.authorizer,
        )  # fmt: skip

    def may(self, principal: str = "User:a", name: str = "t", *, is_logged: bool = True) -> bool:
        return self.context(principal).may(ApiKey.FETCH, AclOperation.READ, TOPIC, name, count=2, is_logged=is_logged)

    def set_acls(self, *acls: Acl) -> None:
        present = {UUID(int=number): acl for number, acl in enumerate(acls)}
        self.image = MetadataImage(offset=self.image.offset + 1, acls=AclsImage().changed(present))


def with_node(scenario: Callable[[Node], None]) -> None:
    async def main() -> None:
        scenario(Node(asyncio.get_running_loop()))

    asyncio.run(main())


def test_a_decision_holds_until_the_acls_change(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(*arguments: object) -> object:
        asked.append("")
        return rule(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "rule", counted)

    def scenario(node: Node) -> None:
        assert not node.may(is_logged=False)
        assert not node.may(is_logged=False)
        assert len(asked) == 1
        node.set_acls(READ)
        assert all(node.may() for _ in range(3))
        assert len(asked) == 2
        assert not node.may("User:b")
        node.image = MetadataImage(offset=9, acls=node.image.acls)
        assert node.may()
        assert len(asked) == 3
        node.set_acls()
        assert not node.may()

    with_node(scenario)


def test_super_users_and_nodes_pass_and_others_wait_for_the_metadata() -> None:
    def scenario(node: Node) -> None:
        node.set_acls(READ)
        node.image = MetadataImage(acls=node.image.acls)
        assert not node.may()
        assert node.may("User:admin")
        writer = node.context("User:a")
        assert not writer.may_some(AclOperation.READ, TOPIC)
        assert node.context("Node:2", node_id=NodeId(2)).may(ApiKey.FETCH, AclOperation.READ, TOPIC, "t")
        # What was denied then is not kept.
        node.image = MetadataImage(offset=1, acls=node.image.acls)
        assert node.may()
        assert writer.may_some(AclOperation.READ, TOPIC)

    with_node(scenario)


def test_denials_are_logged_as_kafka_logs_them_and_bounded(caplog: pytest.LogCaptureFixture) -> None:
    def scenario(node: Node) -> None:
        node.set_acls(READ)
        with caplog.at_level(logging.INFO, LOGGER):
            assert node.may()
            assert not node.may(name="secret", is_logged=False)
            for _ in range(50):
                assert not node.may(name="secret")
        assert [record.getMessage() for record in caplog.records] == [
            "Principal = User:a is Denied operation = READ from host = 10.0.0.1 on resource = Topic:LITERAL:secret "
            "for request = Fetch with resourceRefCount = 2 based on rule DefaultDeny"
        ]
        caplog.clear()
        with caplog.at_level(logging.DEBUG, LOGGER):
            assert node.may()
        assert [record.getMessage() for record in caplog.records] == [
            "Principal = User:a is Allowed operation = READ from host = 10.0.0.1 on resource = Topic:LITERAL:t "
            f"for request = Fetch with resourceRefCount = 2 based on rule MatchingAcl(acl={READ})"
        ]

    with_node(scenario)


def test_permit_knows_what_was_allowed_until_an_acl_changes(caplog: pytest.LogCaptureFixture) -> None:
    def scenario(node: Node) -> None:
        node.set_acls(READ)
        context = node.context("User:a")
        permit = node.authorizer.permit(context)
        assert not permit.readable
        assert node.may()
        assert node.authorizer.permit(context) is permit
        assert (permit.readable, permit.writable) == ({"t"}, set())
        with caplog.at_level(logging.DEBUG, LOGGER):
            assert not node.authorizer.permit(context).readable, "each question is to be asked, and logged"
        node.set_acls()
        assert not node.authorizer.permit(context).readable

    with_node(scenario)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DECISIONS_MAX", 10)
    monkeypatch.setattr(module, "CLIENTS_MAX", 3)

    def scenario(node: Node) -> None:
        node.set_acls(READ)
        for number in range(100):
            node.may(f"User:{number}", is_logged=False)
            node.may(name=str(number), is_logged=False)
            assert len(node.authorizer._decisions) <= 4
            assert sum(len(one.by_key) for one in node.authorizer._decisions.values()) <= 11
        assert node.may()

    with_node(scenario)


def test_nothing_is_kept_of_a_name_that_no_topic_has() -> None:
    def scenario(node: Node) -> None:
        node.set_acls(READ)
        for letters in (249, 250, 32_000):
            assert not node.may(name="n" * letters, is_logged=False)
        kept = [name for one in node.authorizer._decisions.values() for _, name in one.by_key]
        assert [len(name) for name in kept] == [249]

    with_node(scenario)


def test_operations_and_the_cluster() -> None:
    def scenario(node: Node) -> None:
        node.set_acls(READ)
        context = node.context("User:a")
        assert context.operations_on(ApiKey.METADATA, TOPIC, "t") == 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
        with pytest.raises(KafkaError) as failure:
            context.require_in_cluster(ApiKey.CREATE_ACLS, AclOperation.ALTER)
        assert failure.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert failure.value.message == "The request needs ALTER permission."

    with_node(scenario)
