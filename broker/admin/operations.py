"""All operations of the HTTP administration, in the order in which the document lists them."""

from __future__ import annotations

from typing import Final

from .operation import Operation
from .v1 import document, health, metrics, partition_map, web_page
from .v3 import clusters

OPERATIONS: Final[tuple[Operation, ...]] = (
    *clusters.OPERATIONS,
    *health.OPERATIONS,
    *metrics.OPERATIONS,
    *partition_map.OPERATIONS,
    *web_page.OPERATIONS,
    *document.operations(lambda: OPERATIONS),
)
