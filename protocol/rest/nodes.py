"""Bodies of `/v1/nodes`: the map of the cluster."""

from msgspec import Struct


class NodesQuery(Struct, kw_only=True):
    """`sizes` adds how many bytes the logs of each directory have, which looks at every log of every broker."""

    sizes: bool = False


class NodeEndpoint(Struct, kw_only=True):
    listener: str
    host: str
    port: int
    security_protocol: str


class NodeDirectory(Struct, kw_only=True):
    """A log directory. `error` is Kafka's error of one that has failed; then sizes are null."""

    path: str
    error: str | None
    total_bytes: int | None
    free_bytes: int | None
    log_bytes: int | None


class Node(Struct, kw_only=True):
    """A broker, a controller or both.

    `state` of a broker is running, fenced or stopping (in controlled shutdown); of a node that is a controller only it
    is null, as the metadata do not say. What no one could be asked for is null: `unanswered` says why.
    `started_ms` and `version` are known of the asked node.
    """

    node_id: int
    roles: list[str]
    rack: str | None
    endpoints: list[NodeEndpoint]
    admin: list[str] | None
    is_asked_node: bool
    is_quorum_leader: bool
    state: str | None
    is_drained: bool
    broker_epoch: int | None
    leader_count: int
    preferred_leader_count: int
    replica_count: int
    out_of_sync_count: int
    log_dirs: list[NodeDirectory] | None
    started_ms: int | None = None
    version: str | None = None
    unanswered: str | None = None


class NodeList(Struct, kw_only=True):
    """`metadata_offset` is that of the newest metadata of the asked node, `metadata_ms` when that was decided."""

    cluster_id: str | None
    metadata_offset: int
    metadata_ms: int
    quorum_leader_id: int | None
    nodes: list[Node]
