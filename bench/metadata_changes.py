"""A small change of metadata as bytes: IncrementalAlterConfigs v0 of one config of one topic.

Each is one entry of the metadata log, committed before it is answered. Version 0 has no flexible fields:

    answer   size correlation | throttle count 1 | error message type name
"""

from __future__ import annotations

import socket
from struct import Struct
from typing import Final

from ..local.local_node import HOST, LocalNode
from .wire import RequestRefusedError, frame, text

_KEY, _VERSION = 44, 0
_TOPIC, _SET = 2, 0
_CONFIG: Final = "retention.ms"
_LEAST_VALUE: Final = 600_000_000
_VALUES: Final = 64
_INT = Struct(">i")
_SHORT = Struct(">h")
_ERROR_PLACE: Final = 4 * _INT.size


class MetadataChanges:
    """Changes of one topic, each to another value than the one before."""

    def __init__(self, topic: str) -> None:
        head = _INT.pack(1) + bytes([_TOPIC]) + text(topic) + _INT.pack(1) + text(_CONFIG) + bytes([_SET])
        self._frames = [frame(_KEY, _VERSION, head + text(str(_LEAST_VALUE + one)) + b"\0") for one in range(_VALUES)]
        self._next = 0

    def next(self) -> bytes:
        """Returns a whole request."""
        self._next = (self._next + 1) % _VALUES
        return self._frames[self._next]

    def check(self, answer: bytes | memoryview) -> None:
        """Raises RequestRefusedError unless this whole answer says that it was committed."""
        (code,) = _SHORT.unpack_from(answer, _ERROR_PLACE)
        if code:
            raise RequestRefusedError(f"a prepared change of metadata was answered with error code {code}")


class ImpatientSocket:
    """A connection to a node that may have gone, or stand still: everything ends after `timeout_s`, with OSError."""

    def __init__(self, node: LocalNode, timeout_s: float) -> None:
        self._socket = socket.create_connection((HOST, node.port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> bytes:
        """Returns the whole answer."""
        self._socket.sendall(request)
        answer = self._socket.recv(_INT.size, socket.MSG_WAITALL)
        if len(answer) < _INT.size:
            raise ConnectionError("the broker closed the connection")
        answer += self._socket.recv(int(_INT.unpack(answer)[0]), socket.MSG_WAITALL)
        return answer

    def __enter__(self) -> ImpatientSocket:
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()
