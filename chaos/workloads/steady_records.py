"""One idempotent producer that sends a numbered record at a steady pace, and notes when each was acknowledged.

What a fault costs is the longest time without an acknowledgement; what it may not cost is judged by `checkers.records`.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle, pairwise
from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from ...client import clock
from ...client.client_log import SILENT_LOGGER
from ...local.background_work import BackgroundWork
from ...local.errors import ClusterError
from ...protocol.structs import replace
from ..checkers.records import Finding, Sent, judge
from .numbered_records import read_all

INTERVAL_S: Final = 0.01
_DELIVERY_TIMEOUT_MS: Final = 600_000
SETTINGS: Final[Mapping[str, str | int | float | bool]] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    # Longer than any fault: a record that is given up would end the history, not the fault.
    "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS,
    # librdkafka's are 100 ms and 10 s, 100 ms and 1 s: the gap would be the client's waiting, not the cluster's.
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 10,
    # A connection attempt to a node that is gone is refused at once on this machine.
    "socket.connection.setup.timeout.ms": 2_000,
}


class SteadyRecords(BackgroundWork):
    """Writes to the partitions in turn between `__enter__` and `__exit__`."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partitions: int = 1,
        interval_s: float = INTERVAL_S,
        settings: Mapping[str, str | int | float | bool] = SETTINGS,
    ) -> None:
        """`settings` are librdkafka's."""
        super().__init__("steady-records")
        self.topic = topic
        self.acknowledged_s: list[float] = []
        """When each acknowledgement came, by the monotonic clock."""
        self.errors: list[str] = []
        """Of records that were given up."""
        self._interval_s = interval_s
        # By partition; the place in the list is the number.
        self._sent: list[list[Sent]] = [[] for _ in range(partitions)]
        self._partitions = cycle(range(partitions))
        self._producer = Producer({"bootstrap.servers": bootstrap, **settings}, logger=SILENT_LOGGER)

    def wait_acknowledged(self, count: int, *, timeout_s: float) -> None:
        """Until so many more are acknowledged than now. Raises ClusterError."""
        goal, deadline_s = len(self.acknowledged_s) + count, clock.monotonic_s() + timeout_s
        while len(self.acknowledged_s) < goal:
            if clock.monotonic_s() > deadline_s:
                raise ClusterError(f"{goal - len(self.acknowledged_s)} records not acknowledged within {timeout_s:g} s")
            self._is_ended.wait(INTERVAL_S)

    def longest_gap_s(self, since_s: float) -> float:
        """The longest time between acknowledgements, of those that ended after `since_s`."""
        return max((end - start for start, end in pairwise(self.acknowledged_s) if end > since_s), default=0.0)

    def judge(self, bootstrap: str, *, timeout_s: float) -> Sequence[Finding]:
        """Read everything back and compare; after the end of the context."""
        return [
            finding
            for partition, sent in enumerate(self._sent)
            for finding in judge(sent, read_all(bootstrap, self.topic, partition, timeout_s=timeout_s))
        ]

    def _work(self) -> None:
        next_s = clock.monotonic_s()
        while not self._is_ended.is_set():
            self._send()
            next_s += self._interval_s
            # Acknowledgements are noted when they come, not when the next record is due.
            while (left_s := next_s - clock.monotonic_s()) > 0:
                self._producer.poll(left_s)
        left = self._producer.flush(_DELIVERY_TIMEOUT_MS / 1000)
        if left:
            self.errors.append(f"{left} records had no outcome")

    def _send(self) -> None:
        partition = next(self._partitions)
        history = self._sent[partition]
        number = len(history)
        sent = Sent(producer="steady", number=number, value=f"steady {number}".encode())
        history.append(sent)

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.errors.append(error.str())
                return
            self.acknowledged_s.append(clock.monotonic_s())
            history[number] = replace(sent, offset=message.offset())

        self._producer.produce(self.topic, sent.value, partition=partition, on_delivery=on_delivery)
