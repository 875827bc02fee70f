"""A crowd: 2,000 connected clients of which 200 produce, alone or with 50 that all read the same topic.

Every producer sends one record of 100 bytes a second, each in its own moment, so 200 records a second come in and, with
readers, 10,000 go out, one by one. Either broker can do more: what is measured is how long a record takes in
the crowd and what the crowd costs. Times count from the moment at which a record was due, so a client that was held up
does not hide it. Readers fetch as Apache Kafka's consumer does, and get each record as it comes.
"""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from time import perf_counter_ns
from typing import Final

import click

from ...client import clock
from ..payloads import POOL_SIZE, values
from ..quantiles import latencies
from ..target import Target
from ..topics import leaders, new_topic
from ..usage import measured, resident_mib
from ..wire import API_VERSIONS_FRAME, ProduceFrame, Socket, batch, fetch_frame, next_offsets

VALUE_BYTES: Final = 100
ARRIVALS: Final = 40
"""How many connect at a time. Apache Kafka has 50 wait to be accepted; who comes later tries again after a second."""
_NS: Final = 1_000_000_000
_DRAIN_NS: Final = 30 * _NS
"""How long the last answers may take."""


def crowd(target: Target, *, clients: int, producers: int, readers: int, seconds: int) -> Mapping[str, float | None]:
    """Connect all clients, then let them produce and read for so long."""
    with new_topic(target, 1) as topic, ExitStack() as stack:
        (address,) = leaders(target, topic)
        start_s = clock.monotonic_s()
        members: list[Socket] = []
        while len(members) < clients:
            members.extend(_arrive(stack, address, min(ARRIVALS, clients - len(members))))
        connect_s = clock.monotonic_s() - start_s
        meeting = _Meeting(topic, members[:producers], members[producers : producers + readers])
        meeting.run(1)
        with measured(target.pids) as usage:
            acknowledged_ns, delivered_ns = meeting.run(seconds)
        crowd_mib = resident_mib(target.pids)
    if not meeting.is_complete:
        raise click.ClickException(f"{target.name}: a crowd of {clients} did not get all answers in time.")
    return {
        **latencies("crowd_acknowledged", acknowledged_ns),
        **latencies("crowd_delivered", delivered_ns),
        "crowd_broker_cores": None if usage.broker_cpu_s is None else usage.broker_cpu_s / usage.seconds,
        "crowd_client_cores": usage.client_cpu_s / usage.seconds,
        "crowd_connect_s": connect_s,
        "crowd_mib": crowd_mib if target.pids else None,
        "others_cores": usage.others_cores,
    }


def _arrive(stack: ExitStack, address: tuple[str, int], count: int) -> list[Socket]:
    """Some connect, and each is answered before the next come."""
    arrived = [stack.enter_context(Socket(address)) for _ in range(count)]
    for member in arrived:
        member.send(API_VERSIONS_FRAME)
    for member in arrived:
        member.receive_answer()
    return arrived


class _Meeting:
    """The active members of a crowd, in one loop."""

    def __init__(self, topic: str, producers: list[Socket], readers: list[Socket]) -> None:
        self._topic = topic
        self._pool = [
            ProduceFrame.of(topic, {0: batch([value])}) for value in values(VALUE_BYTES)[: min(POOL_SIZE, 50)]
        ]
        self._producers = producers
        self._due_ns: list[deque[int]] = [deque() for _ in producers]
        self._readers = readers
        self._positions = [0] * len(readers)
        self._sent_at_ns: dict[int, int] = {}
        self._acknowledged_ns: list[int] = []
        self._deliveries: list[tuple[int, int, int]] = []
        self._end_offset = 0
        self._selector = selectors.DefaultSelector()
        for index, member in enumerate(producers):
            self._selector.register(member, selectors.EVENT_READ, (True, index))
        for index, member in enumerate(readers):
            self._selector.register(member, selectors.EVENT_READ, (False, index))
            member.send(fetch_frame(topic, {0: 0}))
        self.is_complete = True

    def run(self, seconds: int) -> tuple[list[int], list[int]]:
        """Nanoseconds from due to acknowledged of each record, and from due to delivered for each reader of each."""
        self._acknowledged_ns, self._deliveries, self._sent_at_ns = [], [], {}
        total = seconds * len(self._producers)
        interval_ns = _NS // len(self._producers)
        self._end_offset += total
        start_ns = perf_counter_ns()
        sent = 0
        while len(self._acknowledged_ns) < total or min(self._positions, default=self._end_offset) < self._end_offset:
            now_ns = perf_counter_ns()
            while sent < total and (due_ns := start_ns + sent * interval_ns) <= now_ns:
                index = sent % len(self._producers)
                self._due_ns[index].append(due_ns)
                self._producers[index].send(self._pool[sent % len(self._pool)].data)
                sent += 1
            if now_ns > start_ns + seconds * _NS + _DRAIN_NS:
                self.is_complete = False
                break
            wait_ns = start_ns + sent * interval_ns - now_ns if sent < total else _NS
            self._hear(max(0, wait_ns) / _NS)
        delivered_ns = [
            at_ns - self._sent_at_ns[offset]
            for first, end, at_ns in self._deliveries
            for offset in range(first, end)
            if offset in self._sent_at_ns
        ]
        return self._acknowledged_ns, delivered_ns

    def _hear(self, timeout_s: float) -> None:
        for key, _ in self._selector.select(timeout_s):
            is_producer, index = key.data
            if is_producer:
                self._on_acknowledged(index)
            else:
                self._on_records(index)

    def _on_acknowledged(self, index: int) -> None:
        answer = self._producers[index].receive_answer()
        offset = self._pool[0].first_offset(answer)
        due_ns = self._due_ns[index].popleft()
        self._sent_at_ns[offset] = due_ns
        self._acknowledged_ns.append(perf_counter_ns() - due_ns)

    def _on_records(self, index: int) -> None:
        reader = self._readers[index]
        before = self._positions[index]
        after = next_offsets(self._topic, reader.receive_answer()).get(0, before)
        if after > before:
            self._deliveries.append((before, after, perf_counter_ns()))
            self._positions[index] = after
        reader.send(fetch_frame(self._topic, {0: after}))
