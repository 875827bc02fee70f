"""Tiered storage. Kafka: `RemoteStorageMetrics`."""

from __future__ import annotations

from typing import Final

from .metric import own, rate, value
from .traffic_metrics import TOPICS

# Of topics. Without a label: of all topics together.
COPY_BYTES: Final = rate(f"{TOPICS}RemoteCopyBytesPerSec", "Bytes of segments copied to the tier.", "topic")
COPIES: Final = rate(f"{TOPICS}RemoteCopyRequestsPerSec", "Copies of segments that were begun.", "topic")
FAILED_COPIES: Final = rate(f"{TOPICS}RemoteCopyErrorsPerSec", "Copies that failed; they are tried again.", "topic")
FETCH_BYTES: Final = rate(f"{TOPICS}RemoteFetchBytesPerSec", "Bytes of records that came from the tier.", "topic")
FETCHES: Final = rate(f"{TOPICS}RemoteFetchRequestsPerSec", "Reads that waited for the tier.", "topic")
FAILED_FETCHES: Final = rate(f"{TOPICS}RemoteFetchErrorsPerSec", "Reads that the tier failed.", "topic")
DELETES: Final = rate(f"{TOPICS}RemoteDeleteRequestsPerSec", "Deletions of segments that were begun.", "topic")
FAILED_DELETES: Final = rate(f"{TOPICS}RemoteDeleteErrorsPerSec", "Deletions that failed.", "topic")
COPY_LAG_BYTES: Final = value(
    f"{TOPICS}RemoteCopyLagBytes",
    "Bytes of closed segments to be copied, where this node leads.",
    "topic",
)
LOG_SIZE: Final = value(f"{TOPICS}RemoteLogSizeBytes", "Bytes in the tier, where this node leads.", "topic")
METADATA_COUNT: Final = value(
    f"{TOPICS}RemoteLogMetadataCount",
    "Segments in the metadata topic, where this node leads.",
    "topic",
)
PENDING_READS: Final = own("gauge", "penstock_tier_reads_pending", "Reads of the tier that wait or are under way.")
