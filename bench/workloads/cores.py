"""Several nodes on one machine, a node per core: what they move together, and what that costs clients.

One topic with one replica of each partition, led evenly by all nodes. Prepared requests show what the nodes can do;
where client and nodes have fewer cores than there are nodes, look at the CPU of the nodes for a GB instead of at the
rate: as long as it stays the same, more cores make more records. The same stream by librdkafka shows what more nodes
cost the client: it holds a connection to each leader, and its requests have fewer partitions each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from ...client import clock
from ...client.client_log import SILENT_LOGGER
from ..quorum_state import cluster_pids
from ..target import Target
from ..topics import TIMEOUT_S, new_topic
from ..usage import proportional_mib, resident_mib
from .prepared import prepared
from .stream import stream

PARTITIONS: Final = 12
SIZE_BYTES: Final = 1024
SETTLE_S: Final = 3.0
"""What was measured before is deleted then: to give back gigabytes takes a node longer than to read them."""
_WARM_UP_PART: Final = 10
_LIBRARY_PART: Final = 4
_VERBS: Final = ("produce", "consume")
_GB: Final = 1e9
_MICROSECONDS: Final = 1e6


def cores(target: Target, *, nodes: int, records: int, settle_s: float = SETTLE_S) -> Mapping[str, float | None]:
    """Produce and consume `records` prepared records on so many nodes, and a part of them by librdkafka."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster({}, nodes) as cluster:
        cluster.start()
        clock.pause(settle_s)
        pids = cluster_pids(cluster)
        memory = {
            "node_resident_mib": resident_mib(pids) / nodes,
            "node_proportional_mib": proportional_mib(pids) / nodes,
        }
        running = Target(name=target.name, bootstrap=cluster.bootstrap, pids=pids)
        # The first reader of a group has a topic of 50 partitions made.
        _library(running, records // _WARM_UP_PART)
        prepared(running, size_bytes=SIZE_BYTES, partitions=PARTITIONS, records=records // _WARM_UP_PART)
        clock.pause(settle_s)
        moved = prepared(running, size_bytes=SIZE_BYTES, partitions=PARTITIONS, records=records)
        clock.pause(settle_s)
        library = _library(running, records // _LIBRARY_PART)
        connections = _connections(running)
    return {
        **moved,
        **{f"library_{name}": value for name, value in library.items()},
        **{f"library_{verb}_client_cpu_us": _cpu_us(library[f"{verb}_client_cpu_s_per_gb"]) for verb in _VERBS},
        **connections,
        **memory,
    }


def _library(target: Target, records: int) -> Mapping[str, float | None]:
    return stream(target, size_bytes=SIZE_BYTES, batching="default", partitions=PARTITIONS, records=records)


def _cpu_us(cpu_s_per_gb: float | None) -> float | None:
    """Of a record."""
    return None if cpu_s_per_gb is None else cpu_s_per_gb * SIZE_BYTES / _GB * _MICROSECONDS


def _connections(target: Target) -> dict[str, float | None]:
    """What a producer and a consumer of all partitions hold, by the sockets of this process."""
    with new_topic(target, PARTITIONS) as topic:
        before = _sockets()
        producer = Producer({"bootstrap.servers": target.bootstrap, "linger.ms": 0}, logger=SILENT_LOGGER)
        for partition in range(PARTITIONS):
            producer.produce(topic, b"one", partition=partition)
        producer.flush(TIMEOUT_S)
        with_producer = _sockets()
        consumer = Consumer(
            {"bootstrap.servers": target.bootstrap, "group.id": topic, "enable.auto.commit": False},
            logger=SILENT_LOGGER,
        )
        try:
            consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
            for _ in range(PARTITIONS):
                consumer.consume(1, TIMEOUT_S)
            with_both = _sockets()
        finally:
            consumer.close()
    return {"producer_connections": with_producer - before, "consumer_connections": with_both - with_producer}


def _sockets() -> int:
    count = 0
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            count += os.readlink(path).startswith("socket:")
    return count
