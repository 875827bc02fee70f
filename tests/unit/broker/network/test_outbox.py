"""Answers that lie in files: when they are read, and how they share a slow reader's connection."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from wire import ManualLoop, Node, answer, feed, frame

from penstock.broker.network.outbox import TURN_BYTES
from penstock.broker.network.rules.answer_memory import PIECE_BYTES


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

    def send_nowait(self, descriptor: int, offset: int, size: int) -> int | None:  # noqa: ARG002 - as every slice
        return None

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


def test_slice_for_which_no_thread_can_be_started_aborts_its_connection_alone(
    loop: ManualLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(0))
    monkeypatch.setattr(loop, "run_in_executor", refuse)
    node.begun[0].respond([b"a", Slice(1000, cached=0)])
    turn_until(loop, lambda: wire.is_aborted)


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


class FailingSlice(Slice):
    """A file on a disk that fails."""

    def read_nowait(self, offset: int, size: int) -> bytes | None:
        raise OSError(5, f"Input/output error, {size} bytes at {offset}")


def test_slice_that_cannot_be_read_aborts_its_own_connection_only(
    loop: ManualLoop, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(loop)
    connection, wire = node.connect()
    feed(connection, wire, frame(1))
    # Returns, as it must for the caller that completed this answer.
    node.begun[0].respond([b"head", FailingSlice(100)])
    assert wire.is_closing()
    assert "Input/output error" in caplog.text
