"""Transactions in a run: topics, clients, and what must hold of them when all is healed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition

from ...checkers.transactions import Place, PlaceEnd, judge_transactions, sentences
from .clients import read_all
from .consumer_members import Leadership
from .loop import SimulatedLoop
from .offset_mixer import OffsetMixer
from .process import Process
from .transactional_clients import (
    FAILURES,
    GROUP,
    TransactionalProducer,
    TransactionHistory,
    Transformer,
    committed_offset,
)
from .transactional_readers import TransactionReader
from .zombies import Zombies

TRANSACTIONS_TOPIC: Final = "__transaction_state"
LEDGER: Final = "ledger"
OUTPUT: Final = "output"
_RETRY_S = 0.2

SETTINGS: Final[Mapping[str, str]] = {
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
}
"""Of nodes."""


class TransactionalLoad:
    def __init__(
        self, seed: int, bootstrap: Sequence[str], *, loop: SimulatedLoop, request_timeout_ms: int,
        group_coordinator: Callable[[], Leadership | None], leader: Callable[[Place], int | None],
        zombies: Zombies, trace: Callable[[str], None],
    ) -> None:  # fmt: skip
        """All that it does follows from the seed. `leader` tells which node leads a partition now."""
        self._random = random = Random(f"transactional clients {seed}")
        self._bootstrap = list(bootstrap)
        self._loop = loop
        self._group_coordinator = group_coordinator
        ledger = tuple(Place(LEDGER, index) for index in range(random.choice((1, 2, 3))))
        has_transformers = random.random() < 0.7
        outputs = tuple(Place(OUTPUT, index) for index in range(random.choice((1, 2)) if has_transformers else 0))
        self.history = TransactionHistory(ledger, outputs)
        shared: dict[str, Any] = {"loop": loop, "trace": trace}
        asking = {**shared, "request_timeout_ms": request_timeout_ms, "leader": leader, "zombies": zombies}
        self._producers = [
            TransactionalProducer(
                f"ledger{number}", f"10.0.7.{number}", transactional_id, bootstrap, self.history,
                random=self._new_random(), bumping_share=bumping_share, **asking,
            )
            for number, transactional_id, bumping_share in (
                (1, "ledger", 0.3), (2, "ledger", 0.3), (3, "another ledger", 1.0),
            )
        ]  # fmt: skip
        self._transformers = [
            Transformer(
                f"transformer{number}", f"10.0.8.{number}", "transformer", bootstrap, self.history,
                random=self._new_random(), bumping_share=0.0, group_coordinator=group_coordinator, **asking,
            )
            for number in (range(1, 3) if has_transformers else ())
        ]  # fmt: skip
        self._readers = [
            TransactionReader(
                name, f"10.0.9.{number}", bootstrap, self.history,
                is_read_committed=is_read_committed, random=self._new_random(), **shared,
            )
            for number, (name, is_read_committed) in enumerate(
                (("committed-reader", True), ("uncommitted-reader", False)), 1
            )
        ]  # fmt: skip

        self._mixers = [
            OffsetMixer(
                "mixer1", "10.0.10.1", "mixer", bootstrap, self.history,
                random=Random(f"mixer {seed}"), group_coordinator=group_coordinator, **asking,
            )
            for _ in range(zombies.is_due("mixed-commits"))
        ]  # fmt: skip

    @property
    def commits_offsets(self) -> bool:
        return bool(self._transformers or self._mixers)

    @property
    def violations(self) -> list[str]:
        """What is known before the end."""
        return [violation for mixer in self._mixers for violation in mixer.violations]

    def _new_random(self) -> Random:
        return Random(self._random.getrandbits(64))

    @property
    def topics(self) -> dict[str, int]:
        """How many partitions each has."""
        places = (*self.history.places, *self.history.outputs)
        return {
            topic: sum(place.topic == topic for place in places) for topic in dict.fromkeys(p.topic for p in places)
        }

    @property
    def clients(self) -> list[TransactionalProducer | TransactionReader]:
        return [*self._producers, *self._transformers, *self._mixers, *self._readers]

    @property
    def processes(self) -> list[Process]:
        return [client.process for client in self.clients]

    def start(self) -> None:
        for client in self.clients:
            client.start()

    # Once healed.

    def commit_counts(self) -> list[int]:
        """By transactional id."""
        ids = dict.fromkeys(one.transactional_id for one in self._committers)
        return [
            sum(one.commit_count for one in self._committers if one.transactional_id == transactional_id)
            for transactional_id in ids
        ]

    @property
    def _committers(self) -> list[TransactionalProducer]:
        return [*self._producers, *self._transformers]

    async def finish(self) -> list[str]:
        """End what goes on, and judge. Returns sentences."""
        await self._stop([*self._producers, *self._mixers])
        if self._transformers:
            await self._wait_consumed()
            await self._stop(self._transformers)
        await self._stop(self._readers)
        await self._wait_stable()
        ends = {place: await self._end(place) for place in (*self.history.places, *self.history.outputs)}
        return sentences(judge_transactions(self.history.transactions, self.history.polls, ends))

    async def _stop(self, clients: Sequence[TransactionalProducer | TransactionReader]) -> None:
        for client in clients:
            client.is_stopping = True
        await self._until(lambda: all(client.is_done for client in clients))

    async def _until(self, is_so: Callable[[], bool]) -> None:
        """The run has a deadline for all."""
        while not is_so():  # noqa: ASYNC110 -- no event is set when it becomes so
            await asyncio.sleep(_RETRY_S)

    async def _wait_stable(self) -> None:
        """Until no transaction is open, or for as long as any may be before it is ended for its client."""
        end_s = self._loop.time() + 30
        while self._loop.time() < end_s:
            ends = [
                await self._offset_ends(place.topic, isolation)
                for place in (Place(LEDGER, 0), *self.history.outputs[:1])
                for isolation in ("read_committed", "read_uncommitted")
            ]
            if ends[::2] == ends[1::2]:
                return
            await asyncio.sleep(_RETRY_S)

    async def _wait_consumed(self) -> None:
        """Until all that is committed has been consumed."""
        await self._wait_stable()
        for place in self.history.places:
            records = await read_all(self._bootstrap, *place, isolation_level="read_committed")
            end = records[-1].offset + 1 if records else 0
            await self._until(lambda place=place, end=end: self.history.consumed_ends.get(place, 0) >= end)  # type: ignore[misc]

    async def _offset_ends(self, topic: str, isolation_level: str) -> list[int]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap, group_id=None, isolation_level=isolation_level, request_timeout_ms=5_000
        )
        await consumer.start()
        try:
            places = [TopicPartition(topic, index) for index in range(self.topics[topic])]
            return list((await consumer.end_offsets(places)).values())
        finally:
            await consumer.stop()

    async def _end(self, place: Place) -> PlaceEnd:
        return PlaceEnd(
            committed=tuple(await read_all(self._bootstrap, *place, isolation_level="read_committed")),
            stored=tuple(await read_all(self._bootstrap, *place)),
            # In this order: the marker of a transaction without records here may come between the two.
            high_watermark=(await self._offset_ends(place.topic, "read_uncommitted"))[place.partition],
            last_stable_offset=(await self._offset_ends(place.topic, "read_committed"))[place.partition],
            group_offset=await self._group_offset(place) if self._transformers and place.topic == LEDGER else None,
        )

    async def _group_offset(self, place: Place) -> int:
        while True:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self._bootstrap, group_id=GROUP, enable_auto_commit=False, request_timeout_ms=5_000
            )
            try:
                await consumer.start()
                partition = TopicPartition(*place)
                consumer.assign([partition])
                return await committed_offset(consumer, partition, self._group_coordinator)
            except FAILURES:
                await asyncio.sleep(_RETRY_S)
            finally:
                await consumer.stop()
