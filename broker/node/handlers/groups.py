"""Groups of consumers: coordinators, members, committed offsets."""

from __future__ import annotations

from ...apis import (
    classic_groups,
    consumer_groups,
    find_coordinator,
    group_administration,
    group_offsets,
    offset_commit,
)
from ...network.handlers import Handlers
from .coordinator_topics import offsets_topic, transactions_topic
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    find_coordinator.register(
        handlers, parts.metadata, offsets_topic(parts), transactions_topic(parts), parts.suspected
    )
    classic_groups.register(handlers, parts.groups, parts.config.groups)
    offset_commit.register(handlers, parts.groups, parts.metadata)
    consumer_groups.register(handlers, parts.groups, parts.metadata, parts.config.groups.consumer)
    group_offsets.register(handlers, parts.groups, parts.metadata)
    group_administration.register(handlers, parts.groups)
