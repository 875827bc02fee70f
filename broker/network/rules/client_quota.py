"""The quotas of a client, as its connection and its handlers use them."""

from __future__ import annotations

from typing import Protocol


class ClientQuota(Protocol):
    """Of one user with one client id. A client without any quota has none of these: see `RequestContext.quota`.

    Each method that returns a throttle time, in milliseconds, is called once for a request; the response has that time
    and the connection is muted for it (KIP-219). Of several quotas the longest time counts.
    """

    def fetch_bytes_max(self) -> int:
        """As many bytes of records may be in a response now; 1 at least."""

    @property
    def is_measured(self) -> bool:
        """Whether the event loop's time counts: `on_handled` is called."""

    def on_handled(self, elapsed_s: float) -> None:
        """So long the event loop worked on a request: it counts for the next throttle time."""

    def on_produced(self, size_bytes: int) -> int:
        """Counts a Produce request with a response."""

    def on_unanswered(self, size_bytes: int) -> int:
        """Counts a Produce request without one (acks=0), which is throttled for its bytes alone."""

    def on_fetched(self, size_bytes: int) -> int:
        """Counts a Fetch response; one with a throttle time is not counted, as it must be sent without records."""

    def on_answered(self, throttle_time_ms: int) -> int:
        """For any other request, whose response has a throttle time already."""
