"""Single records through librdkafka with `linger.ms=0`: until acknowledged, and until a consumer has them in hand.

One record at a time, 100 bytes, `acks=all`, one partition. Nagle's algorithm is off, as other clients have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns
from typing import Final

import click
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from ...client.client_log import SILENT_LOGGER
from ..payloads import POOL_SIZE, values
from ..quantiles import latencies
from ..target import Target
from ..topics import new_topic
from ..usage import measured

VALUE_BYTES: Final = 100
_WARM_UP: Final = 300
_DEADLINE_S: Final = 30.0


def single(target: Target, *, records: int) -> Mapping[str, float | None]:
    """Send `records` records to be acknowledged, and as many to be consumed."""
    with new_topic(target, 1) as topic:
        run = _Run(target, topic)
        try:
            run.end_to_end(_WARM_UP)
            run.acknowledged(_WARM_UP)
            with measured(target.pids) as acknowledging:
                acknowledged_ns = run.acknowledged(records)
            run.catch_up(records + _WARM_UP)
            with measured(target.pids) as delivering:
                delivered_ns = run.end_to_end(records)
        finally:
            run.close()
    cpu_s = acknowledging.broker_cpu_s
    return {
        **latencies("acknowledged", acknowledged_ns),
        **latencies("end_to_end", delivered_ns),
        "broker_cpu_us_per_record": None if cpu_s is None else cpu_s / records * 1e6,
        "client_cpu_us_per_record": acknowledging.client_cpu_s / records * 1e6,
        "others_cores": delivering.others_cores,
    }


class _Run:
    def __init__(self, target: Target, topic: str) -> None:
        self._name = target.name
        self._topic = topic
        self._values = values(VALUE_BYTES)
        common = {"bootstrap.servers": target.bootstrap, "socket.nagle.disable": True}
        self._producer = Producer({**common, "acks": "all", "linger.ms": 0}, logger=SILENT_LOGGER)
        self._consumer = Consumer(
            {**common, "group.id": "penstock-bench", "enable.auto.commit": False}, logger=SILENT_LOGGER
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        self._acknowledged_ns = 0
        self._find_end()

    def acknowledged(self, count: int) -> list[int]:
        """Nanoseconds from the call to the delivery report."""
        times_ns = []
        for number in range(count):
            start_ns = self._send(number)
            self._wait_acknowledged()
            times_ns.append(self._acknowledged_ns - start_ns)
        return times_ns

    def end_to_end(self, count: int) -> list[int]:
        """Nanoseconds from the call to the record in the consumer's hand."""
        times_ns = []
        for number in range(count):
            start_ns = self._send(number)
            self._receive()
            times_ns.append(perf_counter_ns() - start_ns)
            self._wait_acknowledged()
        return times_ns

    def catch_up(self, count: int) -> None:
        """Read what was sent while this client read nothing."""
        for _ in range(count):
            self._receive()

    def close(self) -> None:
        self._consumer.close()

    def _find_end(self) -> None:
        """The consumer takes its time to learn where the end is; what is sent before is not seen by it."""
        start_ns = perf_counter_ns()
        while perf_counter_ns() - start_ns < _DEADLINE_S * 1e9:
            self._send(0)
            self._wait_acknowledged()
            if self._consumer.poll(0.2) is not None:
                while self._consumer.poll(0.2) is not None:
                    pass
                return
        raise click.ClickException(f"{self._name}: the consumer got nothing within {_DEADLINE_S:g} s.")

    def _send(self, number: int) -> int:
        self._acknowledged_ns = 0
        start_ns = perf_counter_ns()
        self._producer.produce(
            self._topic, self._values[number % POOL_SIZE], partition=0, on_delivery=self._on_delivery
        )
        return start_ns

    def _on_delivery(self, error: object, _message: object) -> None:
        if error is not None:
            raise click.ClickException(f"{self._name}: a record was not acknowledged: {error}.")
        self._acknowledged_ns = perf_counter_ns()

    def _wait_acknowledged(self) -> None:
        while not self._acknowledged_ns:
            self._producer.poll(1.0)

    def _receive(self) -> None:
        message = self._consumer.poll(_DEADLINE_S)
        if message is None or message.error() is not None:
            reason = "nothing came" if message is None else message.error()
            raise click.ClickException(f"{self._name}: a record was not delivered: {reason}.")
