"""Members of a group of the consumer protocol (KIP-848) in a simulated cluster: the protocol alone, without fetching.

No client in Python that runs on a loop speaks it. These do as the Java client does: a heartbeat at each interval, which
says all they have, partitions let go before they are given up, commits with the member epoch, joining again when
fenced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Final, NamedTuple
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from ....client.addresses import parse_addresses
from ....client.connection import Connection, connect
from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ...checkers.transactions import Place
from .group_members import GroupHistory
from .loop import SimulatedLoop
from .simulated_client import SimulatedClient
from .zombies import Zombies

HEARTBEAT_S: Final = 0.5
_TIMEOUT_MS: Final = 3_000
# Longer than any session: a member that heartbeats in time revokes in time.
_REBALANCE_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=20))
_RETRY_S: Final = 0.2
_JOIN: Final = 0
_LEAVE: Final = -1
_FENCED: Final = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class Leadership(NamedTuple):
    """Of the partition that the group is in, as the metadata says."""

    node_id: int
    leader_epoch: int


class ConsumerMember(SimulatedClient):
    """One life after the other, until `is_stopping`."""

    def __init__(
        self, name: str, bootstrap: Sequence[str], history: GroupHistory, *,
        coordinator: Callable[[], Leadership | None], committed_end: Callable[[int], int], session_s: float,
        zombies: Zombies,
        loop: SimulatedLoop, random: Random, trace: Callable[[str], None],
    ) -> None:  # fmt: skip
        """`committed_end` tells how far a partition can be read, `session_s` is the group's session timeout."""
        super().__init__(name, f"10.0.6.{int(name[-1])}", loop=loop, random=random)
        self._bootstrap = parse_addresses(",".join(bootstrap))
        self._history = history
        self._coordinator = coordinator
        self._committed_end = committed_end
        self._session_s = session_s
        self._zombies = zombies
        self._former: tuple[str, int] | None = None
        """Id and epoch of the last member that left; no later member has its id."""
        self._trace = trace
        # Of one life.
        self._id = ""
        self._epoch = _JOIN
        self._topic_id: UUID | None = None
        self._positions: dict[int, int | None] = {}
        """Of the partitions that it has; None where it has not asked yet."""
        self._epochs_before: dict[int, int] = {}
        """By partition that it was given, its epoch when it had been told that it has none there."""

    async def _run(self) -> None:
        life = 0
        while not self.is_stopping:
            life += 1
            self._id = f"{self._name}.{life}"
            end_s = self._loop.time() + self._random.expovariate(1 / 8)
            while not self._is_over(end_s):
                try:
                    await self._take_part(end_s)
                except (KafkaError, ConnectionError, TimeoutError, CorruptData) as error:
                    code = error.code.name if isinstance(error, KafkaError) else type(error).__name__
                    self._history.errors[code] += 1
                    await asyncio.sleep(_RETRY_S)
            # Some leave, the others only stop their heartbeats.
            self._let_go(tuple(self._positions))
            self._epoch = _JOIN
            self._epochs_before.clear()
        self.is_done = True

    def _is_over(self, end_s: float) -> bool:
        return self.is_stopping or self._loop.time() >= end_s

    async def _take_part(self, end_s: float) -> None:
        """With one coordinator. Raises as `Connection.call`."""
        node_id, host, port = await self._find_coordinator()
        async with await connect(host, port, client_id=self._id, timeout_ms=_TIMEOUT_MS) as connection:
            while not self._is_over(end_s):
                await self._beat(connection, node_id)
                for partition in sorted(self._positions):
                    await self._work(connection, node_id, partition)
                await self._look(connection, node_id, self._random.randrange(self._history.partition_count))
                await self._haunt()
                await asyncio.sleep(HEARTBEAT_S)
            if self._epoch != _JOIN and (self.is_stopping or self._random.random() < 0.5):
                self._let_go(tuple(self._positions))
                answer: Any = await connection.call(self._heartbeat(_LEAVE))
                if int(answer.error_code) == 0:
                    self._former = (self._id, self._epoch)

    async def _find_coordinator(self) -> tuple[int, str, int]:
        address = self._random.choice(self._bootstrap)
        async with await connect(address.host, address.port, client_id=self._id, timeout_ms=_TIMEOUT_MS) as connection:
            answer: Any = await connection.call(
                FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(self._history.group,))
            )
        (found,) = answer.coordinators
        _check(found.error_code)
        return int(found.node_id), found.host, int(found.port)

    # Membership.

    def _heartbeat(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        owned = tuple(i32(partition) for partition in sorted(self._positions))
        of_topic = (
            (TopicPartitions(topic_id=self._topic_id, partitions=owned),)
            if owned and self._topic_id is not None and epoch != _JOIN
            else ()
        )
        return ConsumerGroupHeartbeatRequest(
            group_id=GroupId(self._history.group),
            member_id=self._id,
            member_epoch=i32(epoch),
            rebalance_timeout=_REBALANCE_TIMEOUT,
            subscribed_topic_names=(TopicName(self._history.topic),),
            subscribed_topic_regex=None,
            topic_partitions=of_topic,
        )

    async def _beat(self, connection: Connection, node_id: int) -> None:
        ownership = self._history.ownership
        joined_above = ownership.highest_epoch if self._epoch == _JOIN else None
        asked, asked_s = self._coordinator(), self._loop.time()
        answer: Any = await connection.call(self._heartbeat(self._epoch))
        error = ErrorCode(int(answer.error_code))
        if error in _FENCED:
            self._trace(f"fenced {self._id} epoch {self._epoch}")
            self._let_go(tuple(self._positions))
            self._epoch = _JOIN
        _check(error)
        if asked is not None and asked == self._coordinator() and asked.node_id == node_id:
            ownership.on_session(self._id, asked_s + self._session_s)
        before, self._epoch = self._epoch, int(answer.member_epoch)
        ownership.on_epoch(self._id, self._epoch, joined_above=joined_above)
        if answer.assignment is not None:
            self._assign(answer.assignment.topic_partitions, asked_s, before)

    def _assign(self, topics: Iterable[Any], asked_s: float, epoch_before: int) -> None:
        assigned: set[int] = set()
        for topic in topics:
            self._topic_id = topic.topic_id
            assigned |= set(map(int, topic.partitions))
        self._let_go(sorted(self._positions.keys() - assigned))
        added = sorted(assigned - self._positions.keys())
        if added:
            self._trace(f"assigned {self._id} epoch {self._epoch} partitions {sorted(assigned)}")
        self._history.ownership.on_assigned(self._id, self._epoch, assigned)
        self._history.ownership.hold(self._id, added, asked_s=asked_s, now_s=self._loop.time())
        self._positions |= dict.fromkeys(added)
        self._epochs_before |= dict.fromkeys(added, epoch_before)

    def _let_go(self, partitions: Iterable[int]) -> None:
        self._history.ownership.release(self._id, partitions)
        for partition in partitions:
            del self._positions[partition]

    # Offsets.

    async def _haunt(self) -> None:
        """A commit as who it was: a member that left, or itself before it was given a partition (KIP-1251)."""
        if not self._zombies.is_due("zombie-commit"):
            return
        topic, group = self._history.topic, self._history.group
        if self._former is not None and self._random.random() < 0.5:
            place = Place(topic, self._random.randrange(self._history.partition_count))
            await self._zombies.commit(group, place, member=self._former[0], epoch=self._former[1])
        elif self._positions:
            partition = self._random.choice(sorted(self._positions))
            # The partition was given to it in this epoch or a later one.
            epoch = self._epochs_before.get(partition, 0) - 1
            if epoch > 0:
                await self._zombies.commit(group, Place(topic, partition), member=self._id, epoch=epoch)

    async def _work(self, connection: Connection, node_id: int, partition: int) -> None:
        """Go on in a partition: from where the group has come to, up to where it can be read."""
        position = self._positions[partition]
        if position is None:
            position = self._positions[partition] = await self._look(connection, node_id, partition)
        end = self._committed_end(partition)
        if end <= position:
            return
        offset = end if self._random.random() < 0.5 else self._random.randint(position + 1, end)
        register = self._history.offsets[partition]
        number = register.begin_commit(offset)
        place = OffsetCommitRequestPartition(
            partition_index=i32(partition), committed_offset=i64(offset), committed_metadata=None
        )
        try:
            answer: Any = await connection.call(
                OffsetCommitRequest(
                    group_id=GroupId(self._history.group),
                    generation_id_or_member_epoch=i32(self._epoch),
                    member_id=self._id,
                    topics=(OffsetCommitRequestTopic(name=TopicName(self._history.topic), partitions=(place,)),),
                )
            )
            _check(answer.topics[0].partitions[0].error_code)
        except BaseException:
            register.on_lost(number)
            raise
        register.on_committed(number)
        self._positions[partition] = offset
        self._trace(f"committed {partition} {offset} by {self._id}")

    async def _look(self, connection: Connection, node_id: int, partition: int) -> int:
        """Where the group has come to; its beginning is 0."""
        register = self._history.offsets[partition]
        number = register.begin_fetch()
        asked = self._coordinator()
        topic = OffsetFetchRequestTopics(name=TopicName(self._history.topic), partition_indexes=(i32(partition),))
        group = OffsetFetchRequestGroup(
            group_id=GroupId(self._history.group), member_id=None, member_epoch=i32(-1), topics=(topic,)
        )
        try:
            answer: Any = await connection.call(OffsetFetchRequest(groups=(group,), require_stable=True))
            (told,) = answer.groups
            _check(told.error_code)
            (place,) = told.topics[0].partitions
            _check(place.error_code)
        except BaseException:
            register.on_fetch_failed(number)
            raise
        offset = int(place.committed_offset)
        if asked is not None and asked == self._coordinator() and asked.node_id == node_id:
            self._history.on_fetched(self._id, partition, number, None if offset < 0 else offset)
        else:
            # Who has been replaced may answer once more, as in Apache Kafka.
            register.on_fetch_failed(number)
        return max(offset, 0)


def _check(code: int) -> None:
    """Raises KafkaError."""
    if int(code):
        raise KafkaError(ErrorCode(int(code)))
