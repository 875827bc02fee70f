"""The same stream without a client library: requests that were made before the clock starts, many times over.

What librdkafka needs for a record is more than what a broker needs for it, so on one machine the library decides the
records a second. Here the client's part is a few system calls: batches of 16 KiB, Apache Kafka's default for producers,
one for each partition in a request, five requests in flight on each connection, a connection to each leader. Reading
asks as Apache Kafka's consumer does, up to 1 MiB of a partition and one request at a time, and finds its next offset in
the batch headers. Batches carry no producer id: with one, the second copy would be a duplicate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import click

from ..payloads import values
from ..target import Target
from ..topics import leaders, new_topic, stored_records
from ..usage import measured
from ..wire import ProduceFrame, Socket, batch, fetch_frame, next_offsets
from .stream import throughput

BATCH_BYTES: Final = 16 * 1024
IN_FLIGHT: Final = 5
# Beside its value: lengths, timestamp and offset of a record in a batch.
_RECORD_OVERHEAD: Final = 8


def prepared(target: Target, *, size_bytes: int, partitions: int, records: int) -> Mapping[str, float | None]:
    """Produce and consume at least `records` records."""
    per_batch = max(1, BATCH_BYTES // (size_bytes + _RECORD_OVERHEAD))
    data = batch(values(size_bytes)[:per_batch])
    with new_topic(target, partitions) as topic, ExitStack() as stack:
        led = leaders(target, topic)
        rounds = -(-records // (per_batch * partitions))
        lanes = [
            (stack.enter_context(Socket(address)), ProduceFrame.of(topic, dict.fromkeys(own, data)))
            for address, own in led.items()
        ]
        with measured(target.pids) as sending:
            send_rounds(lanes, rounds)
        sent = rounds * per_batch * partitions
        stored = stored_records(target, topic, partitions)
        if stored != sent:
            raise click.ClickException(f"{target.name}: of {sent} acknowledged records {stored} are there.")
        readers = [(stack.enter_context(Socket(address)), dict.fromkeys(own, 0)) for address, own in led.items()]
        with measured(target.pids) as reading:
            _consume(topic, readers, sent)
    return {
        **throughput("produce", sending, sent, size_bytes),
        **throughput("consume", reading, sent, size_bytes),
    }


def send_rounds(lanes: Sequence[tuple[Socket, ProduceFrame]], rounds: int, in_flight: int = IN_FLIGHT) -> None:
    """Each lane sends its request `rounds` times, so many in flight. Raises RequestRefusedError."""
    in_flight = min(in_flight, rounds)
    for connection, request in lanes:
        for _ in range(in_flight):
            connection.send(request.data)
    for number in range(rounds):
        for connection, request in lanes:
            request.check(connection.receive_answer())
            if number + in_flight < rounds:
                connection.send(request.data)


def _consume(topic: str, readers: list[tuple[Socket, dict[int, int]]], records: int) -> None:
    for connection, positions in readers:
        connection.send(fetch_frame(topic, positions))
    while True:
        for connection, positions in readers:
            positions.update(next_offsets(topic, connection.receive_answer()))
            if sum(sum(read.values()) for _, read in readers) >= records:
                return
            connection.send(fetch_frame(topic, positions))
