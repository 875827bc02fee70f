"""One client instance: what it is asked for, and when it may ask and push. Kafka: `ClientMetricsInstance`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final
from uuid import UUID

from ....protocol.compression import Compression
from ....protocol.errors import ErrorCode, KafkaError
from .subscriptions import ClientDetails, Selection

EXPIRY_MS_MIN: Final = 60_000
"""An instance is forgotten after this time without a request, or after three of its push intervals."""
_COMPRESSIONS: Final = frozenset(Compression)
# After these errors a client asks again at once.
_ASK_AGAIN: Final = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})
_NEVER_MS: Final = -(2**62)


class ClientInstance:
    """Its requests come in order. `connection` identifies the connection of the latest one."""

    __slots__ = (
        "_last_error",
        "_last_get_ms",
        "_last_push_ms",
        "client",
        "connection",
        "expires_ms",
        "is_terminating",
        "selection",
        "subscription_id",
        "version",
    )

    def __init__(self, client: ClientDetails, selection: Selection, *, version: int, connection: Hashable) -> None:
        """`version` is that of the subscriptions that the selection was made of."""
        self.client = client
        self.selection = selection
        self.subscription_id = selection.id_for(client.client_instance_id)
        self.version = version
        self.connection = connection
        self.expires_ms = 0
        self.is_terminating = False
        self._last_get_ms = _NEVER_MS
        self._last_push_ms = _NEVER_MS
        self._last_error = ErrorCode.NONE

    @property
    def id(self) -> UUID:
        return self.client.client_instance_id

    def touch(self, now_ms: int) -> None:
        self.expires_ms = now_ms + max(EXPIRY_MS_MIN, 3 * self.selection.interval_ms)

    def finish(self, error: ErrorCode) -> None:
        """Tells how the request before ended."""
        self._last_error = error

    def admit_get(self, now_ms: int) -> None:
        """Raises KafkaError THROTTLING_QUOTA_EXCEEDED before the push interval is over, unless it has to ask again."""
        if now_ms - max(self._last_get_ms, self._last_push_ms) >= self.selection.interval_ms:
            self._last_get_ms = now_ms
        elif self._last_error not in _ASK_AGAIN:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def admit_push(
        self, now_ms: int, *, subscription_id: int, is_terminating: bool, compression: int, size: int, size_max: int
    ) -> None:
        """Raises KafkaError. The checks are in Apache Kafka's order.

        The first push after a GetTelemetrySubscriptions comes when it likes: a client waits for a random part of the
        interval, so that not all push at once.
        """
        was_terminating, self.is_terminating = self.is_terminating, is_terminating
        if was_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        is_first = self._last_get_ms > self._last_push_ms
        if is_first or now_ms - self._last_push_ms >= self.selection.interval_ms:
            self._last_push_ms = now_ms
        elif not is_terminating:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if subscription_id != self.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if compression not in _COMPRESSIONS:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if size > size_max:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)
