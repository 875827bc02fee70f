"""`/metrics`: the node's metrics for Prometheus."""

from __future__ import annotations

from typing import Final

from ..operation import Call, Content, Operation


async def _expose(call: Call) -> Content:
    body, media_type = await call.node.metrics.exposition(call.headers.get("Accept"))
    return Content(media_type=media_type, body=body)


OPERATIONS: Final = (
    Operation(
        name="getMetrics",
        method="GET",
        path="/metrics",
        tag="Metrics",
        summary="The metrics of this node in Prometheus' text format, or OpenMetrics where that is asked for",
        run=_expose,
        media_type="text/plain",
        is_urgent=True,
        is_open=True,
    ),
)
