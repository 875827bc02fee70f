"""The ACLs of the cluster, found by the resource that is asked about. Kafka: `StandardAcl`, `AclCache`.

An index of the patterns by type and name: what binds a resource is in one literal pattern, the wildcard, and in one
prefixed pattern for each length of prefix that is in use. So the number of ACLs about other names does not matter.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias
from uuid import UUID

from msgspec import Struct, field

from ...protocol.acls import WILDCARD, AclOperation, PatternType, PermissionType, ResourceType
from .persistent_map import PersistentMap


class Pattern(NamedTuple):
    """What a group of ACLs is about."""

    resource_type: int
    pattern_type: int
    resource_name: str


class Acl(NamedTuple):
    """One access control entry with the pattern of what it is about. Numbers are those of `protocol/acls.py`.

    `principal` is "User:name", or "User:*" for all; `host` an address as text, or "*".
    """

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @property
    def pattern(self) -> Pattern:
        """What it is about, with all others about the same."""
        return Pattern(self.resource_type, self.pattern_type, self.resource_name)

    def __str__(self) -> str:
        """Return it as Kafka's logs and metadata shell have it."""
        return (
            f"StandardAcl(resourceType={ResourceType(self.resource_type).name}, resourceName={self.resource_name}, "
            f"patternType={PatternType(self.pattern_type).name}, principal={self.principal}, host={self.host}, "
            f"operation={AclOperation(self.operation).name}, "
            f"permissionType={PermissionType(self.permission_type).name})"
        )


PrefixLengths: TypeAlias = Mapping[int, Mapping[int, int]]
"""By type of resource: how many patterns have a prefix of each length, in characters."""
_NO_LENGTHS: Mapping[int, int] = {}
_NO_ACLS: tuple[Acl, ...] = ()


class AclsImage(Struct, frozen=True, kw_only=True):
    """All ACLs, by id and, in their order, by pattern."""

    by_id: PersistentMap[UUID, Acl] = field(default_factory=PersistentMap)
    by_pattern: PersistentMap[Pattern, tuple[Acl, ...]] = field(default_factory=PersistentMap)
    prefix_lengths: PrefixLengths = {}

    def about(self, resource_type: int, name: str) -> Iterator[Acl]:
        """Yield the ACLs about a resource: its own, those of its prefixes, longest first, and the wildcard's."""
        find = self.by_pattern.get
        yield from find(Pattern(resource_type, PatternType.LITERAL, name), _NO_ACLS)
        for length in sorted(self.prefix_lengths.get(resource_type, _NO_LENGTHS), reverse=True):
            if length <= len(name):
                yield from find(Pattern(resource_type, PatternType.PREFIXED, name[:length]), _NO_ACLS)
        if name != WILDCARD:
            yield from find(Pattern(resource_type, PatternType.LITERAL, WILDCARD), _NO_ACLS)

    def has(self, acl: Acl) -> bool:
        return acl in self.by_pattern.get(acl.pattern, _NO_ACLS)

    def of_type(self, resource_type: int) -> Iterator[Acl]:
        """Yield every ACL about resources of a type. Costs the size of all."""
        return (acl for acl in self.by_id.values() if acl.resource_type == resource_type)

    def changed(self, changes: Mapping[UUID, Acl | None]) -> "AclsImage":
        """Return the ACLs after some were created or, where it says None, removed."""
        if not changes:
            return self
        put = {acl_id: acl for acl_id, acl in changes.items() if acl is not None}
        removed = [acl_id for acl_id in changes if acl_id in self.by_id]
        patterns: dict[Pattern, dict[Acl, None]] = {}
        for acl_id in removed:
            acl = self.by_id[acl_id]
            self._entries(patterns, acl).pop(acl, None)
        for acl in put.values():
            self._entries(patterns, acl)[acl] = None
        return AclsImage(
            by_id=self.by_id.evolve(put=put, remove=[acl_id for acl_id in removed if acl_id not in put]),
            by_pattern=self.by_pattern.evolve(
                put={pattern: tuple(sorted(acls)) for pattern, acls in patterns.items() if acls},
                remove=[pattern for pattern, acls in patterns.items() if not acls and pattern in self.by_pattern],
            ),
            prefix_lengths=self._lengths_after(patterns),
        )

    def _entries(self, patterns: dict[Pattern, dict[Acl, None]], acl: Acl) -> dict[Acl, None]:
        pattern = acl.pattern
        entries = patterns.get(pattern)
        if entries is None:
            entries = patterns[pattern] = dict.fromkeys(self.by_pattern.get(pattern, _NO_ACLS))
        return entries

    def _lengths_after(self, patterns: Mapping[Pattern, Collection[Acl]]) -> PrefixLengths:
        lengths = {kind: dict(counts) for kind, counts in self.prefix_lengths.items()}
        for pattern, acls in patterns.items():
            if pattern.pattern_type != PatternType.PREFIXED:
                continue
            difference = bool(acls) - (pattern in self.by_pattern)
            counts = lengths.setdefault(pattern.resource_type, {})
            length = len(pattern.resource_name)
            counts[length] = counts.get(length, 0) + difference
            if not counts[length]:
                del counts[length]
        return {kind: counts for kind, counts in lengths.items() if counts}
