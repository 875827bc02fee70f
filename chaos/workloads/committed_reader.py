"""A read_committed reader of a topic that reads all the time, while transactions are open, aborted and lost."""

from types import TracebackType
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from ...client.client_log import SILENT_LOGGER
from ...local.background_work import BackgroundWork
from ..checkers.records import Stored

_POLL_S: Final = 0.1
_MAX_MESSAGES: Final = 1_000


class CommittedReader(BackgroundWork):
    """Reads from the start of each partition between `__enter__` and `__exit__`."""

    def __init__(self, bootstrap: str, topic: str, *, partitions: int) -> None:
        super().__init__("committed-reader")
        self.read: list[list[Stored]] = [[] for _ in range(partitions)]
        """By partition, in the order in which it came."""
        self.errors: list[str] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "none",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.max.ms": 200,
            },
            logger=SILENT_LOGGER,
        )
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])

    @property
    def count(self) -> int:
        return sum(map(len, self.read))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._consumer.close()

    def _work(self) -> None:
        while not self._is_ended.is_set():
            for message in self._consumer.consume(_MAX_MESSAGES, _POLL_S):
                error = message.error()
                if error is None:
                    value, offset = message.value(), message.offset()
                    assert isinstance(value, bytes), "every output has a value"
                    self.read[message.partition() or 0].append(Stored(offset or 0, value))
                elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                    # An offset that was read is not there: what was read as committed is lost.
                    self.errors.append(error.str())
