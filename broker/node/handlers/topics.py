"""Topics that are created and deleted, and more partitions of them."""

from __future__ import annotations

from ...apis import topics
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    topics.register(
        handlers,
        parts.metadata,
        parts.controller,
        settled=parts.data_path.partitions.settled_soon,
        is_deletion_enabled=parts.config.delete_topic_enable,
    )
