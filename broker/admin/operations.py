"""All operations of the HTTP administration, in the order in which the document lists them."""

from __future__ import annotations

from typing import Final

from .operation import Operation
from .v1 import document, health
from .v3 import operations as v3

OPERATIONS: Final[tuple[Operation, ...]] = (
    *v3.OPERATIONS,
    *health.OPERATIONS,
    *document.operations(lambda: OPERATIONS),
)
