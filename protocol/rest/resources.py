"""What all resources of Confluent's REST API have in common."""

from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

PAGE_SIZE_MAX = 10_000
"""Also the size of a page that says none: Confluent's API has no pages, and its clients expect everything."""

Count: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
ReplicationFactor: TypeAlias = Annotated[int, Meta(ge=1, le=2**15 - 1)]
Id: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]
"""Of a node or a partition."""
Offset: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class ResourceMetadata(Struct, kw_only=True, rename={"self_": "self"}):
    """`self_` is the address of the resource, `resource_name` its name as a `crn:`; both only tell."""

    self_: str
    resource_name: str | None = None


class Unavailable(Struct, kw_only=True):
    """What is missing in a list because `source`, a broker or a partition, does not answer."""

    source: str
    error_code: int
    message: str


class CollectionMetadata(Struct, kw_only=True, rename={"self_": "self"}):
    """`next` is the address of the next page, None on the last one; `unavailable` is there if something is missing."""

    self_: str
    next: str | None = None
    unavailable: list[Unavailable] | UnsetType = UNSET


class Relationship(Struct, kw_only=True):
    """Where something else is described."""

    related: str


class PageQuery(Struct, kw_only=True):
    """`page_size` items from behind the one that `page_token`, of the page before, stands for."""

    page_size: Annotated[int, Meta(ge=1, le=PAGE_SIZE_MAX)] = PAGE_SIZE_MAX
    page_token: str | None = None
