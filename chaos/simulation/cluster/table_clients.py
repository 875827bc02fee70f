"""Clients of a compacted topic in a simulated cluster: writers of records with keys, and one that reads the table.

A writer sends values and tombstones of few keys; where the run has transactional clients, one of them does so in
transactions that it commits or aborts. The reader reads the topic from its start to its end, again and again: the
table that comes of it has of each key what was acknowledged before it began, or what was sent later
(`chaos/checkers/tables.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from ...checkers.tables import TableHistory, TableRecord, TableSend
from .clients import CLIENT_FAILURES, read_to_end, stop_client
from .loop import SimulatedLoop
from .repeated_reader import RepeatedReader
from .simulated_client import RevivingClient

TABLE: Final = "table"
_PATIENCE_S: Final = 20.0
_KEYS: Final = tuple(f"key{number}".encode() for number in range(12))
_TOMBSTONE_SHARE: Final = 0.1
_PACES_S: Final = (0.02, 0.05, 0.1)
_PADDING_BYTES: Final = (0, 0, 10, 100)
_ABORT_SHARE: Final = 0.3
_STOP_S: Final = 5.0


class TableWriter(RevivingClient):
    failures = (*CLIENT_FAILURES, AssertionError, TimeoutError)
    is_idempotent = True

    def __init__(
        self, name: str, host: str, bootstrap: Sequence[str], history: TableHistory, *, transactional_id: str | None,
        loop: SimulatedLoop, random: Random, request_timeout_ms: int, trace: Callable[[str], None],
    ) -> None:  # fmt: skip
        super().__init__(name, host, history.errors, loop=loop, random=random)
        self.acknowledged_count = 0
        self._bootstrap = list(bootstrap)
        self._history = history
        self._transactional_id = transactional_id
        self._request_timeout_ms = request_timeout_ms
        self._trace = trace
        self._number = 0

    async def _live(self, _name: str) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap, client_id=self._name, acks="all", enable_idempotence=True,
            transactional_id=self._transactional_id, linger_ms=self._random.choice((0, 5, 20)),
            request_timeout_ms=self._request_timeout_ms, retry_backoff_ms=100, metadata_max_age_ms=5_000,
        )  # fmt: skip
        pace_s = self._random.choice(_PACES_S)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await producer.start()
            while not self.is_stopping:
                async with asyncio.timeout(_PATIENCE_S):
                    if self._transactional_id is None:
                        await self._write([await self._send(producer)])
                    else:
                        await self._transact(producer)
                await asyncio.sleep(self._random.expovariate(1 / pace_s))
        finally:
            await stop_client(producer, timeout_s=self._request_timeout_ms / 1000)

    async def _transact(self, producer: Any) -> None:
        await producer.begin_transaction()
        sent = [await self._send(producer) for _ in range(self._random.randint(1, 4))]
        for _, delivered in sent:
            await delivered
        if self._random.random() < _ABORT_SHARE:
            for one, _ in sent:
                one.is_aborted = True
            await producer.abort_transaction()
        else:
            await producer.commit_transaction()
            await self._write(sent)

    async def _send(self, producer: Any) -> tuple[TableSend, Any]:
        self._number += 1
        key = self._random.choice(_KEYS)
        padding = b"." * self._random.choice(_PADDING_BYTES)
        value = f"{self._name} {self._number} ".encode() + padding
        one = TableSend(key, None if self._random.random() < _TOMBSTONE_SHARE else value)
        # Before it is sent: it may arrive though this is told nothing of it.
        self._history.sends.append(one)
        return one, await producer.send(TABLE, one.value, key=key, partition=0)

    async def _write(self, sent: Sequence[tuple[TableSend, Any]]) -> None:
        for one, delivered in sent:
            one.offset = (await delivered).offset
            one.acknowledged_s = self._loop.time()
            self.acknowledged_count += 1
            self._trace(f"acknowledged {one.key!r} {(one.value or b'tombstone')[:24]!r} {one.offset}")


class TableReader(RepeatedReader):
    """One table after the other."""

    def __init__(
        self, name: str, bootstrap: Sequence[str], history: TableHistory, *, loop: SimulatedLoop, random: Random
    ) -> None:
        super().__init__(name, "10.0.2.9", bootstrap, history.errors, loop=loop, random=random)
        self._history = history

    async def _read(self) -> None:
        began_s = self._loop.time()
        records, end_offset = await self._within_patience(read_table(self._bootstrap, client_id=self._name))
        self._history.on_read(self._name, records, end_offset, began_s=began_s)


async def read_table(bootstrap: Sequence[str], *, client_id: str) -> tuple[list[TableRecord], int]:
    """Its committed records, from its start up to the last stable offset when this begins; and that."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=list(bootstrap), client_id=client_id, group_id=None, enable_auto_commit=False,
        auto_offset_reset="earliest", isolation_level="read_committed", metadata_max_age_ms=5_000,
        request_timeout_ms=5_000,
    )  # fmt: skip
    try:
        await consumer.start()
        place = TopicPartition(TABLE, 0)
        consumer.assign([place])
        records, end_offset = await read_to_end(consumer, place, poll_ms=500)
        return [TableRecord(record.offset, record.key, record.value) for record in records], end_offset
    finally:
        await stop_client(consumer, timeout_s=_STOP_S)
