"""ACLs as the options of `penstock acl` describe them, in the vocabulary of kafka-acls.

Kafka: `AclCommand`, `AclBinding`, `AclBindingFilter`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from ...protocol.acls import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)

_PRODUCER: Final = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_TRANSACTION: Final = (AclOperation.WRITE, AclOperation.DESCRIBE)
_CONSUMER: Final = (AclOperation.READ, AclOperation.DESCRIBE)


class Resource(Struct, frozen=True, kw_only=True, order=True):
    """A resource, or those whose names begin so."""

    type: ResourceType
    name: str
    pattern_type: PatternType


class Entry(Struct, frozen=True, kw_only=True, order=True):
    """Who may do what, or may not. `principal` is such as User:alice."""

    principal: str
    host: str
    operation: AclOperation
    permission: PermissionType


class Binding(Struct, frozen=True, kw_only=True, order=True):
    resource: Resource
    entry: Entry

    def described(self) -> dict[str, str]:
        """As JSON and tables have it, in the words that the options take."""
        return {
            "resource_type": self.resource.type.name.lower().replace("_", "-"),
            "resource_name": self.resource.name,
            "pattern_type": self.resource.pattern_type.name.lower(),
            "principal": self.entry.principal,
            "host": self.entry.host,
            "operation": operation_name(self.entry.operation),
            "permission": self.entry.permission.name.lower(),
        }


class Subjects(Struct, frozen=True, kw_only=True):
    """Who is meant: principals, and the hosts from which they come; every host unless some are named."""

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()

    def entries(self, operations: Iterable[AclOperation]) -> list[Entry]:
        return [
            Entry(principal=principal, host=host, operation=operation, permission=permission)
            for principals, hosts, permission in (
                (self.allowed, self.allowed_hosts, PermissionType.ALLOW),
                (self.denied, self.denied_hosts, PermissionType.DENY),
            )
            for principal in principals
            for operation in operations
            for host in hosts or (WILDCARD,)
        ]


class Roles(Struct, frozen=True, kw_only=True):
    """What programs need in order to work: `--producer`, `--consumer` and `--idempotent`."""

    is_producer: bool = False
    is_consumer: bool = False
    is_idempotent: bool = False

    @property
    def are_named(self) -> bool:
        return self.is_producer or self.is_consumer

    def operations(self, resource: ResourceType) -> tuple[AclOperation, ...]:
        """On resources of this type, each once."""
        found: tuple[AclOperation, ...] = ()
        if self.is_producer:
            found += {ResourceType.TOPIC: _PRODUCER, ResourceType.TRANSACTIONAL_ID: _TRANSACTION}.get(resource, ())
            if self.is_idempotent and resource is ResourceType.CLUSTER:
                found += (AclOperation.IDEMPOTENT_WRITE,)
        if self.is_consumer:
            found += {ResourceType.TOPIC: _CONSUMER, ResourceType.GROUP: (AclOperation.READ,)}.get(resource, ())
        return tuple(dict.fromkeys(found))


def bindings(
    resources: Iterable[Resource], subjects: Subjects, roles: Roles, operations: Iterable[AclOperation]
) -> list[Binding]:
    """One for each combination, `operations` on every resource unless there are roles. Raises ValueError for an
    operation that a resource does not have."""
    wanted = tuple(operations) or (AclOperation.ALL,)
    made = []
    for resource in resources:
        for entry in subjects.entries(roles.operations(resource.type) if roles.are_named else wanted):
            check_operation(resource.type, entry.operation)
            made.append(Binding(resource=resource, entry=entry))
    return made


def resources_of(
    *,
    topics: Iterable[str] = (),
    groups: Iterable[str] = (),
    transactional_ids: Iterable[str] = (),
    delegation_tokens: Iterable[str] = (),
    users: Iterable[str] = (),
    has_cluster: bool = False,
    pattern_type: PatternType = PatternType.LITERAL,
) -> list[Resource]:
    named = (
        (ResourceType.TOPIC, topics),
        (ResourceType.GROUP, groups),
        (ResourceType.TRANSACTIONAL_ID, transactional_ids),
        (ResourceType.DELEGATION_TOKEN, delegation_tokens),
        (ResourceType.USER, users),
    )
    found = [Resource(type=kind, name=name, pattern_type=pattern_type) for kind, names in named for name in names]
    if has_cluster:
        # The one of its kind has a whole name.
        cluster = Resource(type=ResourceType.CLUSTER, name=CLUSTER_NAME, pattern_type=PatternType.LITERAL)
        found.append(cluster)
    return found


def check_operation(resource: ResourceType, operation: AclOperation) -> None:
    """Raises ValueError when no request asks for the operation on such a resource."""
    supported = SUPPORTED_OPERATIONS[resource] | {AclOperation.ALL}
    if operation not in supported:
        names = ", ".join(operation_name(one) for one in sorted(supported))
        raise ValueError(
            f"{operation_name(operation)} is no operation of a {resource.name.lower().replace('_', ' ')}, which has "
            f"{names}."
        )


def operation_name(operation: AclOperation) -> str:
    """In Kafka's words: IdempotentWrite."""
    return operation.name.title().replace("_", "")


OPERATIONS: Final = {
    operation_name(one): one for one in AclOperation if one not in (AclOperation.UNKNOWN, AclOperation.ANY)
}
