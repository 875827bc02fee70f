"""One client connection: frames in, requests begun in order, answers out in order. Kafka: `SocketServer`, `Processor`.

Order. Requests begin in the order in which they arrived, and their answers leave in that order. Only APIs that were
registered as overlapping (Produce, Fetch) begin while earlier requests are unanswered; every other request begins
when all before it are answered, and nothing begins behind it until it is. A frame that may not begin yet is kept, and
reading pauses.

Memory. All connections of a loop receive into one buffer, because an event loop fills it and hands it over in one step:
complete frames are consumed before `buffer_updated` returns. A connection owns memory only while a frame is
unfinished or waits to begin (`HeldFrames`); a large one is in a buffer that others had before (`FrameBuffers`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import replace
from struct import Struct
from typing import cast

from ...protocol.apis import ApiKey
from ...protocol.errors import CorruptData
from ...protocol.messages import decode_header
from .connection_host import IDLE_TICK_MS, SCARCE_RECEIVE_BYTES, SMALL_REQUEST_BYTES_MAX, ConnectionHost, peer_of
from .outbox import Outbox
from .receive_mark import ReceiveMark
from .request import ANONYMOUS, Answer, CloseConnection, Request, RequestContext, TimedRequest
from .rules.client_quota import ClientQuota
from .rules.connection_rates import ConnectionThrottle
from .rules.held_frames import HeldFrames
from .rules.request_statistics import NO_KIND, OF_NODE, VERSION_BITS, RequestKind, RequestTimer

logger = logging.getLogger(__name__)

SLOTS_MAX = 100
"""Unsent answers of a connection; clients that pipeline keep 5 to 50 in flight."""
TURN_REQUESTS_MAX = 64
TURN_BYTES_MAX = 1024 * 1024
"""Begun in one go; then other connections have their turn."""
FRAME_BYTES_MIN = 8
"""API key, version and correlation id."""
TLS_HANDSHAKES = range(0x160300, 0x160305)
"""The first three bytes of a client that expects TLS."""

INT32 = Struct(">i")
INT16 = Struct(">h")


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket."""

    __slots__ = (
        "_context",
        "_exclusive",
        "_held",
        "_host",
        "_idle_tick",
        "_is_beginning",
        "_is_blocked",
        "_is_closing",
        "_is_continuing",
        "_is_draining",
        "_is_lost",
        "_is_muted",
        "_is_quota_old",
        "_is_reading_paused",
        "_is_send_due",
        "_kind",
        "_last_active_s",
        "_listener_name",
        "_mute_timer",
        "_muted_until_s",
        "_of_node",
        "_open_count",
        "_outbox",
        "_peer",
        "_receive_mark",
        "_received_s",
        "_transport",
        "_turn_bytes",
        "_turn_requests",
    )

    _transport: asyncio.Transport
    _outbox: Outbox
    _context: RequestContext

    def __init__(self, host: ConnectionHost, listener_name: str) -> None:
        self._host = host
        self._listener_name = listener_name
        self._peer = ("", 0)
        self._receive_mark: ReceiveMark | None = None
        self._held = HeldFrames(host.memory, host.frame_buffers, self._update_reading)
        self._open_count = 0
        self._exclusive: Request | None = None
        self._turn_requests = 0
        self._turn_bytes = 0
        self._last_active_s = 0.0
        self._received_s = 0.0
        self._of_node = 0
        self._kind = NO_KIND
        self._idle_tick = 0
        self._is_beginning = False
        self._is_blocked = False
        self._is_continuing = False
        self._is_reading_paused = False
        self._is_send_due = False
        self._is_muted = False
        self._is_quota_old = False
        self._muted_until_s = 0.0
        self._mute_timer: asyncio.TimerHandle | None = None
        self._is_draining = False
        self._is_closing = False
        self._is_lost = False

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        host = self._host
        self._transport = cast(asyncio.Transport, transport)
        self._peer = peer_of(transport)
        self._outbox = Outbox(host.loop, self._transport, host.answers, self._close, self._abort, self._on_sent)
        self._context = RequestContext(
            listener_name=self._listener_name,
            peer_host=self._peer[0],
            peer_port=self._peer[1],
            client_id=None,
            connection_number=host.counters.connections_opened + host.counters.connections_refused,
            peer_certificate=transport.get_extra_info("peercert"),
            authorizer=host.authorizer,
            principal=transport.get_extra_info("principal") or ANONYMOUS,
        )
        self.refresh_quota()
        # A peer that is gone without a word is noticed, however long its request waits.
        connected = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._receive_mark = ReceiveMark.of(transport)
        host.connections[self] = None
        host.has_no_connections.clear()
        if not host.admit(self._peer, self._listener_name):
            self._is_closing = True
            self._transport.abort()
            return
        # With TLS it was counted before its handshake.
        is_new = transport.get_extra_info("ssl_object") is None
        throttle = host.throttle_new(self._peer, self._listener_name) if is_new else None
        if throttle is not None:
            self._throttle_new(throttle)
            if throttle.is_closed:
                return
        host.counters.connections_opened += 1
        host.opened_by_listener[self._listener_name] += 1
        self._last_active_s = host.loop.time()
        self._watch_idleness()

    def _throttle_new(self, throttle: ConnectionThrottle) -> None:
        """Nothing begins until the throttle time is over; then the connection begins, or is closed.

        Reading pauses with the first bytes. It cannot before: uvloop begins to read when `connection_made` has
        returned, even if reading was paused in it.
        """
        if throttle.is_closed:
            self._is_closing = True
            self._mute_timer = self._host.loop.call_later(throttle.throttle_time_ms / 1000, self._transport.abort)
        else:
            self.mute(throttle.throttle_time_ms)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as the loop calls it
        held = self._held
        if held.view is not None:
            return held.view[held.filled :]
        host = self._host
        return host.receive_view[:SCARCE_RECEIVE_BYTES] if host.memory.is_spent else host.receive_view

    def buffer_updated(self, nbytes: int) -> None:
        host = self._host
        host.counters.bytes_in += nbytes
        # One reading for both: the clock of times is the loop's, and most requests are not timed.
        self._received_s = self._last_active_s = host.loop.time()
        held = self._held
        # A read that did not fill its buffer has emptied the socket: whatever comes next comes in another turn.
        if held.view is None:
            view, end = host.receive_view, nbytes
        else:
            held.filled += nbytes
            view, end = held.view, held.filled
        if end < len(view):
            self._turn_requests = self._turn_bytes = 0
        start = self._begin_frames(view, 0, end)
        # Mostly all that was received has begun, and the connection goes on as it is.
        if start != end or held.view is not None or self._is_blocked or self._is_closing or self._is_reading_paused:
            self._keep(view, start, end)

    def eof_received(self) -> None:
        return None

    def pause_writing(self) -> None:
        self._outbox.pause()

    def resume_writing(self) -> None:
        self._last_active_s = self._host.loop.time()
        self._outbox.resume()
        self._after_send()

    def connection_lost(self, exc: Exception | None) -> None:
        host = self._host
        if host.on_connection_lost is not None:
            is_ended_by_peer = not self._is_closing and (exc is None or isinstance(exc, ConnectionError))
            host.on_connection_lost(self._context, is_ended_by_peer)
        self._is_lost = self._is_closing = True
        host.connections.pop(self, None)
        if not host.connections:
            host.has_no_connections.set()
        host.idle_timer.remove(self, self._idle_tick)
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        host.limits.release(self._peer[0])
        host.counters.connections_closed += 1
        host.counters.bytes_out += self._outbox.sent_bytes
        self._held.drop()
        self._exclusive = None
        for request in self._outbox.clear():
            request.is_connected = False
            if request.on_disconnect is not None:
                on_disconnect, request.on_disconnect = request.on_disconnect, None
                on_disconnect()

    # What requests call.

    def on_answer(self, request: Request, answer: Answer) -> None:
        self._open_count -= 1
        if self._exclusive is request:
            self._exclusive = None
        if self._is_lost:
            return
        if isinstance(answer, bytes):
            self._outbox.unsent_bytes += len(answer)
        elif isinstance(answer, CloseConnection):
            self._is_closing = True
        else:
            self._outbox.unsent_bytes += sum(len(part) for part in answer if isinstance(part, bytes))
        # The loop over frames sends when it ends: one write for all that was answered at once.
        if self._is_beginning or self._is_send_due:
            return
        slots = self._outbox.slots
        if slots and slots[0].answer is not None:
            if slots[-1].answer is None:
                # What completes one of several requests may complete others in the same turn: one write for all.
                self._is_send_due = True
                self._host.loop.call_soon(self._send)
                return
            self._outbox.send()
        self._after_send()

    def _send(self) -> None:
        self._is_send_due = False
        if self._is_lost:
            return
        if self._outbox.slots and self._outbox.slots[0].answer is not None:
            self._outbox.send()
        self._after_send()

    def hold_later_requests(self, request: Request) -> None:
        self._exclusive = request

    def release_later_requests(self, request: Request) -> None:
        if self._exclusive is request:
            self._exclusive = None
            self._continue_soon()

    def mute(self, throttle_time_ms: int) -> None:
        # Requests overlap: of several throttle times the one that ends last counts.
        throttle_time_s = throttle_time_ms / 1000
        until_s = self._host.loop.time() + throttle_time_s
        if self._mute_timer is not None:
            if until_s <= self._muted_until_s:
                return
            self._mute_timer.cancel()
        self._is_muted = True
        self._muted_until_s = until_s
        self._mute_timer = self._host.loop.call_later(throttle_time_s, self._unmute)

    def set_context(self, context: RequestContext) -> None:
        self._context = context
        self.refresh_quota()
        self._of_node = 0 if context.node_id is None else OF_NODE
        self._kind = NO_KIND

    # What the node calls.

    @property
    def listener_name(self) -> str:
        return self._listener_name

    @property
    def client_software(self) -> str:
        return self._context.client_software

    @property
    def sent_bytes(self) -> int:
        return self._outbox.sent_bytes

    def drain(self) -> None:
        """Begins nothing more and closes as soon as every request that has begun is answered and sent."""
        self._is_draining = True
        self._is_blocked = True
        self._update_reading()
        self._after_send()

    def on_quotas_changed(self) -> None:
        # The next request is of no known kind then, and looks for more than its kind: the others have nothing to ask.
        self._is_quota_old = True
        self._kind = NO_KIND

    def refresh_quota(self) -> None:
        """Looks for the quotas of the client again."""
        quota = self._host.find_quota(self._context)
        if quota is not self._context.quota:
            self._context = replace(self._context, quota=quota)

    def abort(self) -> None:
        """Closes at once; what is unsent is lost."""
        if not self._is_lost:
            self._transport.abort()

    def check_idle(self) -> None:
        """Called when the idle timer comes around: closes the connection, or waits for the rest of its time."""
        idle_ms = self._idle_ms()
        if idle_ms < self._host.idle_ms_max or self._open_count > 0:
            self._watch_idleness()
            return
        self._host.counters.connections_idle_closed += 1
        logger.debug("Closing idle connection: peer=%s:%d reason=idle for %d ms", *self._peer, idle_ms)
        self._is_closing = True
        self._transport.abort()

    # Frames in.

    def _begin_frames(self, view: memoryview, start: int, end: int) -> int:
        """Begins complete frames as far as the rules allow; returns where the first one that did not begin starts."""
        host = self._host
        outbox = self._outbox
        slots = outbox.slots
        self._is_beginning = True
        self._is_blocked = self._is_draining
        while end - start >= 4:
            if self._is_closing:
                start = end
                break
            (size,) = INT32.unpack_from(view, start)
            if not FRAME_BYTES_MIN <= size <= host.small_request_bytes_max:
                refusal = self._refusal(size, view, start, end)
                if refusal is not None:
                    self._refuse_frame(refusal)
                    continue
            frame_end = start + 4 + size
            if frame_end > end:
                break
            (api_key,) = INT16.unpack_from(view, start + 4)
            is_exclusive = api_key not in host.overlapping
            if (
                self._exclusive is not None
                or (is_exclusive and self._open_count > 0)
                or len(slots) >= SLOTS_MAX
                or outbox.unsent_bytes >= host.answers.unsent_bytes_max
                or self._is_muted
                or self._is_draining
            ):
                self._is_blocked = True
                break
            if self._turn_requests >= TURN_REQUESTS_MAX or self._turn_bytes >= TURN_BYTES_MAX:
                self._is_blocked = True
                self._continue_soon()
                break
            self._turn_requests += 1
            self._turn_bytes += size
            self._begin(view[start + 4 : frame_end], is_exclusive)
            start = frame_end
        self._is_beginning = False
        if slots:
            before = len(slots), outbox.unsent_bytes
            outbox.send()
            # Else nothing has changed for what is held back until the next answer.
            if (len(slots), outbox.unsent_bytes) != before:
                self._after_send()
        return start

    def _refusal(self, size: int, view: memoryview, start: int, end: int) -> str | None:
        """Why a frame of that size, of which view[start:end] is there, cannot be taken; None when it can."""
        host = self._host
        if size >> 8 in TLS_HANDSHAKES:
            return f"it begins with a handshake of TLS, which listener {self._listener_name} does not speak"
        if not FRAME_BYTES_MIN <= size <= host.request_bytes_max:
            return f"frame of {size} bytes, expected {FRAME_BYTES_MIN} to {host.request_bytes_max}"
        if size > SMALL_REQUEST_BYTES_MAX and end - start >= 6:
            (api_key,) = INT16.unpack_from(view, start + 4)
            if api_key != ApiKey.PRODUCE:
                return f"frame of {size} bytes for API {api_key}, at most {SMALL_REQUEST_BYTES_MAX} are taken"
        return None

    def _begin(self, frame: memoryview, is_exclusive: bool) -> None:
        try:
            header = decode_header(frame)
        except CorruptData as error:
            self._refuse_frame(str(error))
            return
        context = self._context
        if header.client_id != context.client_id:
            self._context = replace(context, client_id=header.client_id)
            self.refresh_quota()
            context = self._context
        # Mostly a request is of the kind of the one before.
        kind = self._kind
        api_key, api_version = header.api_key, header.api_version
        if api_key != kind.api_key or api_version != kind.api_version:
            kind = self._kind = self._kind_of(api_key, api_version)
            if self._is_quota_old:
                self._is_quota_old = False
                self.refresh_quota()
                context = self._context
        kind.count += 1
        is_timed = not kind.count & kind.mask
        request = (TimedRequest if is_timed else Request)(
            self, api_key, api_version, header.correlation_id, context, frame, header.body_offset
        )
        self._outbox.slots.append(request)
        self._open_count += 1
        if is_exclusive:
            self._exclusive = request
        quota = context.quota
        if quota is not None and quota.is_measured:
            self._begin_measured(request, kind, quota)
        elif is_timed:
            assert isinstance(request, TimedRequest)
            self._begin_timed(request, kind)
        else:
            self._host.begin(request)

    def _begin_measured(self, request: Request, kind: RequestKind, quota: ClientQuota) -> None:
        """Of a client with a quota: the time counts in which its handler keeps the loop from others."""
        now_s = self._host.work_time_s
        begun_s = now_s()
        if isinstance(request, TimedRequest):
            self._begin_timed(request, kind)
        else:
            self._host.begin(request)
        quota.on_handled(now_s() - begun_s)

    def _kind_of(self, api_key: int, api_version: int) -> RequestKind:
        host = self._host
        kind = host.request_kinds.get(api_key << VERSION_BITS | api_version | self._of_node)
        return host.requests.add_kind(api_key, api_version, self._of_node) if kind is None else kind

    def _begin_timed(self, request: TimedRequest, kind: RequestKind) -> None:
        timer = request.timer = RequestTimer(kind, self._host.loop.time, self._received_s)
        self._outbox.timed.append(request)
        self._host.begin(request)
        if request.answer is None:
            timer.on_returned()

    def _refuse_frame(self, reason: str) -> None:
        """Closes the connection once the answers to what came before the frame are sent."""
        request = Request(self, -1, -1, 0, self._context, self._host.receive_view[:0], 0)
        self._outbox.slots.append(request)
        self._open_count += 1
        request.close_connection(reason)

    def _continue_soon(self) -> None:
        """Looks at the kept frames again, in a turn of its own, so that an answer never begins requests beneath it."""
        if not self._is_continuing:
            self._is_continuing = True
            self._host.loop.call_soon(self._continue)

    def _continue(self) -> None:
        self._is_continuing = False
        if self._is_lost:
            return
        self._turn_requests = self._turn_bytes = 0
        held = self._held
        if held.view is None or held.is_waiting:
            self._is_blocked = self._is_draining
            self._update_reading()
            return
        view, end = held.view, held.filled
        self._keep(view, self._begin_frames(view, held.start, end), end)

    def _unmute(self) -> None:
        self._is_muted = False
        self._mute_timer = None
        self._continue_soon()

    def _keep(self, view: memoryview, start: int, end: int) -> None:
        if self._is_closing:
            self._held.drop()
        else:
            self._held.keep(view, start, end, is_blocked=self._is_blocked)
        self._update_reading()
        mark = self._receive_mark
        if mark is not None and not self._transport.is_closing():
            mark.expect(0 if self._is_reading_paused else self._held.missing_bytes)

    # State.

    def _on_sent(self) -> None:
        self._last_active_s = self._host.loop.time()
        self._after_send()

    def _after_send(self) -> None:
        if self._is_draining and self._outbox.is_empty and not self._is_closing:
            self._is_closing = True
            self._transport.close()
        elif self._is_blocked:
            self._continue_soon()

    def _update_reading(self) -> None:
        should_pause = self._is_blocked or self._held.is_waiting or self._is_closing
        if should_pause == self._is_reading_paused or self._transport.is_closing():
            return
        self._is_reading_paused = should_pause
        if should_pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _idle_ms(self) -> int:
        return int((self._host.loop.time() - self._last_active_s) * 1000)

    def _watch_idleness(self) -> None:
        host = self._host
        self._idle_tick = host.idle_timer.add(self, max(host.idle_ms_max - self._idle_ms(), IDLE_TICK_MS))

    def _close(self, reason: str) -> None:
        self._log_failure(reason)
        self._is_closing = True
        self._transport.close()

    def _abort(self, reason: str) -> None:
        self._log_failure(reason)
        self._is_closing = True
        self._transport.abort()

    def _log_failure(self, reason: str) -> None:
        self._host.counters.connections_failed += 1
        self._host.peer_log.write(
            logging.WARNING,
            self._peer[0],
            "Connection closed: peer=%s:%d listener=%s client=%s software=%s reason=%s",
            *self._peer,
            self._listener_name,
            self._context.client_id,
            self._context.client_software,
            reason,
        )
