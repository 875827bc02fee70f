"""The bytes of one connection to a leader: answers one after the other, each whole and in one place."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Final

from ...client.connection import MAX_RESPONSE_SIZE, Connection

SMALL_BUFFER_BYTES: Final = 64 * 1024
"""An idle link holds this much; after a large answer it holds as much as that took, until a small one follows."""

_SIZE = struct.Struct(">i")


class FetcherLink(asyncio.BufferedProtocol):
    """Takes an open connection over; ConnectionError when it is not open any more. `on_answer` gets an answer, which
    stays valid until `release`; then comes the next. `on_lost` gets the reason when there will be no answer any more,
    once."""

    def __init__(
        self, connection: Connection, *, on_answer: Callable[[memoryview], None], on_lost: Callable[[str], None]
    ) -> None:
        # Kept: what made the connection would close it when it goes.
        self._connection = connection
        self._on_answer = on_answer
        self._on_lost: Callable[[str], None] | None = on_lost
        self._buffer = bytearray(SMALL_BUFFER_BYTES)
        self._received_bytes = 0
        # Of the first answer that is not released, its size included; 0 while that is not known.
        self._frame_bytes = 0
        self._is_held = False
        self._transport = connection.hand_over(self)

    @property
    def peer(self) -> str:
        return self._connection.peer

    def send(self, frame: bytes) -> None:
        """Goes nowhere once the connection is lost."""
        if self._on_lost is not None:
            self._transport.write(frame)

    def release(self) -> None:
        """The answer is not used any more; the next may be here already."""
        received = self._received_bytes - self._frame_bytes
        size = len(self._buffer)
        if self._frame_bytes <= SMALL_BUFFER_BYTES < size:
            size = max(received, SMALL_BUFFER_BYTES)
        if received or size != len(self._buffer):
            rest = bytearray(size)
            rest[:received] = memoryview(self._buffer)[self._frame_bytes : self._received_bytes]
            self._buffer = rest
        self._received_bytes, self._frame_bytes = received, 0
        self._is_held = False
        self._find_answer()

    def close(self, reason: str) -> None:
        """Nothing of what is under way is answered any more."""
        self._transport.abort()
        self._lose(reason)

    # What the transport calls.

    def get_buffer(self, _size_hint: int) -> memoryview:
        needed = max(self._frame_bytes, self._received_bytes + 1)
        if needed > len(self._buffer):
            # What was handed out stays in the old one.
            larger = bytearray(needed if needed == self._frame_bytes else 2 * needed)
            larger[: self._received_bytes] = memoryview(self._buffer)[: self._received_bytes]
            self._buffer = larger
        return memoryview(self._buffer)[self._received_bytes :]

    def buffer_updated(self, byte_count: int) -> None:
        self._received_bytes += byte_count
        self._find_answer()

    def _find_answer(self) -> None:
        if self._on_lost is None or self._is_held or self._received_bytes < _SIZE.size:
            return
        if not self._frame_bytes:
            (size,) = _SIZE.unpack_from(self._buffer)
            if not 0 < size <= MAX_RESPONSE_SIZE:
                self.close(f"it announces an answer of {size} bytes")
                return
            self._frame_bytes = _SIZE.size + size
        if self._received_bytes >= self._frame_bytes:
            self._is_held = True
            self._on_answer(memoryview(self._buffer)[_SIZE.size : self._frame_bytes])

    def eof_received(self) -> None:
        self._lose("it closed the connection")

    def connection_lost(self, error: Exception | None) -> None:
        self._lose("it closed the connection" if error is None else str(error))

    def _lose(self, reason: str) -> None:
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None:
            on_lost(reason)
