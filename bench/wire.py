"""Requests as bytes, made once and sent many times: a client that costs the machine next to nothing.

Throughput seen through a client library is often the library's. These requests are whole frames that were encoded
before the clock started; of the answers only error codes and sizes are looked at. Produce v8, InitProducerId v0
and Fetch v11 have no flexible fields, answers of a fixed shape, and are served by every broker since Apache Kafka 2.4:

    Produce v8   size correlation | count 1, topic, count P, then P times:
                 partition error offset time start errors message
    InitProducerId v0    size correlation | throttle error producer-id producer-epoch
    Fetch v11    size correlation | throttle error session count 1, topic, count P, then P times:
                 partition error high-watermark stable start aborted preferred | size, batches
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from ..client import clock
from ..protocol.records import Record, write_batch

ANSWER_TIMEOUT_S: Final = 60.0
PRODUCE_KEY, PRODUCE_VERSION = 0, 8
FETCH_KEY, FETCH_VERSION = 1, 11
INIT_PRODUCER_ID_KEY, INIT_PRODUCER_ID_VERSION = 22, 0

_CLIENT_ID: Final = "penstock-bench"
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_PRODUCE_PARTITION = struct.Struct(">ihqqqih")
_FETCH_PARTITION = struct.Struct(">ihqqqii")
_OFFSET = struct.Struct(">q")
_PRODUCER_ID_ANSWER = struct.Struct(">hqh")
_BATCH_START = struct.Struct(">qi")
_LAST_OFFSET_DELTA_AT: Final = 23
_COORDINATOR_LOAD_IN_PROGRESS: Final = 14
_RETRY_S: Final = 0.02
_BATCH_LENGTH_OVERHEAD: Final = 12


class RequestRefusedError(Exception):
    """A broker answered with an error code where the workload cannot go on."""


def text(value: str) -> bytes:
    """A string of the classic encoding."""
    data = value.encode()
    return _SHORT.pack(len(data)) + data


def frame(key: int, version: int, body: bytes, client_id: str = _CLIENT_ID) -> bytes:
    """A request with its size in front. The correlation id is 0: answers come in order."""
    rest = struct.Struct(">hhi").pack(key, version, 0) + text(client_id) + body
    return _INT.pack(len(rest)) + rest


API_VERSIONS_FRAME: Final = frame(18, 0, b"")
"""What every client says first."""


class ProducerId(NamedTuple):
    """What makes a producer idempotent (KIP-98)."""

    id: int
    epoch: int


NO_PRODUCER_ID: Final = ProducerId(-1, -1)


class FetchSessionId(NamedTuple):
    """Where a request is in its fetch session (KIP-227)."""

    id: int
    epoch: int


NO_FETCH_SESSION: Final = FetchSessionId(0, -1)
NEW_FETCH_SESSION: Final = FetchSessionId(0, 0)


def batch(values: Sequence[bytes], *, producer_id: ProducerId = NO_PRODUCER_ID, base_sequence: int = -1) -> bytes:
    """One uncompressed batch."""
    now_ms = clock.now_ms()
    return write_batch(
        [Record(offset, now_ms, None, value) for offset, value in enumerate(values)],
        base_offset=0,
        producer_id=producer_id.id,
        producer_epoch=producer_id.epoch,
        base_sequence=base_sequence,
    )


def ask_producer_id(connection: Socket) -> ProducerId:
    """A new one, of no transaction; raises RequestRefusedError. A node that has none in stock is asked again."""
    request = frame(INIT_PRODUCER_ID_KEY, INIT_PRODUCER_ID_VERSION, struct.Struct(">hi").pack(-1, 0))
    deadline_s = clock.monotonic_s() + ANSWER_TIMEOUT_S
    while True:
        connection.send(request)
        code, *producer_id = _PRODUCER_ID_ANSWER.unpack_from(connection.receive_answer(), 3 * _INT.size)
        if not code:
            return ProducerId(*producer_id)
        if code != _COORDINATOR_LOAD_IN_PROGRESS or clock.monotonic_s() > deadline_s:
            raise RequestRefusedError(f"a producer id was refused with error code {code}")
        clock.pause(_RETRY_S)


class ProduceFrame(Struct, frozen=True):
    """One Produce request for one topic, and where its answer says how it went."""

    data: bytes
    answer_size: int
    error_places: tuple[int, ...]

    @classmethod
    def of(
        cls, topic: str, batches: Mapping[int, bytes], *, acks: int = -1, client_id: str = _CLIENT_ID
    ) -> ProduceFrame:
        """A request with a batch for each partition."""
        parts = [_INT.pack(partition) + _INT.pack(len(data)) + data for partition, data in batches.items()]
        body = (
            struct.Struct(">hhii").pack(-1, acks, int(ANSWER_TIMEOUT_S * 1000), 1)
            + text(topic)
            + _INT.pack(len(parts))
            + b"".join(parts)
        )
        first = 2 * _INT.size + _INT.size + len(text(topic)) + _INT.size
        return cls(
            frame(PRODUCE_KEY, PRODUCE_VERSION, body, client_id),
            first + len(parts) * _PRODUCE_PARTITION.size + _INT.size,
            tuple(first + index * _PRODUCE_PARTITION.size + _INT.size for index in range(len(parts))),
        )

    def first_offset(self, answer: bytes | bytearray | memoryview) -> int:
        """What the first partition's batch got; raises RequestRefusedError."""
        self.check(answer)
        return int(_OFFSET.unpack_from(answer, self.error_places[0] + _SHORT.size)[0])

    def check(self, answers: bytes | bytearray | memoryview) -> None:
        """Raises RequestRefusedError unless these whole answers, one behind the other, all say that it went well."""
        for place in self.error_places:
            errors = bytes(answers[place :: self.answer_size]) + bytes(answers[place + 1 :: self.answer_size])
            if errors.strip(b"\0"):
                code = next(
                    code
                    for start in range(0, len(answers), self.answer_size)
                    if (code := _SHORT.unpack_from(answers, start + place)[0])
                )
                raise RequestRefusedError(f"a prepared Produce request was answered with error code {code}")


class Socket:
    """A blocking connection that hands out answers as they come."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=ANSWER_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray(4 * 1024)

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def send(self, data: bytes | memoryview) -> None:
        """All of it."""
        self._socket.sendall(data)

    def receive(self) -> bytes:
        """Whatever is there, at least one byte; ConnectionError when the other side has closed."""
        data = self._socket.recv(256 * 1024)
        if not data:
            raise ConnectionError("the broker closed the connection")
        return data

    def receive_answer(self) -> memoryview:
        """One whole answer with its size, valid until the next call."""
        self._receive_into(0, _INT.size)
        size = _INT.size + int(_INT.unpack_from(self._received)[0])
        if len(self._received) < size:
            self._received.extend(bytes(size - len(self._received)))
        self._receive_into(_INT.size, size)
        return memoryview(self._received)[:size]

    def _receive_into(self, start: int, end: int) -> None:
        with memoryview(self._received) as view:
            while start < end:
                count = self._socket.recv_into(view[start:end])
                if not count:
                    raise ConnectionError("the broker closed the connection")
                start += count


def fetch_frame(
    topic: str,
    positions: Mapping[int, int],
    *,
    partition_max_bytes: int = 1024 * 1024,
    max_bytes: int = 50 * 1024 * 1024,
    max_wait_ms: int = 500,
    session: FetchSessionId = NO_FETCH_SESSION,
) -> bytes:
    """A Fetch request from these offsets, without a session unless it has one; the limits are those of Apache Kafka's
    consumer."""
    parts = [
        struct.Struct(">iiqqi").pack(partition, -1, offset, -1, partition_max_bytes)
        for partition, offset in positions.items()
    ]
    body = (
        struct.Struct(">iiiibiii").pack(-1, max_wait_ms, 1, max_bytes, 0, *session, 1 if parts else 0)
        + (text(topic) + _INT.pack(len(parts)) + b"".join(parts) if parts else b"")
        + _INT.pack(0)
        + text("")
    )
    return frame(FETCH_KEY, FETCH_VERSION, body)


def fetch_session_id(answer: memoryview | bytes) -> int:
    """Of the session that the broker made for a request (KIP-227); 0 when it made none."""
    return int(_INT.unpack_from(answer, 3 * _INT.size + _SHORT.size)[0])


def next_offsets(topic: str, answer: memoryview | bytes) -> dict[int, int]:
    """Where to go on for each partition that brought records; raises RequestRefusedError."""
    return {
        partition: offset
        for partition, _, start, end in _fetched(topic, answer)
        if (offset := _end_offset(answer, start, end)) is not None
    }


def high_watermarks(topic: str, answer: memoryview | bytes) -> dict[int, int]:
    """Of each partition of the answer; raises RequestRefusedError."""
    return {partition: high_watermark for partition, high_watermark, _, _ in _fetched(topic, answer)}


def _fetched(topic: str, answer: memoryview | bytes) -> Iterator[tuple[int, int, int, int]]:
    """Of each partition its index, its high watermark, and where its batches are in the answer."""
    position = 2 * _INT.size + _INT.size
    code = _SHORT.unpack_from(answer, position)[0]
    if code:
        raise RequestRefusedError(f"a prepared Fetch request was answered with error code {code}")
    position += _SHORT.size + _INT.size
    if not _INT.unpack_from(answer, position)[0]:
        # No topic: nothing of the session has changed.
        return
    position += _INT.size + len(text(topic))
    (count,) = _INT.unpack_from(answer, position)
    position += _INT.size
    for _ in range(count):
        partition, error, high_watermark, _, _, aborted, _ = _FETCH_PARTITION.unpack_from(answer, position)
        position += _FETCH_PARTITION.size
        if error or aborted > 0:
            raise RequestRefusedError(f"a prepared Fetch request was answered with error code {error}")
        (size,) = _INT.unpack_from(answer, position)
        position += _INT.size
        end = position + max(size, 0)
        yield partition, high_watermark, position, end
        position = end


def _end_offset(data: memoryview | bytes, position: int, end: int) -> int | None:
    """Behind the last whole batch; a fetch may cut the one after it."""
    last = None
    while position + _BATCH_START.size <= end:
        base_offset, length = _BATCH_START.unpack_from(data, position)
        following = position + _BATCH_LENGTH_OVERHEAD + length
        if following > end:
            break
        last = (base_offset, position)
        position = following
    if last is None:
        return None
    return int(last[0]) + int(_INT.unpack_from(data, last[1] + _LAST_OFFSET_DELTA_AT)[0]) + 1
