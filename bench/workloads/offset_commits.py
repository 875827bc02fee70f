"""Commits of one group, ten partitions each, on one connection, so many in flight.

OffsetCommit v2 has no flexible fields, and every broker serves it. A group without members takes commits from any
client, so the cost is that of the commit: the request, the records and their replication, the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from struct import Struct
from typing import Final

from ...client import clock
from ...client.addresses import parse_addresses
from ..coordinators import coordinator_of
from ..target import Target
from ..topics import TIMEOUT_S, admin, new_topic
from ..usage import measured
from ..wire import RequestRefusedError, Socket, frame, text

PARTITIONS: Final = 10
_OFFSET_COMMIT_KEY, _OFFSET_COMMIT_VERSION = 8, 2
_WARM_UP: Final = 1_000
_MICROSECONDS: Final = 1e6
_INT: Final = Struct(">i")
_PARTITION: Final = Struct(">iq")
_ANSWERED: Final = Struct(">ih")


def offset_commits(target: Target, *, in_flight: int, commits: int) -> Mapping[str, float | None]:
    """Commit that often."""
    group = f"penstock-bench-{clock.now_ms()}"
    with new_topic(target, PARTITIONS) as topic:
        coordinator = asyncio.run(coordinator_of(group, parse_addresses(target.bootstrap)))
        with Socket((coordinator.host, int(coordinator.port))) as connection:
            stream = Commits(connection, group, topic)
            stream.send(_WARM_UP, in_flight)
            with measured(target.pids) as usage:
                stream.send(commits, in_flight)
        client = admin(target.bootstrap)  # kept by name: it must outlive its answers
        client.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    broker_cpu_s = usage.broker_cpu_s
    return {
        "requests_per_s": commits / usage.seconds,
        "broker_cpu_us_per_request": None if broker_cpu_s is None else broker_cpu_s / commits * _MICROSECONDS,
        "client_cpu_us_per_request": usage.client_cpu_s / commits * _MICROSECONDS,
        "others_cores": usage.others_cores,
    }


class Commits:
    """Of one group, over a connection that only this uses while it sends."""

    def __init__(self, connection: Socket, group: str, topic: str) -> None:
        self._connection = connection
        self._topic = text(topic)
        # No generation and no member, and the broker's own retention.
        self._start = text(group) + Struct(">i").pack(-1) + text("") + Struct(">q").pack(-1) + _INT.pack(1)
        self._start += self._topic + _INT.pack(PARTITIONS)
        self._sent = 0
        self._unread = b""
        # Size, correlation id, one topic, its partitions.
        self._first_error = 3 * _INT.size + len(self._topic) + _INT.size
        self._answer_size = self._first_error + PARTITIONS * _ANSWERED.size

    def send(self, count: int, in_flight: int) -> None:
        """For each answer that comes another commit goes out. Raises RequestRefusedError."""
        self._commit(min(in_flight, count))
        sent = min(in_flight, count)
        answered = 0
        while answered < count:
            self._unread += self._connection.receive()
            came = len(self._unread) // self._answer_size
            for number in range(came):
                self._check(number * self._answer_size)
            self._unread = self._unread[came * self._answer_size :]
            answered += came
            more = min(came, count - sent)
            if more:
                self._commit(more)
                sent += more

    def _commit(self, count: int) -> None:
        frames = []
        for _ in range(count):
            self._sent += 1
            offsets = b"".join(_PARTITION.pack(index, self._sent) + text("") for index in range(PARTITIONS))
            frames.append(frame(_OFFSET_COMMIT_KEY, _OFFSET_COMMIT_VERSION, self._start + offsets))
        self._connection.send(b"".join(frames))

    def _check(self, start: int) -> None:
        for number in range(PARTITIONS):
            _, error = _ANSWERED.unpack_from(self._unread, start + self._first_error + number * _ANSWERED.size)
            if error:
                raise RequestRefusedError(f"a commit was refused with error code {error}")
