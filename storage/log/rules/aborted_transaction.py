"""A transaction of which readers of committed records leave out what was written."""

from typing import NamedTuple


class AbortedTransaction(NamedTuple):
    """Kafka: `AbortedTxn`."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Of the marker that aborts it."""
    last_stable_offset: int
    """When that was written."""
