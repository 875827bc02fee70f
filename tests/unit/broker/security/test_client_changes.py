"""Changes that clients ask for while their permissions change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from penstock.broker.cluster.controller_channel import ControllerChannel
from penstock.broker.network.request import Permit, RequestContext
from penstock.broker.security.client_changes import ATTEMPTS, ask_controller, in_cluster
from penstock.protocol.acls import AclOperation, ResourceType
from penstock.protocol.apis import ApiKey
from penstock.protocol.errors import ErrorCode, KafkaError
from penstock.protocol.ids import NodeId
from penstock.quorum.decisions.topics import CREATE_TOPICS
from penstock.quorum.permissions.requester import Permission, PermissionsChangedError, Requester


class Authorizer:
    """Allows to create topics until the controller has denied it so often."""

    def __init__(self, controller: Controller, denials: int) -> None:
        self._controller = controller
        self._denials = denials

    def allows(self, _context: Any, _api: Any, operation: AclOperation, *_: Any, **__: Any) -> bool:
        return operation == AclOperation.CREATE and self._controller.denied < self._denials

    def permit(self, _context: Any) -> Permit:
        return Permit()

    def allows_some(self, *_: Any) -> bool:
        return False


class Controller:
    def __init__(self, denials: int = 0) -> None:
        self.asked: list[tuple[str, Requester | None]] = []
        self.denied = 0
        self._denials = denials

    async def submit(self, _request: Any, message: Any, *, requester: Requester | None = None) -> Any:
        self.asked.append((message, requester))
        if self.denied < self._denials:
            self.denied += 1
            raise PermissionsChangedError
        return f"did {message}"


async def create_if_allowed(message: Any, context: RequestContext, submit: Callable[[Any], Awaitable[Any]]) -> Any:
    if not context.may(ApiKey.CREATE_TOPICS, AclOperation.CREATE, ResourceType.TOPIC, "t"):
        return "refused"
    context.may(ApiKey.CREATE_TOPICS, AclOperation.DELETE, ResourceType.TOPIC, "t")
    return await submit(message)


def ask(
    controller: Controller, *, allowed_for: int = 100, node_id: NodeId | None = None, guard: Any = create_if_allowed
) -> Any:
    client = RequestContext(
        listener_name="L",
        peer_host="10.0.0.1",
        client_id=None,
        principal="User:a",
        node_id=node_id,
        authorizer=cast(Any, Authorizer(controller, allowed_for)),
        requester=Requester("User:b", "h") if node_id else None,
    )
    request = cast(Any, CREATE_TOPICS)
    return asyncio.run(ask_controller(cast(ControllerChannel, controller), request, "it", client, guard))


def test_the_controller_is_told_who_asks_and_what_was_allowed() -> None:
    controller = Controller()
    assert ask(controller) == "did it"
    allowed = (Permission(AclOperation.CREATE, ResourceType.TOPIC, "t"),)
    assert controller.asked == [("it", Requester("User:a", "10.0.0.1", allowed))]


def test_what_is_denied_there_is_judged_anew_here() -> None:
    controller = Controller(denials=2)
    assert ask(controller) == "did it"
    assert len(controller.asked) == 3
    controller = Controller(denials=1)
    assert ask(controller, allowed_for=1) == "refused"
    assert len(controller.asked) == 1


def test_permissions_that_never_hold_still_end_in_a_denial() -> None:
    controller = Controller(denials=100)
    with pytest.raises(KafkaError) as failure:
        ask(controller)
    assert failure.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert len(controller.asked) == ATTEMPTS


def test_a_node_asks_in_the_name_of_its_client() -> None:
    controller = Controller()
    assert ask(controller, node_id=NodeId(2), allowed_for=0) == "did it"
    assert controller.asked == [("it", Requester("User:b", "h"))]


def test_a_permission_in_the_cluster_is_required() -> None:
    with pytest.raises(KafkaError) as failure:
        ask(Controller(), guard=in_cluster(ApiKey.ELECT_LEADERS, AclOperation.ALTER))
    assert failure.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert ask(Controller(), guard=in_cluster(ApiKey.ELECT_LEADERS, AclOperation.CREATE)) == "did it"
