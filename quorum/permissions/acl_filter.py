"""Which ACLs a filter means (KIP-140, KIP-290). Kafka: `AclBindingFilter`, `ResourcePatternFilter`."""

from typing import NamedTuple

from ...protocol.acls import WILDCARD, AclOperation, PatternType, PermissionType, ResourceType
from ..metadata.acls import Acl


class AclFilter(NamedTuple):
    """None, and ANY of an enumeration, stand for all. Numbers are those of `protocol/acls.py`."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission_type in (PermissionType.ANY, acl.permission_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        name = self.resource_name
        if self.pattern_type == PatternType.MATCH and name is not None:
            # Whatever is about a resource of that name.
            if acl.pattern_type == PatternType.PREFIXED:
                return name.startswith(acl.resource_name)
            return acl.resource_name in (name, WILDCARD)
        is_type = self.pattern_type in (PatternType.ANY, PatternType.MATCH, acl.pattern_type)
        return is_type and name in (None, acl.resource_name)
