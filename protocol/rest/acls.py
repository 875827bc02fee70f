"""ACLs (KIP-11, KIP-290), as Confluent's REST API has them."""

from typing import Literal, TypeAlias

from msgspec import Struct

from .resources import CollectionMetadata, PageQuery, ResourceMetadata

AclResourceType: TypeAlias = Literal["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
"""Confluent's document has no USER, which Apache Kafka has (KIP-373)."""
AclPatternType: TypeAlias = Literal["LITERAL", "PREFIXED"]
AclOperation: TypeAlias = Literal[
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
]
AclPermission: TypeAlias = Literal["DENY", "ALLOW"]
_Any: TypeAlias = Literal["ANY"]
_AnyOrMatch: TypeAlias = Literal["ANY", "MATCH"]


class Acl(Struct, kw_only=True):
    """Confluent's `AclData`. It has no name: its address is a search that finds it alone."""

    kind: Literal["KafkaAcl"] = "KafkaAcl"
    metadata: ResourceMetadata
    cluster_id: str
    resource_type: AclResourceType
    resource_name: str
    pattern_type: AclPatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


class AclList(Struct, kw_only=True):
    """Confluent's `AclDataList`."""

    kind: Literal["KafkaAclList"] = "KafkaAclList"
    metadata: CollectionMetadata
    data: list[Acl]


class DeletedAcls(Struct, kw_only=True):
    """Confluent's `DeleteAclsResponse`: what was deleted."""

    data: list[Acl]


class CreateAcl(Struct, kw_only=True):
    """Confluent's `CreateAclRequestData`."""

    resource_type: AclResourceType
    resource_name: str
    pattern_type: AclPatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


class CreateAcls(Struct, kw_only=True):
    """Confluent's `CreateAclRequestDataList`."""

    data: list[CreateAcl]


class AclQuery(PageQuery, kw_only=True):
    """Confluent's filter of ACLs: what is not given, or is ANY, stands for all; so does a text that is empty.

    The pattern type MATCH means whatever is about a resource of that name.
    """

    resource_type: AclResourceType | _Any = "ANY"
    resource_name: str = ""
    pattern_type: AclPatternType | _AnyOrMatch = "ANY"
    principal: str = ""
    host: str = ""
    operation: AclOperation | _Any = "ANY"
    permission: AclPermission | _Any = "ANY"


class DeleteAclsQuery(Struct, kw_only=True):
    """The same filter where its types must be said, as a slip would delete all."""

    resource_type: AclResourceType | _Any
    pattern_type: AclPatternType | _AnyOrMatch
    operation: AclOperation | _Any
    permission: AclPermission | _Any
    resource_name: str = ""
    principal: str = ""
    host: str = ""
