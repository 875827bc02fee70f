"""What all resources of Confluent's REST API have in common."""

from msgspec import Struct


class ResourceMetadata(Struct, kw_only=True, rename={"self_": "self"}):
    """`self_` is the address of the resource, `resource_name` its name as a `crn:`; both only tell."""

    self_: str
    resource_name: str | None = None


class CollectionMetadata(Struct, kw_only=True, rename={"self_": "self"}):
    """`next` is the address of the next page, None on the last one."""

    self_: str
    next: str | None = None


class Relationship(Struct, kw_only=True):
    """Where something else is described."""

    related: str


class PageQuery(Struct, kw_only=True):
    """`page_size` items from behind the one that `page_token`, of the page before, stands for."""

    page_size: int | None = None
    page_token: str | None = None
