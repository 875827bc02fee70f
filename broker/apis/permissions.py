"""Questions of handlers to the authorizer: about one resource, and about all those that a request names.

Kafka: `AuthHelper`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from typing import Final

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError, error_info
from ..network.request import RequestContext

REFUSALS: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""What a client is told that may not do something with a resource of the type."""


def require(
    context: RequestContext,
    api_key: ApiKey,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
    *,
    is_told_why: bool = False,
) -> None:
    """Raises KafkaError, of `REFUSALS`, unless the client may do it; with the code's own sentence if it is told why."""
    if not context.may(api_key, operation, resource_type, name):
        code = REFUSALS[resource_type]
        raise KafkaError(code, error_info(code).sentence if is_told_why else None)


def denied_names(
    context: RequestContext,
    api_key: ApiKey,
    operation: AclOperation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    is_logged: bool = True,
) -> Set[str]:
    """Return the names of resources with which the client may not do it.

    Each is asked for once, with the number of times that the request has it. Nothing is asked without an authorizer.
    """
    if context.authorizer is None:
        return frozenset()
    return {
        name
        for name, count in Counter(names).items()
        if not context.may(api_key, operation, resource_type, name, count=count, is_logged=is_logged)
    }
