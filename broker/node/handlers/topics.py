"""Topics, their partitions, and where these are."""

from __future__ import annotations

from ...apis import (
    alter_reassignments,
    describe_topic_partitions,
    elect_leaders,
    partition_reassignments,
    topics,
)
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    settled = parts.data_path.partitions.settled_soon
    topics.register(
        handlers,
        parts.metadata,
        parts.controller,
        settled=settled,
        is_deletion_enabled=parts.config.delete_topic_enable,
    )
    describe_topic_partitions.register(
        handlers, parts.metadata, parts.config.max_request_partition_size_limit, parts.suspected
    )
    elect_leaders.register(handlers, parts.controller, settled=settled)
    alter_reassignments.register(handlers, parts.controller)
    partition_reassignments.register(handlers, parts.metadata)
