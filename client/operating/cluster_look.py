"""One look at a whole cluster over HTTP: what `penstock status` shows and `penstock doctor` judges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ...protocol.rest.health import Health
from ...protocol.rest.nodes import Node, NodeList
from ...protocol.rest.partition_map import PartitionMap
from ...protocol.rest.quorum import Quorum
from ...protocol.rest.transactions import OpenTransaction
from .. import clock

if TYPE_CHECKING:
    from ..admin import Admin
    from ..admin.credentials import AdminCredentials

NODE_TIMEOUT_S: Final = 2.0
"""For one node's answers about itself: a node that is paused is not to hold up the look at the others."""
NODES_AT_ONCE: Final = 8
TOPICS_MAX: Final = 500
"""Topics that the doctor asks for their configs, one request each."""
_TRAFFIC = re.compile(
    rb"^kafka_server_brokertopicmetrics_(bytesin|bytesout|messagesin)_total ([0-9.eE+]+)$", re.MULTILINE
)


class Traffic(Struct, frozen=True, kw_only=True):
    """Counters of a node since its start, at a time of this process."""

    bytes_in: float
    bytes_out: float
    messages_in: float
    at_s: float


class NodeLook(Struct, frozen=True, kw_only=True):
    """What a node says of itself; `unreachable` is why it was not asked. `clock_ms`: its clock less the one here."""

    node_id: int
    unreachable: str | None = None
    health: Health | None = None
    traffic: Traffic | None = None
    clock_ms: int | None = None
    version: str | None = None


class ClusterLook(Struct, frozen=True, kw_only=True):
    """`min_insync_replicas` and `hanging` are known to the doctor only."""

    nodes: NodeList
    quorum: Quorum
    partitions: PartitionMap
    looks: Sequence[NodeLook]
    min_insync_replicas: Mapping[str, int] = {}
    hanging: Sequence[OpenTransaction] = ()


def take_look(admin: Admin, *, is_thorough: bool = False) -> ClusterLook:
    """Raises AdminError where the first node does not answer; what others do not say is None.

    `is_thorough`: clocks, versions, transactions and configs of topics, too.
    """
    nodes = admin.list_nodes()
    quorum = admin.get_quorum()
    partitions = admin.get_partition_map()
    with ThreadPoolExecutor(NODES_AT_ONCE) as pool:
        looks = tuple(pool.map(partial(_look_at, admin.credentials, is_thorough=is_thorough), nodes.nodes))
    if not is_thorough:
        return ClusterLook(nodes=nodes, quorum=quorum, partitions=partitions, looks=looks)
    return ClusterLook(
        nodes=nodes,
        quorum=quorum,
        partitions=partitions,
        looks=looks,
        min_insync_replicas=_min_insync_replicas(admin, partitions),
        hanging=_hanging(admin, nodes),
    )


def parse_traffic(exposition: bytes, at_s: float) -> Traffic:
    """The counters of all topics together, from the text of `/metrics`."""
    found = {name.decode(): float(value) for name, value in _TRAFFIC.findall(exposition)}
    return Traffic(
        bytes_in=found.get("bytesin", 0.0),
        bytes_out=found.get("bytesout", 0.0),
        messages_in=found.get("messagesin", 0.0),
        at_s=at_s,
    )


def _look_at(credentials: AdminCredentials, node: Node, *, is_thorough: bool) -> NodeLook:
    from ..admin import Admin, AdminError

    if not node.admin:
        return NodeLook(node_id=node.node_id)
    try:
        with Admin(node.admin, timeout_s=NODE_TIMEOUT_S, credentials=credentials) as admin:
            health = admin.get_ready()
            traffic = parse_traffic(admin.get_metrics(), clock.monotonic_s())
            clock_ms = version = None
            if is_thorough:
                clock_ms = _clock_difference_ms(admin)
                version = next((one.version for one in admin.list_nodes().nodes if one.is_asked_node), None)
    except AdminError as error:
        return NodeLook(node_id=node.node_id, unreachable=str(error).rstrip("."))
    return NodeLook(node_id=node.node_id, health=health, traffic=traffic, clock_ms=clock_ms, version=version)


def _clock_difference_ms(admin: Admin) -> int:
    before_ms = clock.now_ms()
    told_ms = admin.list_topic_overviews(offsets=False, page_size=1).asked_ms
    return told_ms - (before_ms + clock.now_ms()) // 2


def _min_insync_replicas(admin: Admin, partitions: PartitionMap) -> dict[str, int]:
    from ..admin import AdminProblem

    found = {}
    for topic in partitions.topics[:TOPICS_MAX]:
        try:
            told = admin.describe_configs("topic", topic.topic_name, keys="min.insync.replicas", documentation=False)
        except AdminProblem:
            # Deleted meanwhile.
            continue
        for one in told.configs:
            if one.value:
                found[topic.topic_name] = int(one.value)
    return found


def _hanging(admin: Admin, nodes: NodeList) -> list[OpenTransaction]:
    from ..admin import AdminProblem

    found: list[OpenTransaction] = []
    for node in nodes.nodes:
        if node.state == "running" and node.leader_count:
            try:
                found += admin.list_hanging_transactions(broker_id=node.node_id).transactions
            except AdminProblem:
                # A coordinator that is away knows its transactions: none can be said to hang.
                continue
    return found
