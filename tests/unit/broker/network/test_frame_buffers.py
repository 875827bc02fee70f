"""Buffers of large frames are used again, but never while anything refers to what is in them."""

from __future__ import annotations

from wire import ManualLoop, Node, feed, frame

from penstock.broker.network.request import Request
from penstock.broker.network.rules.frame_buffers import BUFFER_BYTES, BUFFERS_MAX, POOLED_BYTES_MIN, FrameBuffers


def test_buffer_is_used_again_once_nothing_refers_to_it() -> None:
    buffers = FrameBuffers()
    taken = buffers.take(POOLED_BYTES_MIN)
    assert taken is not None
    taken[:3] = b"one"
    part = taken[1:2]
    other = buffers.take(POOLED_BYTES_MIN)
    assert other is not None
    assert other.obj is not taken.obj
    first = taken.obj
    del taken
    third = buffers.take(BUFFER_BYTES)
    assert third is not None
    assert third.obj is not first
    assert bytes(part) == b"n"
    del part
    again = buffers.take(BUFFER_BYTES)
    assert again is not None
    assert again.obj is first
    assert len(again) == BUFFER_BYTES


def test_no_more_is_kept_than_a_few_buffers() -> None:
    buffers = FrameBuffers()
    taken = [buffers.take(BUFFER_BYTES) for _ in range(BUFFERS_MAX)]
    assert None not in taken
    assert buffers.take(BUFFER_BYTES) is None
    taken.pop()
    assert buffers.take(BUFFER_BYTES) is not None


def test_small_and_huge_frames_have_buffers_of_their_own() -> None:
    buffers = FrameBuffers()
    assert buffers.take(POOLED_BYTES_MIN - 1) is None
    assert buffers.take(BUFFER_BYTES + 1) is None


def test_large_requests_come_whole_and_what_is_kept_of_one_stays_as_it_was(loop: ManualLoop) -> None:
    bodies: list[bytes] = []
    kept: list[memoryview] = []

    def begin(_node: Node, request: Request) -> None:
        body = request.body[request.body_offset :]
        bodies.append(bytes(body))
        if len(bodies) == 2:
            kept.append(body)
        request.respond(b"")

    node = Node(loop, begin=begin)
    connection, wire = node.connect()
    sent = [bytes([number]) * size for number, size in enumerate((500_000, 500_000, 300_000, 900_000, 2_000_000))]
    for number, body in enumerate(sent):
        assert not feed(connection, wire, frame(number, body=body), chunk_bytes=60_000)
        loop.turn()
    assert bodies == sent
    assert bytes(kept[0]) == sent[1]
    buffers = {id(view.obj) for view in (node.host.frame_buffers.take(BUFFER_BYTES), kept[0]) if view is not None}
    assert len(buffers) == 2
    assert node.host.memory.used_bytes == 0
