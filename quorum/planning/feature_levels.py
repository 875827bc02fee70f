"""Finalized levels of features beside what each registered node supports (KIP-584)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from ...protocol.ids import NodeId
from ..decisions.features import levels_of
from ..metadata.features import FEATURES, SupportedRange
from ..metadata.image import MetadataImage


class NodeLevels(NamedTuple):
    """What one registration says of a feature; a node of both roles has two."""

    node_id: NodeId
    is_broker: bool
    supported: SupportedRange


class FeatureLevels(NamedTuple):
    """`level` is the finalized one; `supported` is what all nodes support, None where they share no level."""

    name: str
    level: int
    supported: SupportedRange | None
    nodes: tuple[NodeLevels, ...]


def feature_levels(image: MetadataImage) -> tuple[FeatureLevels, ...]:
    """Return all features that are finalized or known to a node or this software, by name."""
    names = {*FEATURES, *image.features}
    names.update(one.name for broker in image.brokers.values() for one in broker.features)
    names.update(one.name for controller in image.controllers.values() for one in controller.features)
    return tuple(_levels(image, name) for name in sorted(names))


def unregistered_controllers(image: MetadataImage, voters: Collection[NodeId]) -> tuple[NodeId, ...]:
    """Return the voters that have not told what they support; until then no level is raised.

    A single voter, the active controller itself, needs no registration.
    """
    if len(voters) == 1:
        return ()
    return tuple(sorted(set(voters) - set(image.controllers)))


def _levels(image: MetadataImage, name: str) -> FeatureLevels:
    nodes = tuple(_nodes(image, name))
    lowest = max((node.supported.min_level for node in nodes), default=0)
    highest = min((node.supported.max_level for node in nodes), default=0)
    supported = SupportedRange(lowest, highest) if lowest <= highest else None
    return FeatureLevels(name=name, level=image.features.get(name, 0), supported=supported, nodes=nodes)


def _nodes(image: MetadataImage, name: str) -> Iterator[NodeLevels]:
    for broker_id, broker in sorted(image.brokers.items()):
        yield NodeLevels(NodeId(broker_id), is_broker=True, supported=levels_of(broker.features, name))
    for controller_id, controller in sorted(image.controllers.items()):
        yield NodeLevels(controller_id, is_broker=False, supported=levels_of(controller.features, name))
