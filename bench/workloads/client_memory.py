"""What clients that consume cost a node in memory: 1,000, each with a fetch session of 100 partitions (KIP-227).

Each has a connection of its own and asks as Apache Kafka's consumer does: its first request names all partitions, the
others what has moved. All wait in the broker for records while its memory is taken; then each partition gets a record,
a few times over, every client reads all of them, and all wait again. A node has room for all sessions, so that none
takes the place of another (`max.incremental.fetch.session.cache.slots`).

Memory is resident (RSS), and with what several processes share counted in parts (PSS). A JVM takes memory from its heap
that the system has given it before: what clients add to it is seen only where they need more than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import click

from ...client import clock
from ..fetch_session import FetchSession
from ..payloads import values
from ..target import Target
from ..topics import leaders, new_topic
from ..usage import measured, proportional_mib, resident_mib
from ..wire import API_VERSIONS_FRAME, ProduceFrame, Socket, batch

CLIENTS: Final = 1_000
PARTITIONS: Final = 100
VALUE_BYTES: Final = 100
ROUNDS: Final = 3
"""A record in each partition, read by all."""
# Apache Kafka shares them out among eight caches by chance.
_SETTINGS: Final = {"max.incremental.fetch.session.cache.slots": "4000"}
SETTLE_S: Final = 2.0
_WAIT_MS: Final = 50_000
"""Longer than a round takes, and shorter than a socket waits for its answer."""
_KIB: Final = 1024


def client_memory(
    target: Target, *, clients: int, partitions: int = PARTITIONS, settle_s: float = SETTLE_S
) -> Mapping[str, float | None]:
    """Memory before, with all sessions waiting, and after they have read."""
    with target.fresh_running(_SETTINGS) as (running, _), new_topic(running, partitions) as topic, ExitStack() as stack:
        (address,) = leaders(running, topic)
        clock.pause(settle_s)
        before = _memory("before", running)
        connections = [_connected(stack, address) for _ in range(clients)]
        sessions = [FetchSession(connection, topic, range(partitions)) for connection in connections]
        with measured(running.pids) as beginning:
            for session in sessions:
                session.begin()
        for session in sessions:
            session.send(max_wait_ms=_WAIT_MS)
        clock.pause(settle_s)
        waiting = _memory("sessions", running)
        producer = stack.enter_context(Socket(address))
        with measured(running.pids) as reading:
            for _ in range(ROUNDS):
                _produce(producer, topic, partitions)
                _read(sessions, partitions)
        clock.pause(settle_s)
        consuming = _memory("consuming", running)
    assert beginning.broker_cpu_s is not None, "its process is known"
    assert reading.broker_cpu_s is not None, "its process is known"
    added_mib = consuming["consuming_resident_mib"] - before["before_resident_mib"]
    return {
        **before,
        **waiting,
        **consuming,
        "kib_per_client": added_mib * _KIB / clients,
        "session_cpu_ms": beginning.broker_cpu_s / clients * 1e3,
        "session_read_cpu_us": reading.broker_cpu_s / (clients * partitions * ROUNDS) * 1e6,
        "others_cores": reading.others_cores,
    }


def _memory(when: str, running: Target) -> dict[str, float]:
    return {
        f"{when}_resident_mib": resident_mib(running.pids),
        f"{when}_proportional_mib": proportional_mib(running.pids),
    }


def _connected(stack: ExitStack, address: tuple[str, int]) -> Socket:
    connection = stack.enter_context(Socket(address))
    connection.send(API_VERSIONS_FRAME)
    connection.receive_answer()
    return connection


def _produce(connection: Socket, topic: str, partitions: int) -> None:
    request = ProduceFrame.of(topic, dict.fromkeys(range(partitions), batch(values(VALUE_BYTES)[:1])))
    connection.send(request.data)
    request.check(connection.receive_answer())


def _read(sessions: Sequence[FetchSession], partitions: int) -> None:
    """Until each has the record of each partition; then all wait again."""
    for session in sessions:
        read = 0
        while read < partitions:
            came = session.receive()
            if not came:
                raise click.ClickException(f"a session waited in vain for {partitions - read} of {partitions} records.")
            read += came
            session.send(max_wait_ms=_WAIT_MS)
