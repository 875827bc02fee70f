"""What Kafka's answers say by numbers."""

from __future__ import annotations

from ....protocol.errors import ErrorCode, KafkaError


def check(error_code: int | None, message: str | None = None) -> None:
    """Raise the KafkaError that an answer has in its field, if any."""
    code = ErrorCode(int(error_code or 0))
    if code is not ErrorCode.NONE:
        raise KafkaError(code, message or None)
