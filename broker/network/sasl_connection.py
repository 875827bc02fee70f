"""A connection of a SASL listener: nothing begins before its peer has proved who it is, or once its session has ended.

Kafka: `KafkaChannel`, `SaslServerAuthenticator`. Frames before the proof, and those of its renewal, begin one by one by
the rules of `SaslSession`. Once the peer is proved, frames are begun as by any other connection; a timer ends that
together with the session (KIP-368), so that requests are not asked for the time.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from ...protocol.apis import APIS, ApiKey
from .connection import INT16, INT32, TURN_REQUESTS_MAX, Connection
from .connection_host import Authentication, ConnectionHost
from .request import Request
from .rules.sasl_session import SaslSession, SaslState

logger = logging.getLogger(__name__)

NO_VERSION = -1
"""Of the request that stands for a token without a header."""


class SaslConnection(Connection):
    """The protocol object of one accepted socket."""

    __slots__ = (
        "_frame_bytes_max",
        "_is_open",
        "_is_renewal",
        "_refusal_delay_s",
        "_session",
        "_session_timer",
    )

    def __init__(
        self, host: ConnectionHost, listener_name: str, *, frame_bytes_max: int, refusal_delay_s: float
    ) -> None:
        """`frame_bytes_max` is for frames before the proof. A refusal takes effect after `refusal_delay_s`."""
        super().__init__(host, listener_name)
        self._frame_bytes_max = frame_bytes_max
        self._refusal_delay_s = refusal_delay_s
        self._session = SaslSession()
        self._session_timer: asyncio.TimerHandle | None = None
        self._is_open = False
        self._is_renewal = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._session.on_change = self._on_session_change
        self._context = replace(self._context, sasl=self._session)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        # Else the session would hold the connection that holds it.
        self._session.on_change = None
        super().connection_lost(exc)

    def refresh_quota(self) -> None:
        # Before the proof a client has none: all that have no identity would share it, and one of them could keep the
        # others from logging in.
        if self._session.is_renewal:
            super().refresh_quota()

    def _on_session_change(self) -> None:
        """Before the request is answered that changed it."""
        self._stop_timer()
        self._is_open = False
        state = self._session.state
        if state is SaslState.PROVED:
            self._is_open = True
            self._count(is_successful=True)
            if self._session.end_s is not None:
                self._session_timer = self._host.loop.call_at(self._session.end_s, self._end_session)
        elif state is SaslState.FAILED:
            self._count(is_successful=False)
            # It is answered, if at all, and then the connection is closed.
            self.drain()
        else:
            # What came with a SaslHandshake begins in another turn, by the rules of an exchange.
            self._turn_requests = TURN_REQUESTS_MAX

    def _begin_frames(self, view: memoryview, start: int, end: int) -> int:
        if self._is_open:
            return Connection._begin_frames(self, view, start, end)
        self._is_beginning = True
        self._is_blocked = self._is_draining
        while end - start >= 4 and not self._is_proved():
            if self._is_closing:
                start = end
                break
            (size,) = INT32.unpack_from(view, start)
            frame_end = start + 4 + size
            refusal = self._refusal_of_size(size, view, start, end)
            if refusal is None and frame_end > end:
                break
            if self._open_count > 0 or self._outbox.slots or self._is_muted or self._is_draining:
                self._is_blocked = True
                break
            if refusal is not None:
                self._refuse(refusal)
                self._is_blocked = True
                break
            self._begin_one(view[start + 4 : frame_end])
            start = frame_end
            if self._outbox.slots:
                self._outbox.send()
        self._is_beginning = False
        return super()._begin_frames(view, start, end) if self._is_proved() else start

    def _is_proved(self) -> bool:
        """Whether requests begin as on any connection. Asked anew after each of them: their handlers change it."""
        return self._is_open

    def _refusal_of_size(self, size: int, view: memoryview, start: int, end: int) -> str | None:
        if 0 <= size <= self._frame_bytes_max:
            return None
        return self._refusal(size, view, start, end) or (
            f"frame of {size} bytes before authentication, at most {self._frame_bytes_max} are taken"
        )

    def _begin_one(self, frame: memoryview) -> None:
        if self._session.state is SaslState.TOKENS:
            request = Request(self, ApiKey.SASL_AUTHENTICATE, NO_VERSION, 0, self._context, frame, 0)
            self._outbox.slots.append(request)
            self._open_count += 1
            self._exclusive = request
            self._host.begin(request)
            return
        api_key = INT16.unpack_from(frame)[0] if len(frame) >= INT16.size else -1
        if self._session.allows(api_key):
            self._begin(frame, is_exclusive=True)
        elif self._session.state is SaslState.EXPIRED:
            # Kafka closes it at once, without an answer.
            self._host.counters.sessions_expired += 1
            self._refuse_frame("its session has ended and it did not authenticate again")
        else:
            name = APIS[ApiKey(api_key)].name if api_key in APIS else f"{api_key}, which does not exist,"
            self._refuse(f"API {name} came before authentication")

    def _refuse(self, reason: str) -> None:
        """Closes the connection after the delay of a failed authentication, and begins nothing until then."""
        request = Request(self, -1, -1, 0, self._context, self._host.receive_view[:0], 0)
        self._outbox.slots.append(request)
        self._open_count += 1
        self._exclusive = request
        self._session.fail()
        self._host.loop.call_later(self._refusal_delay_s, request.close_connection, reason)

    def _count(self, *, is_successful: bool) -> None:
        """Whatever follows the first success is a renewal."""
        self._host.authentications[self._listener_name, Authentication(is_successful, self._is_renewal)] += 1
        self._is_renewal = self._is_renewal or is_successful

    def _end_session(self) -> None:
        self._session_timer = None
        self._session.expire()
        self._is_open = False

    def _stop_timer(self) -> None:
        if self._session_timer is not None:
            self._session_timer.cancel()
            self._session_timer = None
