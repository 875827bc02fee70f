"""A fetch request in purgatory: waits for fetch.min.bytes, a change, or its deadline. Kafka: `DelayedFetch`."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import ErrorCode
from ..timing.purgatory import DelayedOperation, Purgatory
from .fetch_read import FetchRead
from .rules.fetch_session import FetchablePartition


class DelayedFetch(DelayedOperation):
    """Parked after a read that found too little. `respond` is called once, with the last read, unless the client
    disconnects first."""

    __slots__ = ("_call_soon", "_is_answered", "_is_new", "_purgatory", "_read", "_ready", "_respond")

    def __init__(
        self,
        read: FetchRead,
        respond: Callable[[FetchRead], None],
        purgatory: Purgatory,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """`call_soon` calls at the end of this turn of the event loop."""
        super().__init__()
        self._read = read
        self._respond = respond
        self._purgatory = purgatory
        self._call_soon = call_soon
        self._is_new = True
        self._is_answered = False
        # Partitions of a follower's session that changed in this turn of the event loop.
        self._ready: list[FetchablePartition] = []

    def park(self, max_wait_ms: int) -> None:
        session = self._read.context.session
        if session is not None:
            session.parked = self
        self._purgatory.watch(self, self._read.keys, max_wait_ms)

    def on_ready(self, partition: FetchablePartition) -> None:
        """Of a follower's session: all appends of this turn of the event loop go out in one response."""
        if not self._ready:
            self._call_soon(self._read_ready)
        self._ready.append(partition)

    def interrupt(self) -> None:
        """Sends the response now, however little there is: the session's next request has come."""
        self._purgatory.cancel(self)
        self._answer_now()

    def on_disconnect(self) -> None:
        self._is_answered = True
        self._purgatory.cancel(self)
        session = self._read.context.session
        if session is not None:
            session.parked = None

    def try_complete(self) -> bool:
        if self._is_answered:
            return True
        if self._is_new:
            # The purgatory calls this when it parks the operation, right after the read found too little.
            self._is_new = False
            return False
        if not self._read.has_changed() or not self._read.read():
            return False
        self._answer()
        return True

    def on_expiration(self) -> None:
        self._answer_now()

    def on_failure(self, error: Exception) -> None:  # noqa: ARG002 - the purgatory has logged it
        self._read.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._answer()

    def _read_ready(self) -> None:
        ready, self._ready = self._ready, []
        if self._is_answered:
            return
        if any(self._read.may_be_ready(partition) and self._read.read() for partition in ready):
            self._purgatory.cancel(self)
            self._answer()

    def _answer_now(self) -> None:
        if not self._is_answered:
            self._read.read()
            self._answer()

    def _answer(self) -> None:
        # The response may start requests that recheck this operation before the purgatory has removed it.
        if not self._is_answered:
            self._is_answered = True
            self._respond(self._read)
