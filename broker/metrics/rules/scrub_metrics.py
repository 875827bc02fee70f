"""The scrubbing of logs."""

from __future__ import annotations

from typing import Final

from .metric import own

ROUNDS: Final = own("counter", "penstock_scrub_rounds_total", "Rounds over all segments that have ended.")
SEGMENTS: Final = own("counter", "penstock_scrubbed_segments_total", "Segments that were read and checked.")
READ_BYTES: Final = own("counter", "penstock_scrubbed_bytes_total", "Bytes of batches that were read and checked.")
FINDINGS: Final = own(
    "counter",
    "penstock_scrub_findings_total",
    "Damage found: batches, offset index, time index, transaction index, producer snapshot.",
    "part",
)
