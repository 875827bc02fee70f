"""A session through aiokafka, on a loop of its own that runs while something is asked of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from .outcomes import NotDoneError, UnknownOutcomeError
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

T = TypeVar("T")

# What aiokafka asks again for without a bound of its own.
_CALL_TIMEOUT_S: Final = 15.0
_SEND_TIMEOUT_S: Final = DELIVERY_TIMEOUT_MS / 1000 + 3
_RETRY_BACKOFF_MS: Final = 50
_ERRORS: Final = (KafkaError, OSError, asyncio.TimeoutError)


class AiokafkaSession:
    def __init__(self, options: SessionOptions) -> None:
        """Raises NotDoneError where no node answers, or transactions cannot begin."""
        self._options = options
        self._runner = asyncio.Runner()
        # aiokafka's own tasks end with its connections; what they say then is no news.
        self._runner.get_loop().set_exception_handler(lambda *_: None)
        self._producer: Any = None
        self._consumer: Any = None
        try:
            self._run(self._start())
        except _ERRORS as error:
            self.close()
            raise NotDoneError(f"the client did not start: {_sentence(error)}", is_broken=True) from error

    def send(self, sends: Sequence[Send]) -> list[int]:
        try:
            offsets, error = self._run(self._send_all(sends))
        except TimeoutError as timeout:
            raise UnknownOutcomeError("not even taken in time", [None] * len(sends)) from timeout
        told = [offset for offset in offsets if offset is not None]
        if len(told) < len(sends):
            raise UnknownOutcomeError(error, offsets)
        return told

    def poll(self, timeout_s: float) -> Polled:
        try:
            polled = self._run(self._consumer.getmany(timeout_ms=int(timeout_s * 1000), max_records=MAX_POLL_RECORDS))
        except _ERRORS as error:
            raise NotDoneError(f"the poll failed: {_sentence(error)}") from error
        return {
            key_of(place.topic, place.partition): [Received(one.offset, one.value, one.key) for one in records]
            for place, records in polled.items()
        }

    def assign(self, keys: Sequence[str], *, from_beginning: bool) -> None:
        places = [TopicPartition(*place_of(key)) for key in keys]

        async def assign() -> None:
            self._consumer.assign(places)
            await (self._consumer.seek_to_beginning if from_beginning else self._consumer.seek_to_end)(*places)

        try:
            self._run(assign())
        except _ERRORS as error:
            raise NotDoneError(f"no assignment: {_sentence(error)}", is_broken=True) from error

    def subscribe(self, topics: Sequence[str]) -> None:
        async def subscribe() -> None:
            self._consumer.subscribe(list(topics))

        self._run(subscribe())

    def seek(self, positions: Mapping[str, int]) -> None:
        async def seek() -> None:
            assigned = self._consumer.assignment()
            for key, offset in positions.items():
                place = TopicPartition(*place_of(key))
                # No longer ours otherwise: its next owner begins where the last commit ended.
                if place in assigned:
                    self._consumer.seek(place, offset)

        self._run(seek())

    def commit_offsets(self, positions: Mapping[str, int]) -> None:
        try:
            self._run(self._consumer.commit(_places(positions)))
        except _ERRORS as error:
            raise UnknownOutcomeError(_sentence(error)) from error

    def begin(self) -> None:
        self._do(self._producer.begin_transaction())

    def send_offsets(self, positions: Mapping[str, int]) -> None:
        self._do(self._producer.send_offsets_to_transaction(_places(positions), self._options.group))

    def commit(self) -> None:
        try:
            self._run(self._producer.commit_transaction())
        except _ERRORS as error:
            raise UnknownOutcomeError(_sentence(error)) from error

    def abort(self) -> None:
        self._do(self._producer.abort_transaction())

    def reached(self, key: str) -> int:
        try:
            return int(self._run(self._consumer.position(TopicPartition(*place_of(key)))))
        except _ERRORS:
            return 0

    def end(self, key: str) -> int:
        place = TopicPartition(*place_of(key))
        try:
            return int(self._run(self._consumer.end_offsets([place]))[place])
        except _ERRORS as error:
            raise NotDoneError(f"no end of {key}: {_sentence(error)}") from error

    def rest(self, seconds: float) -> None:
        self._run(asyncio.sleep(seconds))

    def close(self) -> None:
        """Whatever it holds is given up at once where its nodes do not answer."""
        with suppress(*_ERRORS):
            self._run(self._stop())
        self._runner.close()

    async def _start(self) -> None:
        options = self._options
        common = {
            "bootstrap_servers": options.bootstrap,
            "client_id": options.client_id,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
            "retry_backoff_ms": _RETRY_BACKOFF_MS,
            "metadata_max_age_ms": 5_000,
        }
        if options.has_producer:
            transactional = {
                "transactional_id": options.transactional_id,
                "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS,
            }
            self._producer = AIOKafkaProducer(
                **common,
                acks="all",
                enable_idempotence=options.is_idempotent,
                **(transactional if options.transactional_id is not None else {}),
            )
            await self._producer.start()
        self._consumer = AIOKafkaConsumer(
            **common,
            group_id=options.group,
            enable_auto_commit=options.has_auto_commit and options.group is not None,
            auto_commit_interval_ms=500,
            auto_offset_reset="earliest",
            isolation_level="read_committed" if options.is_read_committed else "read_uncommitted",
            fetch_max_wait_ms=50,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=SESSION_TIMEOUT_MS // 6,
        )
        await self._consumer.start()

    async def _send_all(self, sends: Sequence[Send]) -> tuple[list[int | None], str]:
        futures: list[Any] = []
        reason = "no outcome in time"
        for key, value, record_key in sends:
            topic, partition = place_of(key)
            try:
                futures.append(await self._producer.send(topic, value, record_key, partition=partition))
            except _ERRORS as error:
                reason = f"not taken: {_sentence(error)}"
                if not futures:
                    raise NotDoneError(reason, is_broken=True) from error
                break
        done, _ = await asyncio.wait(futures, timeout=_SEND_TIMEOUT_S)
        offsets: list[int | None] = [None] * len(sends)
        for number, future in enumerate(futures):
            if future not in done:
                continue
            failure = future.exception()
            if failure is None:
                offsets[number] = future.result().offset
            else:
                reason = _sentence(failure)
        return offsets, reason

    async def _stop(self) -> None:
        for client in (self._consumer, self._producer):
            if client is not None:
                # A consumer lets out the cancellation of its own tasks, which it awaits (aiokafka's Fetcher.close).
                with suppress(asyncio.CancelledError):
                    async with asyncio.timeout(3.0):
                        await client.stop()

    def _do(self, call: Awaitable[object]) -> None:
        try:
            self._run(call)
        # aiokafka asserts that a producer with a fatal error is not asked for anything more.
        except (*_ERRORS, AssertionError) as error:
            raise NotDoneError(_sentence(error), is_broken=True) from error

    def _run(self, call: Awaitable[T]) -> T:
        """Raises TimeoutError beside what the call raises."""

        async def bounded() -> T:
            async with asyncio.timeout(_CALL_TIMEOUT_S):
                return await call

        return self._runner.run(bounded())


def _places(positions: Mapping[str, int]) -> dict[Any, int]:
    return {TopicPartition(*place_of(key)): offset for key, offset in positions.items()}


def _sentence(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
