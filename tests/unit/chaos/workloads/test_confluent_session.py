"""A session through librdkafka ends each operation, whatever librdkafka does."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.chaos.workloads import confluent_session
from penstock.chaos.workloads.confluent_session import ConfluentSession
from penstock.chaos.workloads.outcomes import NotDoneError
from penstock.chaos.workloads.session import SessionOptions

LONG_S = 60.0
OPTIONS = SessionOptions(bootstrap="127.0.0.1:1", client_id="copier", group="copiers", transactional_id="copier")


class HangingProducer:
    """Its send_offsets_to_transaction ignores its timeout."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.released = threading.Event()

    def init_transactions(self, _timeout_s: float) -> None:
        self.calls.append("init")

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def send_offsets_to_transaction(self, *_given: object) -> None:
        self.calls.append("send_offsets")
        self.released.wait(LONG_S)

    def purge(self) -> None:
        self.calls.append("purge")

    def flush(self, _timeout_s: float) -> int:
        self.calls.append("flush")
        return 0


class SilentConsumer:
    def __init__(self, *_given: object, **_named: object) -> None: ...

    def consumer_group_metadata(self) -> object:
        return object()

    def close(self) -> None: ...


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingProducer]:
    producer = HangingProducer()
    monkeypatch.setattr(confluent_session, "Producer", lambda *_, **__: producer)
    monkeypatch.setattr(confluent_session, "Consumer", SilentConsumer)
    monkeypatch.setattr(confluent_session, "_CALL_TIMEOUT_S", 0.01)
    monkeypatch.setattr(confluent_session, "_OVERDUE_S", 0.0)
    yield producer
    producer.released.set()


def test_offsets_whose_sending_does_not_return_are_not_sent_and_the_session_is_over(producer: HangingProducer) -> None:
    session = ConfluentSession(OPTIONS)
    session.begin()
    with pytest.raises(NotDoneError, match="send_offsets_to_transaction: no return within") as raised:
        session.send_offsets({"t-0": 7})
    assert raised.value.is_broken
    session.close()
    # Once, and nothing of its transaction is ended behind it.
    assert producer.calls == ["init", "begin", "send_offsets", "purge", "flush"]


class OneRecord:
    """Of `t-0`, at offset 4."""

    def error(self) -> None: ...

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 4

    def value(self) -> bytes:
        return b"17"

    def key(self) -> None: ...

    def timestamp(self) -> tuple[int, int]:
        return 1, 0


class FailingConsumer(SilentConsumer):
    """Has one record, and fails after it."""

    def poll(self, _timeout_s: float) -> OneRecord:
        return OneRecord()

    def consume(self, *_given: object) -> list[OneRecord]:
        raise KafkaException(KafkaError(KafkaError._FATAL))


@pytest.mark.usefixtures("producer")
def test_a_record_that_came_before_a_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confluent_session, "Consumer", FailingConsumer)
    session = ConfluentSession(OPTIONS)
    assert {key: [one.offset for one in read] for key, read in session.poll(0.01).items()} == {"t-0": [4]}
    session.close()
