"""How long a node takes from its process start to the first acknowledged record, and how much memory it then holds.

`python -m penstock.bench.startup` prints one line a round, the medians, and with --json one object.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from dataclasses import asdict, dataclass
from datetime import timedelta
from os import sysconf
from pathlib import Path

import click
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.produce.v13.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32, i32Timedelta

from ..chaos.cluster import LocalCluster
from ..chaos.local_node import HOST, LocalNode
from ..client import clock
from ..client.connection import Connection, connect
from ..protocol.records import Record, write_batch

CONNECT_PAUSE_S = 0.002
START_DEADLINE_S = 60.0
SETTLE_S = 2.0
"""Before idle memory is read: whatever a node does once after its start is over by then."""
TIMEOUT = i32Timedelta.parse(timedelta(seconds=30))
TOPIC = TopicName("first")


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupRound:
    """One start of one node in an empty folder."""

    listening_s: float
    """Until the first connection is accepted and answered."""
    acknowledged_s: float
    """Until a topic is created and its first record acknowledged with acks=all."""
    idle_mib: float
    """Resident memory some seconds later."""
    cpu_s: float
    """User and system time of the process until then."""


@click.command()
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
def main(rounds: int, as_json: bool) -> None:
    """Start nodes in empty folders, one after the other."""
    results = [run_round() for _ in range(rounds)]
    medians = StartupRound(
        **{name: statistics.median(getattr(result, name) for result in results) for name in asdict(results[0])}
    )
    if as_json:
        click.echo(json.dumps({"rounds": [asdict(result) for result in results], "median": asdict(medians)}))
        return
    for label, result in [*((f"round {i}", result) for i, result in enumerate(results, start=1)), ("median", medians)]:
        click.echo(
            f"{label:9} listening {result.listening_s:6.3f} s  first record acknowledged {result.acknowledged_s:6.3f} s"
            f"  idle memory {result.idle_mib:5.1f} MiB  CPU {result.cpu_s:5.2f} s"
        )


def run_round() -> StartupRound:
    """Start, measure, stop."""
    with tempfile.TemporaryDirectory(prefix="penstock-startup-") as folder:
        cluster = LocalCluster(Path(folder))
        node = cluster.nodes[1]
        node.write_properties({})
        start_s = clock.monotonic_s()
        node.start()
        try:
            listening_s, acknowledged_s = asyncio.run(_first_record(node, start_s))
            clock.pause(SETTLE_S)
            assert node.process is not None
            idle_mib, cpu_s = _resources(node.process.pid)
        finally:
            node.stop(timeout_s=START_DEADLINE_S)
    return StartupRound(listening_s=listening_s, acknowledged_s=acknowledged_s, idle_mib=idle_mib, cpu_s=cpu_s)


async def _first_record(node: LocalNode, start_s: float) -> tuple[float, float]:
    connection = await _connect(node, start_s)
    listening_s = clock.monotonic_s() - start_s
    async with connection:
        topic = CreatableTopic(name=TOPIC, num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=())
        created = await connection.call(CreateTopicsRequest(topics=(topic,), timeout=TIMEOUT, validate_only=False))
        assert isinstance(created, CreateTopicsResponse)
        batch = write_batch([Record(0, clock.now_ms(), None, b"first")])
        data = TopicProduceData(
            topic_id=created.topics[0].topic_id,
            partition_data=(PartitionProduceData(index=i32(0), records=Records(batch)),),
        )
        request = ProduceRequest(transactional_id=None, acks=i16(-1), timeout=TIMEOUT, topic_data=(data,))
        answer = await connection.call(request)
        assert isinstance(answer, ProduceResponse)
        error = answer.responses[0].partition_responses[0].error_code
        if error != 0:
            raise click.ClickException(f"the first record was refused: {error!r}")
        return listening_s, clock.monotonic_s() - start_s


async def _connect(node: LocalNode, start_s: float) -> Connection:
    while True:
        try:
            return await connect(HOST, node.port)
        except ConnectionError:
            if not node.is_running or clock.monotonic_s() - start_s > START_DEADLINE_S:
                raise node.failure("did not listen") from None
            await asyncio.sleep(CONNECT_PAUSE_S)


def _resources(pid: int) -> tuple[float, float]:
    """(resident MiB, CPU seconds) of a process, by Linux's /proc."""
    status = Path(f"/proc/{pid}/status").read_text()
    resident_kib = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return resident_kib / 1024, (int(fields[11]) + int(fields[12])) / sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
