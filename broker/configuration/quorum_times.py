"""How long a node waits for a voter of the metadata quorum before it turns to the next one.

controller.quorum.fetch.timeout.ms     2000  until a voter that does not answer a fetch of the metadata is left
controller.quorum.request.timeout.ms   2000  the same for a heartbeat, and for a connection

Kafka's defaults are far below a broker's session. A session that is set shorter takes them down with it, as far as a
second: a broker that waits for a silent controller until its session is over is fenced with it.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from .property_values import PropertyValues

# As Kafka's KafkaRaftClient: an idle node costs two requests a second.
FETCH_WAIT_MS_MAX: Final = 500
# A heartbeat is due, waits for a silent voter, then for another one that is no controller yet: within a session.
WAITS_PER_SESSION: Final = 4
# Less than what a loaded machine needs now and then for a connection with TLS and both proofs.
_SHORT_SESSION_WAIT_MS: Final = 1_000
# Kafka allows 0, with which no voter could ever answer in time.
_SHORTEST_MS: Final = 100


class QuorumTimes(Struct, frozen=True, kw_only=True):
    """In milliseconds."""

    fetch_timeout_ms: int
    request_timeout_ms: int

    @property
    def fetch_wait_ms(self) -> int:
        """How long a voter may keep a fetch of the metadata waiting that has nothing to tell."""
        return min(FETCH_WAIT_MS_MAX, self.fetch_timeout_ms // 4)


def load_quorum_times(values: PropertyValues) -> QuorumTimes:
    session_ms = values.integer("broker.session.timeout.ms")
    longest_ms = max(session_ms // WAITS_PER_SESSION, _SHORT_SESSION_WAIT_MS)

    def bounded(name: str) -> int:
        return max(min(values.integer(name), longest_ms), _SHORTEST_MS)

    return QuorumTimes(
        fetch_timeout_ms=bounded("controller.quorum.fetch.timeout.ms"),
        request_timeout_ms=bounded("controller.quorum.request.timeout.ms"),
    )
