"""What many partitions cost one node: creating them, the memory of idle ones, stopping, starting again.

`python -m penstock.bench.partitions` prints one line a measure, with --json one object. While topics are made, a
second client asks for ApiVersions again and again: its slowest answer is the longest time that the node was away.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import click
from kio.schema.api_versions.v4 import ApiVersionsRequest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.produce.v13.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32, i32Timedelta

from .. import __version__
from ..chaos.cluster import LocalCluster
from ..chaos.local_node import HOST, LocalNode
from ..client import clock
from ..client.connection import Connection, connect
from ..protocol.records import Record, write_batch

T = TypeVar("T")

DEADLINE_S = 300.0
CONNECT_PAUSE_S = 0.005
ASK_PAUSE_S = 0.001
SETTLE_S = 3.0
MORE_PARTITIONS = 1_000
TIMEOUT = i32Timedelta.parse(timedelta(seconds=DEADLINE_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsRun:
    """Of one node, in the order in which it happens. Seconds until the answer, milliseconds of the slowest other."""

    partitions: int
    create_s: float
    create_slowest_ms: float
    create_more_s: float
    """1,000 more on the same node."""
    create_more_slowest_ms: float
    delete_more_s: float
    delete_more_slowest_ms: float
    idle_kib_per_partition: float
    """Resident memory that the partitions added to the node."""
    idle_cpu_percent: float
    clean_stop_s: float
    restart_s: float
    """From process start to the first acknowledged record after a clean stop."""
    restarted_mib: float
    kill_restart_s: float
    """The same after SIGKILL, with records since the start in `written` logs."""
    written: int
    restarted_kib_per_partition: float


@click.command()
@click.option("--partitions", default=10_000, show_default=True, type=click.IntRange(min=1, max=10_000))
@click.option("--written", default=10, show_default=True, type=click.IntRange(min=1), help="Logs that get records.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
def main(partitions: int, written: int, as_json: bool) -> None:
    """Fill a node with partitions, stop it and start it again."""
    with tempfile.TemporaryDirectory(prefix="penstock-partitions-") as folder:
        cluster = LocalCluster(Path(folder))
        node = cluster.nodes[1]
        node.write_properties({})
        try:
            result = asyncio.run(_measure(node, partitions, min(written, partitions)))
        finally:
            node.kill()
    if as_json:
        click.echo(json.dumps(asdict(result)))
        return
    for name, value in asdict(result).items():
        click.echo(f"{name:28} {value:10.3f}" if isinstance(value, float) else f"{name:28} {value:6}")


async def _measure(node: LocalNode, partitions: int, written: int) -> PartitionsRun:
    node.start()
    async with await _connect(node) as connection, await _connect(node) as other:
        await asyncio.sleep(SETTLE_S)
        empty_kib = _resident_kib(node)
        create_s, create_slowest_ms, topic_id = await _beside(other, _create(connection, "many", partitions))
        await asyncio.sleep(SETTLE_S)
        idle_kib, idle_cpu_s, idle_since_s = _resident_kib(node), _cpu_s(node), clock.monotonic_s()
        await asyncio.sleep(SETTLE_S)
        idle_cpu = (_cpu_s(node) - idle_cpu_s) / (clock.monotonic_s() - idle_since_s)
        create_more_s, create_more_slowest_ms, _ = await _beside(other, _create(connection, "more", MORE_PARTITIONS))
        delete_more_s, delete_more_slowest_ms, _ = await _beside(other, _delete(connection, "more"))
        for index in range(written):
            await _produce(connection, topic_id, index)
    clean_stop_s = _stop(node)
    restart_s, connection = await _restart(node, topic_id)
    async with connection:
        restarted_kib = _resident_kib(node)
        for index in range(written):
            await _produce(connection, topic_id, index)
    node.kill()
    kill_restart_s, connection = await _restart(node, topic_id)
    await connection.close()
    return PartitionsRun(
        partitions=partitions,
        create_s=create_s,
        create_slowest_ms=create_slowest_ms,
        create_more_s=create_more_s,
        create_more_slowest_ms=create_more_slowest_ms,
        delete_more_s=delete_more_s,
        delete_more_slowest_ms=delete_more_slowest_ms,
        idle_kib_per_partition=(idle_kib - empty_kib) / partitions,
        idle_cpu_percent=100 * idle_cpu,
        clean_stop_s=clean_stop_s,
        restart_s=restart_s,
        restarted_mib=restarted_kib / 1024,
        restarted_kib_per_partition=(restarted_kib - empty_kib) / partitions,
        kill_restart_s=kill_restart_s,
        written=written,
    )


async def _beside(other: Connection, action: Awaitable[T]) -> tuple[float, float, T]:
    """(seconds of the action, milliseconds of the slowest answer to the other client meanwhile, what came of it)."""
    slowest_s = 0.0
    is_over = False

    async def ask() -> None:
        nonlocal slowest_s
        question = ApiVersionsRequest(client_software_name="bench", client_software_version=__version__)
        while not is_over:
            asked_s = clock.monotonic_s()
            await other.call(question, timeout_ms=int(DEADLINE_S * 1000))
            slowest_s = max(slowest_s, clock.monotonic_s() - asked_s)
            await asyncio.sleep(ASK_PAUSE_S)

    asking = asyncio.create_task(ask())
    await asyncio.sleep(10 * ASK_PAUSE_S)
    started_s = clock.monotonic_s()
    result = await action
    seconds = clock.monotonic_s() - started_s
    is_over = True
    await asking
    return seconds, 1000 * slowest_s, result


async def _create(connection: Connection, name: str, partitions: int) -> UUID:
    topic = CreatableTopic(
        name=TopicName(name), num_partitions=i32(partitions), replication_factor=i16(1), assignments=(), configs=()
    )
    request = CreateTopicsRequest(topics=(topic,), timeout=TIMEOUT, validate_only=False)
    answer = await connection.call(request, timeout_ms=int(DEADLINE_S * 1000))
    assert isinstance(answer, CreateTopicsResponse)
    created = answer.topics[0]
    if created.topic_id is None:
        raise click.ClickException(f"topic {name} was refused: {created.error_message}")
    return created.topic_id


async def _delete(connection: Connection, name: str) -> None:
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name=TopicName(name), topic_id=None),), timeout=TIMEOUT)
    answer = await connection.call(request, timeout_ms=int(DEADLINE_S * 1000))
    assert isinstance(answer, DeleteTopicsResponse)
    if answer.responses[0].error_code != 0:
        raise click.ClickException(f"topic {name} was not deleted: {answer.responses[0].error_message}")


async def _produce(connection: Connection, topic_id: UUID, index: int) -> None:
    batch = write_batch([Record(0, clock.now_ms(), None, b"record")])
    data = TopicProduceData(
        topic_id=topic_id, partition_data=(PartitionProduceData(index=i32(index), records=Records(batch)),)
    )
    answer = await connection.call(
        ProduceRequest(transactional_id=None, acks=i16(-1), timeout=TIMEOUT, topic_data=(data,))
    )
    assert isinstance(answer, ProduceResponse)
    error = answer.responses[0].partition_responses[0].error_code
    if error != 0:
        raise click.ClickException(f"a record was refused: {error!r}")


def _stop(node: LocalNode) -> float:
    started_s = clock.monotonic_s()
    node.stop(timeout_s=DEADLINE_S)
    return clock.monotonic_s() - started_s


async def _restart(node: LocalNode, topic_id: UUID) -> tuple[float, Connection]:
    started_s = clock.monotonic_s()
    node.start()
    connection = await _connect(node)
    await _produce(connection, topic_id, 0)
    return clock.monotonic_s() - started_s, connection


async def _connect(node: LocalNode) -> Connection:
    started_s = clock.monotonic_s()
    while True:
        try:
            return await connect(HOST, node.port)
        except ConnectionError:
            if not node.is_running or clock.monotonic_s() - started_s > DEADLINE_S:
                raise node.failure("did not listen") from None
            await asyncio.sleep(CONNECT_PAUSE_S)


def _resident_kib(node: LocalNode) -> int:
    """By Linux's /proc."""
    assert node.process is not None
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def _cpu_s(node: LocalNode) -> float:
    assert node.process is not None
    fields = Path(f"/proc/{node.process.pid}/schedstat").read_text().split()
    return int(fields[0]) / 1e9


if __name__ == "__main__":
    main()
