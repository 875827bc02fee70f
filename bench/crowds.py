"""Crowds of clients that do not behave: who never finishes a request, reads slowly or not at all, or announces much."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from ..protocol.apis import ApiKey

CONNECT_TIMEOUT_S: Final = 30.0
HTTP_CROWDS: Final[Mapping[str, int]] = {
    "idle": 1000,
    "slow-headers": 500,
    "huge-headers": 200,
    "slow-bodies": 250,
    "huge-bodies": 20,
    "pipeliners": 20,
    "never-read": 200,
    "events": 200,
    "overviews": 32,
}
"""Connections of each crowd at the HTTP administration."""
_HEADER: Final = struct.Struct(">ihhih")
_JSON_HEADER: Final = b"Content-Type: application/json\r\n"
_HUGE_BYTES: Final = 100 * 1024 * 1024
# Fewer than a node lets wait to be accepted (`socket.listen.backlog.size`).
_ARRIVE_TOGETHER: Final = 40
# What a socket of the crowd takes in by itself: little, so that what it does not read is the node's to keep.
_RECEIVE_BUFFER_BYTES: Final = 4096


class Behaviour(Struct, frozen=True, kw_only=True):
    """What each connection of a crowd does at first, and then once a second."""

    sends: bytes
    """At first, as far as the node takes it; the rest in later seconds."""
    sends_each_second: bytes = b""
    reads_each_second: int = 0
    answers: int = 0
    """Bytes that each waits for before the crowd counts as complete."""


def fetch_request(topic: str, *, max_bytes: int = 1 << 20) -> bytes:
    """Fetch version 4 of partition 0 from its start."""
    name = topic.encode()
    body = struct.pack(">iiiib", -1, 500, 1, max_bytes, 0)
    body += struct.pack(">ih", 1, len(name)) + name + struct.pack(">iiqi", 1, 0, 0, max_bytes)
    return _framed(ApiKey.FETCH, 4, body)


def question() -> bytes:
    """ApiVersions version 0."""
    return _framed(ApiKey.API_VERSIONS, 0, b"")


def behaviours(topic: str) -> Mapping[str, Behaviour]:
    """By name. `topic` has records in partition 0."""
    unfinished = _framed(ApiKey.METADATA, 1, bytes(1000))[:20]
    fetch = fetch_request(topic)
    return {
        "idle": Behaviour(sends=question(), answers=100),
        "unfinished": Behaviour(sends=unfinished),
        "slow-writers": Behaviour(sends=unfinished, sends_each_second=b"\0"),
        "slow-readers": Behaviour(sends=fetch, reads_each_second=1),
        "never-read": Behaviour(sends=fetch * 50),
        "pipeliners": Behaviour(sends=_framed(ApiKey.METADATA, 1, struct.pack(">i", -1)) * 10_000),
        "boasters": Behaviour(
            sends=_HEADER.pack(_HUGE_BYTES - 10, ApiKey.PRODUCE, 3, 1, -1), sends_each_second=bytes(256 * 1024)
        ),
    }


def http_behaviours() -> Mapping[str, Behaviour]:
    """Of clients of the HTTP administration, by name."""
    body = b'{"plan": [' + b",".join([b'{"topic": "t", "partition": 0, "replicas": [1]}'] * 10_000) + b"]}"
    return {
        "idle": Behaviour(sends=b""),
        "slow-headers": Behaviour(sends=b"GET / HTTP/1.1\r\nX: ", sends_each_second=b"x"),
        "huge-headers": Behaviour(sends=b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * (1 << 20), sends_each_second=b"x"),
        "slow-bodies": Behaviour(
            sends=_http("POST", "/v1/reassignments", _JSON_HEADER + b"Content-Length: 1000000\r\n"),
            sends_each_second=b" ",
        ),
        "huge-bodies": Behaviour(
            sends=(_http("POST", "/v1/reassignments", _JSON_HEADER + b"Content-Length: %d\r\n" % len(body)) + body) * 20
        ),
        "pipeliners": Behaviour(sends=_http("GET", "/v1/nodes") * 10_000),
        "never-read": Behaviour(sends=_http("GET", "/openapi.json") * 1_000),
        "events": Behaviour(sends=_http("GET", "/v1/events?since=0.0")),
        "overviews": Behaviour(
            sends=_http("GET", "/v1/topics"), sends_each_second=_http("GET", "/v1/topics"), reads_each_second=1 << 20
        ),
    }


def _http(method: str, path: str, headers: bytes = b"") -> bytes:
    return b"%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (method.encode(), path.encode(), headers)


class Crowd:
    """Its connections, opened one after the other. `tick` is to be called about once a second."""

    def __init__(self, host: str, port: int, behaviour: Behaviour, count: int, *, is_http: bool = False) -> None:
        self._address = (host, port)
        self._greeting = _http("GET", "/health") if is_http else question()
        self._behaviour = behaviour
        self._count = count
        self._sockets: list[socket.socket] = []
        self._unsent: dict[socket.socket, memoryview] = {}

    def __enter__(self) -> Self:
        try:
            for number in range(self._count):
                if number % _ARRIVE_TOGETHER == 0:
                    self._wait_accepted()
                self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def tick(self) -> None:
        """What a second brings. A connection that the node closed is left alone."""
        for connection in self._sockets:
            if self._behaviour.sends_each_second and connection not in self._unsent:
                self._unsent[connection] = memoryview(self._behaviour.sends_each_second)
            if connection in self._unsent:
                self._send(connection)
            if self._behaviour.reads_each_second:
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    connection.recv(self._behaviour.reads_each_second)

    def close(self) -> None:
        for connection in self._sockets:
            connection.close()
        self._sockets.clear()
        self._unsent.clear()

    def _wait_accepted(self) -> None:
        """Until the node has answered one more connection. One that finds the queue full tries again a second later."""
        with socket.create_connection(self._address, timeout=CONNECT_TIMEOUT_S) as last:
            last.sendall(self._greeting)
            # A node that has no place for one more connection closes it, or gives up an older one.
            with contextlib.suppress(ConnectionError):
                last.recv(1)

    def _open(self) -> None:
        connection = socket.socket()
        self._sockets.append(connection)
        if self._behaviour.answers == 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        connection.settimeout(CONNECT_TIMEOUT_S)
        connection.connect(self._address)
        if self._behaviour.answers:
            connection.sendall(self._behaviour.sends)
            received = 0
            while received < self._behaviour.answers:
                received += len(connection.recv(65536)) or self._behaviour.answers
            connection.setblocking(False)
        else:
            connection.setblocking(False)
            self._unsent[connection] = memoryview(self._behaviour.sends)
            self._send(connection)

    def _send(self, connection: socket.socket) -> None:
        unsent = self._unsent[connection]
        try:
            sent = connection.send(unsent)
        except BlockingIOError:
            return
        except ConnectionError:
            sent = len(unsent)
        if sent == len(unsent):
            del self._unsent[connection]
        else:
            self._unsent[connection] = unsent[sent:]


def allow_sockets(count: int) -> bool:
    """Raises this process's limit of open files so far; False when the system does not let it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 200
    if hard != resource.RLIM_INFINITY and wanted > hard:
        return False
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return True


def _framed(api_key: int, version: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size - 4 + len(body), api_key, version, 1, -1) + body
