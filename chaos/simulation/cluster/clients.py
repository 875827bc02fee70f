"""The clients of a simulated cluster: unmodified `aiokafka`, which is told nothing of the simulation.

A producer numbers what it sends; when one fails, another with a new name takes its place. What was acknowledged and
what was read is the history that the run is judged by.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from ....protocol.structs import replace
from ...checkers.records import Sent, Stored
from .loop import SimulatedLoop
from .simulated_client import RevivingClient, SimulatedClient

T = TypeVar("T")

# After which a client begins anew. KeyError: aiokafka closes a connection whose request timed out, and has forgotten
# it where it had been lost meanwhile.
CLIENT_FAILURES = (KafkaError, OSError, KeyError)

_RETRY_S = 0.2
# One that has found a node that knew no unfenced broker, and then loses the connection, waits without end.
_PATIENCE_S = 30.0
# Between two records of a producer, on average.
_PACES_S = (0.02, 0.05, 0.2)
_PADDING_BYTES = (*7 * (0,), 10, 100, 1_000)
_TOPIC_ALREADY_EXISTS = 36


@dataclass(slots=True)
class History:
    """What clients did to one topic."""

    topic: str
    partition_count: int
    committed_end: Callable[[str, int], int]
    """By topic and partition: how far any replica says that it is committed."""
    sent: dict[tuple[str, int], list[Sent]] = field(default_factory=dict)
    """By producer and partition; the place in the list is the number."""
    values: list[dict[int, bytes]] = field(default_factory=list)
    """By partition and offset, what was read."""
    violations: list[str] = field(default_factory=list)
    acknowledged_count: int = 0
    read_count: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.values = [{} for _ in range(self.partition_count)]

    def on_acknowledged(self, sent: list[Sent], number: int, partition: int, offset: int) -> None:
        """An offset below 0 tells that the record is stored, and not where."""
        self.acknowledged_count += 1
        if offset < 0:
            return
        sent[number] = replace(sent[number], offset=offset)
        self._check_committed(f"{sent[number].producer} {number} was acknowledged", partition, offset)

    def on_read(self, who: str, partition: int, offset: int, value: bytes) -> None:
        self.read_count += 1
        self._check_committed(f"{who} read", partition, offset)
        known = self.values[partition].setdefault(offset, value)
        if known != value:
            self.violations.append(
                f"{who} read {value[:40]!r} at offset {offset} of partition {partition}, where {known[:40]!r} was read"
            )

    def _check_committed(self, what: str, partition: int, offset: int) -> None:
        committed_end = self.committed_end(self.topic, partition)
        if offset >= committed_end:
            self.violations.append(
                f"{what} at offset {offset} of partition {partition}, which is committed up to {committed_end}"
            )


class Producer(SimulatedClient):
    """One after the other, until `is_stopping`."""

    def __init__(
        self, name: str, bootstrap: Sequence[str], history: History, *, is_idempotent: bool, loop: SimulatedLoop,
        random: Random, request_timeout_ms: int, trace: Callable[[str], None],
    ) -> None:  # fmt: skip
        super().__init__(name, f"10.0.1.{len(name) + int(name[-1])}", loop=loop, random=random)
        self.is_idempotent = is_idempotent
        self.acknowledged_count = 0
        self._bootstrap = list(bootstrap)
        self._history = history
        self._request_timeout_ms = request_timeout_ms
        self._trace = trace
        self._is_broken = False
        # The stops of all lives, some of which may go on.
        self._leaving: list[asyncio.Future[None]] = []

    async def _run(self) -> None:
        life = 0
        while not self.is_stopping:
            life += 1
            await self._live(f"{self._name}.{life}")
        leaving = [stopping for stopping in self._leaving if not stopping.done()]
        if leaving:
            # What they write is acknowledged to their records.
            await asyncio.wait(leaving, timeout=_PATIENCE_S)
        self.is_done = True

    async def _live(self, name: str) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            client_id=name,
            acks="all",
            enable_idempotence=self.is_idempotent,
            linger_ms=self._random.choice((0, 0, 5, 20)),
            request_timeout_ms=self._request_timeout_ms,
            retry_backoff_ms=self._random.choice((20, 100)),
            metadata_max_age_ms=5_000,
        )
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await producer.start()
        except TimeoutError as error:
            self._history.errors[type(error).__name__] += 1
            await self._stop(producer)
            return
        except CLIENT_FAILURES as error:
            self._history.errors[type(error).__name__] += 1
            await asyncio.sleep(_RETRY_S)
            return
        self._is_broken = False
        pace_s = self._random.choice(_PACES_S)
        try:
            while not self.is_stopping and not self._is_broken:
                await self._send(producer, name)
                await asyncio.sleep(self._random.expovariate(1 / pace_s))
            if not self._is_broken:
                await producer.flush()
        except CLIENT_FAILURES as error:
            self._history.errors[type(error).__name__] += 1
        await self._stop(producer)

    async def _stop(self, producer: Any) -> None:
        self._leaving.append(await stop_client(producer, timeout_s=self._request_timeout_ms / 1000))

    async def _send(self, producer: Any, name: str) -> None:
        history = self._history
        partition = self._random.randrange(history.partition_count)
        sent = history.sent.setdefault((name, partition), [])
        number = len(sent)
        padding = b"." * self._random.choice(_PADDING_BYTES)
        value = f"{name} {partition} {number} ".encode() + padding
        sent.append(Sent(producer=name, number=number, value=value))
        delivered = await producer.send(history.topic, value, partition=partition)
        delivered.add_done_callback(lambda future: self._on_delivered(future, sent, number, partition))

    def _on_delivered(self, future: asyncio.Future[Any], sent: list[Sent], number: int, partition: int) -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._history.errors[type(error).__name__] += 1
            if self.is_idempotent:
                self._is_broken = True
            return
        offset = future.result().offset
        self.acknowledged_count += 1
        self._trace(f"acknowledged {sent[number].value[:24]!r} {offset}")
        self._history.on_acknowledged(sent, number, partition, offset)


class Consumer(RevivingClient):
    """Reads every partition from its start on, and anew after a failure."""

    # An assertion of the client: that it has a position, when records come after it lost that.
    failures = (*CLIENT_FAILURES, AssertionError)

    def __init__(
        self, name: str, bootstrap: Sequence[str], history: History, *,
        loop: SimulatedLoop, random: Random,
    ) -> None:  # fmt: skip
        super().__init__(name, f"10.0.2.{int(name[-1])}", history.errors, loop=loop, random=random)
        self.positions = [0] * history.partition_count
        """By partition, where it will read next."""
        self._bootstrap = list(bootstrap)
        self._history = history

    async def _live(self, _name: str) -> None:
        history = self._history
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            client_id=self._name,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            request_timeout_ms=5_000,
            retry_backoff_ms=100,
            metadata_max_age_ms=5_000,
            fetch_max_wait_ms=self._random.choice((100, 500)),
        )
        await consumer.start()
        try:
            places = [TopicPartition(history.topic, index) for index in range(history.partition_count)]
            consumer.assign(places)
            assignment = consumer._subscription.subscription.assignment
            # An error that the client does not handle ends its fetching, silently: it would wait without end.
            fetching = consumer._fetcher._fetch_task
            while not self.is_stopping:
                if fetching.done():
                    raise KafkaError("the client fetches no more")
                batches = await consumer.getmany(timeout_ms=500)
                for place, records in batches.items():
                    for record in records:
                        history.on_read(self._name, place.partition, record.offset, record.value)
                for place in places:
                    # Records that it never read may be deleted: then it goes on behind them.
                    state = assignment.state_value(place)
                    if state.has_valid_position:
                        self.positions[place.partition] = max(self.positions[place.partition], state.position)
        finally:
            await consumer.stop()


async def stop_client(client: Any, *, timeout_s: float) -> asyncio.Future[None]:
    """Returns the stop, which may go on: one that failed may wait without end for what it has given up, or end as if
    it had been cancelled."""
    stopping: asyncio.Future[None] = asyncio.ensure_future(client.stop())
    await asyncio.wait([stopping], timeout=timeout_s)
    if stopping.done() and not stopping.cancelled():
        stopping.exception()
    return stopping


async def patiently(work: Awaitable[T], timeout_s: float) -> T:
    """Like `asyncio.wait_for`, but a client that does not end when it is cancelled is left to itself."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait([task], timeout=timeout_s)
    except BaseException:
        task.cancel()
        raise
    if not done:
        task.cancel()
        raise TimeoutError
    return task.result()


async def create_topic(
    bootstrap: Sequence[str], name: str, *, partitions: int, replication_factor: int, configs: dict[str, str]
) -> None:
    while True:
        admin = AIOKafkaAdminClient(bootstrap_servers=list(bootstrap), request_timeout_ms=5_000)
        try:
            await admin.start()
            topic = NewTopic(name, partitions, replication_factor, topic_configs=configs)
            response = await admin.create_topics([topic])
            code = response.topic_errors[0][1]
        except (KafkaError, OSError, AttributeError):
            # Before it knows a controller, the client fails as it should not.
            code = -1
        finally:
            await admin.close()
        if code in (0, _TOPIC_ALREADY_EXISTS):
            return
        await asyncio.sleep(_RETRY_S)


async def read_all(
    bootstrap: Sequence[str], topic: str, partition: int, *, isolation_level: str = "read_uncommitted"
) -> list[Stored]:
    """Every record of a partition, up to the end that it has when this begins."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=list(bootstrap), group_id=None, enable_auto_commit=False, auto_offset_reset="earliest",
        isolation_level=isolation_level,
        # A client that looks for where to begin does not ask anew who leads when it is refused.
        metadata_max_age_ms=5_000,
    )  # fmt: skip
    await consumer.start()
    try:
        place = TopicPartition(topic, partition)
        consumer.assign([place])
        records, _ = await read_to_end(consumer, place)
        return [Stored(record.offset, record.value) for record in records]
    finally:
        await consumer.stop()


async def read_to_end(consumer: Any, place: TopicPartition, *, poll_ms: int = 1_000) -> tuple[list[Any], int]:
    """What lies between the position in a partition, the only one that is assigned, and the end that it has now; and
    that end."""
    end_offset = (await consumer.end_offsets([place]))[place]
    read: list[Any] = []
    while await consumer.position(place) < end_offset:
        for records in (await consumer.getmany(timeout_ms=poll_ms)).values():
            read += records
    return read, end_offset
