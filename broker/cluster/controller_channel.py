"""The way from a broker to the active controller."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ...quorum.controller.controller import Controller
from ...quorum.decisions.controller_request import ControllerRequest
from ...quorum.permissions.requester import Requester

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class ControllerChannel(Protocol):
    """Where requests go that change metadata."""

    async def submit(
        self,
        request: ControllerRequest[RequestT, ResponseT],
        message: RequestT,
        *,
        requester: Requester | None = None,
    ) -> ResponseT:
        """The controller's answer, once this node's image has reached the offset of the change.

        `requester` is the client that asks, where it matters who asks: none for what the node itself wants.

        Raises PermissionsChangedError when its ACLs do not allow it any more, and nothing was done.
        Raises KafkaError: the decision's own, or NOT_CONTROLLER when no controller could be asked or the answer was
        lost (then the change may or may not happen).
        """
        ...


class NodeControllerChannel(ControllerChannel, Protocol):
    """As the node has it that made it."""

    def limit_wait(self) -> None:
        """This node stops: from now on no request waits longer than a controller that is there needs, those under way
        neither."""
        ...


class LocalControllerChannel:
    """To the controller in this process, which is the only one."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    async def submit(
        self,
        request: ControllerRequest[RequestT, ResponseT],
        message: RequestT,
        *,
        requester: Requester | None = None,
    ) -> ResponseT:
        return await self._controller.submit(
            request.decision, message, is_of_client=not request.is_for_brokers, requester=requester
        )

    def limit_wait(self) -> None:
        """Nothing: it is there."""
