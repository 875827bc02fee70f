"""Single records at a steady rate, each awaited by its producer and by a reader at the end of its topic.

Records count from the moment at which they were due, so one that is held up does not hide it.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Final

import click
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from ..client.client_log import SILENT_LOGGER
from .payloads import POOL_SIZE, values
from .quantiles import latencies
from .target import Target

VALUE_BYTES: Final = 1024
RATE: Final = 200
"""Records a second: far from what either broker can do."""
WARM_UP_S: Final = 2.0
DEADLINE_S: Final = 60.0
_NS: Final = 1_000_000_000


class SteadyRecords:
    """Records of partition 0 of a topic: each sent at its time, acknowledged and read."""

    def __init__(self, target: Target, topic: str) -> None:
        common = {"bootstrap.servers": target.bootstrap, "socket.nagle.disable": True}
        self._name = target.name
        self._topic = topic
        self._producer = Producer({**common, "acks": "all", "linger.ms": 0}, logger=SILENT_LOGGER)
        self._consumer = Consumer(
            {**common, "group.id": "penstock-bench", "enable.auto.commit": False}, logger=SILENT_LOGGER
        )
        self._consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
        self._values = values(VALUE_BYTES)
        self._acknowledged_ns: list[int] = []
        self._read_ns: list[int] = []
        self._read_count = 0
        self._sent_count = 0
        self._due_ns: list[int] = []

    def close(self) -> None:
        self._consumer.close()

    def run(self, seconds: float) -> dict[str, float | None]:
        """Quantiles of the time from when each was due."""
        self._acknowledged_ns, self._read_ns = [], []
        first = len(self._due_ns)
        start_ns = perf_counter_ns()
        self._due_ns += [start_ns + number * _NS // RATE for number in range(int(seconds * RATE))]
        for place in range(first, len(self._due_ns)):
            while (left_ns := self._due_ns[place] - perf_counter_ns()) > 0:
                self._receive(min(left_ns / _NS, 0.001))
            self._producer.produce(
                self._topic,
                self._values[place % POOL_SIZE],
                partition=0,
                on_delivery=lambda error, _, place=place: self._on_delivery(place, error),  # type: ignore[misc]
            )
            self._receive(0)
        deadline_ns = perf_counter_ns() + int(DEADLINE_S * _NS)
        while min(len(self._acknowledged_ns), len(self._read_ns)) < len(self._due_ns) - first:
            self._receive(0.001)
            if perf_counter_ns() > deadline_ns:
                raise click.ClickException(f"{self._name}: records at the end did not come within {DEADLINE_S:g} s.")
        return {**latencies("acknowledged", self._acknowledged_ns), **latencies("end_to_end", self._read_ns)}

    def _receive(self, wait_s: float) -> None:
        self._producer.poll(0)
        message = self._consumer.poll(wait_s)
        if message is not None and message.error() is None:
            self._read_ns.append(perf_counter_ns() - self._due_ns[self._read_count])
            self._read_count += 1

    def _on_delivery(self, place: int, error: object) -> None:
        if error is not None:
            raise click.ClickException(f"{self._name}: a record was not acknowledged: {error}.")
        self._acknowledged_ns.append(perf_counter_ns() - self._due_ns[place])
