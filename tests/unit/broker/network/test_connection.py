"""Order, bounds and back-pressure of one connection, without a network: the test is the socket."""

from __future__ import annotations

import gc
import logging
import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire import EXCLUSIVE, IDLE_MS, OVERLAPPING, UNKNOWN, ManualLoop, Node, Wire, answer, feed, frame

from penstock.broker.network.connection import SLOTS_MAX, TURN_REQUESTS_MAX, Connection
from penstock.broker.network.connection_host import RECEIVE_BUFFER_BYTES, SCARCE_RECEIVE_BYTES, SMALL_REQUEST_BYTES_MAX
from penstock.broker.network.request import Request, RequestContext
from penstock.broker.network.rules.answer_memory import UNSENT_BYTES_MAX
from penstock.broker.network.rules.connection_limits import ConnectionLimits
from penstock.protocol.apis import ApiKey
from penstock.protocol.ids import NodeId

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


def test_answers_of_one_turn_leave_in_one_write(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, b"".join(map(frame, range(3))))
    node.begun[0].respond(answer(0))
    node.begun[1].respond(answer(1))
    assert wire.write_count == 0
    loop.turn()
    assert wire.received == answer(0) + answer(1)
    assert wire.write_count == 1
    node.begun[2].respond(answer(2))
    assert wire.received == b"".join(map(answer, range(3)))


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


@pytest.mark.parametrize("waiting", [OVERLAPPING, EXCLUSIVE])
def test_a_connection_that_waits_for_an_answer_keeps_no_turn_busy(loop: ManualLoop, waiting: int) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0, api_key=waiting) + frame(1, api_key=EXCLUSIVE))
    loop.turn()
    assert node.begun_ids == [0]
    assert not loop.has_work
    connection.drain()
    loop.turn()
    assert not loop.has_work
    node.begun[0].respond(answer(0))
    assert wire.received == answer(0)


def test_request_that_holds_back_is_followed_only_when_it_lets_go(loop: ManualLoop) -> None:
    node = Node(loop, begin=Node.hold_later_requests)
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + frame(1))
    loop.turn()
    assert node.begun_ids == [0]
    node.begun[0].release_later_requests()
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
    loop.turn()
    assert wire.is_closed
    node.begun[2].respond(answer(2))
    assert wire.received == answer(0)
    assert [record.getMessage() for record in caplog.records if "no such partition" in record.getMessage()] == [
        "Connection closed: peer=10.0.0.1:4321 listener=PLAINTEXT client=None software=unknown "
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


@pytest.mark.parametrize(
    ("error", "is_ended_by_peer"), [(None, True), (ConnectionResetError(), True), (TimeoutError(), False)]
)
def test_who_ended_a_connection_is_told(loop: ManualLoop, error: Exception | None, is_ended_by_peer: bool) -> None:
    node = Node(loop)
    told: list[tuple[int, bool]] = []
    node.host.on_connection_lost = lambda context, by_peer: told.append((context.connection_number, by_peer))
    connections = [node.connect()[0] for _ in range(3)]
    connections[1].connection_lost(error)
    connections[0].drain()
    connections[0].connection_lost(None)
    assert told == [(1, is_ended_by_peer), (0, False)]


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


@pytest.mark.parametrize("arrived", [6, 5000])
def test_only_produce_requests_may_be_large(loop: ManualLoop, caplog: pytest.LogCaptureFixture, arrived: int) -> None:
    node = Node(loop)
    large = bytes(SMALL_REQUEST_BYTES_MAX - 9)
    connection, wire = node.connect()
    feed(connection, wire, frame(0, api_key=EXCLUSIVE, body=large)[:arrived])
    loop.turn()
    assert wire.is_closed
    assert f"frame of {SMALL_REQUEST_BYTES_MAX + 1} bytes for API {EXCLUSIVE}" in caplog.text
    connection, wire = node.connect()
    feed(connection, wire, frame(1, api_key=EXCLUSIVE, body=large[1:]))
    # The test's overlapping API is Produce.
    connection, wire = node.connect()
    feed(connection, wire, frame(2, api_key=OVERLAPPING, body=large))
    assert node.begun_ids == [1, 2]


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
    # The second in which the log has its line of this peer is over.
    loop.turn(by_ms=1000)
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


@pytest.mark.thorough
def test_twenty_thousand_requests_leave_no_cyclic_garbage(loop: ManualLoop) -> None:
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
        for _ in range(10_000):
            feed(connection, wire, data)
            parked.pop().respond(answer(0))
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert len(wire.received) == 20_000 * len(answer(0))


def test_requests_are_counted_by_api_and_by_whether_a_node_sent_them(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()

    def ask(number: int, api_key: int) -> None:
        feed(connection, wire, frame(number, api_key=api_key))
        node.begun[number].respond(answer(number))
        loop.turn()

    for number, api_key in enumerate((OVERLAPPING, OVERLAPPING, EXCLUSIVE, OVERLAPPING)):
        ask(number, api_key)
    connection.set_context(replace(node.begun[0].context, node_id=NodeId(2)))
    ask(4, OVERLAPPING)
    counts = {(kind.api_key, kind.is_of_node): kind.count for kind in node.host.requests.kinds.values()}
    assert counts == {(OVERLAPPING, False): 3, (EXCLUSIVE, False): 1, (OVERLAPPING, True): 1}


# Quotas.


class Quota:
    """A client's quota that has the throttle time that the test says."""

    def __init__(self, throttle_time_ms: int = 0) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.handled_s: list[float] = []
        self.told_ms: list[int] = []

    def fetch_bytes_max(self) -> int:
        return 1 << 30

    @property
    def is_measured(self) -> bool:
        return True

    def on_handled(self, elapsed_s: float) -> None:
        self.handled_s.append(elapsed_s)

    def on_produced(self, size_bytes: int) -> int:
        raise AssertionError(f"{size_bytes}: handlers ask for it")

    on_unanswered = on_produced

    def on_fetched(self, size_bytes: int) -> int:
        raise AssertionError(f"{size_bytes}: handlers ask for it")

    def on_answered(self, throttle_time_ms: int) -> int:
        self.told_ms.append(throttle_time_ms)
        return max(throttle_time_ms, self.throttle_time_ms)


def limited(loop: ManualLoop, quota: Quota | None) -> tuple[Node, Connection, Wire]:
    node = Node(loop)
    node.host.find_quota = lambda _context: quota
    return node, *node.connect()


@pytest.mark.parametrize("times_ms", [(100, 500), (500, 100)])
def test_of_two_throttle_times_the_one_that_ends_last_counts(loop: ManualLoop, times_ms: tuple[int, int]) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + frame(1))
    for number, throttle_time_ms in enumerate(times_ms):
        node.begun[number].respond(answer(number), throttle_time_ms)
    loop.turn()
    assert wire.received == answer(0) + answer(1), "the responses do not wait"
    feed(connection, wire, frame(2))
    loop.turn(by_ms=499)
    loop.turn()
    assert node.begun_ids == [0, 1]
    loop.turn(by_ms=1)
    loop.turn()
    assert node.begun_ids == [0, 1, 2]


@pytest.mark.parametrize("api_key", [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE])
def test_a_proof_is_not_throttled(loop: ManualLoop, api_key: ApiKey) -> None:
    """Nodes prove their identity also where clients need none, and until then they are User:ANONYMOUS."""
    node, connection, wire = limited(loop, Quota(1000))
    feed(connection, wire, frame(0, api_key=api_key))
    node.begun[0].respond(answer(0))
    loop.turn()
    assert wire.received == answer(0)
    feed(connection, wire, frame(1))
    assert node.begun_ids == [0, 1], "it is not muted"


def test_a_muted_connection_that_is_lost_leaves_no_timer(loop: ManualLoop) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0))
    node.begun[0].respond(answer(0), 1000)
    connection.connection_lost(None)
    loop.turn(by_ms=1000)
    loop.turn()
    assert not loop.has_work


def test_a_response_says_for_how_long_the_connection_is_muted(loop: ManualLoop) -> None:
    quota = Quota(throttle_time_ms=700)
    node, connection, wire = limited(loop, quota)
    without_time = ApiKey.LIST_GROUPS
    feed(connection, wire, frame(0, api_key=without_time) + frame(1, api_key=without_time))
    # Version 0 of ListGroups has no throttle time: its connection is muted all the same.
    node.begun[0].respond(answer(0))
    assert quota.told_ms == [0]
    assert wire.received == answer(0)
    loop.turn(by_ms=699)
    loop.turn()
    assert node.begun_ids == [0]
    loop.turn(by_ms=1)
    loop.turn()
    assert node.begun_ids == [0, 1]


def test_handling_is_measured_of_clients_with_a_quota_alone(loop: ManualLoop) -> None:
    quota = Quota()
    node, connection, wire = limited(loop, quota)
    times = iter((1.0, 1.25, 5.0, 5.5))
    node.host.work_time_s = lambda: next(times)
    feed(connection, wire, frame(0) + frame(1))
    assert quota.handled_s == [0.25, 0.5]
    node.host.find_quota = lambda _context: None
    node.host.on_quotas_changed()
    feed(connection, wire, frame(2))
    assert len(quota.handled_s) == 2
    assert node.begun_ids == [0, 1, 2]


def test_the_last_of_several_changes_of_quotas_holds_for_the_next_request_and_is_looked_for_once(
    loop: ManualLoop,
) -> None:
    node, connection, wire = limited(loop, None)
    feed(connection, wire, frame(0))
    of: dict[str, Quota | None] = {"now": None}
    found: list[Quota | None] = []

    def find(_context: RequestContext) -> Quota | None:
        found.append(of["now"])
        return of["now"]

    node.host.find_quota = find
    for quota in (Quota(1000), None, Quota(2000)):
        of["now"] = quota
        node.host.on_quotas_changed()
    assert found == []
    feed(connection, wire, frame(1) + frame(2))
    assert found == [of["now"]]
    assert [request.context.quota for request in node.begun] == [None, of["now"], of["now"]]
    of["now"] = None
    node.host.on_quotas_changed()
    feed(connection, wire, frame(3))
    assert node.begun[-1].context.quota is None


def test_what_waits_behind_a_request_begins_with_the_quotas_of_its_own_time(loop: ManualLoop) -> None:
    node, connection, wire = limited(loop, None)
    feed(connection, wire, frame(0, api_key=EXCLUSIVE) + frame(1, api_key=EXCLUSIVE))
    quota = Quota()
    node.host.find_quota = lambda _context: quota
    node.host.on_quotas_changed()
    node.begun[0].respond(answer(0))
    loop.turn()
    assert [request.context.quota for request in node.begun] == [None, quota]


def test_a_request_that_began_before_there_was_a_quota_mutes_its_connection_for_the_time_it_is_told(
    loop: ManualLoop,
) -> None:
    node, connection, wire = limited(loop, None)
    feed(connection, wire, frame(0, api_key=EXCLUSIVE) + frame(1))
    node.begun[0].respond(answer(0), 300)
    assert wire.received == answer(0)
    loop.turn(by_ms=299)
    loop.turn()
    assert node.begun_ids == [0]
    loop.turn(by_ms=1)
    loop.turn()
    assert node.begun_ids == [0, 1]


def test_quotas_are_looked_for_when_the_client_changes(loop: ManualLoop) -> None:
    node = Node(loop)
    asked: list[tuple[str, str | None]] = []

    def find(context: RequestContext) -> None:
        asked.append((context.principal, context.client_id))

    node.host.find_quota = find
    connection, wire = node.connect()
    feed(connection, wire, frame(0) + frame(1))
    node.begun[0].set_context(replace(node.begun[0].context, principal="User:alice"))
    feed(connection, wire, frame(2))
    assert asked == [("User:ANONYMOUS", None), ("User:alice", None)]


def test_a_connection_above_the_rate_begins_when_it_has_waited(loop: ManualLoop) -> None:
    node = Node(loop)
    node.host.rates.set_limits(total=1, by_listener={}, protected_listener=None)
    for _ in range(10):
        node.connect()
    connection, wire = node.connect()
    feed(connection, wire, frame(0))
    assert not wire.is_reading()
    assert node.begun_ids == []
    loop.turn(by_ms=1000)
    loop.turn()
    assert wire.is_reading()
    assert node.begun_ids == [0]
    assert node.host.counters.connections_throttled == 1


def test_a_connection_above_the_rate_of_its_address_is_closed_after_the_throttle_time(loop: ManualLoop) -> None:
    node = Node(loop)
    node.host.rates.set_quotas({"10.0.0.1": 1.0})
    for _ in range(10):
        node.connect()
    connection, wire = node.connect()
    feed(connection, wire, frame(0))
    loop.turn(by_ms=999)
    loop.turn()
    assert not wire.is_reading()
    assert node.begun_ids == []
    assert not wire.is_closing()
    loop.turn(by_ms=1)
    loop.turn()
    assert wire.is_aborted
    connection.connection_lost(None)
    assert node.host.limits.count == 10
