"""Judges drains and cluster events: who leads while brokers are drained, and whether all nodes tell the same story."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

from ....protocol.structs import replace
from ....quorum.decisions.partition_changes import acceptable_leader
from ....quorum.metadata.cluster_events import ClusterChange, Gap, QuorumLeaderChanged
from ....quorum.metadata.event_id import LAST_NUMBER, EventId
from ....quorum.metadata.image import MetadataImage
from .machine import Machine

_BEGINNING = EventId(-1, LAST_NUMBER)


class DrainWatch:
    """`look` is called several times a second. In every image a drained broker leads only what no other can lead."""

    def __init__(self, image: Callable[[], MetadataImage | None]) -> None:
        self.violations: list[str] = []
        self._image = image
        self._seen: MetadataImage | None = None

    def look(self) -> None:
        image = self._image()
        if image is None or image is self._seen:
            return
        self._seen = image
        drained = image.configs.drained_brokers
        for topic in image.topics.by_id.values() if drained else ():
            for index, partition in enumerate(topic.partitions):
                if partition.leader not in drained:
                    continue
                others = [replica for replica in partition.isr if replica not in drained]
                if any(map(acceptable_leader(image, partition), others)):
                    self.violations.append(
                        f"Drained: node {partition.leader} leads {topic.name}-{index} at offset {image.offset}, though "
                        f"{others} of its ISR {partition.isr} are not drained"
                    )


class _Story(NamedTuple):
    """What a node tells behind `start_id`, up to the metadata that it has."""

    node_id: int
    start_id: EventId
    end_id: EventId
    changes: dict[EventId, ClusterChange]


def differing_events(machines: Iterable[Machine]) -> list[str]:
    """Return the events that one node tells and another one tells in another way, or not at all."""
    stories = sorted((_story(machine) for machine in machines if _tells(machine)), key=lambda story: story.start_id)
    findings = []
    for first, other in pairwise(stories):
        for event_id in sorted({*first.changes, *other.changes}):
            if other.start_id < event_id <= min(first.end_id, other.end_id):
                one, another = first.changes.get(event_id), other.changes.get(event_id)
                if one != another:
                    findings.append(
                        f"Events: {event_id} is {one} on node {first.node_id} and {another} on node {other.node_id}"
                    )
    return findings


def _tells(machine: Machine) -> bool:
    return machine.node is not None and machine.node.events.is_loaded


def _story(machine: Machine) -> _Story:
    assert machine.node is not None
    events = machine.node.events.recent(_BEGINNING)
    start_id = events[0].id if events and isinstance(events[0].change, Gap) else _BEGINNING
    return _Story(
        node_id=machine.node_id,
        start_id=start_id,
        end_id=machine.node.events.last_id,
        changes={event.id: _common(event.change) for event in events if not isinstance(event.change, Gap)},
    )


def _common(change: ClusterChange) -> ClusterChange:
    # Not every node knows yet who leads.
    return replace(change, leader_id=None) if isinstance(change, QuorumLeaderChanged) else change
