"""Members of a consumer group in a simulated cluster: `aiokafka`, which reads, commits, leaves and comes back.

What they are told is judged as it goes: in one generation no partition has two members, generations do not fall
(`chaos/checkers/group_ownership.py`), and the offsets committed are those that were answered
(`chaos/checkers/committed_offsets.py`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError

from ...checkers.committed_offsets import NOTHING, CommittedOffset
from ...checkers.group_ownership import GroupOwnership
from ...checkers.transactions import Place
from .clients import CLIENT_FAILURES, patiently, stop_client
from .loop import SimulatedLoop
from .simulated_client import RevivingClient
from .zombies import Zombies

# Until a client is given up that waits for what will not come: what ends its coordination is told to no caller.
_PATIENCE_S = 20.0
_STOP_S = 5.0


@dataclass(slots=True)
class GroupHistory:
    """What one group has told its members."""

    group: str
    topic: str
    partition_count: int
    offsets: list[CommittedOffset] = field(default_factory=list)
    """By partition."""
    ownership: GroupOwnership = field(default_factory=GroupOwnership)
    wrong_fetches: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.offsets = [CommittedOffset() for _ in range(self.partition_count)]

    def on_fetched(self, member: str, partition: int, number: int, offset: int | None) -> None:
        sentence = self.offsets[partition].on_fetched(number, NOTHING if offset is None else offset)
        if sentence is not None:
            self.wrong_fetches.append(f"{member}, partition {partition}: {sentence}")

    @property
    def violations(self) -> list[str]:
        return [*self.ownership.violations, *self.wrong_fetches]

    @property
    def commit_count(self) -> int:
        return sum(offset.commit_count for offset in self.offsets)


class GroupMember(RevivingClient):
    failures = CLIENT_FAILURES

    def __init__(
        self, name: str, bootstrap: Sequence[str], history: GroupHistory, *,
        zombies: Zombies, loop: SimulatedLoop, random: Random, trace: Callable[[str], None],
    ) -> None:  # fmt: skip
        super().__init__(name, f"10.0.5.{int(name[-1])}", history.errors, loop=loop, random=random)
        self._bootstrap = list(bootstrap)
        self._history = history
        self._zombies = zombies
        self._former: tuple[str, int] | None = None
        """Member id and generation of a life before this one."""
        self._trace = trace

    async def _live(self, name: str) -> None:
        random = self._random
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            client_id=name,
            group_id=self._history.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=random.choice((2_000, 6_000)),
            heartbeat_interval_ms=500,
            rebalance_timeout_ms=5_000,
            request_timeout_ms=5_000,
            retry_backoff_ms=100,
            metadata_max_age_ms=5_000,
        )
        listener = _Listener(name, consumer, self._history, self._trace)
        consumer.subscribe([self._history.topic], listener=listener)
        try:
            await patiently(consumer.start(), _PATIENCE_S)
            end_s = self._loop.time() + random.expovariate(1 / 8)
            while not self.is_stopping and self._loop.time() < end_s:
                for place, records in (await patiently(consumer.getmany(timeout_ms=300), _PATIENCE_S)).items():
                    await self._commit(consumer, place, records[-1].offset + 1)
                await self._look(consumer, name)
                await self._haunt(consumer._coordinator)
        finally:
            coordinator = consumer._coordinator
            if coordinator is not None and coordinator.generation > 0:
                self._former = (coordinator.member_id, coordinator.generation)
            await _stop(consumer)

    async def _commit(self, consumer: Any, place: TopicPartition, offset: int) -> None:
        register = self._history.offsets[place.partition]
        number = register.begin_commit(offset)
        try:
            await patiently(consumer.commit({place: offset}), _PATIENCE_S)
        except CommitFailedError:
            # The group has moved on without it, and it joins again; a try before this one may have come through.
            register.on_lost(number)
        except BaseException:
            register.on_lost(number)
            raise
        else:
            register.on_committed(number)
            self._trace(f"committed {place.partition} {offset}")

    async def _look(self, consumer: Any, name: str) -> None:
        partition = self._random.randrange(self._history.partition_count)
        register = self._history.offsets[partition]
        number = register.begin_fetch()
        try:
            place = TopicPartition(self._history.topic, partition)
            offset = await patiently(consumer.committed(place), _PATIENCE_S)
        except BaseException:
            register.on_fetch_failed(number)
            raise
        self._history.on_fetched(name, partition, number, offset)

    async def _haunt(self, coordinator: Any) -> None:
        """A commit of an earlier life, or of an earlier generation: members have got a later one since."""
        if not self._zombies.is_due("zombie-commit"):
            return
        who = (coordinator.member_id, coordinator.generation - 1)
        if self._former is not None and (who[1] < 1 or self._random.random() < 0.5):
            who = self._former
        if 0 < who[1] < self._history.ownership.highest_epoch:
            place = Place(self._history.topic, self._random.randrange(self._history.partition_count))
            await self._zombies.commit(self._history.group, place, member=who[0], epoch=who[1])


async def _stop(consumer: Any) -> None:
    """It may wait for a coordinator that is not there: then it ends without a word, and takes no part any more."""
    stopping = await stop_client(consumer, timeout_s=_STOP_S)
    if stopping.done() and not stopping.cancelled() and stopping.exception() is None:
        return
    stopping.cancel()
    coordinator = consumer._coordinator
    for task in () if coordinator is None else (coordinator._coordination_task, coordinator._heartbeat_task):
        if task is not None:
            task.cancel()
    await asyncio.wait([asyncio.ensure_future(consumer._client.close())], timeout=_STOP_S)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, name: str, consumer: Any, history: GroupHistory, trace: Callable[[str], None]) -> None:
        self._name = name
        self._consumer = consumer
        self._history = history
        self._trace = trace
        self._joined_above = history.ownership.highest_epoch

    def on_partitions_revoked(self, _revoked: Iterable[TopicPartition]) -> None:
        # It is about to join again.
        self._joined_above = self._history.ownership.highest_epoch

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        # The only place where the client tells the generation.
        generation = self._consumer._coordinator.generation
        partitions = sorted(place.partition for place in assigned)
        self._trace(f"assigned {self._name} generation {generation} partitions {partitions}")
        if generation < 0:
            # A commit of the generation before was refused while it joined this one: it has forgotten both, and is
            # about to join again.
            return
        self._history.ownership.on_epoch(self._name, generation, joined_above=self._joined_above)
        self._history.ownership.on_assigned(self._name, generation, partitions)
