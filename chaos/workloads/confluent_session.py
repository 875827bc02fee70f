"""A session through librdkafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place

from ...client import clock
from ...client.client_log import SILENT_LOGGER
from .outcomes import NotDoneError, UnknownOutcomeError
from .overdue_call import call_within
from .session import (
    DELIVERY_TIMEOUT_MS,
    MAX_POLL_RECORDS,
    REQUEST_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
    Polled,
    Received,
    Send,
    SessionOptions,
    key_of,
    place_of,
)  # fmt: skip
from .transactional_copier import QUICK_RETRIES

# Beyond the delivery timeout, which librdkafka looks at once a second.
_FLUSH_TIMEOUT_S: Final = DELIVERY_TIMEOUT_MS / 1000 + 3
# Of calls of transactions, each of which may be called again while it is retriable.
_CALL_TIMEOUT_S: Final = 5.0
_CALLS_TIMEOUT_S: Final = 15.0
# Of a call beyond the timeout that librdkafka was given.
_OVERDUE_S: Final = 2.0
# What a fatal error is raised as while records are called back, where Python may wrap it or lose it.
_FATAL: Final = (KafkaException, SystemError)


class ConfluentSession:
    def __init__(self, options: SessionOptions) -> None:
        """Raises NotDoneError where transactions cannot begin."""
        common: dict[str, Any] = {
            "bootstrap.servers": options.bootstrap,
            "client.id": options.client_id,
            "socket.timeout.ms": REQUEST_TIMEOUT_MS,
            "socket.connection.setup.timeout.ms": REQUEST_TIMEOUT_MS,
            **QUICK_RETRIES,
        }
        self._producer = self._new_producer(options, common) if options.has_producer else None
        self._consumer = Consumer(
            {
                **common,
                "group.id": options.group or "none",
                "enable.auto.commit": options.has_auto_commit,
                "auto.commit.interval.ms": 500,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed" if options.is_read_committed else "read_uncommitted",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": SESSION_TIMEOUT_MS // 6,
                "topic.metadata.refresh.interval.ms": 5_000,
            },
            logger=SILENT_LOGGER,
        )
        self._reached: dict[str, int] = {}
        if options.transactional_id is not None:
            try:
                self._until_done(self._transactions.init_transactions)
            except KafkaException as error:
                self.close()
                raise NotDoneError(f"transactions did not begin: {error.args[0]}", is_broken=True) from error

    def send(self, sends: Sequence[Send]) -> list[int]:
        assert self._producer is not None, "the session was asked to have a producer"
        offsets: list[int | None] = [None] * len(sends)
        errors: list[str] = []
        for place, (key, value, record_key) in enumerate(sends):
            topic, partition = place_of(key)

            def on_delivery(error: KafkaError | None, message: Message, place: int = place) -> None:
                if error is None:
                    offsets[place] = message.offset()
                else:
                    errors.append(f"{error.name()}: {error.str()}")

            try:
                self._producer.produce(topic, value, record_key, partition=partition, on_delivery=on_delivery)
            except (BufferError, KafkaException) as error:
                if not place:
                    raise NotDoneError(f"not taken: {error}", is_broken=True) from error
                errors.append(f"not taken: {error}")
                break
        try:
            left = self._producer.flush(_FLUSH_TIMEOUT_S)
        except _FATAL as error:
            raise UnknownOutcomeError(f"fatal: {error}", list(offsets)) from error
        told = [offset for offset in offsets if offset is not None]
        if len(told) < len(sends):
            reason = errors[0] if errors else f"{left} records had no outcome"
            raise UnknownOutcomeError(reason, list(offsets))
        return told

    def poll(self, timeout_s: float) -> Polled:
        """What came until the first record, and what is there with it."""
        polled: dict[str, list[Received]] = {}
        error: KafkaError | None = None
        deadline_s = clock.monotonic_s() + timeout_s
        try:
            first = self._consumer.poll(timeout_s)
            # An end of a partition is no record: what there is may be in another one.
            while first is not None and first.error() is not None and clock.monotonic_s() < deadline_s:
                error = self._take(first, polled) or error
                first = self._consumer.poll(max(0.0, deadline_s - clock.monotonic_s()))
        except KafkaException as raised:
            raise NotDoneError(f"the poll failed: {raised.args[0]}") from raised
        messages = [] if first is None else [first]
        # What has come is told, whatever happens to the rest: the position is behind it.
        with suppress(KafkaException):
            messages += [] if first is None else self._consumer.consume(MAX_POLL_RECORDS, 0)
        for message in messages:
            error = self._take(message, polled) or error
        if error is not None and not polled:
            raise NotDoneError(f"the poll failed: {error.name()}: {error.str()}", is_broken=error.fatal())
        return polled

    def assign(self, keys: Sequence[str], *, from_beginning: bool) -> None:
        offset = OFFSET_BEGINNING if from_beginning else OFFSET_END
        self._reached.clear()
        self._do(lambda: self._consumer.assign([Place(*place_of(key), offset) for key in keys]))

    def subscribe(self, topics: Sequence[str]) -> None:
        # With a callback the assignment is taken in polls and nowhere else: committed offsets are never asked for while
        # a transaction of ours is open.
        self._do(lambda: self._consumer.subscribe(list(topics), on_assign=lambda *_: None))

    def seek(self, positions: Mapping[str, int]) -> None:
        for place in _places(positions):
            try:
                self._consumer.seek(place)
            except KafkaException as error:
                # No longer ours: its next owner begins where the last commit ended.
                if error.args[0].code() not in (KafkaError._STATE, KafkaError._UNKNOWN_PARTITION):
                    raise NotDoneError(f"no seek: {error.args[0]}", is_broken=True) from error

    def commit_offsets(self, positions: Mapping[str, int]) -> None:
        try:
            told = self._consumer.commit(offsets=_places(positions), asynchronous=False)
        except KafkaException as error:
            raise UnknownOutcomeError(f"{error.args[0]}") from error
        for place in told or ():
            if place.error is not None:
                raise UnknownOutcomeError(f"{place.error}")

    def begin(self) -> None:
        self._do(self._transactions.begin_transaction)

    def send_offsets(self, positions: Mapping[str, int]) -> None:
        """A call that does not return is not done: nothing commits its transaction, and the next session's producer, of
        the same transactional id, aborts it."""
        producer, group = self._transactions, self._consumer.consumer_group_metadata()

        def call(timeout_s: float) -> None:
            # It ignores its timeout where the group's coordinator has gone from the metadata (librdkafka's issues 5456
            # and 5511). The thread keeps the producer, which is not destroyed under the call.
            call_within(
                timeout_s + _OVERDUE_S,
                lambda: producer.send_offsets_to_transaction(_places(positions), group, timeout_s),
            )

        try:
            self._do(lambda: self._until_done(call))
        except TimeoutError as error:
            raise NotDoneError(f"send_offsets_to_transaction: {error}", is_broken=True) from error

    def commit(self) -> None:
        try:
            self._until_done(self._transactions.commit_transaction)
        except KafkaException as error:
            raise UnknownOutcomeError(f"{error.args[0].name()}: {error.args[0].str()}") from error

    def abort(self) -> None:
        self._do(lambda: self._until_done(self._transactions.abort_transaction))

    def reached(self, key: str) -> int:
        return self._reached.get(key, 0)

    def end(self, key: str) -> int:
        try:
            told = self._consumer.get_watermark_offsets(Place(*place_of(key)), REQUEST_TIMEOUT_MS / 1000, cached=False)
        except KafkaException as error:
            raise NotDoneError(f"no end of {key}: {error.args[0]}") from error
        if told is None:
            raise NotDoneError(f"no end of {key} within {REQUEST_TIMEOUT_MS} ms")
        return int(told[1])

    def rest(self, seconds: float) -> None:
        clock.pause(seconds)

    def close(self) -> None:
        self._consumer.close()
        if self._producer is not None:
            # What is not delivered by now is of unknown outcome; it need not be tried any longer.
            self._producer.purge()
            # One with a fatal error says so to every call, and is given up all the same.
            with suppress(*_FATAL):
                self._producer.flush(1.0)
            self._producer = None

    @property
    def _transactions(self) -> Producer:
        assert self._producer is not None, "the session was asked to have a producer"
        return self._producer

    def _new_producer(self, options: SessionOptions, common: Mapping[str, Any]) -> Producer:
        settings = {**common, "enable.idempotence": options.is_idempotent, "acks": "all", "linger.ms": 0}
        settings["delivery.timeout.ms"] = DELIVERY_TIMEOUT_MS
        settings["request.timeout.ms"] = REQUEST_TIMEOUT_MS
        if options.transactional_id is not None:
            settings["transactional.id"] = options.transactional_id
            settings["transaction.timeout.ms"] = TRANSACTION_TIMEOUT_MS
        return Producer(settings, logger=SILENT_LOGGER)

    def _take(self, message: Message, polled: dict[str, list[Received]]) -> KafkaError | None:
        """Notes how far it shows that its partition was read; the error that it is, if it is one."""
        error = message.error()
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            return error
        if topic is None or partition is None or offset is None:
            return error
        key = key_of(topic, partition)
        if error is None:
            value, record_key = message.value(), message.key()
            received = Received(offset, _bytes_of(value), _bytes_of(record_key))
            polled.setdefault(key, []).append(received)
            offset += 1
        # It falls where the consumer was sent back, as to the beginning of a log that lost its end.
        self._reached[key] = offset
        return None

    def _do(self, call: Callable[[], object]) -> None:
        try:
            call()
        except KafkaException as error:
            needs_abort = error.args[0].txn_requires_abort()
            raise NotDoneError(f"{error.args[0].name()}: {error.args[0].str()}", is_broken=not needs_abort) from error

    def _until_done(self, call: Callable[[float], object]) -> None:
        """Raises KafkaException for what is not retriable, or not done in time."""
        deadline_s = clock.monotonic_s() + _CALLS_TIMEOUT_S
        while True:
            try:
                call(_CALL_TIMEOUT_S)
            except KafkaException as error:
                if not error.args[0].retriable() or clock.monotonic_s() >= deadline_s:
                    raise
            else:
                return


def _places(positions: Mapping[str, int]) -> list[Place]:
    return [Place(*place_of(key), offset) for key, offset in positions.items()]


def _bytes_of(data: object) -> bytes | None:
    return data if isinstance(data, bytes) else None
