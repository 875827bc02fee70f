"""The metadata of a group's subscribed topics: their ids, and a hash that changes with them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from uuid import UUID

from ....quorum.metadata.image import BrokerRegistration, MetadataImage, TopicImage
from .records import NO_HASH

_HASH_BYTES: Final = 8


class SubscribedTopics:
    """Of all groups of one coordinator: a topic that many of them read is hashed once. What is remembered of it ends
    with its next change (`forget`): groups that read it may be gone before it is deleted."""

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self._hashes: dict[str, tuple[TopicImage, Mapping[int, BrokerRegistration], bytes]] = {}

    @property
    def image(self) -> MetadataImage:
        return self._image()

    @property
    def remembered_count(self) -> int:
        return len(self._hashes)

    def forget(self, names: Iterable[str]) -> None:
        """They have changed, or are gone; no error for topics without subscribers."""
        for name in names:
            self._hashes.pop(name, None)

    def ids_of(self, names: Iterable[str]) -> frozenset[UUID]:
        """Of those that there are."""
        by_name = self._image().topics.by_name
        return frozenset(topic.topic_id for name in names if (topic := by_name.get(name)) is not None)

    def partition_counts(self, topic_ids: Iterable[UUID]) -> dict[UUID, int]:
        by_id = self._image().topics.by_id
        return {topic_id: len(by_id[topic_id].partitions) for topic_id in topic_ids}

    def hash_of(self, names: Iterable[str]) -> int:
        """The same for topics whose ids, partitions and racks are the same; those that there are not do not count."""
        whole = hashlib.blake2b(digest_size=_HASH_BYTES)
        is_any = False
        for name in sorted(names):
            digest = self._digest(name)
            if digest is not None:
                is_any = True
                whole.update(digest)
        return int.from_bytes(whole.digest(), "big", signed=True) if is_any else NO_HASH

    def _digest(self, name: str) -> bytes | None:
        image = self._image()
        topic = image.topics.by_name.get(name)
        if topic is None:
            self._hashes.pop(name, None)
            return None
        known = self._hashes.get(name)
        if known is not None and known[0] is topic and known[1] is image.brokers:
            return known[2]
        hasher = hashlib.blake2b(topic.topic_id.bytes, digest_size=_HASH_BYTES)
        hasher.update(f"{name}\n{len(topic.partitions)}".encode())
        racks = {broker.id: broker.rack for broker in image.brokers.values() if broker.rack is not None}
        if racks:
            for partition in topic.partitions:
                of_partition = sorted(racks[replica] for replica in partition.replicas if replica in racks)
                hasher.update(repr(of_partition).encode())
        digest = hasher.digest()
        self._hashes[name] = (topic, image.brokers, digest)
        return digest
