"""The newest metadata that any node of a simulated cluster has committed, and what leaders take for in sync."""

from __future__ import annotations

from collections.abc import Mapping

from ....quorum.metadata.image import MetadataImage, PartitionRegistration
from ..cluster.machine import Machine


class NewestMetadata:
    """What a node that is down was the only one to know is remembered."""

    def __init__(self, machines: Mapping[int, Machine]) -> None:
        self._machines = machines
        self._image: MetadataImage | None = None

    @property
    def image(self) -> MetadataImage | None:
        """None before any node has one."""
        for machine in self._machines.values():
            image = None if machine.node is None else machine.node.metadata.image
            if image is not None and (self._image is None or image.offset > self._image.offset):
                self._image = image
        return self._image

    def places(self) -> list[tuple[str, int]]:
        """All partitions, of internal topics, too."""
        image = self.image
        topics = () if image is None else image.topics.by_name.values()
        return [(topic.name, index) for topic in topics for index in range(len(topic.partitions))]

    def registration(self, topic: str, index: int) -> PartitionRegistration | None:
        image = self.image
        found = None if image is None else image.topics.by_name.get(topic)
        return None if found is None or index >= len(found.partitions) else found.partitions[index]

    def is_awaited(self, topic: str, index: int, node_id: int) -> bool:
        """Whether any leader takes this node for one that may be in sync."""
        for machine in self._machines.values():
            node = machine.node
            partition = None if node is None or not node.has_parts else node.parts.partitions.find(topic, index)
            if partition is not None and node_id in partition.state.maximal_isr:
                return True
        return False

    def is_known_in_sync(self, topic: str, partition_count: int) -> bool:
        """Whether every node that runs knows the topic, led, with all replicas in sync."""
        for machine in self._machines.values():
            if machine.node is None or machine.is_paused:
                continue
            found = machine.node.metadata.image.topics.by_name.get(topic)
            if found is None or len(found.partitions) < partition_count or not all(map(is_in_sync, found.partitions)):
                return False
        return True

    def end_offset(self, topic: str, index: int) -> int | None:
        """The leader's high watermark; None while no leader runs."""
        registration = self.registration(topic, index)
        machine = None if registration is None else self._machines.get(registration.leader)
        if machine is None or machine.node is None or not machine.node.has_parts:
            return None
        partition = machine.node.parts.partitions.find(topic, index)
        return None if partition is None else partition.state.high_watermark


def is_in_sync(registration: PartitionRegistration) -> bool:
    return registration.leader >= 0 and set(registration.isr) == set(registration.replicas)
