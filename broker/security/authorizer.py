"""What each client may do, by the ACLs that this node has replayed. Kafka: `StandardAuthorizer`.

A decision is kept until any ACL changes: it rests on them alone. So the path of records costs a look-up for each topic
of a request, whatever the number of ACLs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from ...protocol.acls import AclOperation, PatternType, ResourceType
from ...protocol.apis import APIS, ApiKey
from ...quorum.metadata.acls import AclsImage
from ...quorum.metadata.image import MetadataImage
from ...quorum.permissions.ruling import AuthorizerSettings, Rule, Ruling, is_allowed_somewhere, rule
from ..network.peer_log import PeerLog
from ..network.request import Permit, RequestContext

LOGGER: Final = "kafka.authorizer.logger"
"""As operators of Kafka know it."""
DECISIONS_MAX: Final = 100_000
"""Kept ones, of all clients together; then they begin anew."""
NAME_LETTERS_MAX: Final = 249
"""Of names that decisions are kept of: as of topics. Those of groups may be longer, and what clients ask for, up to
32 KiB, which for so many decisions would be some gigabytes."""
CLIENTS_MAX: Final = 10_000
"""Principals and hosts that decisions are kept of."""

logger = logging.getLogger(LOGGER)

_Key: TypeAlias = tuple[int, str]
"""An operation and a type in one number, which hashes fast, and a name."""


class _Decisions(Permit):
    """What a client was found to be allowed, and denied."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        super().__init__()
        self.by_key: dict[_Key, bool] = {}

    def keep(self, key: _Key, *, is_allowed: bool) -> None:
        self.by_key[key] = is_allowed
        kind, name = key
        if is_allowed and kind == _READ_TOPIC:
            self.readable.add(name)
        elif is_allowed and kind == _WRITE_TOPIC:
            self.writable.add(name)


def _kind(operation: AclOperation, resource_type: ResourceType) -> int:
    return operation << 8 | resource_type


_READ_TOPIC: Final = _kind(AclOperation.READ, ResourceType.TOPIC)
_WRITE_TOPIC: Final = _kind(AclOperation.WRITE, ResourceType.TOPIC)


class AclAuthorizer:
    """The authorizer of a node: super users, nodes of the cluster, and the ACLs.

    Until the node has replayed the metadata only super users and nodes may do anything.
    """

    def __init__(self, settings: AuthorizerSettings, image: Callable[[], MetadataImage], denials: PeerLog) -> None:
        """`denials` is where they are logged, and bounded."""
        self._settings = settings
        self._image = image
        self._denials = denials
        self._acls: AclsImage | None = None
        self._decisions: dict[tuple[str, str], _Decisions] = {}
        self._decision_count = 0
        # Mostly the next question is of the client of the one before.
        self._last_context: RequestContext | None = None
        self._last_decisions = _Decisions()

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
        if context.node_id is not None:
            return True
        decisions = self.permit(context)
        key = (_kind(operation, resource_type), name)
        is_allowed = decisions.by_key.get(key)
        if is_allowed:
            return True
        if is_allowed is False and not is_logged:
            return False
        ruling = self._rule(context, operation, resource_type, name)
        if is_allowed is None and len(name) <= NAME_LETTERS_MAX:
            decisions.keep(key, is_allowed=ruling.is_allowed)
            self._decision_count += 1
        if is_logged:
            self._log(context, api_key, operation, resource_type, name, count, ruling)
        return ruling.is_allowed

    def allows_some(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        if context.node_id is not None or context.principal in self._settings.super_users:
            return True
        image = self._image()
        return image.offset >= 0 and is_allowed_somewhere(
            image.acls, self._settings, context.principal, context.peer_host, operation, resource_type
        )

    def permit(self, context: RequestContext) -> _Decisions:
        if logger.isEnabledFor(logging.DEBUG):
            # Each question is to be logged, so nothing is known before it is asked.
            return _Decisions()
        image = self._image()
        if context is self._last_context and image.acls is self._acls and self._decision_count <= DECISIONS_MAX:
            return self._last_decisions
        if image.offset < 0:
            # Nothing is known yet, and nothing of it is kept.
            return _Decisions()
        if image.acls is not self._acls or self._decision_count > DECISIONS_MAX or len(self._decisions) > CLIENTS_MAX:
            self._acls = image.acls
            self._decisions.clear()
            self._decision_count = 0
        client = (context.principal, context.peer_host)
        decisions = self._decisions.get(client)
        if decisions is None:
            decisions = self._decisions[client] = _Decisions()
        self._last_context, self._last_decisions = context, decisions
        return decisions

    def _rule(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str) -> Ruling:
        image = self._image()
        if image.offset < 0:
            is_super_user = context.principal in self._settings.super_users
            return Ruling(is_super_user, Rule.SUPER_USER if is_super_user else Rule.NO_ACL_DENIES)
        return rule(image.acls, self._settings, context.principal, context.peer_host, operation, (resource_type, name))

    def _log(
        self,
        context: RequestContext,
        api_key: ApiKey | str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        count: int,
        ruling: Ruling,
    ) -> None:
        level = logging.DEBUG if ruling.is_allowed else logging.INFO
        if not logger.isEnabledFor(level):
            return
        arguments = (
            context.principal,
            "Allowed" if ruling.is_allowed else "Denied",
            operation.name,
            context.peer_host,
            resource_type.title,
            PatternType.LITERAL.name,
            name,
            api_key if isinstance(api_key, str) else APIS[api_key].name,
            count,
            ruling,
        )
        if ruling.is_allowed:
            logger.debug(_MESSAGE, *arguments)
        else:
            self._denials.write(logging.INFO, context.peer_host, _MESSAGE, *arguments)


_MESSAGE: Final = (
    "Principal = %s is %s operation = %s from host = %s on resource = %s:%s:%s for request = %s "
    "with resourceRefCount = %d based on rule %s"
)
