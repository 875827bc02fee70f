"""Changes of the metadata that clients ask for: permitted here, and once more where they are decided."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias, TypeVar

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...quorum.decisions.controller_request import ControllerRequest
from ...quorum.permissions.requester import Permission, PermissionsChangedError, Requester
from ..cluster.controller_channel import ControllerChannel
from ..network.request import Authorizer, Permit, RequestContext

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

Submit: TypeAlias = Callable[[RequestT], Awaitable[ResponseT]]
Guard: TypeAlias = Callable[[RequestT, RequestContext, Submit[RequestT, ResponseT]], Awaitable[ResponseT]]
"""Submits what the client may ask for, at most once, and answers the rest."""

ATTEMPTS: Final = 5
"""Each is made with ACLs that are newer than those of the one before."""


class PermissionRecorder:
    """An authorizer that remembers what it allowed."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._allowed: dict[Permission, None] = {}

    @property
    def allowed(self) -> tuple[Permission, ...]:
        return tuple(self._allowed)

    def allows(
        self,
        context: RequestContext,
        api_key: ApiKey | str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        count: int = 1,
        is_logged: bool = True,
    ) -> bool:
        is_allowed = self._authorizer.allows(
            context, api_key, operation, resource_type, name, count=count, is_logged=is_logged
        )
        if is_allowed:
            self._allowed[Permission(int(operation), int(resource_type), name)] = None
        return is_allowed

    def permit(self, _context: RequestContext) -> Permit:
        # Nothing is known before it was asked here.
        return Permit()

    def allows_some(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        return self._authorizer.allows_some(context, operation, resource_type)


async def ask_controller(
    controller: ControllerChannel,
    request: ControllerRequest[RequestT, ResponseT],
    message: RequestT,
    context: RequestContext,
    guard: Guard[RequestT, ResponseT],
) -> ResponseT:
    """Has the controller decide what `guard` lets pass, in the name of the client.

    Where the controller's ACLs do not allow it any more, it begins anew as soon as this node has them. Raises
    KafkaError as `ControllerChannel.submit`.
    """
    if context.node_id is not None:
        return await controller.submit(request, message, requester=context.requester)
    for _ in range(ATTEMPTS):
        recorder = None if context.authorizer is None else PermissionRecorder(context.authorizer)
        asking = context if recorder is None else replace(context, authorizer=recorder)
        try:
            return await guard(message, asking, partial(_submit, controller, request, context, recorder))
        except PermissionsChangedError:
            continue
    raise PermissionsChangedError


def _submit(
    controller: ControllerChannel,
    request: ControllerRequest[RequestT, ResponseT],
    context: RequestContext,
    recorder: PermissionRecorder | None,
    message: RequestT,
) -> Awaitable[ResponseT]:
    """By the permissions that were recorded until now."""
    permissions = () if recorder is None else recorder.allowed
    requester = requester_of(context, permissions, is_strict=context.api_version >= request.first_strict_version)
    return controller.submit(request, message, requester=requester)


def requester_of(
    context: RequestContext, permissions: tuple[Permission, ...] = (), *, is_strict: bool = True
) -> Requester:
    """Returns the client, as the controller knows it."""
    return Requester(context.principal, context.peer_host, permissions, context.client_id, is_strict)


def in_cluster(api_key: ApiKey, operation: AclOperation) -> Guard[RequestT, ResponseT]:
    """Returns the guard for clients that may do the operation with the cluster."""

    def guard(
        message: RequestT, context: RequestContext, submit: Callable[[RequestT], Awaitable[ResponseT]]
    ) -> Awaitable[ResponseT]:
        context.require_in_cluster(api_key, operation)
        return submit(message)

    return guard
