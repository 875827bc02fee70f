"""A connection of a SASL listener, without a network: what begins before the proof, after it and after its end."""

from __future__ import annotations

import logging
import struct
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire import ManualLoop, Node, Wire, answer, feed

from penstock.broker.network.request import ANONYMOUS, Request
from penstock.broker.network.sasl_connection import NO_VERSION, SaslConnection
from penstock.protocol.apis import ApiKey

DELAY_MS = 100
FRAME_BYTES_MAX = 2_000
SAFE = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


def frame(number: int, api_key: ApiKey, body: bytes = b"") -> bytes:
    version = {ApiKey.PRODUCE: 3, ApiKey.FETCH: 4, ApiKey.SASL_HANDSHAKE: 1}.get(api_key, 0)
    return struct.pack(">ihhih", 10 + len(body), api_key, version, number, -1) + body


def sized(token: bytes) -> bytes:
    return struct.pack(">i", len(token)) + token


class Listener:
    """Its connections; the test is the handlers of SASL. Requests of API 0 overlap."""

    def __init__(self, loop: ManualLoop) -> None:
        self.loop = loop
        self.node = Node(loop, begin=Listener._begin)

    @staticmethod
    def _begin(node: Node, request: Request) -> None:
        node._remember(request)

    def connect(self) -> tuple[SaslConnection, Wire]:
        wire = Wire(1 << 40)
        connection = SaslConnection(
            self.node.host, "SASL", frame_bytes_max=FRAME_BYTES_MAX, refusal_delay_s=DELAY_MS / 1000
        )
        wire.protocol = connection
        connection.connection_made(wire)
        return connection, wire

    @property
    def begun(self) -> list[int]:
        return self.node.begun_ids

    @property
    def last(self) -> Request:
        return self.node.begun[-1]

    def answer_last(self) -> None:
        self.last.respond(answer(self.last.correlation_id))
        self.loop.turn()

    def prove(self, connection: SaslConnection, wire: Wire, *, end_ms: int | None = None) -> None:
        """Handshake and proof, numbers 1001 and 1002."""
        feed(connection, wire, frame(1001, ApiKey.SASL_HANDSHAKE))
        session = self.last.context.sasl
        assert session is not None
        session.begin_exchange("PLAIN", self.loop.time(), has_headers=True)
        self.answer_last()
        feed(connection, wire, frame(1002, ApiKey.SASL_AUTHENTICATE))
        session.prove("User:alice", None if end_ms is None else self.loop.time() + end_ms / 1000)
        self.answer_last()


def test_nothing_but_the_way_to_a_proof_begins_before_it(loop: ManualLoop) -> None:
    for api_key in ApiKey:
        listener = Listener(loop)
        connection, wire = listener.connect()
        feed(connection, wire, frame(1, api_key))
        if api_key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
            assert listener.begun == [1]
            continue
        assert listener.begun == []
        assert not wire.is_closing()
        loop.turn(DELAY_MS)
        loop.turn()
        assert wire.is_closing()
        assert wire.received == b""


def test_requests_behind_a_handshake_wait_for_it_and_then_do_not_begin(loop: ManualLoop) -> None:
    listener = Listener(loop)
    connection, wire = listener.connect()
    feed(connection, wire, frame(1, ApiKey.SASL_HANDSHAKE) + frame(2, ApiKey.PRODUCE) + frame(3, ApiKey.FETCH))
    session = listener.last.context.sasl
    assert session is not None
    session.begin_exchange("PLAIN", loop.time(), has_headers=True)
    listener.answer_last()
    loop.turn(DELAY_MS)
    loop.turn()
    assert listener.begun == [1]
    assert wire.received == answer(1)
    assert wire.is_closing()


def test_after_the_proof_requests_begin_as_on_any_connection(loop: ManualLoop) -> None:
    listener = Listener(loop)
    connection, wire = listener.connect()
    listener.prove(connection, wire)
    feed(connection, wire, frame(1, ApiKey.PRODUCE) + frame(2, ApiKey.PRODUCE) + frame(3, ApiKey.METADATA))
    assert listener.begun == [1001, 1002, 1, 2]


def test_what_came_with_the_proof_begins_once_it_is_one(loop: ManualLoop) -> None:
    listener = Listener(loop)
    connection, wire = listener.connect()
    feed(connection, wire, frame(1, ApiKey.SASL_HANDSHAKE))
    session = listener.last.context.sasl
    assert session is not None
    session.begin_exchange("PLAIN", loop.time(), has_headers=True)
    listener.answer_last()
    feed(connection, wire, frame(2, ApiKey.SASL_AUTHENTICATE) + frame(3, ApiKey.PRODUCE) + frame(4, ApiKey.PRODUCE))
    assert listener.begun == [1, 2]
    session.prove("User:alice", None)
    listener.answer_last()
    assert listener.begun == [1, 2, 3, 4]


def test_tokens_without_header_reach_the_handler_whole(loop: ManualLoop) -> None:
    listener = Listener(loop)
    connection, wire = listener.connect()
    feed(connection, wire, frame(1, ApiKey.SASL_HANDSHAKE))
    session = listener.last.context.sasl
    assert session is not None
    session.begin_exchange("PLAIN", loop.time(), has_headers=False)
    listener.answer_last()
    feed(connection, wire, sized(b"") + sized(b"\0a\0b"), chunk_bytes=3)
    assert (listener.last.api_version, listener.node.bodies[-1]) == (NO_VERSION, b"")
    listener.last.respond(sized(b"go on"))
    loop.turn()
    assert listener.node.bodies[-1] == b"\0a\0b"
    session.prove("User:a", None)
    listener.last.respond(sized(b""))
    loop.turn()
    feed(connection, wire, frame(2, ApiKey.PRODUCE))
    assert listener.begun[-1] == 2
    assert wire.received == answer(1) + sized(b"go on") + sized(b"")


@pytest.mark.parametrize("size", [-1, FRAME_BYTES_MAX + 1, 1 << 30])
def test_a_frame_that_no_proof_needs_is_not_waited_for(
    loop: ManualLoop, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    listener = Listener(loop)
    connection, wire = listener.connect()
    with caplog.at_level(logging.WARNING):
        feed(connection, wire, struct.pack(">i", size) + b"x" * 600)
        loop.turn(DELAY_MS)
        loop.turn()
    assert wire.is_closing()
    assert f"reason=frame of {size} bytes" in caplog.text
    connection.connection_lost(None)
    assert listener.node.host.memory.used_bytes == 0


def test_a_refusal_is_held_back_and_then_closes(loop: ManualLoop) -> None:
    listener = Listener(loop)
    connection, wire = listener.connect()
    feed(connection, wire, frame(1, ApiKey.SASL_HANDSHAKE) + frame(2, ApiKey.SASL_HANDSHAKE))
    session = listener.last.context.sasl
    assert session is not None
    session.fail()
    assert not wire.is_closing()
    listener.answer_last()
    assert wire.received == answer(1)
    assert wire.is_closing()
    assert listener.begun == [1]


def test_a_session_that_has_ended_begins_nothing_and_closes(loop: ManualLoop) -> None:
    listener = Listener(loop)
    connection, wire = listener.connect()
    listener.prove(connection, wire, end_ms=1_000)
    feed(connection, wire, frame(1, ApiKey.FETCH))
    loop.turn(1_000)
    loop.turn()
    # What has begun is answered.
    listener.answer_last()
    feed(connection, wire, frame(2, ApiKey.PRODUCE))
    loop.turn()
    assert listener.begun == [1001, 1002, 1]
    assert wire.is_closing()
    assert listener.node.host.counters.sessions_expired == 1


def test_a_session_is_renewed_after_its_end_and_before(loop: ManualLoop) -> None:
    listener = Listener(loop)
    connection, wire = listener.connect()
    for waited_ms in (400, 1_000, 400):
        listener.prove(connection, wire, end_ms=1_000)
        loop.turn(waited_ms)
        loop.turn()
    loop.turn(500)
    loop.turn()
    feed(connection, wire, frame(1, ApiKey.PRODUCE))
    assert listener.begun[-1] == 1
    loop.turn(200)
    loop.turn()
    feed(connection, wire, frame(2, ApiKey.PRODUCE))
    assert listener.begun[-1] == 1


def test_nothing_begins_between_the_two_steps_of_a_renewal(loop: ManualLoop) -> None:
    listener = Listener(loop)
    connection, wire = listener.connect()
    listener.prove(connection, wire, end_ms=10_000)
    feed(connection, wire, frame(1, ApiKey.SASL_HANDSHAKE) + frame(2, ApiKey.PRODUCE))
    session = listener.last.context.sasl
    assert session is not None
    session.begin_exchange("PLAIN", loop.time(), has_headers=True)
    listener.answer_last()
    loop.turn(DELAY_MS)
    loop.turn()
    assert listener.begun == [1001, 1002, 1]
    assert wire.is_closing()


def test_a_renewal_that_is_answered_at_once_lets_nothing_slip_through(loop: ManualLoop) -> None:
    listener = Listener(loop)

    def begin(request: Request) -> None:
        listener.node._remember(request)
        if request.api_key == ApiKey.SASL_HANDSHAKE:
            assert request.context.sasl is not None
            request.context.sasl.begin_exchange("PLAIN", loop.time(), has_headers=True)
            request.respond(answer(request.correlation_id))

    connection, wire = listener.connect()
    listener.prove(connection, wire, end_ms=10_000)
    listener.node.host.begin = begin
    feed(connection, wire, frame(1, ApiKey.SASL_HANDSHAKE) + frame(2, ApiKey.PRODUCE) + frame(3, ApiKey.PRODUCE))
    loop.turn()
    assert listener.begun == [1001, 1002, 1]


def test_authentications_are_counted_by_what_became_of_them(loop: ManualLoop) -> None:
    listener = Listener(loop)
    counted = listener.node.host.authentications
    connection, wire = listener.connect()
    listener.prove(connection, wire, end_ms=1_000)
    listener.prove(connection, wire, end_ms=1_000)
    assert counted == {("SASL", (True, False)): 1, ("SASL", (True, True)): 1}
    feed(connection, wire, frame(1, ApiKey.SASL_HANDSHAKE))
    session = listener.last.context.sasl
    assert session is not None
    session.fail()
    listener.answer_last()
    _, other = listener.connect()
    feed(other.protocol, other, frame(2, ApiKey.METADATA))
    loop.turn(DELAY_MS)
    loop.turn()
    assert counted == {
        ("SASL", (True, False)): 1,
        ("SASL", (True, True)): 1,
        ("SASL", (False, True)): 1,
        ("SASL", (False, False)): 1,
    }


def test_a_lost_connection_leaves_no_timer(loop: ManualLoop) -> None:
    listener = Listener(loop)
    connection, wire = listener.connect()
    listener.prove(connection, wire, end_ms=1_000)
    session = listener.last.context.sasl
    connection.connection_lost(None)
    loop.turn(2_000)
    loop.turn()
    assert session is not None
    assert session.state.name == "PROVED"


@pytest.mark.thorough
@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.builds(frame, st.integers(0, 99), st.sampled_from(list(ApiKey)), st.binary(max_size=20)),
            st.binary(max_size=40).map(sized),
            st.binary(max_size=12),
        )
    ),
    st.integers(1, 64),
)
def test_a_client_without_a_proof_begins_nothing_else(frames: list[bytes], chunk_bytes: int) -> None:
    loop = ManualLoop()
    try:
        listener = Listener(loop)
        connection, wire = listener.connect()
        feed(connection, wire, b"".join(frames), chunk_bytes)
        loop.turn(DELAY_MS)
        loop.turn()
        assert all(request.api_key in SAFE for request in listener.node.begun)
        assert len(listener.node.begun) <= 1
    finally:
        loop.close()


class Quota:
    """After each answer the connection waits for ten seconds."""

    is_measured = False

    def on_answered(self, throttle_time_ms: int) -> int:
        return throttle_time_ms + 10_000


def test_a_client_has_no_quota_before_it_is_proved(loop: ManualLoop) -> None:
    """Else another client without a proof could keep it out, as they would share one."""
    listener = Listener(loop)
    host = listener.node.host
    host.find_quota = cast(Any, lambda context: Quota() if context.principal == ANONYMOUS else None)
    connection, wire = listener.connect()
    host.on_quotas_changed()
    feed(connection, wire, frame(1, ApiKey.API_VERSIONS))
    listener.answer_last()
    listener.prove(connection, wire)
    assert listener.begun == [1, 1001, 1002]
    host.on_quotas_changed()
    feed(connection, wire, frame(2, ApiKey.METADATA))
    assert isinstance(listener.last.context.quota, Quota), "it is the one of its principal from then on"
