"""A request that the controller decides, asked for by a node, in a client's name or not, or by a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ....protocol.acls import AclOperation
from ....protocol.apis import ApiKey
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.messages import NO_HEADER_TAGS
from ....protocol.own_apis import ControllerOutcome, encode_outcome_tags
from ....quorum.controller.controller import Controller
from ....quorum.decisions.controller_request import ControllerRequest
from ...cluster.rules.repeated_change import is_once
from ...network.handlers import Handlers, HeaderTags
from ...network.request import RequestContext
from ...security.client_changes import Guard, ask_controller, in_cluster
from .dependencies import ControllerHandlerDependencies

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


def outcome_tags(controller: Controller) -> HeaderTags:
    """Return what the headers of responses to nodes of this cluster add (`ControllerOutcome`)."""

    def encode(context: RequestContext, error: KafkaError | None) -> bytes:
        if context.node_id is None:
            return NO_HEADER_TAGS
        return encode_outcome_tags(ControllerOutcome(0 if error is None else int(error.code), controller.image.offset))

    return encode


def altering(api_key: ApiKey) -> Guard[Any, Any]:
    """Clients that may alter the cluster."""
    return in_cluster(api_key, AclOperation.ALTER)


def add_decided(
    handlers: Handlers,
    parts: ControllerHandlerDependencies,
    request: ControllerRequest[RequestT, ResponseT],
    answer_error: Callable[[RequestT, KafkaError], ResponseT],
    guard: Guard[RequestT, ResponseT] | None = None,
    *,
    on_request: Callable[[RequestT, RequestContext], None] | None = None,
) -> None:
    """`guard` is of what clients may ask for. `on_request` is called with what its sender may ask for."""
    controller = parts.controller

    def handle(message: RequestT, context: RequestContext) -> Awaitable[ResponseT]:
        if request.sender is not None and context.node_id != request.sender(message):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if on_request is not None:
            on_request(message, context)
        # A broker gives what it forwards a name (`broker/cluster/remote_controller_channel.py`).
        name = context.client_id if context.node_id is not None and is_once(message) else None
        if context.node_id is not None or guard is None:
            return controller.submit(
                request.decision,
                message,
                name=name or "",
                is_of_client=not request.is_for_brokers,
                requester=context.requester,
            )
        return ask_controller(parts.local, request, message, context, guard)

    handlers.add_message(
        request.api_key,
        handle,
        answer_error=answer_error,
        header_tags=parts.header_tags,
        is_forwarded=guard is not None,
        has_version=request.first_strict_version > 0,
    )
