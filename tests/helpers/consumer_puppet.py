"""Consumer groups of one coordinator without a node: `GroupPuppet` with metadata, and members that do as they hear."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from group_puppet import GROUP, GroupPuppet
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta
from typed_ids import node_ids

from penstock.broker.groups.consumer.consumer_protocol import HeartbeatContext, check_heartbeat
from penstock.broker.groups.consumer.group import ConsumerGroup
from penstock.protocol.ids import BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, TopicId
from penstock.protocol.structs import replace
from penstock.quorum.metadata.image import (
    EMPTY_IMAGE,
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
    TopicsImage,
)
from penstock.quorum.metadata.persistent_map import PersistentMap

Partitions = Mapping[str, Collection[int]]
REBALANCE_TIMEOUT_MS = 60_000


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().rjust(16, b"\1"))


def image_of(topics: Mapping[str, int], *, offset: int = 1, racks: Mapping[int, str] | None = None) -> MetadataImage:
    """Topics by their partition counts, all on brokers 1 and 2."""
    images = [
        TopicImage(
            name=name,
            topic_id=TopicId(topic_id(name)),
            partitions=tuple(
                PartitionRegistration(
                    replicas=node_ids(1, 2),
                    directories=(UUID(int=0),) * 2,
                    isr=node_ids(1, 2),
                    leader=NodeId(1),
                    leader_epoch=LeaderEpoch(0),
                    partition_epoch=PartitionEpoch(0),
                )
                for _ in range(count)
            ),
        )
        for name, count in topics.items()
    ]
    brokers = {
        number: BrokerRegistration(
            id=NodeId(number), epoch=BrokerEpoch(1), incarnation_id=UUID(int=number), rack=(racks or {}).get(number)
        )
        for number in (1, 2)
    }
    by_name: PersistentMap[str, TopicImage] = PersistentMap({image.name: image for image in images})
    by_id: PersistentMap[UUID, TopicImage] = PersistentMap({image.topic_id: image for image in images})
    return replace(EMPTY_IMAGE, offset=offset, topics=TopicsImage(by_name=by_name, by_id=by_id), brokers=brokers)


class ConsumerPuppet(GroupPuppet):
    def __init__(self, topics: Mapping[str, int] | None = None, **options: Any) -> None:
        options.setdefault("image", image_of({"topic": 6} if topics is None else topics))
        super().__init__(**options)

    def successor(self) -> ConsumerPuppet:
        """Another coordinator of the same log."""
        return ConsumerPuppet(
            log=self.log, config=self.config, settings=self.settings, image=self.image, now_ms=self.timers.now_ms
        )

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.groups.find_consumer(GROUP)
        assert group is not None, "there is a consumer group"
        return group

    def change_topics(self, topics: Mapping[str, int], *, are_some_new: bool = False) -> None:
        """The metadata is another."""
        names = {*topics, *self.image.topics.by_name}
        self.image = image_of(topics, offset=self.image.offset + 1)
        with self.event() as shard:
            shard.consumer.on_topics_changed(names, are_some_new=are_some_new)

    def resolve(self) -> None:
        """What is done aside is done."""
        while self.aside:
            self.aside.pop(0)()

    def beat(
        self,
        member: str,
        epoch: int,
        *,
        owned: Partitions | None = None,
        topics: Sequence[str] | None = None,
        expression: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        rack: str | None = None,
        rebalance_ms: int = -1,
        api_version: int = 1,
    ) -> ConsumerGroupHeartbeatResponse:
        """Raises KafkaError."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=GroupId(GROUP),
            member_id=member,
            member_epoch=i32(epoch),
            instance_id=instance,
            rack_id=rack,
            rebalance_timeout=i32Timedelta.parse(timedelta(milliseconds=rebalance_ms)),
            subscribed_topic_names=None if topics is None else tuple(map(TopicName, topics)),
            subscribed_topic_regex=expression,
            server_assignor=assignor,
            topic_partitions=None
            if owned is None
            else tuple(
                TopicPartitions(topic_id=topic_id(name), partitions=tuple(map(i32, of_topic)))
                for name, of_topic in owned.items()
            ),
        )
        check_heartbeat(request, api_version, self.config.consumer.assignors)
        context = HeartbeatContext(client_id="client", client_host="/127.0.0.1")
        with self.event() as shard:
            return shard.consumer.protocol.heartbeat(request, context)

    def join_consumer(
        self, member: str, topics: Sequence[str] | None = ("topic",), **options: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """Raises KafkaError."""
        options.setdefault("rebalance_ms", REBALANCE_TIMEOUT_MS)
        return self.beat(member, 0, topics=topics, owned={}, **options)

    def settle(self, *members: Consumer) -> None:
        """They send heartbeats until nothing changes any more."""
        for _ in range(10):
            before = [(member.epoch, member.owned) for member in members]
            for member in members:
                member.beat()
            if before == [(member.epoch, member.owned) for member in members]:
                return
        raise AssertionError("the members do not settle")


class Consumer:
    """A member that does as it is told."""

    def __init__(self, puppet: ConsumerPuppet, name: str, **options: Any) -> None:
        self.puppet = puppet
        self.name = name
        self.owned: dict[str, frozenset[int]] = {}
        self._instance = options.get("instance")
        self._hear(puppet.join_consumer(name, **options))

    def beat(self, **options: Any) -> ConsumerGroupHeartbeatResponse:
        """Raises KafkaError."""
        response = self.puppet.beat(self.name, self.epoch, owned=self.owned, instance=self._instance, **options)
        self._hear(response)
        return response

    def leave(self, epoch: int = -1) -> None:
        """Raises KafkaError."""
        self.puppet.beat(self.name, epoch, instance=self._instance)
        self.owned = {}

    @property
    def partitions(self) -> set[tuple[str, int]]:
        return {(name, partition) for name, of_topic in self.owned.items() for partition in of_topic}

    def _hear(self, response: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch = int(response.member_epoch)
        if response.assignment is not None:
            names = {topic_id(name): name for name in self.puppet.image.topics.by_name}
            self.owned = {
                names[topic.topic_id]: frozenset(map(int, topic.partitions))
                for topic in response.assignment.topic_partitions
                if topic.topic_id in names
            }
