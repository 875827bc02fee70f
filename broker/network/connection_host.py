"""What all connections of one loop share: limits, memory, counters, the receive buffer and the idle timer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from msgspec import Struct

from ..timing.loop_timer_wheel import LoopTimerWheel
from .peer_log import PeerLog
from .request import Authorizer, Request, RequestContext
from .rules.answer_memory import AnswerMemory
from .rules.client_quota import ClientQuota
from .rules.connection_limits import ConnectionLimits
from .rules.connection_rates import ConnectionRates, ConnectionThrottle
from .rules.frame_buffers import FrameBuffers
from .rules.request_memory import RequestMemory
from .rules.request_statistics import RequestKind, RequestStatistics

RECEIVE_BUFFER_BYTES = 256 * 1024
"""Shared by all connections; a larger one brings no further throughput."""
SCARCE_RECEIVE_BYTES = 4 * 1024
"""Read at a time while the memory for requests is spent: what has arrived must be kept, so let little arrive."""
SMALL_REQUEST_BYTES_MAX = 4 * 1024 * 1024
"""Of any request but Produce, whose bytes are mostly records that are not decoded. What is decoded field by field takes
the loop up to 0.8 s a MiB, and all other clients wait for it."""
IDLE_TICK_MS = 100
"""Idle connections are closed at most that much late."""
NEVER_MS = 1 << 60
"""`ConnectionHost.idle_ms_max` of connections that are not closed for being idle."""


class Authentication(NamedTuple):
    """What became of one, on a listener with SASL; `is_renewal`: of a session (KIP-368)."""

    is_successful: bool
    is_renewal: bool


class HostedConnection(Protocol):
    """What its host uses of a `Connection`."""

    @property
    def sent_bytes(self) -> int: ...

    @property
    def listener_name(self) -> str: ...

    @property
    def client_software(self) -> str:
        """Name and version as told in ApiVersions (KIP-511)."""

    def check_idle(self) -> None:
        """Closes the connection if nothing has come for too long."""

    def drain(self) -> None:
        """Answers what has begun, begins nothing more, and closes."""

    def abort(self) -> None: ...

    def on_quotas_changed(self) -> None:
        """Looks for the quotas of its client again before its next request begins."""


def _no_quota(_context: RequestContext) -> ClientQuota | None:
    return None


class NetworkCounters(Struct):
    """Plain integers since start; `Listeners.statistics` reads them."""

    connections_opened: int = 0
    connections_closed: int = 0
    connections_refused: int = 0
    connections_throttled: int = 0
    """Above the rate of the broker, their listener or their address."""
    connections_failed: int = 0
    """Closed by the node because of what the peer sent."""
    connections_idle_closed: int = 0
    sessions_expired: int = 0
    """Connections closed by the node because they went on after the end of their session."""
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(slots=True, kw_only=True, eq=False)
class ConnectionHost:
    """What the connections of one loop share."""

    loop: asyncio.AbstractEventLoop
    begin: Callable[[Request], None]
    overlapping: Container[int]
    """API keys whose requests may begin before earlier ones are answered."""
    memory: RequestMemory
    peer_log: PeerLog
    answers: AnswerMemory = field(default_factory=AnswerMemory)
    limits: ConnectionLimits
    rates: ConnectionRates = field(default_factory=ConnectionRates)
    request_bytes_max: int
    idle_ms_max: int
    find_quota: Callable[[RequestContext], ClientQuota | None] = _no_quota
    """The quotas of a client. When it may answer anew, `on_quotas_changed` is called."""
    work_time_s: Callable[[], float] = time.perf_counter
    """Measures the handling of one request; the loop's own time may stand still in a turn."""
    on_connection_lost: Callable[[RequestContext, bool], None] | None = None
    """Receives the end of each connection that was taken, and whether the other side ended it (EOF or reset)."""
    authorizer: Authorizer | None = None
    """None where everyone may do everything."""
    small_request_bytes_max: int = field(init=False)
    """Frames up to this size may be of any API."""
    idle_timer: LoopTimerWheel[HostedConnection] = field(init=False)
    counters: NetworkCounters = field(default_factory=NetworkCounters)
    opened_by_listener: Counter[str] = field(default_factory=Counter)
    authentications: Counter[tuple[str, Authentication]] = field(default_factory=Counter)
    """By the name of the listener."""
    requests: RequestStatistics = field(default_factory=RequestStatistics)
    request_kinds: Mapping[int, RequestKind] = field(init=False)
    """Those of `requests`."""
    connections: dict[HostedConnection, None] = field(default_factory=dict)
    """In the order in which they came: no other order is the same in two runs."""
    has_no_connections: asyncio.Event = field(default_factory=asyncio.Event)
    frame_buffers: FrameBuffers = field(default_factory=FrameBuffers)
    """For large requests while they come."""
    receive_view: memoryview = field(default_factory=lambda: memoryview(bytearray(RECEIVE_BUFFER_BYTES)))

    def __post_init__(self) -> None:
        self.has_no_connections.set()
        self.request_kinds = self.requests.kinds
        self.small_request_bytes_max = min(SMALL_REQUEST_BYTES_MAX, self.request_bytes_max)
        self.idle_timer = LoopTimerWheel(self.loop, IDLE_TICK_MS, _check_idle)

    def on_quotas_changed(self) -> None:
        """Every connection looks for the quotas of its client again, before its next request begins.

        Finding them all now would keep the event loop for 0.1 s with 10,000 connections, most of which may be idle.
        """
        for connection in self.connections:
            connection.on_quotas_changed()

    def throttle_new(self, peer: tuple[str, int], listener_name: str) -> ConnectionThrottle | None:
        """Counts a connection for the rates at which they are taken; what follows when it is above one."""
        throttle = self.rates.on_connection(peer[0], listener_name, int(self.loop.time() * 1000))
        if throttle is not None:
            self.counters.connections_throttled += 1
            if throttle.is_closed:
                self.counters.connections_refused += 1
        return throttle

    def admit(self, peer: tuple[str, int], listener_name: str) -> bool:
        """Counts a connection; whether it may stay. Either way `limits.release` follows."""
        refusal = self.limits.admit(peer[0])
        if refusal is None:
            return True
        self.counters.connections_refused += 1
        self.peer_log.write(
            logging.WARNING,
            peer[0],
            "connection refused: peer=%s:%d listener=%s reason=%s",
            *peer,
            listener_name,
            refusal,
        )
        return False


def _check_idle(connection: HostedConnection) -> None:
    connection.check_idle()


def peer_of(transport: asyncio.BaseTransport) -> tuple[str, int]:
    """Address and port of the other side."""
    peer = transport.get_extra_info("peername")
    return (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) and len(peer) >= 2 else ("", 0)
