"""What others notice of a crowd of clients that do not behave, and what it costs the node in memory.

`python -m penstock.bench.crowd` starts a node, measures small requests and single produced records of one client alone,
then beside each crowd of `crowds.py`, and prints a line for each; with --json one object.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import statistics
import struct
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import asdict

from ..client import clock
from ..local.cluster import LocalCluster
from ..local.local_node import HOST, LocalNode
from ..protocol.apis import ApiKey
from ..protocol.records import Record, write_batch
from .crowds import Crowd, allow_sockets, behaviours, question

TOPIC = "crowd"
TOPIC_BYTES = 32 * 1024 * 1024
COUNTS = {
    "idle": 5000,
    "unfinished": 5000,
    "slow-writers": 1000,
    "slow-readers": 500,
    "never-read": 2000,
    "pipeliners": 20,
    "boasters": 200,
}
PROBE_PAUSE_S = 0.004
SETTLE_S = 2.0


class Latencies(Struct, frozen=True, kw_only=True):
    """Milliseconds of a well-behaved client's requests, one at a time."""

    question_p50: float
    question_p99: float
    produce_p50: float
    produce_p99: float


class CrowdResult(Struct, frozen=True, kw_only=True):
    """One crowd beside the client."""

    name: str
    connections: int
    alone: Latencies
    beside: Latencies
    resident_mib_before: float
    resident_mib: float
    """The most that was seen while the crowd was there."""

    @property
    def kib_per_connection(self) -> float:
        return max(0.0, self.resident_mib - self.resident_mib_before) * 1024 / self.connections


@click.command()
@click.option("--seconds", default=10, show_default=True, type=click.IntRange(min=2), help="Of each measurement.")
@click.option("--only", "names", multiple=True, type=click.Choice(tuple(COUNTS)), help="This crowd; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
def main(seconds: int, names: tuple[str, ...], as_json: bool) -> None:
    """Every crowd at a node of its own."""
    wanted = names or tuple(COUNTS)
    if not allow_sockets(max(COUNTS[name] for name in wanted)):
        raise click.ClickException("the limit of open files is too low for the largest crowd (ulimit -Hn)")
    results = [measure(name, COUNTS[name], seconds) for name in wanted]
    if as_json:
        click.echo(
            json.dumps([asdict(result) | {"kib_per_connection": result.kib_per_connection} for result in results])
        )
        return
    for result in results:
        alone, beside = result.alone, result.beside
        click.echo(
            f"{result.name:12} {result.connections:5} connections"
            f"  question p50 {alone.question_p50:.2f} → {beside.question_p50:.2f} ms"
            f" p99 {alone.question_p99:.2f} → {beside.question_p99:.2f} ms"
            f"  produce p50 {alone.produce_p50:.2f} → {beside.produce_p50:.2f} ms"
            f" p99 {alone.produce_p99:.2f} → {beside.produce_p99:.2f} ms"
            f"  memory {result.resident_mib_before:.0f} → {result.resident_mib:.0f} MiB"
            f" ({result.kib_per_connection:.1f} KiB a connection)"
        )


def measure(name: str, count: int, seconds: int) -> CrowdResult:
    """A node, a client alone, the crowd, the client beside it."""
    with (
        tempfile.TemporaryDirectory(prefix="penstock-crowd-") as folder,
        LocalCluster(Path(folder)) as cluster,
        # A process of its own, so that the crowd's work is not the client's.
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor,
    ):
        node = cluster.nodes[1]
        fill(node.port)
        executor.submit(probe, node.port, 1).result()
        alone = executor.submit(probe, node.port, seconds).result()
        before_mib = most_mib = resident_mib(node)
        with Crowd(HOST, node.port, behaviours(TOPIC)[name], count) as crowd:
            clock.pause(SETTLE_S)
            probing = executor.submit(probe, node.port, seconds)
            while not probing.done():
                crowd.tick()
                most_mib = max(most_mib, resident_mib(node))
                clock.wait_until(probing.done, timeout_s=1.0)
            beside = probing.result()
        return CrowdResult(
            name=name,
            connections=count,
            alone=alone,
            beside=beside,
            resident_mib_before=before_mib,
            resident_mib=most_mib,
        )


def fill(port: int) -> None:
    """Creates the topic and fills it."""
    batch = write_batch([Record(0, clock.now_ms(), None, bytes(512 * 1024))])
    with socket.create_connection((HOST, port)) as connection:
        connection.settimeout(30)
        name = TOPIC.encode()
        metadata = struct.pack(">hhih", ApiKey.METADATA, 4, 1, -1) + struct.pack(">ih", 1, len(name)) + name + b"\1"
        ask(connection, struct.pack(">i", len(metadata)) + metadata)
        for _ in range(TOPIC_BYTES // len(batch)):
            ask(connection, produce_request(batch))


def probe(port: int, seconds: int) -> Latencies:
    """Asks and produces in turn for so long."""
    small = produce_request(write_batch([Record(0, clock.now_ms(), None, bytes(100))]))
    questions: list[float] = []
    produces: list[float] = []
    with socket.create_connection((HOST, port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(60)
        end_s = clock.monotonic_s() + seconds
        while clock.monotonic_s() < end_s:
            for request, latencies in ((question(), questions), (small, produces)):
                started_s = clock.monotonic_s()
                ask(connection, request)
                latencies.append((clock.monotonic_s() - started_s) * 1000)
            clock.pause(PROBE_PAUSE_S)
    return Latencies(
        question_p50=statistics.median(questions),
        question_p99=statistics.quantiles(questions, n=100)[98],
        produce_p50=statistics.median(produces),
        produce_p99=statistics.quantiles(produces, n=100)[98],
    )


def produce_request(batch: bytes) -> bytes:
    """Produce version 3 with acks=1 to partition 0."""
    name = TOPIC.encode()
    body = struct.pack(">hhih", ApiKey.PRODUCE, 3, 1, -1) + struct.pack(">hhii", -1, 1, 30_000, 1)
    body += struct.pack(">h", len(name)) + name + struct.pack(">iii", 1, 0, len(batch)) + batch
    return struct.pack(">i", len(body)) + body


def ask(connection: socket.socket, request: bytes) -> bytes:
    """The answer's frame without its size."""
    connection.sendall(request)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    return _receive(connection, size)


def resident_mib(node: LocalNode) -> float:
    """By Linux's /proc."""
    assert node.process is not None
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        received = connection.recv(size - len(data))
        if not received:
            raise ConnectionError("the node closed the connection")
        data += received
    return bytes(data)


if __name__ == "__main__":
    main()
