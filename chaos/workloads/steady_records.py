"""One idempotent producer that sends a numbered record at a steady pace, and notes when each was acknowledged.

What a fault costs is the longest time without an acknowledgement; what it may not cost is judged by `checkers.records`.
"""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from ...client import clock
from ...client.client_log import SILENT_LOGGER
from ..checkers.records import Finding, Sent, judge
from ..errors import ClusterError
from .numbered_records import read_all

INTERVAL_S: Final = 0.01
SETTINGS: Final[Mapping[str, str | int | float | bool]] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    # Longer than any fault: a record that is given up would end the history, not the fault.
    "delivery.timeout.ms": 600_000,
    # librdkafka's are 100 ms and 10 s, 100 ms and 1 s: the gap would be the client's waiting, not the cluster's.
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 10,
    # A connection attempt to a node that is gone is refused at once on this machine.
    "socket.connection.setup.timeout.ms": 2_000,
}


class Acknowledged(NamedTuple):
    """When a record was sent and acknowledged, by the monotonic clock in seconds."""

    sent_s: float
    acknowledged_s: float


class SteadyRecords:
    """Writes from a thread of its own between `__enter__` and `__exit__`, to the partition that `partition` names.

    `partition` may be changed at any time.
    """

    def __init__(self, bootstrap: str, topic: str, *, partitions: int, interval_s: float = INTERVAL_S) -> None:
        self.topic = topic
        self.partition = 0
        self.acknowledged: list[Acknowledged] = []
        """In the order of the acknowledgements."""
        self.errors: list[str] = []
        """Of records that were given up."""
        self._interval_s = interval_s
        self._sent: list[list[Sent]] = [[] for _ in range(partitions)]
        self._producer = Producer({"bootstrap.servers": bootstrap, **SETTINGS}, logger=SILENT_LOGGER)
        self._is_over = threading.Event()
        self._threads = ThreadPoolExecutor(1)

    def __enter__(self) -> "SteadyRecords":
        self._run_ended = self._threads.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._threads.shutdown()
        self._run_ended.result()

    def wait_acknowledged(self, count: int, *, timeout_s: float) -> None:
        """Until so many more are acknowledged than now. Raises ClusterError."""
        goal, deadline_s = len(self.acknowledged) + count, clock.monotonic_s() + timeout_s
        while len(self.acknowledged) < goal:
            if clock.monotonic_s() > deadline_s:
                raise ClusterError(f"{goal - len(self.acknowledged)} records not acknowledged within {timeout_s:g} s")
            self._is_over.wait(self._interval_s)

    def longest_gap_s(self, since_s: float) -> float:
        """The longest time between acknowledgements, of those that ended after `since_s`."""
        times = [one.acknowledged_s for one in self.acknowledged]
        return max(
            (end - start for start, end in pairwise(times) if end > since_s),
            default=0.0,
        )

    def longest_wait_s(self, since_s: float) -> float:
        """The longest time from a record to its acknowledgement, of those acknowledged after `since_s`."""
        return max(
            (one.acknowledged_s - one.sent_s for one in self.acknowledged if one.acknowledged_s > since_s), default=0.0
        )

    def judge(self, bootstrap: str, *, timeout_s: float) -> Sequence[Finding]:
        """Read everything back and compare; after the end of the context."""
        return [
            finding
            for partition, sent in enumerate(self._sent)
            if sent
            for finding in judge(sent, read_all(bootstrap, self.topic, partition, timeout_s=timeout_s))
        ]

    def _run(self) -> None:
        next_s = clock.monotonic_s()
        while not self._is_over.is_set():
            self._send()
            next_s += self._interval_s
            # Acknowledgements are noted when they come, not when the next record is due.
            while (left_s := next_s - clock.monotonic_s()) > 0:
                self._producer.poll(left_s)
        left = self._producer.flush(SETTINGS["delivery.timeout.ms"] / 1000)  # type: ignore[operator]
        if left:
            self.errors.append(f"{left} records had no outcome")

    def _send(self) -> None:
        partition = self.partition
        history = self._sent[partition]
        number, sent_s = len(history), clock.monotonic_s()
        sent = Sent(producer="steady", number=number, value=f"steady {partition} {number}".encode())
        history.append(sent)

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.errors.append(error.str())
                return
            self.acknowledged.append(Acknowledged(sent_s, clock.monotonic_s()))
            history[number] = Sent(producer=sent.producer, number=number, value=sent.value, offset=message.offset())

        self._producer.produce(self.topic, sent.value, partition=partition, on_delivery=on_delivery)
