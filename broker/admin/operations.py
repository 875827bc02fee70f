"""All operations of the HTTP administration, in the order in which the document lists them."""

from __future__ import annotations

from typing import Final

from .operation import Operation
from .v1 import (
    configs,
    decommission,
    document,
    elections,
    events,
    health,
    maintenance,
    nodes,
    quorum,
    reassignments,
    topics,
    transactions,
)
from .v3 import clusters

OPERATIONS: Final[tuple[Operation, ...]] = (
    *clusters.OPERATIONS,
    *health.OPERATIONS,
    *quorum.OPERATIONS,
    *elections.OPERATIONS,
    *reassignments.OPERATIONS,
    *maintenance.OPERATIONS,
    *decommission.OPERATIONS,
    *nodes.OPERATIONS,
    *topics.OPERATIONS,
    *configs.OPERATIONS,
    *transactions.OPERATIONS,
    *events.OPERATIONS,
    *document.operations(lambda: OPERATIONS),
)
