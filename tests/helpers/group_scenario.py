"""The same nodes with a consumer group (KIP-848) whose members read the topic's only partition, told in words too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
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
from replication_scenario import TOPIC, Scenario

from penstock.protocol.errors import ErrorCode
from penstock.protocol.messages import Request

GROUP = "g"
LEAVE = -1
REBALANCE_TIMEOUT = i32Timedelta.parse(timedelta(seconds=20))
TRY_AGAIN = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
SETTINGS = {"offsets.topic.num.partitions": "1", "group.consumer.assignment.interval.ms": "0"}


@dataclass(slots=True)
class _Member:
    epoch: int = 0
    topic_id: UUID | None = None
    owned: tuple[int, ...] = ()

    @property
    def told(self) -> str:
        return f"epoch {self.epoch}, {f'has {TOPIC}-0' if self.owned else 'has nothing'}"


class GroupScenario(Scenario):
    def __init__(self) -> None:
        super().__init__(settings=SETTINGS)
        self._members: dict[str, _Member] = {}

    # What is asked.

    def member_epoch(self, member: str) -> int:
        """That it was told last."""
        return self._members[member].epoch

    # What members do.

    def join(self, member: str) -> None:
        self._members[member] = _Member()
        self._beat(member)
        self.say(f"{member} joins the group: {self._members[member].told}")

    def beat_until_given(self, member: str) -> None:
        """Heartbeats until it is told that the partition is its own."""

        def is_given() -> bool:
            self._beat(member)
            return bool(self._members[member].owned)

        self.until(is_given)
        self.say(f"{member} is given the partition: {self._members[member].told}")

    def beat(self, member: str) -> None:
        self._beat(member)
        self.say(f"{member} sends a heartbeat: {self._members[member].told}")

    def leave(self, member: str) -> None:
        self._call(self._heartbeat(member, LEAVE))
        del self._members[member]
        self.say(f"{member} leaves the group")

    def commit(self, member: str, offset: int, *, epoch: int) -> None:
        place = OffsetCommitRequestPartition(
            partition_index=i32(0), committed_offset=i64(offset), committed_metadata=None
        )
        request = OffsetCommitRequest(
            group_id=GroupId(GROUP), generation_id_or_member_epoch=i32(epoch), member_id=member,
            topics=(OffsetCommitRequestTopic(name=TopicName(TOPIC), partitions=(place,)),),
        )  # fmt: skip
        error = ErrorCode(int(self._call(request).topics[0].partitions[0].error_code))
        outcome = "committed" if error is ErrorCode.NONE else error.name
        self.say(f"{member} commits offset {offset} with member epoch {epoch}: {outcome}")

    def fetch_offset(self) -> None:
        """What who is given the partition next goes on from."""
        wanted = OffsetFetchRequestTopics(name=TopicName(TOPIC), partition_indexes=(i32(0),))
        group = OffsetFetchRequestGroup(group_id=GroupId(GROUP), member_id=None, member_epoch=i32(-1), topics=(wanted,))
        answer = self._call(OffsetFetchRequest(groups=(group,), require_stable=True))
        self.say(f"the group's offset is {answer.groups[0].topics[0].partitions[0].committed_offset}")

    # How.

    def _heartbeat(self, member: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
        known = self._members[member]
        owned: Sequence[TopicPartitions] = ()
        if known.owned and known.topic_id is not None:
            owned = (TopicPartitions(topic_id=known.topic_id, partitions=tuple(map(i32, known.owned))),)
        return ConsumerGroupHeartbeatRequest(
            group_id=GroupId(GROUP), member_id=member, member_epoch=i32(epoch), rebalance_timeout=REBALANCE_TIMEOUT,
            subscribed_topic_names=(TopicName(TOPIC),), subscribed_topic_regex=None, topic_partitions=tuple(owned),
        )  # fmt: skip

    def _beat(self, member: str) -> None:
        known = self._members[member]
        answer = self._call(self._heartbeat(member, known.epoch))
        known.epoch = int(answer.member_epoch)
        if answer.assignment is not None:
            topics = answer.assignment.topic_partitions
            known.owned = tuple(int(partition) for topic in topics for partition in topic.partitions)
            known.topic_id = topics[0].topic_id if topics else None

    def _call(self, request: Request) -> Any:
        """The coordinator's answer, once there is one that has loaded the group."""
        answers: list[Any] = []

        def is_answered() -> bool:
            answer = self._run(self._ask_coordinator(request))
            answers.append(answer)
            return answer is not None

        self.until(is_answered)
        return answers[-1]

    async def _ask_coordinator(self, request: Request) -> Any:
        """None while the group has none."""
        answer = await self._ask(self._host("A"), FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(GROUP,)))
        found = answer.coordinators[0]
        if int(found.error_code):
            return None
        answer = await self._ask(found.host, request)
        error = ErrorCode(int(getattr(answer, "error_code", 0)))
        if error in TRY_AGAIN:
            return None
        assert error is ErrorCode.NONE, error
        return answer
