"""Where the replicas of partitions are, and which of them lead."""

from __future__ import annotations

from ....protocol.apis import ApiKey
from ....quorum.decisions.elections import ELECT_LEADERS
from ....quorum.decisions.reassignments import ALTER_PARTITION_REASSIGNMENTS
from ...apis import alter_reassignments, elect_leaders, partition_reassignments
from ...network.handlers import Handlers
from .decided_request import add_decided, altering
from .dependencies import ControllerHandlerDependencies


def register(handlers: Handlers, parts: ControllerHandlerDependencies) -> None:
    add_decided(handlers, parts, ELECT_LEADERS, elect_leaders.error_response, altering(ApiKey.ELECT_LEADERS))
    add_decided(
        handlers,
        parts,
        ALTER_PARTITION_REASSIGNMENTS,
        alter_reassignments.error_response,
        altering(ApiKey.ALTER_PARTITION_REASSIGNMENTS),
    )
    partition_reassignments.register(handlers, parts.metadata)
