"""Progress as Spark 4.0 tells it: the JSON of a windowed count over two partitions, and the same with parts changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

RUN: Final = "69f1676a-6cc1-44b5-b50c-c77c7acf88e3"
QUERY: Final = "811c498e-ee93-4335-b266-17bfb9a9709a"
_TOLD: Final[Mapping[str, Any]] = {
    "id": QUERY,
    "runId": RUN,
    "name": "counts",
    "timestamp": "2026-11-28T08:48:58.602Z",
    "batchId": 1,
    "batchDuration": 631,
    "numInputRows": 1000,
    "inputRowsPerSecond": 301.4772384684956,
    "processedRowsPerSecond": 1584.7860538827258,
    "durationMs": {
        "addBatch": 479,
        "commitOffsets": 54,
        "getBatch": 1,
        "latestOffset": 1,
        "queryPlanning": 36,
        "triggerExecution": 630,
        "walCommit": 53,
    },
    "eventTime": {
        "avg": "2026-11-28T08:48:53.364Z",
        "max": "2026-11-28T08:48:53.365Z",
        "min": "2026-11-28T08:48:53.364Z",
        "watermark": "2026-11-28T08:47:53.364Z",
    },
    "stateOperators": [
        {
            "operatorName": "stateStoreSave",
            "numRowsTotal": 7,
            "numRowsUpdated": 7,
            "memoryUsedBytes": 3360,
            "numRowsDroppedByWatermark": 3,
            "customMetrics": {"stateOnCurrentVersionSizeBytes": 1864},
        }
    ],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[t]]",
            "startOffset": {"t": {"0": 428, "1": 572}},
            "endOffset": {"t": {"0": 856, "1": 1144}},
            "latestOffset": {"t": {"0": 1284, "1": 1716}},
            "numInputRows": 1000,
            "metrics": {"avgOffsetsBehindLatest": "500.0"},
        }
    ],
    "sink": {"description": "noop", "numOutputRows": 7},
}


def progress_json(**changed: Any) -> str:
    """`changed` are fields of the outermost object; None leaves one out."""
    return json.dumps({name: value for name, value in {**_TOLD, **changed}.items() if value is not None})
