"""Requests that come a moment too early, and begin again in the moment in which what they need is there."""

from __future__ import annotations

from collections.abc import Callable

from ....protocol.errors import ErrorCode, KafkaError


class PostponedError(KafkaError):
    """Raised by a handler that has done nothing yet. Where there is no way to wait, it is an error like others."""

    def __init__(self, code: ErrorCode, wait: Callable[[Callable[[], None]], None]) -> None:
        """`wait` takes what begins the request again, and calls it once, soon; that raises nothing."""
        super().__init__(code)
        self.wait = wait
