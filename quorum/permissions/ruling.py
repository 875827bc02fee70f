"""Whether ACLs allow an operation on a resource (KIP-11, KIP-290, KIP-679). Kafka: `StandardAuthorizerData`."""

from collections.abc import Iterator
from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct

from ...protocol.acls import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, PatternType, PermissionType
from ...protocol.host_addresses import usual_address
from ..metadata.acls import Acl, AclsImage

_IMPLY_DESCRIBE: Final = frozenset(
    {AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
)
_IMPLY_DESCRIBE_CONFIGS: Final = frozenset({AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS})


class Rule(Enum):
    """What a ruling rests on where it is no ACL; the values are Kafka's words in its log."""

    SUPER_USER = "SuperUser"
    NO_ACL_ALLOWS = "DefaultAllow"
    NO_ACL_DENIES = "DefaultDeny"


class Ruling(Struct, frozen=True):
    """Whether it is allowed, and by which ACL or rule."""

    is_allowed: bool
    basis: Acl | Rule

    def __str__(self) -> str:
        """Return the basis as Kafka's log has it."""
        return self.basis.value if isinstance(self.basis, Rule) else f"MatchingAcl(acl={self.basis})"


class AuthorizerSettings(Struct, frozen=True, kw_only=True):
    """What holds beside the ACLs: `super.users` as "type:name", and `allow.everyone.if.no.acl.found`."""

    super_users: frozenset[str] = frozenset()
    allows_without_acls: bool = False


_UNNAMED: Final = "\0"
"""The name of a resource that no ACL names."""
Resource: TypeAlias = tuple[int, str]
"""A type (`ResourceType`) and a name."""


def rule(
    acls: AclsImage,
    settings: AuthorizerSettings,
    principal: str,
    host: str,
    operation: AclOperation,
    resource: Resource,
) -> Ruling:
    """Return the ruling on an operation of a principal ("type:name") that asks from an address.

    A super user may do everything. A denial goes before any permission. A resource that no ACL is about is open only
    if the settings say so; one that an ACL is about is closed to all that have no permission.
    """
    if principal in settings.super_users:
        return Ruling(True, Rule.SUPER_USER)
    allowing: Acl | None = None
    is_resource_known = False
    for acl in acls.about(*resource):
        is_resource_known = True
        if _concerns(acl, principal, host, operation):
            if acl.permission_type == PermissionType.DENY:
                return Ruling(False, acl)
            allowing = allowing or acl
    if allowing is not None:
        return Ruling(True, allowing)
    if not is_resource_known and settings.allows_without_acls:
        return Ruling(True, Rule.NO_ACL_ALLOWS)
    return Ruling(False, Rule.NO_ACL_DENIES)


def is_allowed_somewhere(
    acls: AclsImage,
    settings: AuthorizerSettings,
    principal: str,
    host: str,
    operation: AclOperation,
    resource_type: int,
) -> bool:
    """Return whether the operation may be allowed on at least one resource of the type, which need not exist.

    A permission counts unless a denial covers all that it is about. Kafka: `Authorizer.authorizeByResourceType`.
    """
    if rule(acls, settings, principal, host, operation, (resource_type, _UNNAMED)).is_allowed:
        return True
    denying: list[Acl] = []
    allowing: list[Acl] = []
    for acl in _concerning(acls, principal, host, operation, resource_type):
        (denying if acl.permission_type == PermissionType.DENY else allowing).append(acl)
    literal = {acl.resource_name for acl in denying if acl.pattern_type == PatternType.LITERAL}
    if WILDCARD in literal:
        return False
    prefixes = tuple({acl.resource_name for acl in denying if acl.pattern_type == PatternType.PREFIXED})
    for acl in allowing:
        if acl.pattern_type == PatternType.LITERAL and acl.resource_name == WILDCARD:
            return True
        is_named_denied = acl.pattern_type == PatternType.LITERAL and acl.resource_name in literal
        if not is_named_denied and not acl.resource_name.startswith(prefixes):
            return True
    return False


def _concerning(
    acls: AclsImage, principal: str, host: str, operation: AclOperation, resource_type: int
) -> Iterator[Acl]:
    for acl in acls.of_type(resource_type):
        # Here nothing is implied: the operation itself, or all of them.
        if _is_for(acl, principal, host) and acl.operation in (operation, AclOperation.ALL):
            yield acl


def _concerns(acl: Acl, principal: str, host: str, operation: AclOperation) -> bool:
    if not _is_for(acl, principal, host):
        return False
    if acl.operation in (operation, AclOperation.ALL):
        return True
    if acl.permission_type != PermissionType.ALLOW:
        return False
    if operation == AclOperation.DESCRIBE:
        return acl.operation in _IMPLY_DESCRIBE
    return operation == AclOperation.DESCRIBE_CONFIGS and acl.operation in _IMPLY_DESCRIBE_CONFIGS


def _is_for(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, WILDCARD_PRINCIPAL) and (
        acl.host in (host, WILDCARD)
        or ((":" in host or ":" in acl.host) and usual_address(acl.host) == usual_address(host))
    )
