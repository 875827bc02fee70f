"""A producer that always has as many records under way as it may, and notes when and how late each is acknowledged."""

from __future__ import annotations

from typing import Final, NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from ..client import clock
from ..client.client_log import SILENT_LOGGER
from ..local.background_work import BackgroundWork
from ..local.errors import ClusterError

OUTSTANDING: Final = 1_000
"""Enough to keep batches going to three leaders, few enough that what one of them delays shows at once."""
VALUE: Final = b"." * 1024
_DELIVERY_TIMEOUT_MS: Final = 120_000
_POLL_S: Final = 0.05


class Acknowledgement(NamedTuple):
    at_s: float
    waited_ns: int


class BusyWriter(BackgroundWork):
    """Idempotent, acks=all, librdkafka's partitioner. It writes between `__enter__` and `__exit__`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__("busy-writer")
        self.acknowledged: list[Acknowledgement] = []
        self.errors: list[str] = []
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "queue.buffering.max.messages": OUTSTANDING,
                "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS,
            },
            logger=SILENT_LOGGER,
        )

    def wait_for(self, seconds: float) -> None:
        """Let it write for so long. Raises ClusterError when a record failed."""
        self._is_ended.wait(seconds)
        if self.errors:
            raise ClusterError(f"{len(self.errors)} records failed, the first with {self.errors[0]}")

    def _work(self) -> None:
        while not self._is_ended.is_set():
            self._send()
        left = self._producer.flush(_DELIVERY_TIMEOUT_MS / 1000)
        if left:
            self.errors.append(f"{left} records had no outcome")

    def _send(self) -> None:
        start_s = clock.monotonic_s()

        def on_delivery(error: KafkaError | None, message: Message) -> None:  # noqa: ARG001 - as the client calls it
            now_s = clock.monotonic_s()
            if error is not None:
                self.errors.append(error.str())
            else:
                self.acknowledged.append(Acknowledgement(now_s, round((now_s - start_s) * 1e9)))

        try:
            self._producer.produce(self._topic, VALUE, on_delivery=on_delivery)
            self._producer.poll(0)
        except BufferError:
            self._producer.poll(_POLL_S)
