"""Addresses and names of resources, as Confluent's REST API gives them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from urllib.parse import quote, urlencode

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.rest.resources import CollectionMetadata, Relationship, ResourceMetadata
from ..operation import Call, HttpError


def url(call: Call, *segments: object) -> str:
    """`/v3/clusters/` and the segments, each quoted, at this node."""
    return "/".join((f"{call.base_url}/v3/clusters", *(quote(str(segment), safe="") for segment in segments)))


def search(call: Call, query: Mapping[str, str], *segments: object) -> str:
    """The same with a query, if there is one."""
    address = url(call, *segments)
    return f"{address}?{urlencode(query)}" if query else address


def metadata(call: Call, *segments: object) -> ResourceMetadata:
    """The address, and the name that is made of the same segments."""
    cluster_id, *rest = segments
    pairs = "".join(
        f"/{kind}" if name is None else f"/{str(kind).removesuffix('s')}={name}"
        for kind, name in zip_longest(rest[::2], rest[1::2])
    )
    return ResourceMetadata(self_=url(call, *segments), resource_name=f"crn:///kafka={cluster_id}{pairs}")


def collection(call: Call, *segments: object) -> CollectionMetadata:
    return CollectionMetadata(self_=url(call, *segments))


def related(call: Call, *segments: object) -> Relationship:
    return Relationship(related=url(call, *segments))


def cluster_id(call: Call) -> str:
    """The id of the cluster, which the path must name. Raises HttpError 404 for another, KafkaError while unknown."""
    own = call.node.image.cluster_id
    if own is None:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "The node does not know its cluster's metadata yet.")
    named = call.path.get("cluster_id", own)
    if named != own:
        raise HttpError(404, "Not Found", f"This node is of cluster {own}, not of {named!r}.")
    return own
