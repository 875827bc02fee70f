"""What compaction of a log costs, and what produce and fetch beside it feel of it.

A topic is filled while it deletes; then it is told to compact. The time until its size has come down, and the CPU of
the node that leads it until then, its worker process included, are those of compaction: the pause between two looks at
the logs (`log.cleaner.backoff.ms`) is short. Beside the second log, single records are produced and consumed, as they
were just before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import click
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kio.schema.describe_log_dirs.v1.request import DescribableLogDirTopic, DescribeLogDirsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ...client import clock
from ...client.client_log import SILENT_LOGGER
from ...client.connection import Connection, connect
from ...local.local_node import HOST, LocalNode
from ...protocol.structs import replace
from ..payloads import POOL_SIZE, values
from ..target import Cluster, Target, node_pids
from ..topics import TIMEOUT_S, admin, leaders
from ..usage import measured
from .single import single

RECORDS_PER_KEY: Final = 20
_PROPERTIES: Final = {"log.cleaner.backoff.ms": "100"}
_CONFIG: Final = {"segment.bytes": str(16 * 1024 * 1024), "min.cleanable.dirty.ratio": "0.01", "retention.ms": "-1"}
_CHUNK: Final = 1_000
_POLL_S: Final = 0.02
_QUIET_S: Final = 1.5
"""A log that has not become smaller for so long is compacted."""
_MB: Final = 1e6


def compaction(target: Target, *, size_bytes: int, records: int, singles: int) -> Mapping[str, float | None]:
    """`records` with values of `size_bytes` and as many for each key as
    `RECORDS_PER_KEY`; `singles` are sent beside another such topic."""
    assert target.fresh_cluster is not None, "only asked of targets that can be started"
    with target.fresh_cluster(_PROPERTIES) as cluster:
        cluster.start()
        running = replace(target, bootstrap=cluster.bootstrap, pids=(), replicas=1)
        for node in cluster.nodes.values():
            # A JVM has compiled by then what it compiles.
            single(replace(running, pids=node_pids(node)), records=singles)
        with _filled(running, cluster, "warm", size_bytes, records // 4) as (node, _):
            asyncio.run(_compact(running, node, "warm"))
        with _filled(running, cluster, "alone", size_bytes, records) as (node, size):
            with measured(node_pids(node)) as usage:
                seconds, left = asyncio.run(_compact(running, node, "alone"))
            assert usage.broker_cpu_s is not None, "it runs here"
        with _filled(running, cluster, "beside", size_bytes, records) as (node, _):
            before = single(running, records=singles)
            _alter(running, "beside", "compact")
            beside = single(running, records=singles)
        return {
            "compaction_mb_per_s": size / seconds / _MB,
            "compaction_cpu_s_per_gb": usage.broker_cpu_s / (size / 1e9),
            "compaction_left_percent": 100 * left / size,
            **{
                f"{name}_p99_{when}_ms": found[f"{name}_p99_ms"]
                for when, found in (("alone", before), ("beside", beside))
                for name in ("acknowledged", "end_to_end")
            },
        }


@contextmanager
def _filled(
    target: Target, cluster: Cluster, topic: str, size_bytes: int, records: int
) -> Iterator[tuple[LocalNode, int]]:
    """The node that leads it, and the bytes of its log."""
    client = admin(target.bootstrap)
    client.create_topics([NewTopic(topic, 1, 1, config=_CONFIG)], operation_timeout=TIMEOUT_S)[topic].result(TIMEOUT_S)
    producer = Producer(
        {"bootstrap.servers": target.bootstrap, "acks": "all", "linger.ms": 5, "queue.buffering.max.messages": 100_000},
        logger=SILENT_LOGGER,
    )
    pool = values(size_bytes)
    keys = records // RECORDS_PER_KEY
    failures: list[object] = []
    for number in range(records):
        key = b"%015d" % (number * 7919 % keys)
        while True:
            try:
                producer.produce(
                    topic,
                    pool[number % POOL_SIZE],
                    key,
                    on_delivery=lambda error, _: failures.append(error) if error else None,
                )
                break
            except BufferError:
                producer.poll(0.05)
        if number % _CHUNK == 0:
            producer.poll(0)
    if producer.flush(TIMEOUT_S) or failures:
        raise click.ClickException(f"The topic to compact was not filled: {failures[:1]}")
    (address,) = leaders(target, topic)
    node = next(one for one in cluster.nodes.values() if one.port == address[1])
    yield node, asyncio.run(_size(node, topic))
    client.delete_topics([topic], operation_timeout=TIMEOUT_S)[topic].result(TIMEOUT_S)


def _alter(target: Target, topic: str, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin(target.bootstrap)  # kept by name: it must outlive its answers
    client.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


async def _compact(target: Target, node: LocalNode, topic: str) -> tuple[float, int]:
    """Seconds until the log became no smaller, and its bytes then."""
    async with await connect(HOST, node.port, timeout_ms=60_000) as connection:
        size = await _ask(connection, topic)
        start_s = changed_s = clock.monotonic_s()
        await asyncio.get_running_loop().run_in_executor(None, _alter, target, topic, "compact")
        began = False
        while not began or clock.monotonic_s() - changed_s < _QUIET_S:
            await asyncio.sleep(_POLL_S)
            now = await _ask(connection, topic)
            if now != size:
                began, size, changed_s = True, now, clock.monotonic_s()
            if clock.monotonic_s() - start_s > TIMEOUT_S:
                raise click.ClickException(f"{topic} was not compacted within {TIMEOUT_S:g} s.")
        return changed_s - start_s, size


async def _size(node: LocalNode, topic: str) -> int:
    async with await connect(HOST, node.port, timeout_ms=60_000) as connection:
        return await _ask(connection, topic)


async def _ask(connection: Connection, topic: str) -> int:
    wanted = DescribableLogDirTopic(topic=TopicName(topic), partitions=(i32(0),))
    answer: Any = await connection.call(DescribeLogDirsRequest(topics=(wanted,)))
    return sum(
        int(partition.partition_size) for one in answer.results for some in one.topics for partition in some.partitions
    )
