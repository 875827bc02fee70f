"""Where the replicas of partitions are, and which of them lead."""

from __future__ import annotations

from ...apis import alter_reassignments, elect_leaders, partition_reassignments
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    elect_leaders.register(handlers, parts.controller, settled=parts.data_path.partitions.settled_soon)
    alter_reassignments.register(handlers, parts.controller)
    partition_reassignments.register(handlers, parts.metadata)
