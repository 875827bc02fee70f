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
    features,
    health,
    maintenance,
    metrics,
    nodes,
    partition_map,
    quorum,
    reassignments,
    topics,
    transactions,
    web_page,
)
from .v3 import operations as v3

OPERATIONS: Final[tuple[Operation, ...]] = (
    *v3.OPERATIONS,
    *health.OPERATIONS,
    *metrics.OPERATIONS,
    *partition_map.OPERATIONS,
    *web_page.OPERATIONS,
    *quorum.OPERATIONS,
    *elections.OPERATIONS,
    *reassignments.OPERATIONS,
    *maintenance.OPERATIONS,
    *decommission.OPERATIONS,
    *nodes.OPERATIONS,
    *topics.OPERATIONS,
    *configs.OPERATIONS,
    *features.OPERATIONS,
    *transactions.OPERATIONS,
    *events.OPERATIONS,
    *document.operations(lambda: OPERATIONS),
)
