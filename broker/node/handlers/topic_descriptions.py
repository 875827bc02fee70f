"""Topics as administrators see them."""

from __future__ import annotations

from ...apis import describe_topic_partitions
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    describe_topic_partitions.register(
        handlers, parts.metadata, parts.config.max_request_partition_size_limit, parts.suspected
    )
