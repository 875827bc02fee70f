"""A connection without a network: the test is the socket, and turns the event loop itself."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from functools import partial

from penstock.broker.network.connection import Connection
from penstock.broker.network.connection_host import ConnectionHost
from penstock.broker.network.peer_log import PeerLog
from penstock.broker.network.request import Request
from penstock.broker.network.rules.answer_memory import AnswerMemory
from penstock.broker.network.rules.connection_limits import ConnectionLimits
from penstock.broker.network.rules.request_memory import RequestMemory

OVERLAPPING, EXCLUSIVE, UNKNOWN = 0, 17, 999
IDLE_MS = 60_000


def frame(correlation_id: int, *, api_key: int = OVERLAPPING, body: bytes = b"") -> bytes:
    """A request of API 0 version 3 or another API's version 0, whose headers are alike, with any body."""
    version = 3 if api_key == OVERLAPPING else 0
    return struct.pack(">ihhih", 10 + len(body), api_key, version, correlation_id, -1) + body


def answer(correlation_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


class ManualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock and turns the test moves."""

    now_ms = 1_000_000

    def time(self) -> float:
        return self.now_ms / 1000

    def turn(self, by_ms: int = 0) -> None:
        self.now_ms += by_ms
        self.call_soon(self.stop)
        self.run_forever()

    @property
    def has_work(self) -> bool:
        """Whether the next turn would do something."""
        return bool(self._ready)  # type: ignore[attr-defined]


class Wire(asyncio.Transport):
    """A transport whose peer reads only as much as the test lets it."""

    def __init__(self, room_bytes: int) -> None:
        super().__init__({"peername": ("10.0.0.1", 4321)})
        self.room_bytes = room_bytes
        self.received = bytearray()
        self.write_count = 0
        self.buffered = bytearray()
        self.is_reading_paused = False
        self.is_closed = False
        self.is_aborted = False
        self.high = 65536
        self.protocol: Connection

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:  # noqa: ARG002
        self.high = high or 0

    def get_write_buffer_size(self) -> int:
        return len(self.buffered)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_closing(), "a closed transport is not written to"
        self.write_count += 1
        self.buffered += data
        self._transmit()
        if len(self.buffered) > self.high:
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Sequence[bytes | bytearray | memoryview]) -> None:  # type: ignore[override]
        self.write(b"".join(list_of_data))

    def read_by_peer(self, size_bytes: int) -> None:
        """The peer takes that much."""
        was_full = len(self.buffered) > self.high
        self.room_bytes += size_bytes
        self._transmit()
        if was_full and len(self.buffered) <= self.high // 4:
            self.protocol.resume_writing()

    def _transmit(self) -> None:
        count = min(self.room_bytes, len(self.buffered))
        self.received += self.buffered[:count]
        del self.buffered[:count]
        self.room_bytes -= count

    def is_reading(self) -> bool:
        return not self.is_reading_paused

    def pause_reading(self) -> None:
        assert not self.is_reading_paused
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        assert self.is_reading_paused
        self.is_reading_paused = False

    def is_closing(self) -> bool:
        return self.is_closed or self.is_aborted

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True


class Node:
    """Connections on a manual loop, and what their requests came to."""

    def __init__(
        self,
        loop: ManualLoop,
        *,
        memory_bytes: int = 1 << 30,
        request_bytes_max: int = 100 << 20,
        room_bytes: int = 1 << 40,
        begin: Callable[[Node, Request], None] | None = None,
        body: bytes = b"",
        limits: ConnectionLimits | None = None,
        answer_bytes_max: int = 1 << 30,
    ) -> None:
        self.loop = loop
        self.room_bytes = room_bytes
        self.body = body
        self.begun: list[Request] = []
        self.bodies: list[bytes] = []
        self.host = ConnectionHost(
            loop=loop,
            begin=partial(begin or Node._remember, self),
            overlapping=frozenset({OVERLAPPING}),
            memory=RequestMemory(memory_bytes),
            peer_log=PeerLog(loop),
            answers=AnswerMemory(answer_bytes_max),
            limits=limits or ConnectionLimits(total=100, per_host=100, per_host_overrides={}),
            request_bytes_max=request_bytes_max,
            idle_ms_max=IDLE_MS,
        )

    def hold_later_requests(self, request: Request) -> None:
        request.hold_later_requests()
        self._remember(request)

    def respond(self, request: Request) -> None:
        self._remember(request)
        request.respond(self.body)

    def _remember(self, request: Request) -> None:
        self.begun.append(request)
        self.bodies.append(bytes(request.body[request.body_offset :]))

    def connect(self) -> tuple[Connection, Wire]:
        wire = Wire(self.room_bytes)
        wire.protocol = connection = Connection(self.host, "PLAINTEXT")
        connection.connection_made(wire)
        return connection, wire

    @property
    def begun_ids(self) -> list[int]:
        return [request.correlation_id for request in self.begun]


def feed(connection: Connection, wire: Wire, data: bytes, chunk_bytes: int = 1 << 30) -> bytes:
    """Gives the connection bytes as a loop would; returns what it did not want to read yet."""
    while data and not wire.is_reading_paused and not wire.is_closing():
        buffer = connection.get_buffer(-1)
        count = min(len(buffer), len(data), chunk_bytes)
        assert count > 0, "a loop takes an empty buffer for a bug"
        buffer[:count] = data[:count]
        connection.buffer_updated(count)
        data = data[count:]
    return data
