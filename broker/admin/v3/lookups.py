"""What a path names, looked up in the metadata image; topics and partitions in the order of lists."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from ....protocol.acls import AclOperation, ResourceType
from ....protocol.errors import ErrorCode, KafkaError
from ....quorum.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration, TopicImage
from ..operation import Call

NO_LEADER: Final = -1


def topic(call: Call, image: MetadataImage) -> TopicImage:
    """Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION."""
    name = call.path["topic_name"]
    found = image.topics.by_name.get(name)
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
    return found


def partition(call: Call, image: MetadataImage) -> tuple[TopicImage, int, PartitionRegistration]:
    """Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION."""
    found = topic(call, image)
    index = call.path["partition_id"]
    if index >= len(found.partitions):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Topic {found.name!r} has no partition {index}; its last one is {len(found.partitions) - 1}.",
        )
    return found, index, found.partitions[index]


def broker(call: Call, image: MetadataImage) -> BrokerRegistration:
    """Raises KafkaError BROKER_ID_NOT_REGISTERED."""
    broker_id = call.path["broker_id"]
    found = image.brokers.get(broker_id)
    if found is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"There is no broker {broker_id}.")
    return found


def is_visible(call: Call, topic: TopicImage) -> bool:
    """Whether a list shows the client a topic: if it may be described, as Metadata has it."""
    return call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name)


def topics_after(image: MetadataImage, name: str | None) -> Iterator[TopicImage]:
    """The topics by name, from behind that one on."""
    names = sorted(image.topics.by_name)
    start = 0 if name is None else bisect_right(names, name)
    for one in names[start:]:
        yield image.topics.by_name[one]


def partitions_after(
    image: MetadataImage, key: tuple[str, int] | None
) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
    """The partitions of all topics by name and index, from behind that one on."""
    if key is not None:
        name, index = key
        begun = image.topics.by_name.get(name)
        if begun is not None:
            yield from partitions_of(begun, index)
    for one in topics_after(image, None if key is None else key[0]):
        yield from partitions_of(one)


def partitions_of(of: TopicImage, after: int | None = None) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
    """The partitions of one topic, from behind that index on."""
    first = 0 if after is None else max(after + 1, 0)
    for index in range(first, len(of.partitions)):
        yield of, index, of.partitions[index]
