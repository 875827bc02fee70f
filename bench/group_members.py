"""Members of consumer groups on the wire, one connection each: they join, sync and send heartbeats, and read nothing.

Hundreds of real consumers need more of a machine than three brokers do. What they say to the coordinator is this: the
classic protocol with one leader that deals the partitions out in turn, or KIP-848's heartbeats, in which a member owns
what it is told at once and says so at once.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import count, cycle
from struct import Struct
from typing import Final, Literal

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta

from ..client import clock
from ..client.addresses import Address
from ..client.connection import Connection, connect
from ..local.errors import ClusterError
from ..local.local_node import HOST, LocalNode
from ..protocol.errors import CorruptData, ErrorCode, KafkaError
from .coordinators import DEADLINE_S, coordinator_of
from .wire import text

Protocol = Literal["classic", "consumer"]
PROTOCOLS: Final[Sequence[Protocol]] = ("classic", "consumer")

HEARTBEAT_S: Final = 0.5
SESSION_S: Final = 6.0
"""The least that both allow."""
_REBALANCE_S: Final = 60.0
_RETRY_S: Final = 0.02
_LOOK_S: Final = 0.005
_TIMEOUT_MS: Final = 90_000
_INT: Final = Struct(">i")
_SHORT: Final = Struct(">h")
_NO_OWNED: Final = -1
"""Kafka's length of an absent array of bytes."""
_NOT_NOW: Final = (OSError, KafkaError, CorruptData)


class Group:
    """Members of one group, all subscribed to one topic, each a task of the running loop."""

    def __init__(
        self, name: str, protocol: Protocol, nodes: Mapping[int, LocalNode], topic: str, partition_count: int
    ) -> None:
        self.name = name
        self.nodes = nodes
        self.topic = topic
        self.partition_count = partition_count
        self.members: list[Member] = []
        self._numbers = count(1)
        self._make = ClassicMember if protocol == "classic" else ConsumerMember

    def next_number(self) -> int:
        """Of a member."""
        return next(self._numbers)

    def add(self, members: int) -> None:
        for _ in range(members):
            member = self._make(self)
            self.members.append(member)
            member.start()

    async def kill(self, member: Member) -> None:
        """Without a word to the coordinator."""
        self.members.remove(member)
        await member.stop()

    @property
    def generation(self) -> int:
        """The newest that any member has."""
        return max((member.generation for member in self.members), default=0)

    def is_stable(self, *, since_s: float = 0.0, generation: int = 1) -> bool:
        """Whether all are of one generation, this one or a later one, each has had an answer in it after `since_s`, and
        together they own all partitions."""
        owned = [partition for member in self.members for partition in member.partitions]
        return (
            self.generation >= generation
            and len(owned) == self.partition_count == len(set(owned))
            and all(
                member.is_settled and member.generation == self.generation and member.heard_s > since_s
                for member in self.members
            )
        )

    async def coordinator_id(self) -> int:
        """Raises ClusterError."""
        addresses = [Address(HOST, node.port) for node in self.nodes.values()]
        return int((await coordinator_of(self.name, addresses)).node_id)

    async def stop(self) -> None:
        await asyncio.gather(*[member.stop() for member in self.members])


async def wait_stable(groups: Sequence[Group], *, since_s: float = 0.0, generation: int = 1) -> None:
    """Until all of them are. Raises ClusterError."""
    deadline_s = clock.monotonic_s() + DEADLINE_S
    waiting = list(groups)
    while waiting := [group for group in waiting if not group.is_stable(since_s=since_s, generation=generation)]:
        if clock.monotonic_s() > deadline_s:
            raise ClusterError(f"{len(waiting)} groups are not stable after {DEADLINE_S:g} s, as {waiting[0].name}")
        await asyncio.sleep(_LOOK_S)


class Member(ABC):
    def __init__(self, group: Group) -> None:
        self.group = group
        self.generation = 0
        self.partitions: frozenset[int] = frozenset()
        self.is_settled = False
        self.heard_s = 0.0
        """When the coordinator last said that all is as it was."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        assert self._task is not None, "it was started"
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            try:
                node = self.group.nodes[await self.group.coordinator_id()]
                async with await connect(HOST, node.port, timeout_ms=_TIMEOUT_MS) as connection:
                    await self._take_part(connection)
            except _NOT_NOW:
                await asyncio.sleep(_RETRY_S)

    @abstractmethod
    async def _take_part(self, connection: Connection) -> None:
        """Until that fails: raises what a connection raises, and KafkaError for what a coordinator cannot do."""


class ClassicMember(Member):
    def __init__(self, group: Group) -> None:
        super().__init__(group)
        self._id = ""

    async def _take_part(self, connection: Connection) -> None:
        while True:
            while not self.is_settled:
                await self._join(connection)
            await asyncio.sleep(HEARTBEAT_S)
            answer = await connection.call(
                HeartbeatRequest(
                    group_id=GroupId(self.group.name), generation_id=i32(self.generation), member_id=self._id
                )
            )
            assert isinstance(answer, HeartbeatResponse)
            self._hear(ErrorCode(answer.error_code))

    async def _join(self, connection: Connection) -> None:
        # Version 0 of Kafka's own format: the topics, and no data of the user's.
        metadata = _SHORT.pack(0) + _INT.pack(1) + text(self.group.topic) + _INT.pack(_NO_OWNED)
        request = JoinGroupRequest(
            group_id=GroupId(self.group.name),
            session_timeout=_milliseconds(SESSION_S),
            rebalance_timeout=_milliseconds(_REBALANCE_S),
            member_id=self._id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="roundrobin", metadata=metadata),),
        )
        joined = await connection.call(request)
        assert isinstance(joined, JoinGroupResponse)
        if int(joined.error_code) == ErrorCode.MEMBER_ID_REQUIRED:
            self._id = joined.member_id
            return
        if not self._hear(ErrorCode(joined.error_code)):
            return
        self.is_settled = False
        self._id, self.generation = joined.member_id, int(joined.generation_id)
        is_leader = joined.leader == self._id
        synced = await connection.call(
            SyncGroupRequest(
                group_id=GroupId(self.group.name),
                generation_id=joined.generation_id,
                member_id=self._id,
                group_instance_id=None,
                protocol_type="consumer",
                protocol_name=joined.protocol_name,
                assignments=self._deal([member.member_id for member in joined.members]) if is_leader else (),
            )
        )
        assert isinstance(synced, SyncGroupResponse)
        if self._hear(ErrorCode(synced.error_code)):
            self.partitions = self._dealt(synced.assignment)

    def _hear(self, error: ErrorCode) -> bool:
        """Whether all is well; if not, the member joins again, or looks for the coordinator: then it raises."""
        self.is_settled = error is ErrorCode.NONE
        if self.is_settled:
            self.heard_s = clock.monotonic_s()
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._id = ""
        elif error is not ErrorCode.REBALANCE_IN_PROGRESS:
            raise KafkaError(error)
        return self.is_settled

    def _deal(self, members: Sequence[str]) -> tuple[SyncGroupRequestAssignment, ...]:
        hands: dict[str, list[int]] = {member: [] for member in members}
        for partition, member in zip(range(self.group.partition_count), cycle(sorted(members)), strict=False):
            hands[member].append(partition)
        start = _SHORT.pack(0) + _INT.pack(1) + text(self.group.topic)
        return tuple(
            SyncGroupRequestAssignment(
                member_id=member,
                assignment=start + _INT.pack(len(hand)) + b"".join(map(_INT.pack, hand)) + _INT.pack(_NO_OWNED),
            )
            for member, hand in hands.items()
        )

    def _dealt(self, assignment: bytes) -> frozenset[int]:
        start = _SHORT.size + _INT.size + len(text(self.group.topic))
        (owned,) = _INT.unpack_from(assignment, start)
        first = start + _INT.size
        return frozenset(_INT.unpack_from(assignment, first + number * _INT.size)[0] for number in range(owned))


class ConsumerMember(Member):
    def __init__(self, group: Group) -> None:
        super().__init__(group)
        self._id = f"{group.name}-{group.next_number()}"
        self._owned: tuple[TopicPartitions, ...] = ()

    async def _take_part(self, connection: Connection) -> None:
        has_news = True
        while True:
            is_new = self.generation == 0
            if not has_news:
                await asyncio.sleep(HEARTBEAT_S)
            answer = await connection.call(
                ConsumerGroupHeartbeatRequest(
                    group_id=GroupId(self.group.name),
                    member_id=self._id,
                    member_epoch=i32(self.generation),
                    rebalance_timeout=_milliseconds(_REBALANCE_S if is_new else -0.001),
                    subscribed_topic_names=(TopicName(self.group.topic),) if is_new else None,
                    topic_partitions=self._owned if is_new or has_news else None,
                )
            )
            assert isinstance(answer, ConsumerGroupHeartbeatResponse)
            has_news = self._hear(answer)

    def _hear(self, answer: ConsumerGroupHeartbeatResponse) -> bool:
        """Whether the coordinator waits for an answer: it gave or took a partition, or does not know the member."""
        error = ErrorCode(answer.error_code)
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self.generation, self.partitions, self._owned, self.is_settled = 0, frozenset(), (), False
            return True
        if error is not ErrorCode.NONE:
            raise KafkaError(error)
        self.generation = int(answer.member_epoch)
        self.heard_s = clock.monotonic_s()
        self.is_settled = True
        if answer.assignment is None:
            return False
        told = answer.assignment.topic_partitions
        self.partitions = frozenset(int(partition) for topic in told for partition in topic.partitions)
        self._owned = tuple(TopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions) for topic in told)
        return True


def _milliseconds(seconds: float) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(seconds=seconds))
