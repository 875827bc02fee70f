"""Order, bounds and back-pressure of one connection, without a network: the test is the socket."""

from __future__ import annotations

import asyncio
import gc
import logging
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.connection import (
    RECEIVE_BUFFER_BYTES,
    SCARCE_RECEIVE_BYTES,
    SLOTS_MAX,
    TURN_REQUESTS_MAX,
    UNSENT_BYTES_MAX,
    Connection,
    ConnectionHost,
)
from penstock.broker.connection_limits import ConnectionLimits
from penstock.broker.outbox import PIECE_BYTES, TURN_BYTES
from penstock.broker.request import Request
from penstock.broker.request_memory import RequestMemory

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


class Wire(asyncio.Transport):
    """A transport whose peer reads only as much as the test lets it."""

    def __init__(self, room_bytes: int) -> None:
        super().__init__({"peername": ("10.0.0.1", 4321)})
        self.room_bytes = room_bytes
        self.received = bytearray()
        self.buffered = bytearray()
        self.is_reading_paused = False
        self.is_closed = False
        self.is_aborted = False
        self.high = 65536
        self.protocol: Connection

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:  # noqa: ARG002
        self.high = high or 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_closing(), "a closed transport is not written to"
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
            limits=limits or ConnectionLimits(total=100, per_host=100, per_host_overrides={}),
            request_bytes_max=request_bytes_max,
            idle_ms_max=IDLE_MS,
        )

    def hold_back(self, request: Request) -> None:
        request.hold_back()
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


@pytest.fixture
def loop() -> Iterator[ManualLoop]:
    loop = ManualLoop()
    yield loop
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


# Order.


def test_answers_leave_in_request_order(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, b"".join(map(frame, range(4))))
    for number in (2, 1, 3):
        node.begun[number].respond(answer(number))
        assert wire.received == b""
    node.begun[0].respond(answer(0))
    assert wire.received == b"".join(map(answer, range(4)))


def test_overlapping_requests_begin_while_earlier_ones_wait(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, b"".join(map(frame, range(5))))
    assert node.begun_ids == [0, 1, 2, 3, 4]
    assert wire.is_reading()


def test_exclusive_request_begins_alone(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + frame(1) + frame(2, api_key=EXCLUSIVE) + frame(3) + frame(4))
    assert node.begun_ids == [0, 1]
    assert not wire.is_reading()
    node.begun[1].respond(answer(1))
    loop.turn()
    assert node.begun_ids == [0, 1]
    node.begun[0].respond(answer(0))
    loop.turn()
    assert node.begun_ids == [0, 1, 2]
    node.begun[2].respond(answer(2))
    loop.turn()
    assert node.begun_ids == [0, 1, 2, 3, 4]
    assert wire.is_reading()
    assert node.host.memory.used_bytes == 0


def test_request_that_holds_back_is_followed_only_when_it_lets_go(loop: ManualLoop) -> None:
    node = Node(loop, begin=Node.hold_back)
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + frame(1))
    loop.turn()
    assert node.begun_ids == [0]
    node.begun[0].let_go()
    loop.turn()
    assert node.begun_ids == [0, 1]
    node.begun[1].respond(answer(1))
    node.begun[0].respond(answer(0))
    assert wire.received == answer(0) + answer(1)


def test_answer_never_begins_requests_beneath_itself(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0, api_key=EXCLUSIVE) + frame(1, api_key=EXCLUSIVE))
    node.begun[0].respond(answer(0))
    assert node.begun_ids == [0]
    loop.turn()
    assert node.begun_ids == [0, 1]


def test_request_without_response_keeps_its_place_in_the_order(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + frame(1) + frame(2))
    node.begun[1].respond_nothing()
    node.begun[2].respond(answer(2))
    node.begun[0].respond(answer(0))
    assert wire.received == answer(0) + answer(2)


def test_closing_request_lets_earlier_answers_out_first(loop: ManualLoop, caplog: pytest.LogCaptureFixture) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + frame(1) + frame(2))
    node.begun[1].close_connection("acks=0 and no such partition")
    feed(connection, wire, frame(3))
    assert node.begun_ids == [0, 1, 2]
    assert not wire.is_closing()
    node.begun[0].respond(answer(0))
    assert wire.is_closed
    node.begun[2].respond(answer(2))
    assert wire.received == answer(0)
    assert [record.getMessage() for record in caplog.records if "no such partition" in record.getMessage()] == [
        "connection closed: peer=10.0.0.1:4321 listener=PLAINTEXT client=None software=unknown "
        "reason=acks=0 and no such partition"
    ]


def test_throttled_connection_is_answered_at_once_and_begins_nothing_for_that_long(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0))
    node.begun[0].respond(answer(0), throttle_time_ms=1000)
    assert wire.received == answer(0)
    feed(connection, wire, frame(1))
    loop.turn(by_ms=999)
    assert node.begun_ids == [0]
    loop.turn(by_ms=2)
    loop.turn()
    assert node.begun_ids == [0, 1]


# Frames.


def test_byte_by_byte_is_the_same_as_at_once(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    data = b"".join(frame(number, body=bytes([number]) * 40 * number) for number in range(30))
    feed(connection, wire, data, chunk_bytes=1)
    assert node.begun_ids == list(range(30))
    assert node.bodies == [bytes([number]) * 40 * number for number in range(30)]
    assert node.host.memory.used_bytes == 0


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(0, 5000), min_size=1, max_size=30),
    chunks=st.lists(st.integers(100, 6000), min_size=1, max_size=10),
    exclusive=st.sets(st.integers(0, 30)),
)
def test_every_frame_begins_once_and_in_order_however_it_arrives(
    sizes: list[int], chunks: list[int], exclusive: set[int]
) -> None:
    loop = ManualLoop()
    try:
        node = Node(loop)
        connection, wire = node.connect()
        bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
        data = b"".join(
            frame(number, body=body, api_key=EXCLUSIVE if number in exclusive else OVERLAPPING)
            for number, body in enumerate(bodies)
        )
        answered = 0
        for turn in range(10_000):
            if not data and answered == len(sizes):
                break
            chunk_bytes = chunks[turn % len(chunks)]
            data = feed(connection, wire, data[:chunk_bytes]) + data[chunk_bytes:]
            loop.turn()
            if node.begun_ids[answered:] and (wire.is_reading_paused or turn % 3 == 0 or not data):
                node.begun[answered].respond(answer(answered))
                answered += 1
        assert node.bodies == bodies
        assert wire.received == b"".join(map(answer, range(len(sizes))))
        assert node.host.memory.used_bytes == 0
    finally:
        loop.close()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">i", -1), "frame of -1 bytes"),
        (struct.pack(">i", 7), "frame of 7 bytes, expected 8 to 1000"),
        (struct.pack(">i", 1001), "frame of 1001 bytes, expected 8 to 1000"),
        (frame(0, api_key=UNKNOWN), "there is no API 999"),
    ],
)
def test_bad_frame_closes_the_connection_with_one_line(
    loop: ManualLoop, caplog: pytest.LogCaptureFixture, data: bytes, reason: str
) -> None:
    node = Node(loop, request_bytes_max=1000)
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + data + frame(1))
    node.begun[0].respond(answer(0))
    loop.turn()
    assert wire.received == answer(0)
    assert wire.is_closed
    assert node.begun_ids == [0]
    assert node.host.memory.used_bytes == 0
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert "peer=10.0.0.1:4321" in lines[0]
    assert reason in lines[0]


# Memory.


def test_connection_without_unfinished_frame_owns_no_memory(loop: ManualLoop) -> None:
    node = Node(loop)
    (first, first_wire), (second, _) = node.connect(), node.connect()
    feed(first, first_wire, frame(0))
    assert first.get_buffer(-1).obj is second.get_buffer(-1).obj
    assert node.host.memory.used_bytes == 0


def test_memory_grows_with_what_arrived_and_not_with_what_was_announced(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    data = frame(0, body=bytes(50 << 20))
    position = 0
    while position < len(data) - 1:
        feed(connection, wire, data[position : position + 200_000][: len(data) - 1 - position])
        position = min(position + 200_000, len(data) - 1)
        assert node.host.memory.used_bytes <= max(2 * position, 1024)
    feed(connection, wire, data[-1:])
    assert node.begun_ids == [0]
    assert node.host.memory.used_bytes == 0


def test_many_half_requests_stay_within_the_budget_and_all_finish(loop: ManualLoop) -> None:
    limit, size = 1 << 20, 300_000
    node = Node(loop, memory_bytes=limit)
    data = frame(0, body=bytes(size))
    peers = [(*node.connect(), bytearray(data)) for _ in range(20)]
    peak = 0
    for turn in range(10_000):
        for connection, wire, rest in peers:
            left = feed(connection, wire, bytes(rest[:20_000]))
            del rest[: min(20_000, len(rest)) - len(left)]
        loop.turn()
        peak = max(peak, node.host.memory.used_bytes)
        if len(node.begun) == len(peers) or turn > 5000:
            break
    assert len(node.begun) == len(peers)
    assert peak <= limit + len(data) + len(peers) * 20_000
    assert node.host.memory.used_bytes == 0


def test_little_is_read_at_a_time_while_memory_is_spent(loop: ManualLoop) -> None:
    node = Node(loop, memory_bytes=1000)
    connection, _ = node.connect()
    assert len(connection.get_buffer(-1)) == RECEIVE_BUFFER_BYTES
    node.host.memory.take(1000)
    assert len(connection.get_buffer(-1)) == SCARCE_RECEIVE_BYTES


def test_disconnect_gives_memory_back_to_those_who_wait(loop: ManualLoop) -> None:
    node = Node(loop, memory_bytes=1000)
    peers = [node.connect() for _ in range(3)]
    for connection, wire in peers:
        feed(connection, wire, frame(0, body=bytes(5000))[:3000])
    paused = [wire.is_reading_paused for _, wire in peers]
    assert paused == [False, True, True]
    peers[0][0].connection_lost(None)
    assert [wire.is_reading_paused for _, wire in peers] == [False, False, True]
    peers[2][0].connection_lost(None)
    peers[1][0].connection_lost(None)
    assert node.host.memory.used_bytes == 0


# Bounds.


def test_slots_are_bounded(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, b"".join(map(frame, range(SLOTS_MAX + 50))))
    for _ in range(10):
        loop.turn()
    assert len(node.begun) == SLOTS_MAX
    assert not wire.is_reading()
    for request in list(node.begun):
        request.respond(answer(request.correlation_id))
    for _ in range(10):
        loop.turn()
    assert len(node.begun) == SLOTS_MAX + 50
    assert wire.is_reading()


def test_requests_of_one_turn_are_bounded(loop: ManualLoop) -> None:
    node = Node(loop, begin=Node.respond)
    connection, wire = node.connect()
    feed(connection, wire, b"".join(map(frame, range(150))))
    assert len(node.begun) == TURN_REQUESTS_MAX
    loop.turn()
    assert len(node.begun) == 2 * TURN_REQUESTS_MAX
    loop.turn()
    assert len(node.begun) == 150
    assert wire.is_reading()


def test_unsent_answers_for_a_slow_reader_are_bounded(loop: ManualLoop) -> None:
    body = bytes(1 << 20)
    node = Node(loop, room_bytes=0, begin=Node.respond, body=body)
    connection, wire = node.connect()
    feed(connection, wire, b"".join(map(frame, range(60))))
    for _ in range(10):
        loop.turn()
    begun_count = len(node.begun)
    assert begun_count <= UNSENT_BYTES_MAX // len(body) + 2
    assert not wire.is_reading()
    for _ in range(200):
        wire.read_by_peer(1 << 20)
        loop.turn()
    assert len(node.begun) == 60
    assert len(wire.received) == 60 << 20
    assert wire.is_reading()


class Slice:
    """A file of ones; `cached` says how much can be read without waiting."""

    def __init__(self, size: int, cached: int | None = None, present: int | None = None) -> None:
        self.size = size
        self.cached = size if cached is None else cached
        self.present = size if present is None else present
        self.reads: list[tuple[str, int, int]] = []

    def read_nowait(self, offset: int, size: int) -> bytes | None:
        self.reads.append(("nowait", offset, size))
        return b"1" * min(size, self.cached - offset) or None

    def read(self, offset: int, size: int) -> bytes:
        self.reads.append(("waiting", offset, size))
        return b"1" * min(size, self.present - offset)


def turn_until(loop: ManualLoop, condition: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if condition():
            return
        loop.turn()
    raise AssertionError("the condition never came to hold")


def test_slices_are_read_only_when_they_reach_the_head_and_there_is_room(loop: ManualLoop) -> None:
    node = Node(loop, room_bytes=0)
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + frame(1))
    part = Slice(4 * PIECE_BYTES)
    node.begun[1].respond([b"header", part, b"end"])
    assert part.reads == []
    node.begun[0].respond(answer(0))
    # One piece goes to the transport, which then has no room.
    assert part.reads == [("nowait", 0, PIECE_BYTES)]
    reads = 1
    for _ in range(30):
        wire.read_by_peer(PIECE_BYTES)
        loop.turn()
        assert len(part.reads) - reads <= 2
        reads = len(part.reads)
    assert wire.received == answer(0) + b"header" + b"1" * part.size + b"end"
    assert all(size <= PIECE_BYTES for _, _, size in part.reads)


def test_uncached_part_of_a_slice_is_read_in_the_executor(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + frame(1))
    part = Slice(1000, cached=300)
    node.begun[0].respond([b"a", part, b"b"])
    node.begun[1].respond(answer(1))
    expected = b"a" + b"1" * 1000 + b"b" + answer(1)
    turn_until(loop, lambda: len(wire.received) == len(expected))
    assert wire.received == expected
    assert part.reads == [("nowait", 0, 1000), ("nowait", 300, 700), ("waiting", 300, 700)]


def test_slice_that_ends_too_early_aborts_the_connection(loop: ManualLoop, caplog: pytest.LogCaptureFixture) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0))
    node.begun[0].respond([b"a", Slice(1000, cached=0, present=0)])
    turn_until(loop, lambda: wire.is_aborted)
    assert "no longer in its file" in caplog.text


def test_fast_reader_of_a_long_answer_yields_to_other_connections(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0))
    node.begun[0].respond([Slice(10 * TURN_BYTES)])
    assert len(wire.received) <= 2 * TURN_BYTES
    turn_until(loop, lambda: len(wire.received) == 10 * TURN_BYTES)


# Ends.


def test_disconnect_tells_parked_requests_in_the_same_turn(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + frame(1) + frame(2))
    told: list[int] = []
    for request in node.begun:
        request.on_disconnect = lambda number=request.correlation_id: told.append(number)
    node.begun[1].respond(answer(1))
    connection.connection_lost(None)
    assert told == [0, 2]
    assert not any(request.is_connected for request in node.begun)
    node.begun[0].respond(answer(0))
    assert wire.received == b""
    assert node.host.limits.count == 0


def test_idle_connection_is_closed_and_a_busy_one_is_not(loop: ManualLoop) -> None:
    node = Node(loop)
    (_, idle_wire), (active, active_wire), (waiting, waiting_wire) = (node.connect() for _ in range(3))
    feed(waiting, waiting_wire, frame(0))
    loop.turn(by_ms=IDLE_MS // 2)
    feed(active, active_wire, frame(1)[:5])
    loop.turn(by_ms=IDLE_MS // 2 + 200)
    assert idle_wire.is_aborted
    assert not active_wire.is_closing()
    assert not waiting_wire.is_closing()
    loop.turn(by_ms=IDLE_MS)
    assert active_wire.is_aborted
    assert node.host.counters.connections_idle_closed == 2


def test_connections_past_the_limits_are_refused(loop: ManualLoop, caplog: pytest.LogCaptureFixture) -> None:
    limits = ConnectionLimits(total=3, per_host=2, per_host_overrides={})
    node = Node(loop, limits=limits)
    connections = [node.connect() for _ in range(3)]
    assert [wire.is_aborted for _, wire in connections] == [False, False, True]
    assert "max.connections.per.ip allows 2" in caplog.text
    connections[2][0].connection_lost(None)
    connections[0][0].connection_lost(None)
    assert not node.connect()[1].is_aborted
    limits.set_limits(total=1, per_host=100, per_host_overrides={"10.0.0.1": 50})
    assert node.connect()[1].is_aborted
    assert "max.connections allows 1" in caplog.text
    assert node.host.counters.connections_refused == 2


def test_draining_connection_answers_what_has_begun_and_closes(loop: ManualLoop) -> None:
    node = Node(loop)
    (busy, busy_wire), (quiet, quiet_wire) = node.connect(), node.connect()
    feed(busy, busy_wire, frame(0) + frame(1, api_key=EXCLUSIVE))
    busy.drain()
    quiet.drain()
    assert quiet_wire.is_closed
    assert not busy_wire.is_closing()
    node.begun[0].respond(answer(0))
    loop.turn()
    assert busy_wire.is_closed
    assert busy_wire.received == answer(0)
    assert node.begun_ids == [0]


def test_hundred_thousand_requests_leave_no_cyclic_garbage(loop: ManualLoop) -> None:
    parked: list[Request] = []

    def begin(_: Node, request: Request) -> None:
        if request.correlation_id % 2:
            request.respond(answer(request.correlation_id))
        else:
            request.on_disconnect = lambda: parked.remove(request)
            parked.append(request)

    node = Node(loop, begin=begin)
    connection, wire = node.connect()
    data = frame(0) + frame(1)
    gc.collect()
    gc.disable()
    try:
        for _ in range(50_000):
            feed(connection, wire, data)
            parked.pop().respond(answer(0))
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert len(wire.received) == 100_000 * len(answer(0))
