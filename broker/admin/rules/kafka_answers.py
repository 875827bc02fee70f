"""What Kafka's answers say by numbers."""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from typing import Final

from ....protocol.errors import ErrorCode, KafkaError

_NO_TIME: Final = timedelta(0)


class QuotaExceededError(KafkaError):
    """THROTTLING_QUOTA_EXCEEDED with the time after which the quota allows more, as `Retry-After` has it."""

    def __init__(self, message: str | None, throttle_time: timedelta) -> None:
        super().__init__(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message)
        self.retry_after_s = max(1, ceil(throttle_time.total_seconds()))


def check(error_code: int | None, message: str | None = None, throttle_time: timedelta = _NO_TIME) -> None:
    """Raise the KafkaError that an answer has in its field, if any. `throttle_time` is the answer's own."""
    code = ErrorCode(int(error_code or 0))
    if code is ErrorCode.THROTTLING_QUOTA_EXCEEDED:
        raise QuotaExceededError(message or None, throttle_time)
    if code is not ErrorCode.NONE:
        raise KafkaError(code, message or None)
