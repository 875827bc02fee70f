"""Large parts of files go into the socket without passing through the process: same bytes, same order, same ends."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from errno import ETIMEDOUT
from pathlib import Path
from random import Random

import pytest
from echo_node import LOOPS, Echo, frame, read_answer, run
from waiting import loop_until

from penstock.broker.network.outbox import DIRECT_BYTES
from penstock.broker.network.request import AnswerPart
from penstock.storage.disk.files import DiskFiles, File
from penstock.storage.log.file_slice import FileSlice

NewLoop = Callable[[], asyncio.AbstractEventLoop]
FILE_BYTES = 24 << 20


@pytest.fixture
def data() -> bytes:
    return Random(4).randbytes(FILE_BYTES)


@pytest.fixture
def file(tmp_path: Path, data: bytes) -> File:
    file = DiskFiles().open(str(tmp_path / "data"), create=True)
    file.append([data])
    return file


@pytest.fixture
def sent_directly(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each call of sendfile took."""
    counts: list[int] = []
    sendfile = os.sendfile

    def counted(out: int, source: int, offset: int, count: int) -> int:
        counts.append(sendfile(out, source, offset, count))
        return counts[-1]

    monkeypatch.setattr(os, "sendfile", counted)
    return counts


def parts_of(file: File, correlation_id: int, *slices: tuple[int, int], end: bytes = b"") -> list[AnswerPart]:
    """A response whose body is these ranges of the file, a byte before each, and `end`."""
    size = sum(1 + length for _, length in slices) + len(end)
    parts: list[AnswerPart] = [struct.pack(">ii", 4 + size, correlation_id)]
    for position, length in slices:
        parts += [b"|", FileSlice(file, position, length)]
    return [*parts, end]


def body_of(data: bytes, *slices: tuple[int, int], end: bytes = b"") -> bytes:
    return b"".join(b"|" + data[position : position + length] for position, length in slices) + end


@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("has_tls", [False, True])
def test_answers_of_large_and_small_slices_arrive_whole_and_in_order(
    new_loop: NewLoop, has_tls: bool, file: File, data: bytes, sent_directly: list[int]
) -> None:
    large, small = (3, DIRECT_BYTES + 5), (70_001, 99)
    answers = [(large, small, large), (small,), (large,), (small, small), (large, large, large, small)] * 4

    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(frame(number, b"park") for number in range(len(answers))))
        await echo.wait_parked(len(answers))
        # Not in their order, so that many are ready at once behind one that is not.
        for number in [*range(1, len(answers)), 0]:
            echo.parked[number].respond(parts_of(file, number, *answers[number], end=b"end"))
        for number, slices in enumerate(answers):
            assert await read_answer(reader) == (number, body_of(data, *slices, end=b"end"))
        # Never past the encryption.
        assert (sum(sent_directly) > 0) is not has_tls

    run(new_loop, scenario, has_tls=has_tls)


@pytest.mark.thorough
@pytest.mark.parametrize("new_loop", LOOPS)
@pytest.mark.parametrize("has_tls", [False, True])
def test_a_reader_that_pauses_gets_the_rest_when_it_reads_again(
    new_loop: NewLoop, has_tls: bool, file: File, data: bytes, sent_directly: list[int]
) -> None:
    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(frame(1, b"park") + frame(2, b"after"))
        await echo.wait_parked()
        echo.parked[0].respond(parts_of(file, 1, (0, FILE_BYTES)))
        [connection] = echo.host.connections
        lost = asyncio.ensure_future(echo.host.has_no_connections.wait())
        await loop_until(lambda: connection.sent_bytes > DIRECT_BYTES, "what the sockets take of the file")
        # Silence only ends the observation: on a busy machine it ends early, which hides a fault and reports none.
        seen = -1
        while seen != connection.sent_bytes:
            seen = connection.sent_bytes
            await asyncio.wait([lost], timeout=0.1)
        assert seen < FILE_BYTES
        assert echo.host.answers.held_bytes < FILE_BYTES // 8
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await read_answer(reader) == (1, body_of(data, (0, FILE_BYTES)))
        assert await read_answer(reader) == (2, b"after")
        assert has_tls or sum(sent_directly) > FILE_BYTES // 2

    run(new_loop, scenario, has_tls=has_tls)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_a_peer_that_leaves_in_the_middle_leaves_nothing_behind(
    new_loop: NewLoop, file: File, sent_directly: list[int]
) -> None:
    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(1, b"park"))
        await echo.wait_parked()
        descriptors = len(os.listdir("/proc/self/fd"))
        echo.parked[0].respond(parts_of(file, 1, (0, FILE_BYTES)))
        await reader.readexactly(DIRECT_BYTES)
        assert sent_directly
        writer.transport.abort()
        await echo.host.has_no_connections.wait()
        assert len(os.listdir("/proc/self/fd")) < descriptors
        assert echo.host.counters.connections_failed == 0

    run(new_loop, scenario)


def test_an_answer_whose_file_lost_its_end_is_cut_off(file: File) -> None:
    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(1, b"park"))
        await echo.wait_parked()
        parts = parts_of(file, 1, (0, FILE_BYTES))
        file.truncate(DIRECT_BYTES)
        echo.parked[0].respond(parts)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await read_answer(reader)
        assert echo.host.counters.connections_failed == 1

    run(asyncio.new_event_loop, scenario)


@pytest.mark.parametrize("new_loop", LOOPS)
def test_more_small_pieces_than_the_system_takes_at_once_may_come_before_a_large_one(
    new_loop: NewLoop, file: File, data: bytes, sent_directly: list[int]
) -> None:
    many = tuple((17 * number, 9) for number in range(240))
    answers = [many, many, many, ((5, DIRECT_BYTES),)]

    async def scenario(echo: Echo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(frame(number, b"park") for number in range(len(answers))))
        await echo.wait_parked(len(answers))
        for number in [1, 2, 3, 0]:
            echo.parked[number].respond(parts_of(file, number, *answers[number]))
        for number, slices in enumerate(answers):
            assert await read_answer(reader) == (number, body_of(data, *slices))

    run(new_loop, scenario)


def test_a_peer_that_the_network_lost_says_nothing_of_the_file(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    def timed_out(*_: int) -> int:
        raise TimeoutError(ETIMEDOUT, "Connection timed out")

    monkeypatch.setattr(os, "sendfile", timed_out)
    assert FileSlice(file, 0, DIRECT_BYTES).send_nowait(0, 0, DIRECT_BYTES) is None
    assert not file.is_suspect
