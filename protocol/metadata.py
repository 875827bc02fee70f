"""Metadata as versions 8 to 10 say it: they alone can ask for the cluster's authorized operations (KIP-430).

Versions from 11 on leave that to DescribeCluster (KIP-700), so kio's latest classes lack the two fields. Clients that
stop at these versions (librdkafka) describe the cluster by them.
"""

# No `from __future__ import annotations`: schemas are read from the annotations themselves.
from dataclasses import dataclass, field

from kio.schema.metadata.v13 import request, response
from kio.static.primitive import i32


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest(request.MetadataRequest):
    """The latest version's, and whether the cluster's authorized operations are asked for."""

    include_cluster_authorized_operations: bool = field(metadata={"kafka_type": "bool"}, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse(response.MetadataResponse):
    """The latest version's, and the cluster's authorized operations; the default means not requested."""

    cluster_authorized_operations: i32 = field(metadata={"kafka_type": "int32"}, default=i32(-(2**31)))
