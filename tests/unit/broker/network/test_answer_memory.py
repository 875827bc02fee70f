"""What clients do not read is bounded over all of them, and given back when they read or go."""

from __future__ import annotations

from wire import ManualLoop, Node, feed, frame

from penstock.broker.network.rules.answer_memory import (
    PIECE_BYTES,
    SCARCE_PIECE_BYTES,
    SCARCE_UNSENT_BYTES_MAX,
    UNSENT_BYTES_MAX,
)

LIMIT_BYTES = 4 * 1024 * 1024


class Slice:
    """Zeros in a file, all in the page cache."""

    size = 4 * 1024 * 1024

    def send_nowait(self, descriptor: int, offset: int, size: int) -> int | None:  # noqa: ARG002 - as every slice
        return None

    def read_nowait(self, _offset: int, size: int) -> bytes:
        return bytes(size)

    def read(self, _offset: int, size: int) -> bytes:
        return bytes(size)


def test_clients_that_never_read_their_fetches_hold_little_each(loop: ManualLoop) -> None:
    node = Node(loop, room_bytes=0, answer_bytes_max=LIMIT_BYTES)
    wires = []
    for number in range(90):
        connection, wire = node.connect()
        feed(connection, wire, frame(number))
        node.begun[-1].respond([b"start", Slice()])
        wires.append(wire)
    held = [len(wire.buffered) for wire in wires]
    assert held[0] >= PIECE_BYTES
    assert max(held[40:]) <= 2 * SCARCE_PIECE_BYTES
    assert sum(held) == node.host.answers.held_bytes <= LIMIT_BYTES + 3 * PIECE_BYTES + 90 * 2 * SCARCE_PIECE_BYTES


def test_clients_that_ask_much_and_read_nothing_hold_little_each(loop: ManualLoop) -> None:
    body = bytes(20_000)
    node = Node(loop, room_bytes=0, answer_bytes_max=LIMIT_BYTES, begin=Node.respond, body=body)
    for _ in range(40):
        connection, wire = node.connect()
        feed(connection, wire, b"".join(frame(number) for number in range(300)))
        for _ in range(10):
            loop.turn()
    assert node.host.answers.unsent_bytes_max == SCARCE_UNSENT_BYTES_MAX
    # One that came late was let begin no more than what fills its own small bound.
    before = len(node.begun)
    connection, wire = node.connect()
    feed(connection, wire, b"".join(frame(number) for number in range(300)))
    for _ in range(10):
        loop.turn()
    assert (len(node.begun) - before) * len(body) <= SCARCE_UNSENT_BYTES_MAX + len(wire.buffered) + 2 * len(body)


def test_what_was_held_is_given_back(loop: ManualLoop) -> None:
    node = Node(loop, room_bytes=0, answer_bytes_max=LIMIT_BYTES)
    for number in range(30):
        connection, wire = node.connect()
        feed(connection, wire, frame(number))
        node.begun[-1].respond([b"start", Slice()])
        if number % 2:
            connection.connection_lost(None)
        else:
            wire.read_by_peer(1 << 40)
            for _ in range(100):
                loop.turn()
            assert len(wire.received) == 5 + Slice.size
        assert node.host.answers.held_bytes == 0
        assert node.host.answers.unsent_bytes_max == UNSENT_BYTES_MAX
