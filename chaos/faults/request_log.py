"""The requests of clients that a node was sent and what it answered: written in the node, read when a test has failed.

One line for each request when it begins and one when it is answered, with the first bytes of both as they were on the
wire; a reader makes names and errors of them. A request without a second line was never answered.
"""

from __future__ import annotations

import json
import os
from binascii import b2a_base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...client import clock

if TYPE_CHECKING:
    from ...broker.network.request import AnswerPart, Request

KEPT_BYTES: Final = 512
"""Of each request and of each answer: whole, but for records."""
_BYTES_MAX: Final = 16 * 1024 * 1024
"""Then the file begins anew, and the one before is kept beside it."""


class RequestLog:
    """In the node."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._bytes_left = 0
        self._entry = 0

    def write_request(self, request: Request) -> int:
        """Returns the number by which the answer is written."""
        self._entry += 1
        body = request.body[request.body_offset : request.body_offset + KEPT_BYTES]
        context = request.context
        self._write(
            [
                self._entry,
                clock.monotonic_ns(),
                int(request.api_key),
                request.api_version,
                request.correlation_id,
                request.client_id,
                f"{context.peer_host}:{context.peer_port}",
                len(request.body) - request.body_offset,
                _text(bytes(body)),
            ]
        )
        return self._entry

    def write_answer(self, entry: int, answer: bytes | Sequence[AnswerPart] | None) -> None:
        """`answer` is None where the connection was closed instead."""
        parts = [answer] if isinstance(answer, bytes) else answer or ()
        size = sum(len(part) if isinstance(part, bytes) else part.size for part in parts)
        first = next((part for part in parts if isinstance(part, bytes)), b"")
        self._write([entry, clock.monotonic_ns(), -1 if answer is None else size, _text(first[:KEPT_BYTES])])

    def _write(self, values: list[object]) -> None:
        line = json.dumps(values).encode() + b"\n"
        if self._bytes_left < len(line):
            self._begin_file()
        self._bytes_left -= len(line)
        os.write(self._descriptor, line)

    def _begin_file(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            os.replace(self._path, older_path(self._path))
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._bytes_left = _BYTES_MAX
        # Numbers of an earlier process mean other requests.
        self._write([0])


def older_path(path: Path) -> Path:
    return path.with_suffix(f"{path.suffix}.1")


def _text(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()
